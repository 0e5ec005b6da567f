# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Campaign `ir`: mutated MLIR text and bytecode for the parser, our verifiers and passes, as `tile-opt` runs them."""

from __future__ import annotations

import io
import os
import random
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from .campaign import Campaign, Contexts, describe

if TYPE_CHECKING:
    from tilewright.mlir import ir

ROOT = Path(__file__).resolve().parents[2]
_TOKEN = re.compile(r'"(?:[^"\\\\]|\\\\.)*"|[%@#!^]?[\w.$]+|->|\s+|.', re.S)
_WORDS = (
    "0",
    "1",
    "-1",
    "4",
    "64",
    "1073741824",
    "9223372036854775807",
    "f32",
    "i1",
    "index",
    "?",
    "x",
    "{}",
    "[]",
    "<>",
)
_LARGEST = 1 << 13
_BYTECODE = b"ML\xefR"
_READING_SECONDS = 10


class IrTexts(Campaign):
    """Tokens of our test files changed at random, then parsed, verified, and given to a pass of ours."""

    name = "ir"
    suffix = ".mlir"

    def prepare(self) -> None:
        """Read the .mlir files of the tree, split at their separators, and the names of our passes."""
        from tilewright.passes.registry import load_builtin_passes, registered_passes

        load_builtin_passes()
        self._passes = sorted({*registered_passes(), *_cpp_passes()})
        self._texts: list[tuple[str, list[str]]] = []  # with the passes that its file is a test of
        for file in sorted(ROOT.glob("test/**/*.mlir")):
            text = file.read_text()
            tested = [name for name in self._passes if re.search(rf"{name}(?![\w-])", text)] or self._passes
            self._texts += [(part, tested) for part in _parts(text)]
        self._words = sorted({t for text, _ in self._texts for t in _TOKEN.findall(text) if not t.isspace()})
        self._contexts = Contexts()
        self._valid = [(text, tested) for text, tested in self._texts if _parsed(self._contexts.next(), text)]

    def case(self, choose: random.Random) -> bytes:
        """One file, changed in one to four places; its first line names the pass. One in eight is bytecode."""
        text, tested = choose.choice(self._valid if choose.random() < 0.8 else self._texts)
        head = f"// pass: {choose.choice(tested if choose.random() < 0.7 else self._passes)}\n"
        if choose.random() < 0.125:
            return head.encode() + self._binary(text, choose)
        tokens = _TOKEN.findall(text)
        for _ in range(choose.choice((0, 1, 1, 2, 4))):
            self._change(tokens, choose)
        return (head + "".join(tokens)).encode()

    def _change(self, tokens: list[str], choose: random.Random) -> None:
        at = choose.randrange(len(tokens))
        kind = choose.randrange(8)
        if kind >= 6:
            alike = [t for t in tokens if _sort(t) == _sort(tokens[at])]
            tokens[at] = choose.choice(alike)
        elif kind == 0:
            del tokens[at]
        elif kind == 1:
            tokens.insert(at, choose.choice(self._words))
        elif kind == 2:
            tokens[at] = choose.choice(self._words)
        elif kind == 3:
            other = choose.randrange(len(tokens))
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif kind == 4:
            tokens[at] = choose.choice(_WORDS)
        else:
            end = min(len(tokens), at + choose.randrange(1, 30))
            tokens[at:at] = tokens[at:end]
        if not tokens:
            tokens.append(" ")

    def _binary(self, text: str, choose: random.Random) -> bytes:
        from tilewright.mlir import ir

        try:
            with self._contexts.next():
                stream = io.BytesIO()
                ir.Module.parse(text).operation.write_bytecode(stream)
        except Exception:  # a text that is invalid on purpose
            return text.encode()
        data = bytearray(stream.getvalue())
        for _ in range(choose.choice((1, 2, 4))):
            data[choose.randrange(len(data))] ^= 1 << choose.randrange(8)
        return bytes(data)

    def execute(self, case: bytes) -> str | None:
        """Parse, verify and run the pass."""
        head, _, body = case.partition(b"\n")
        context, name = self._contexts.next(), head.decode().removeprefix("// pass: ")
        if not body.startswith(_BYTECODE):
            return _run(context, body.decode("utf-8", "replace"), name)
        text, status = _reprinted(context, body)
        if os.WIFSIGNALED(status):
            return f"upstream: the reader of bytecode died of signal {os.WTERMSIG(status)}"
        return _run(context, text, name)

    def is_upstream(self, case: bytes) -> bool:
        """Give the case to mlir-opt and tile-opt, which parse and verify it: do upstream's ops refuse or kill it?"""
        body = case.partition(b"\n")[2]
        other = shutil.which("mlir-opt", path="/usr/lib/llvm-22/bin") or shutil.which("mlir-opt-22")
        if other is not None and self._read(other, body)[0] < 0:
            return True
        status, said = self._read(str(ROOT / ".venv/bin/tile-opt"), body)
        if status < 0:
            innermost = re.search(rb"(\w+)::[\w:]+::(?:parse|verify\w*)\(", said)
            return innermost is not None and innermost[1] != b"tilewright"
        return status > 0 and re.search(rb"error: custom op '(?!tile\.)", said) is not None

    def _read(self, tool: str, body: bytes) -> tuple[int, bytes]:
        """Status of a tool that parses and verifies, and what it says. One that does not end counts as killed."""
        command = [tool, "--allow-unregistered-dialect", "-o", os.devnull]
        try:
            done = subprocess.run(command, input=body, capture_output=True, timeout=self.seconds)
        except subprocess.TimeoutExpired as error:
            return -signal.SIGALRM, error.stderr or b""
        return done.returncode, done.stderr


