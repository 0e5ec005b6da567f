# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""NVIDIA's assembler as a check of each kernel: it must take the PTX, and hot kernels must neither spill nor serialize.

Warpgroups that trade registers must find them in what ptxas says each thread is launched with (register_pool.py).

ptxas is optional: without it drivers assemble the PTX when a model is loaded, and a remark says that no one did before.

How many registers a kernel may take follows from its largest CTA, but ptxas may stop before that for the sake of more
CTAs, and spill (64 registers and 8 bytes in memory, where 106 hold all: attention to one block of keys). A kernel that
spills is assembled again with the promise that one CTA per multiprocessor is enough; it ships so where that helps. One
whose blocks stay, as many as the GPU surely holds, says from the start how many that are (`emit.py`).
"""

from __future__ import annotations

import contextvars
import functools
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

from tilewright.core import cache, config
from tilewright.core.errors import InternalError
from tilewright.targets.cuda import register_pool

#: Instructions of a tensor core, in kernels that must not spill.
_HOT = (b"mma.sync", b"wgmma.mma_async")
#: Advice of ptxas on wgmma (C7510 to C7519): it serialized products or waits where none was written.
_SERIALIZED = re.compile(r"\(C75\d\d\)[^\n]*")
_USED = re.compile(r"Used (\d+) registers")
_SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")
_STACK = re.compile(r"(\d+) bytes stack frame")
_CTA = re.compile(rb"^\.maxntid [^\n]*$", re.MULTILINE)
#: Registers that an instruction can name.
_MOST_REGISTERS = 255
#: How many CTAs a multiprocessor must hold at least: one lets a kernel have all of its registers.
ROOM = b".minnctapersm"


class RefusedError(InternalError):
    """ptxas refuses kernels, spills registers of hot ones, or serializes their products.

    Attributes:
        kernels: what it says, by kernel.
    """

    kernels: Mapping[str, str] = {}
    _file: Path | None = None

    def forget(self) -> None:
        """Remove the file that the command of the error names: the kernel was planned anew."""
        if self._file is not None:
            shutil.rmtree(self._file.parent, ignore_errors=True)


@dataclass
class Checked:
    """What ptxas says: remarks, and registers, spilled bytes and machine code (where asked for) by kernel.

    Attributes:
        codes: PTX of kernels that got room for more registers.
    """

    remarks: list[dict[str, str]] = field(default_factory=list)
    resources: dict[str, dict[str, Any]] = field(default_factory=dict)
    cubins: dict[str, bytes] = field(default_factory=dict)
    codes: dict[str, bytes] = field(default_factory=dict)
    seconds: float = 0.0


def find() -> str | None:
    """Return the path of ptxas, or None where it is not installed or switched off."""
    chosen = config.ptxas.get()
    return None if chosen in ("", "0", "off") else shutil.which(chosen)


def finding() -> tuple[str, str]:
    """Which assembler is there, for ``tilewright doctor``."""
    program = find()
    if program is None:
        return "note", "not installed; it checks each kernel for a GPU, and cubin=True needs it (CUDA toolkit)"
    said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.strip().splitlines()
    release = next((line.strip() for line in said if "release" in line), "unknown version")
    return "ok", f"{program} ({release})"


def check(codes: Mapping[str, bytes], arch: str, cubins: bool = False) -> Checked:
    """Assemble each kernel and read what the assembler says; see :class:`Check`.

    Args:
        codes: PTX by kernel.
        arch: e.g. ``sm_90a``.
        cubins: keep the machine code.

    Raises:
        RefusedError: see :meth:`Check.result`.
    """
    with Check(arch, len(codes), cubins) as checking:
        for name in sorted(codes, key=lambda name: -len(codes[name])):
            checking.add(name, codes[name])
        return checking.result(codes)


class Check:
    """A check under way: kernels are assembled as they come, on as many threads as there are cores.

    So the largest one is assembled while LLVM still makes PTX of others.

    Args:
        arch: e.g. ``sm_90a``.
        kernels: how many will come.
        cubins: keep the machine code.
    """

    def __init__(self, arch: str, kernels: int, cubins: bool = False) -> None:
        self._arch, self._cubins = arch, cubins
        self._codes: dict[str, bytes] = {}
        self._first: dict[bytes, str] = {}
        self._done: dict[str, Future[tuple[bytes, int, str, bytes]]] = {}
        self._program = find()
        cores = len(os.sched_getaffinity(0))
        self._threads = ThreadPoolExecutor(cores)
        parts = _in_parts(self._program, cores // max(1, kernels), cubins) if self._program is not None else ()
        self._options = (f"-arch={arch}", "-v", *parts)

    def __enter__(self) -> Check:
        """Begin."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End: kernels that are still to be assembled, after an error, are not."""
        self._threads.shutdown(cancel_futures=True)

    def add(self, name: str, code: bytes) -> None:
        """Assemble a kernel, on another thread; one that differs from another in its name alone is as that one.

        Machine code that is kept has the name in it, and is made for each.
        """
        if self._program is None:
            return
        self._codes[name] = code
        first = name if self._cubins else self._first.setdefault(renamed(code, name, "self"), name)
        if first == name:
            context = contextvars.copy_context()  # overridden settings hold in that thread, too
            arguments = self._program, code, self._options, self._cubins
            self._done[name] = self._threads.submit(context.run, _with_room, *arguments)
        self._done[name] = self._done[first]

    def result(self, order: Iterable[str]) -> Checked:
        """What the assembler said of all kernels, once it has; `seconds` are those that this waits.

        Args:
            order: all kernels, in the order of remarks.

        Raises:
            RefusedError: ptxas refuses a kernel; a kernel with tensor core instructions spills, or is serialized;
                warpgroups ask for more registers than their launch brings.
        """
        start, result = time.perf_counter(), Checked()
        if self._program is None:
            text = "ptxas is not installed: no kernel was assembled, spills are not known"
            result.remarks.append({"severity": "remark", "message": text, "location": ""})
            return result
        refused = {}
        for name in order:
            complaint = self._read(name, result)
            if complaint:
                refused[name] = complaint
        if refused:
            raise _failure(refused, self._codes, self._arch)
        result.seconds = time.perf_counter() - start
        return result

    def _read(self, name: str, result: Checked) -> str:
        """Add what the assembler said of a kernel to a result; returns what is wrong with it."""
        code, status, text, cubin = self._done[name].result()
        if status != 0:
            return f"ptxas refuses it: {text.strip()[:1500]}"
        result.resources[name] = resources(text)
        if self._cubins:
            result.cubins[name] = cubin
        if code not in self._codes.values():
            result.codes[name] = with_room(self._codes[name])
        return _judge(name, code, text, result)


