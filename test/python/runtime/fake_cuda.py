# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fake CUDA driver of fake_cuda.c: built once, set up by tests, read back as the lines of its log."""

from __future__ import annotations

import contextlib
import ctypes
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang-22")
HEADER = next((p for p in (Path("/usr/local/cuda/include/cuda.h"), Path("/usr/include/cuda.h")) if p.exists()), None)

HOPPER = {0: 1, 1: 1024, 5: 2**31 - 1, 6: 65535, 7: 65535, 16: 132, 75: 9, 76: 0, 97: 232448, 115: 1, 120: 1}
AMPERE = HOPPER | {16: 108, 75: 8, 97: 166912, 120: 0}
LIVE = ("contexts", "modules", "streams", "events", "graphs", "executables", "pools", "blocks")
#: Microseconds that the GPU takes for a kernel, "fill" or "copy", launched with a grid and a block.
Durations = Callable[[str, tuple[int, ...], tuple[int, ...]], float]
_TIMER = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint))
PTX = b".version 8.0\n.entry add 8 8 8 4\n.entry show 8 4 128 1\n"
CUBIN = PTX.replace(b".version 8.0", b"\x7fELF")


def build(folder: Path) -> Path:
    """Compile the fake driver; against NVIDIA's header where there is one, so that no signature is made up."""
    library = folder / "libcuda_fake.so"
    header = [f"-I{HEADER.parent}", "-DHAVE_CUDA_H"] if HEADER else []
    flags = ["-O1", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", *header]
    source = Path(__file__).with_suffix(".c")
    subprocess.run([COMPILER, *flags, "-o", str(library), str(source)], check=True)
    return library


class FakeCuda:
    """What tests do with the loaded library."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._library = ctypes.CDLL(str(path))
        self._library.fake_log.restype = ctypes.c_char_p

    def reset(self, attributes: dict[int, int] = HOPPER, memory: int = 1 << 24) -> None:
        for number in range(256):
            self._library.fake_attribute(number, attributes.get(number, 0))
        self._library.fake_memory(ctypes.c_size_t(memory))
        self._library.fake_fail(b"", 0)
        self._library.fake_clear()

    def fail(self, name: str, code: int) -> None:
        """Let the next call of a function return `code`."""
        self._library.fake_fail(name.encode(), code)

    def log(self, word: str = "") -> list[str]:
        """Return the lines that start with `word`."""
        return [line for line in self._library.fake_log().decode().splitlines() if line.startswith(word)]

    @contextlib.contextmanager
    def timed(self, durations: Durations, call: float) -> Iterator[None]:
        """Let the GPU take its time meanwhile, behind a host of which each call takes `call` microseconds."""

        def timer(name: bytes, shape) -> float:
            return durations(name.decode(), tuple(shape[:3]), tuple(shape[3:6]))

        function = _TIMER(timer)
        self._library.fake_timer(function, ctypes.c_double(call))
        try:
            yield
        finally:
            self._library.fake_timer(_TIMER(), ctypes.c_double(0))

    def clear(self) -> None:
        self._library.fake_clear()

    @property
    def live(self) -> dict[str, int]:
        """Objects that exist."""
        return {name: count for number, name in enumerate(LIVE) if (count := self._library.fake_live(number))}
