# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From object files to one shared object, with the linker that is there."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tilewright.core import config
from tilewright.core.errors import InternalError, UserError
from tilewright.runtime.cpu.library import SANITIZER, libtwrt
from tilewright.targets.cpu.symbols import undefined

CANDIDATES = ("ld.lld-22", "/usr/lib/llvm-22/bin/ld.lld", "ld.lld", "ld", "cc", "gcc", "clang")
_HINT = "install one: apt-get install lld-22 (or binutils)"


def find_linker() -> str:
    """Return the path of the linker: TILEWRIGHT_LINKER, else the first candidate on this machine.

    Raises:
        UserError: there is none.
    """
    wanted = config.linker.get()
    if wanted:
        found = shutil.which(wanted)
        if found is None:
            raise UserError(f"TILEWRIGHT_LINKER names {wanted!r}, which is not there")
        return found
    for candidate in CANDIDATES:
        found = shutil.which(candidate)
        if found:
            return found
    raise UserError(f"no linker found (looked for {', '.join(CANDIDATES)}); {_HINT}")


def link_command(linker: str, objects: Sequence[str], output: str) -> list[str]:
    """Return the command; functions of libtwrt and the C library stay undefined and resolve at load."""
    flags = ["-shared", "-o", output]
    options = ["-Bsymbolic", "--hash-style=gnu", "-z", "noexecstack", "--build-id=sha1"]
    if Path(linker).name in ("cc", "gcc", "clang"):
        return [linker, "-nostdlib", *flags, *(f"-Wl,{option}" for option in _joined(options)), *objects]
    return [linker, *flags, *options, *objects]


def _joined(options: Sequence[str]) -> list[str]:
    return " ".join(options).replace("-z ", "-z,").split()


def link(objects: Sequence[bytes], output: str | Path) -> None:
    """Link object codes into the shared object `output`, which appears whole or not at all.

    Raises:
        UserError: there is no linker.
        InternalError: the linker failed, or the code calls what neither the run-time nor the C library has.
    """
    linker = find_linker()
    output = Path(output)
    with tempfile.TemporaryDirectory(prefix="tilewright-link-", dir=output.parent) as folder:
        files = []
        for number, code in enumerate(objects):
            file = Path(folder) / f"{number}.o"
            file.write_bytes(code)
            files.append(str(file))
        result = str(Path(folder) / "model.so")
        command = link_command(linker, files, result)
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise InternalError(f"{linker} failed: {done.stderr.strip()[:2000]}")
        _check_symbols(Path(result).read_bytes())
        os.replace(result, output)


def _check_symbols(code: bytes) -> None:
    """Raise InternalError where loading or calling the code would fail for a symbol that is not there.

    The run-time of a sanitizer is there in the processes that preload it.
    """
    available = libtwrt()  # with the C library and its mathematics, which it is linked with
    missing = [name for name in undefined(code) if not name.startswith(SANITIZER) and not hasattr(available, name)]
    if missing:
        raise InternalError(
            f"the code calls {', '.join(missing)}, which neither the run-time nor the C library has: a pass must "
            "expand the operation behind it"
        )


def finding() -> tuple[str, str]:
    """Which linker is there, for ``tilewright doctor``."""
    linker = find_linker()
    done = subprocess.run([linker, "--version"], capture_output=True, text=True)
    return "ok", f"{linker} ({done.stdout.splitlines()[0] if done.stdout else 'unknown version'})"
