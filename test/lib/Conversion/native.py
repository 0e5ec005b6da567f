# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compile hand-written kernels and run them on NumPy arrays, by the ABI alone: for tests of the lowering.

Kernels are lowered for the vectors of this CPU. A worker process makes the code: LLVM may abort.
"""

from __future__ import annotations

import ctypes
import functools
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tilewright import devices
from tilewright.core.workers import Job, shared_pool
from tilewright.ir.target_info import annotate
from tilewright.mlir import ir
from tilewright.passes import run_pipeline
from tilewright.passes.pipeline import Phase
from tilewright.pipelines.cpu_lower import LOWER, SCHEDULE
from tilewright.targets.registry import parse_target

# A launch with no threads: all tasks in one call.
_LAUNCH = """
#include <stdint.h>
#include <stdlib.h>
void twrt_launch(void (*fn)(void **, int64_t, int64_t, char *), void **argv, int64_t tasks, int64_t bytes) {
  char *scratch = aligned_alloc(64, (bytes + 64) / 64 * 64);
  fn(argv, 0, tasks, scratch);
  free(scratch);
}
"""


#: Features that have the instructions for products in groups.
_DOTS = {"bf16": ("avx512bf16", "avx512vl", "clzero"), "i8": ("avxvnni",)}


def _device(dots: tuple[str, ...]) -> devices.Device:
    """This CPU with those products in groups, and no others."""
    host = devices.get("cpu")
    others = {name for name in host.features if name.endswith(("vnni", "bf16"))}
    return replace(host, features=(*sorted({*host.features} - others), *(n for kind in dots for n in _DOTS[kind])))


def lower(text: str, schedule: bool = False, dots: tuple[str, ...] = ()) -> str:
    """The llvm dialect of a module of kernels (or, with `schedule`, of kernels and @main on tensors).

    `dots` names the element types whose products in groups become one instruction.
    """
    with ir.Context() as context:
        from tilewright.passes.registry import load_builtin_passes

        load_builtin_passes()
        module = ir.Module.parse(f"module {{\n{text}\n}}", context)
        annotate(module, _device(dots))
        passes = [*SCHEDULE, *LOWER] if schedule else LOWER
        run_pipeline(module.operation, str(Phase("lower", passes)))
        return str(module)


def emit(code: str, module: str | bytes, cpu: str, features: str) -> bytes:
    """Code of a module of the llvm dialect; `code` is ``object``, ``ptx``, ``assembly`` or ``llvm-ir``.

    Raises:
        InternalError: LLVM refuses it, or died of it.
    """
    source = module.encode() if isinstance(module, str) else module
    return shared_pool().compile([Job("test", source, cpu, features, code=code)])[0]


def _emit_here(code: str, module: str) -> bytes:
    target = parse_target("cpu")
    return emit(code, module, target.cpu, target.features)


def assembly(text: str, dots: tuple[str, ...] = ()) -> str:
    """Assembly of a module of kernels for this CPU."""
    return _emit_here("assembly", lower(text, dots=dots)).decode()


@functools.lru_cache(maxsize=64)
def load(text: str, schedule: bool = False, dots: tuple[str, ...] = ()) -> ctypes.CDLL:
    """A module as a loaded library."""
    code = _emit_here("object", lower(text, schedule, dots))
    folder = Path(tempfile.mkdtemp(prefix="tilewright-test-"))
    try:
        (folder / "code.o").write_bytes(code)
        (folder / "launch.c").write_text(_LAUNCH)
        library = folder / "code.so"
        command = ["cc", "-shared", "-fPIC", "-O1", "-o", library, folder / "code.o", folder / "launch.c"]
        subprocess.run(command, check=True)
        return ctypes.CDLL(str(library))
    finally:
        shutil.rmtree(folder)


def descriptor(array: np.ndarray) -> ctypes.Array:
    """The memref descriptor of an array of any strides."""
    words = [array.ctypes.data, array.ctypes.data, 0, *array.shape]
    words += [stride // array.itemsize for stride in array.strides]
    return (ctypes.c_int64 * len(words))(*words)


class Kernel:
    """A compiled kernel: call it with arrays (or 1-element arrays for scalars) and the grid."""

    def __init__(self, text: str, name: str, dots: tuple[str, ...] = ()) -> None:
        self.library = load(text, dots=dots)
        self.function = getattr(self.library, name)

    def prepare(self, arrays: Sequence[np.ndarray], grid: Sequence[int] = ()) -> tuple:
        """Arguments of the function; keep them alive while it runs."""
        held = [descriptor(a) if a.ndim else (ctypes.c_char * a.nbytes).from_buffer(a) for a in arrays]
        held += [ctypes.c_int64(bound) for bound in grid]
        argv = (ctypes.c_void_p * len(held))(*[ctypes.addressof(item) for item in held])
        scratch = np.zeros((1 << 20) + 64, np.uint8)
        start = -scratch.ctypes.data % 64 + scratch.ctypes.data
        return argv, ctypes.c_int64(0), ctypes.c_int64(int(np.prod(grid))), ctypes.c_void_p(start), held, scratch

    def __call__(self, *arrays: np.ndarray, grid: Sequence[int] = ()) -> None:
        """Run all tasks; results appear in the arrays."""
        arguments = self.prepare(arrays, grid)
        self.function(*arguments[:4])


def call_main(
    text: str,
    inputs: Sequence[np.ndarray],
    outputs: Sequence[np.ndarray],
    weights: Sequence[np.ndarray],
    arena: int,
) -> None:
    """Run tw_main of a module of kernels and @main; results appear in `outputs`."""
    memory = np.zeros(arena + 64, np.uint8)
    pointers = [a.ctypes.data for a in (*inputs, *outputs, *weights)]
    pointers.append(memory.ctypes.data + -memory.ctypes.data % 64)
    load(text, schedule=True).tw_main((ctypes.c_void_p * len(pointers))(*pointers))
