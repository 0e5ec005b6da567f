"""A compiled model made by hand: C code with the ABI of compiled models, built by the system's C compiler.

It computes `scaled = x * w` in one kernel (a task per row) and `count = ids + 1` in another, through the arena.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np

from tilewright.runtime.artifact import write_artifact
from tilewright.runtime.manifest import KernelInfo, Manifest, TensorSpec

COMPILER = shutil.which("cc") or shutil.which("gcc")
ROWS, COLUMNS = 37, 16

SOURCE = """
#include <stdint.h>
typedef struct { float *allocated, *aligned; int64_t offset, sizes[2], strides[2]; } M2;
typedef struct { int64_t *allocated, *aligned; int64_t offset, sizes[1], strides[1]; } M1;
extern void twrt_launch(void (*)(void **, int64_t, int64_t, char *), void **, int64_t, int64_t);
void scale(void **argv, int64_t begin, int64_t end, char *scratch) {
  M2 *x = argv[0], *w = argv[1], *y = argv[2];
  float *row = (float *)scratch;
  for (int64_t i = begin; i < end; ++i) {
    for (int j = 0; j < 16; ++j) row[j] = x->aligned[i * 16 + j] * w->aligned[j];
    for (int j = 0; j < 16; ++j) y->aligned[i * 16 + j] = row[j];
  }
}
void increment(void **argv, int64_t begin, int64_t end, char *scratch) {
  M1 *x = argv[0], *y = argv[1];
  (void)scratch;
  for (int64_t i = begin; i < end; ++i) y->aligned[i] = x->aligned[i] + 1;
}
void tw_main(void **bufs) {
  M2 x = {bufs[0], bufs[0], 0, {37, 16}, {16, 1}}, w = {bufs[4], bufs[4], 0, {1, 16}, {16, 1}};
  M2 y = {bufs[2], bufs[2], 0, {37, 16}, {16, 1}};
  M1 ids = {bufs[1], bufs[1], 0, {4}, {1}}, tmp = {bufs[5], bufs[5], 0, {4}, {1}};
  M1 count = {bufs[3], bufs[3], 0, {4}, {1}};
  int64_t rows = 37, four = 4;
  void *a[] = {&x, &w, &y, &rows}, *b[] = {&ids, &tmp, &four}, *c[] = {&tmp, &count, &four};
  twrt_launch(scale, a, rows, 64);
  twrt_launch(increment, b, four, 0);
  for (volatile int spin = 0; spin < 2000; ++spin) {}
  for (int i = 0; i < 4; ++i) tmp.aligned[i] -= 1;
  twrt_launch(increment, c, four, 0);
}
"""

WEIGHT = np.linspace(-1, 1, COLUMNS, dtype=np.float32).reshape(1, COLUMNS)

MANIFEST = Manifest(
    inputs=(TensorSpec("x", "f32", (ROWS, COLUMNS)), TensorSpec("ids", "i64", (4,))),
    outputs=(TensorSpec("scaled", "f32", (ROWS, COLUMNS)), TensorSpec("count", "i64", (4,))),
    weights=(TensorSpec("w_0", "f32", (1, COLUMNS)),),
    arena_bytes=64,
    kernels=(
        KernelInfo("scale", "scale", 1, ROWS, 64, {"op": "mulf"}),
        KernelInfo("increment", "increment", 2, 4),
    ),
    cpu="x86-64",
    cpu_features=("sse2",),
    producer="test",
)


def build(folder: Path, text: str = SOURCE) -> Path:
    """Build the model in `folder` and return the folder of the artifact."""
    source, code = folder / "model.c", folder / "model.so"
    source.write_text(text)
    command = [COMPILER, "-O2", "-shared", "-fPIC", "-o", str(code), str(source)]
    subprocess.run(command, check=True)
    write_artifact(folder / "model", MANIFEST, code.read_bytes(), {"w_0": WEIGHT, "odd": np.ones(3, np.int8)})
    return folder / "model"


def inputs() -> tuple[np.ndarray, np.ndarray]:
    """Return inputs that fit."""
    x = np.arange(ROWS * COLUMNS, dtype=np.float32).reshape(ROWS, COLUMNS)
    return x, np.array([1, 2, 3, -7], np.int64)
