# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with weights by a matrix unit (AMX), where this machine has one: bytes exactly, bf16 within its rounding."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tilewright.devices.x86 import matrix_units
from tilewright.runtime.cpu.cpu_features import MATRIX_UNIT, host_features

RNG = np.random.default_rng(29)
UNITS = matrix_units(host_features())
#: Rows, columns, depth: whole blocks; rows that are no multiple of 16, in one task; few rows; a depth and columns that
#: are not made of blocks.
SIZES = [(64, 64, 64), (197, 96, 128), (33, 48, 256), (7, 80, 128), (300, 528, 192), (40, 64, 96), (48, 1000, 64)]


def _model(kind: str, m: int, n: int, w: np.ndarray, after: bool) -> onnx.ModelProto:
    if kind == "i8":
        types, node = (TensorProto.UINT8, TensorProto.INT32), helper.make_node("MatMulInteger", ["x", "w"], ["p"])
    else:
        types, node = (TensorProto.FLOAT, TensorProto.FLOAT), helper.make_node("MatMul", ["x", "w"], ["p"])
    shapes = {"x": [m, w.shape[0]], "y": [m, n]}
    x, y = (helper.make_tensor_value_info(k, t, shapes[k]) for k, t in zip("xy", types, strict=True))
    last = helper.make_node("Relu" if after and kind != "i8" else "Identity", ["p"], ["y"])
    graph = helper.make_graph([node, last], "g", [x], [y], [numpy_helper.from_array(w, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.skipif("i8" not in UNITS, reason="this CPU has no AMX for bytes")
@pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))
@pytest.mark.parametrize("sign", [np.int8, np.uint8])
def test_bytes_are_exact(size: tuple[int, int, int], sign: type) -> None:
    """Extremes of both operands, with one thread and two."""
    m, n, k = size
    x, w = RNG.integers(0, 256, (m, k), np.uint8), RNG.integers(0, 256, (k, n), np.uint8).astype(sign)
    x[0], w[:, 0] = 255, np.iinfo(sign).min or 255
    want = x.astype(np.int32) @ w.astype(np.int32)
    model = _model("i8", m, n, w, after=False)
    for threads in (1, 2):
        np.testing.assert_array_equal(tw.compile(model, threads=threads)(x)[0], want)


@pytest.mark.skipif("bf16" not in UNITS, reason="this CPU has no AMX for bf16")
@pytest.mark.parametrize("size", SIZES, ids=lambda size: "x".join(map(str, size)))
@pytest.mark.parametrize("after", [False, True])
def test_bf16_sums_in_f32(size: tuple[int, int, int], after: bool) -> None:
    """The operands are rounded to bf16; the same bits with one thread and two."""
    m, n, k = size
    x, w = (RNG.standard_normal(s, np.float32) for s in ((m, k), (k, n)))
    model = _model("bf16", m, n, w, after)
    found = [tw.compile(model, threads=threads, precision="bf16")(x)[0] for threads in (1, 2)]
    a, b = (v.astype(ml_dtypes.bfloat16).astype(np.float64) for v in (x, w))
    np.testing.assert_allclose(found[0], np.maximum(a @ b, 0) if after else a @ b, rtol=1e-5, atol=2e-7 * k)
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.skipif("bf16" not in UNITS, reason="this CPU has no AMX for bf16")
def test_only_code_that_uses_it_needs_it() -> None:
    """Models without such products load where the kernel refuses its registers; none of eight registers is spilled."""
    w = RNG.standard_normal((128, 96), np.float32)
    model = _model("bf16", 64, 96, w, after=False)
    assert MATRIX_UNIT & set(tw.compile(model, precision="bf16")._manifest.cpu_features)
    assert not MATRIX_UNIT & set(tw.compile(model)._manifest.cpu_features)


@pytest.mark.skipif("bf16" not in UNITS, reason="this CPU has no AMX for bf16")
@pytest.mark.parametrize("size", [(64, 64, 64), (197, 96, 128), (256, 528, 192)], ids=lambda s: "x".join(map(str, s)))
def test_two_inputs_of_bf16(size: tuple[int, int, int]) -> None:
    """Each task lays out its part of the second one; the result is rounded once."""
    m, n, k = size
    x, w = (RNG.standard_normal(s, np.float32).astype(ml_dtypes.bfloat16) for s in ((m, k), (k, n)))
    shapes = (("x", [m, k]), ("w", [k, n]), ("y", [m, n]))
    values = [helper.make_tensor_value_info(name, TensorProto.BFLOAT16, shape) for name, shape in shapes]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", values[:2], values[2:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    found = [tw.compile(model, threads=threads) for threads in (1, 2)]
    assert "amx-bf16" in found[0]._manifest.cpu_features
    one, two = (np.asarray(f(x, w)[0]).astype(np.float64) for f in found)
    want = x.astype(np.float64) @ w.astype(np.float64)
    np.testing.assert_allclose(one, want, rtol=2**-8, atol=1e-5 * k)
    np.testing.assert_array_equal(one, two)