def resources(text: str) -> dict[str, int]:
    """Return registers of a thread, bytes spilled and bytes of the stack, from what ``ptxas -v`` prints.

    A kernel comes first, then the functions that it calls: its registers are the most of all, spilled are those of any.

    >>> resources("0 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads; Used 40 registers")
    {'registers': 40, 'spilled_bytes': 12, 'stack_bytes': 0}
    """
    used, stack = _USED.search(text), _STACK.search(text)
    return {
        "registers": int(used[1]) if used else 0,
        "spilled_bytes": sum(int(stored) + int(loaded) for stored, loaded in _SPILLS.findall(text)),
        "stack_bytes": int(stack[1]) if stack else 0,
    }


def _judge(name: str, code: bytes, text: str, result: Checked) -> str:
    """What is wrong with a kernel that was assembled: what makes it hang, or slow if it is hot; else a remark."""
    serialized = _SERIALIZED.search(text)
    if serialized:
        return f"ptxas serializes its products: {serialized[0].strip()}"
    wrong = register_pool.complaint(code, result.resources[name]["registers"])
    if wrong:
        return wrong
    spilled = result.resources[name]["spilled_bytes"]
    if not spilled:
        return ""
    message = f"its registers spill: {spilled} bytes of loads and stores; smaller tiles or more threads need fewer"
    if any(word in code for word in _HOT):
        return message
    result.remarks.append({"severity": "remark", "message": message, "location": name})
    return ""


