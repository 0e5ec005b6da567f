# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tile.mma whose second operand holds rows that alternate: dot products of bf16 and of bytes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from lib.Conversion.native import Kernel, assembly
from tilewright.devices import get
from tilewright.devices.x86 import dot_products
from tilewright.ir.target_info import annotate
from tilewright.mlir import ir
from tilewright.passes import load_builtin_passes, run_pipeline

RNG = np.random.default_rng(5)
FEATURES = set(get("cpu").features)
#: Each kind with the feature of the instruction, its name, and how many elements it takes of a column.
KINDS = {
    "bf16": ("avx512bf16", "vdpbf16ps", 2, "bf16", "f32"),
    "i8": ("avx512vnni", "vpdpbusd", 4, "i8", "i32"),
}
SHAPES = [(8, 32, 4), (1, 16, 8), (5, 21, 3), (3, 8, 5), (2, 4, 4), (4, 1, 7), (3, 2, 1), (14, 32, 16), (1, 1, 1)]


def kernel(m: int, n: int, k: int, kind: str, flags: str = "") -> str:
    """y = a @ w + y, where w is stored as groups x columns x alternating rows."""
    _, _, group, element, total = KINDS[kind]
    groups = -(-k // group)
    b = f"!tile.tile<{k}x{n}x{element}, #tile.layout<interleave = {group}>>"
    a, c = f"!tile.tile<{m}x{k}x{element}>", f"!tile.tile<{m}x{n}x{total}>"
    memory = f"memref<{groups}x{n}x{group}x{element}>"
    return f"""tile.kernel @k(%x: memref<{m}x{k}x{element}>, %w: {memory}, %y: memref<{m}x{n}x{total}>) {{
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0, %c0] : memref<{m}x{k}x{element}>, {a}
  %b = tile.load %w[%c0, %c0, %c0] dims [0, 1] : {memory}, {b}
  %c = tile.load %y[%c0, %c0] : memref<{m}x{n}x{total}>, {c}
  %d = tile.mma %a, %b, %c {flags} : {a}, {b}, {c}
  tile.store %d, %y[%c0, %c0] : {c}, memref<{m}x{n}x{total}>
  tile.return
}}"""


def grouped(w: np.ndarray, group: int, padding: float) -> np.ndarray:
    """Groups of rows, side by side for each column; the last group is padded."""
    k, n = w.shape
    full = np.full((-(-k // group) * group, n), padding, w.dtype)
    full[:k] = w
    return np.ascontiguousarray(full.reshape(-1, group, n).transpose(0, 2, 1))


def needs(kind: str) -> None:
    """Skip where this CPU lacks the instruction."""
    if KINDS[kind][0] not in FEATURES:
        pytest.skip(f"this CPU has no {KINDS[kind][0]}")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dots", [(), ("i8",)])
@pytest.mark.parametrize("flags", ["a_unsigned", "b_unsigned", "", "a_unsigned b_unsigned"])
def test_bytes_are_exact(shape: tuple[int, int, int], dots: tuple[str, ...], flags: str) -> None:
    """Extremes of both signs: nothing saturates; what pads a group takes no part."""
    if dots:
        needs("i8")
    m, n, k = shape
    left, right = (np.uint8 if name in flags else np.int8 for name in ("a_unsigned", "b_unsigned"))
    a = RNG.integers(np.iinfo(left).min, np.iinfo(left).max + 1, (m, k)).astype(left)
    b = RNG.integers(np.iinfo(right).min, np.iinfo(right).max + 1, (k, n)).astype(right)
    a[0], b[:, 0] = (255 if left == np.uint8 else -128), (255 if right == np.uint8 else -128)
    y = RNG.integers(-(1 << 30), 1 << 30, (m, n)).astype(np.int32)
    want = y + a.astype(np.int32) @ b.astype(np.int32)
    Kernel(kernel(m, n, k, "i8", flags), "k", dots)(a.view(np.int8), grouped(b, 4, 77).view(np.int8), y)
    np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dots", [(), ("bf16",)])
def test_bf16_accumulates_in_f32(shape: tuple[int, int, int], dots: tuple[str, ...]) -> None:
    """Products of bf16 are exact in f32: only the sums round."""
    if dots:
        needs("bf16")
    m, n, k = shape
    a, b = (RNG.standard_normal(s).astype(ml_dtypes.bfloat16) for s in ((m, k), (k, n)))
    y = RNG.standard_normal((m, n), dtype=np.float32)
    want = y + a.astype(np.float64) @ b.astype(np.float64)
    Kernel(kernel(m, n, k, "bf16"), "k", dots)(a.view(np.uint16), grouped(b, 2, 0).view(np.uint16), y)
    np.testing.assert_allclose(y, want, rtol=1e-6, atol=1e-6 * k)


@pytest.mark.parametrize("kind", KINDS)
def test_one_instruction_for_each_group(kind: str) -> None:
    """8 rows of 2 vectors: 16 instructions, and the word of a row is broadcast from memory."""
    needs(kind)
    text = assembly(kernel(8, 32, KINDS[kind][2], kind, "a_unsigned" if kind == "i8" else ""), (kind,))
    assert text.count(KINDS[kind][1]) == 16


@pytest.mark.parametrize("kind", KINDS)
def test_instructions_of_each_cpu(kind: str) -> None:
    """The lowering finds the instructions of the module's device as the plan does (`devices/x86.py`)."""
    text = kernel(8, 32, 4, kind, "a_unsigned" if kind == "i8" else "")
    found = set()
    with ir.Context():
        load_builtin_passes()
        for name in ("x86-64-v3", "x86-64-v4", "icelake-server", "sapphirerapids", "alderlake", "znver4", "znver5"):
            module = ir.Module.parse(f"module {{\n{text}\n}}")
            annotate(module, get(f"cpu:{name}"))
            run_pipeline(module.operation, "builtin.module(convert-tile-to-vector)")
            taken = KINDS[kind][1].lstrip("v") in str(module)
            assert taken == (kind in dot_products(get(f"cpu:{name}").features)), name
            found.add(taken)
    assert found == {True, False}
