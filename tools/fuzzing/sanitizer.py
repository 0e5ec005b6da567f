# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Processes that run code compiled with TILEWRIGHT_SANITIZE=address, and what AddressSanitizer reports of them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

_RUNTIME = "libclang_rt.asan-x86_64.so"
_COMPILERS = ("clang-22", "/usr/lib/llvm-22/bin/clang", "clang")
#: How a process ends that accessed what it may not.
EXIT_CODE = 86
_OPTIONS = {
    "detect_leaks": 0,  # the interpreter leaves its memory to the system
    "exitcode": EXIT_CODE,
    "allocator_may_return_null": 1,
    "max_allocation_size_mb": 8192,
    "hard_rss_limit_mb": 12288,
    "quarantine_size_mb": 64,
    "malloc_context_size": 4,
}
_KINDS = {
    "heap-buffer-overflow": "outside of a buffer",
    "use-after-poison": "between the places of the arena or of a kernel's local memory, or in one that is not live",
    "heap-use-after-free": "in a buffer that was freed",
    "global-buffer-overflow": "outside of a constant of the code",
    "stack-buffer-overflow": "outside of a local variable",
}
_HEAD = re.compile(r"ERROR: AddressSanitizer: (\S+)")
_ACCESS = re.compile(r"^(READ|WRITE) of size (\d+)", re.MULTILINE)
_FRAME = re.compile(r"^ +#\d+ 0x[0-9a-f]+ in (?!__asan|__interceptor)(\S+)", re.MULTILINE)
_PLACE = re.compile(r"is located (\d+ bytes (?:after|before|inside of) \d+-byte region)")


@lru_cache(maxsize=1)
def missing() -> str | None:
    """Why no process can run checked code here; None where one can."""
    if _libraries() is None:
        return f"clang's {_RUNTIME} is not installed (Debian: libclang-rt-22-dev)"
    return None


@lru_cache(maxsize=1)
def _libraries() -> list[str] | None:
    """What such a process preloads: the run-time, and the C++ library whose exceptions it must find at its start."""
    compiler = next(filter(None, map(shutil.which, _COMPILERS)), None)
    if compiler is None:
        return None
    names = (_RUNTIME, "libstdc++.so.6")
    found = [
        subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True).stdout.strip()
        for name in names
    ]
    return found if all(Path(path).is_file() for path in found) else None


def environment() -> dict[str, str]:
    """Variables of a process that compiles with checks, and runs what it compiles.

    Raises:
        RuntimeError: the run-time of the sanitizer is not there.
    """
    libraries = _libraries()
    if libraries is None:
        raise RuntimeError(missing())
    options = {**_OPTIONS}
    symbolizer = shutil.which("llvm-symbolizer-22") or shutil.which("/usr/lib/llvm-22/bin/llvm-symbolizer")
    texts = [f"{name}={value}" for name, value in options.items()]
    if symbolizer:
        texts.append(f"external_symbolizer_path={symbolizer}")
    return {"TILEWRIGHT_SANITIZE": "address", "LD_PRELOAD": ":".join(libraries), "ASAN_OPTIONS": ":".join(texts)}


def entered() -> None:
    """Let processes that this one starts (compile workers, the linker) run without the sanitizer."""
    os.environ.pop("LD_PRELOAD", None)


def message(errors: str) -> str | None:
    """One line of a report: which function read or wrote how much, and where. None where there is no report."""
    head, access, frame = _HEAD.search(errors), _ACCESS.search(errors), _FRAME.search(errors)
    if head is None:
        return None
    what = f"{access[1].lower()}s {access[2]} bytes" if access else "accesses memory"
    place = _PLACE.search(errors)
    where = _KINDS.get(head[1], "that it must not")
    return f"{frame[1] if frame else '?'} {what} {where} ({head[1]}{', ' + place[1] if place else ''})"