def _in_parts(program: str, threads: int, keep: bool) -> tuple[str, ...]:
    """Let ptxas use cores that have no kernel of their own, where it is a check only.

    Code that ships is made by one thread: what several make is as good, but not the same bytes.
    """
    return (f"-split-compile={threads}",) if threads > 1 and not keep and _splits(program) else ()


@functools.cache
def _splits(program: str) -> bool:
    """Whether this release has the option (CUDA 12 brought it)."""
    return "--split-compile" in subprocess.run([program, "--help"], capture_output=True, text=True).stdout


def with_room(code: bytes, ctas: int = 1) -> bytes:
    """A kernel with the promise that some CTAs per multiprocessor are enough; as it is where it has made one."""
    return code if ROOM in code else _CTA.sub(rb"\g<0>\n%b %d" % (ROOM, ctas), code, count=1)


def renamed(code: bytes, old: str, new: str) -> bytes:
    """PTX of a kernel under another name; those of its parameters begin with it.

    Only where it stands as a name: a user's kernel may be called as an instruction is.

    >>> renamed(b".visible .entry add(.param .u64 add_param_0) { add.s64 %rd2, %rd1, 1; }", "add", "sub")
    b'.visible .entry sub(.param .u64 sub_param_0) { add.s64 %rd2, %rd1, 1; }'
    """
    name = re.escape(old.encode())
    places = rb"(?<=\.entry )%b(?=\()|(?<=\.globl\t)%b(?=\s)|(?<![\w.$%%])%b(?=_param_\d)" % (name, name, name)
    return re.sub(places, new.encode(), code)


def _with_room(program: str, code: bytes, options: tuple[str, ...], keep: bool) -> tuple[bytes, int, str, bytes]:
    """The code that ships, and what `_assembled` says of it."""
    status, text, cubin = _assembled(program, code, options, keep)
    used = resources(text)
    spilled, more = used["spilled_bytes"], used["registers"] < _MOST_REGISTERS
    other = with_room(code)
    if status == 0 and spilled and more and other != code:
        found = _assembled(program, other, options, keep)
        if found[0] == 0 and resources(found[1])["spilled_bytes"] < spilled:
            return other, *found
    return code, status, text, cubin


def _assembled(program: str, code: bytes, options: tuple[str, ...], keep: bool) -> tuple[int, str, bytes]:
    """Exit status and output of ptxas, and the machine code if it is to be kept (b"" otherwise, and where it fails).

    All of it comes from the cache where the same code was assembled before.
    """
    key, place = (cache.digest(what, _version(program), code, *options) for what in ("ptxas", "cubin"))
    known, cubin = cache.find_kernel(key), cache.find_kernel(place) if keep else b""
    if known is not None and cubin is not None:
        status, text = json.loads(known)
        return status, text, cubin
    with tempfile.TemporaryDirectory(prefix="tilewright-ptxas-") as folder:
        file = Path(folder) / "kernel.ptx"
        file.write_bytes(code)
        made = file.with_suffix(".cubin")
        done = subprocess.run([program, *options, str(file), "-o", str(made)], capture_output=True, text=True)
        cubin = made.read_bytes() if keep and made.exists() else b""
    found = done.returncode, done.stdout + done.stderr
    cache.add_kernel(key, json.dumps(found).encode())
    if keep:
        cache.add_kernel(place, cubin)
    return *found, cubin


def _version(program: str) -> str:
    found = os.stat(program)
    return f"{program} {found.st_size} {found.st_mtime_ns}"


def _failure(refused: Mapping[str, str], codes: Mapping[str, bytes], arch: str) -> RefusedError:
    """The error about the first of some kernels, and its code in a file."""
    name, message = next(iter(refused.items()))
    file = Path(tempfile.mkdtemp(prefix="tilewright-failed-")) / "kernel.ptx"
    file.write_bytes(codes[name])
    command = f"ptxas -arch={arch} -v {file} -o /dev/null"
    error = RefusedError(f"kernel '{name}': {message}", location=name, command=command)
    error.kernels, error._file = dict(refused), file
    return error