def _sort(token: str) -> str:
    """Tokens of one sort often fit in each other's places."""
    return "1" if token[0].isdigit() else "a" if token[0].isalpha() else token[0]


def _run(context: ir.Context, text: str, name: str) -> str | None:
    from tilewright.core.errors import TilewrightError
    from tilewright.passes import run_pipeline

    module = _parsed(context, text)
    if module is None:
        return None
    with context:
        try:
            run_pipeline(module.operation, f"builtin.module({name})", replay=False)
        except TilewrightError as error:
            return _python_failure(error)
        except Exception as error:
            return describe(error)
    return None


def _parsed(context: ir.Context, text: str) -> ir.Module | None:
    """The module; None where it is not valid."""
    from tilewright.mlir import ir

    try:
        return ir.Module.parse(text, context)
    except (ir.MLIRError, ValueError, RuntimeError):  # upstream says no in several ways
        return None


def _reprinted(context: ir.Context, data: bytes) -> tuple[str, int]:
    """Bytecode as text, and the status of the process that read it: upstream's reader may corrupt memory."""
    from tilewright.mlir import ir

    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(_READING_SECONDS)
        try:
            with context, os.fdopen(writing, "w") as stream:
                stream.write(str(ir.Module.parse(data)))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, errors="replace") as stream:
        text = stream.read()
    return text, os.waitpid(child, 0)[1]


def _python_failure(error: Exception) -> str | None:
    """A Python pass must refuse what it cannot do with an error of ours, not stumble."""
    from tilewright.core.errors import TilewrightError

    cause = error.__cause__
    return None if cause is None or isinstance(cause, TilewrightError) else describe(cause)


def _parts(text: str) -> list[str]:
    """The modules of a test file, without the lines that tell lit what to do."""
    parts = re.split(r"^// -----.*$", text, flags=re.M)
    bare = [re.sub(r"^\s*//.*\n", "", part, flags=re.M).strip() for part in parts]
    return [part + "\n" for part in bare if part and len(part) <= _LARGEST]


def _cpp_passes() -> list[str]:
    """The arguments of our C++ passes: each runs on a module or on any op."""
    found = []
    for file in sorted(ROOT.glob("lib/**/Passes.td")):
        found += re.findall(r': Pass<"([\w-]+)"', file.read_text())
    return found
