# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of small numbers that no instruction takes: a remark tells the reason and the node; results are right."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tilewright.devices.x86 import dot_products, matrix_units
from tilewright.runtime.cpu.cpu_features import host_features

RNG = np.random.default_rng(41)
UNITS = matrix_units(host_features())
TYPES = {np.dtype(np.float32): TensorProto.FLOAT, np.dtype(np.uint8): TensorProto.UINT8}


def _product(rows: int | str, w: np.ndarray, wide: int = TensorProto.FLOAT) -> onnx.ModelProto:
    kind = TensorProto.FLOAT if w.dtype == np.float32 else TensorProto.UINT8
    name = "MatMul" if w.dtype == np.float32 else "MatMulInteger"
    x = helper.make_tensor_value_info("x", kind, [rows, w.shape[0]])
    y = helper.make_tensor_value_info("y", wide, [rows, w.shape[1]])
    nodes = [helper.make_node(name, ["x", "w"], ["y"], name="layer3")]
    graph = helper.make_graph(nodes, "g", [x], [y], [numpy_helper.from_array(w, "w")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def _remarks(model: tw.Model) -> list[tuple[str, str]]:
    found = model.report_data().get("remarks", [])
    return [(r["location"].strip('"'), r["message"]) for r in found if r["message"].startswith("multiplies")]


def test_machine_without_instructions() -> None:
    """A product of bytes on a machine without VNNI; a small one is not told."""
    w = RNG.integers(-128, 128, (256, 128)).astype(np.int8)
    model = tw.compile(_product(64, w, TensorProto.INT32), "cpu:x86-64-v3")
    (where, message), *more = _remarks(model)
    assert where == "layer3" and not more
    assert message == "multiplies bytes in i32: this machine has no instruction that multiplies bytes faster"
    x = RNG.integers(0, 256, (64, 256), np.uint8)
    np.testing.assert_array_equal(model(x)[0], x.astype(np.int32) @ w.astype(np.int32))
    assert not _remarks(tw.compile(_product(2, w, TensorProto.INT32), "cpu:x86-64-v3"))


@pytest.mark.skipif("bf16" not in UNITS, reason="this CPU has no AMX for bf16")
@pytest.mark.parametrize(
    ("m", "k", "reason"),
    [
        (64, 256, None),
        (1, 1024, "it has one row, and a matrix unit takes several"),
        (64, 250, "its sums of 250 are no multiple of the matrix unit's 32"),
    ],
)
def test_precision_bf16(m: int, k: int, reason: str | None) -> None:
    """The operands are rounded to bf16 all the same, and weights under one row kept so: half the bytes of a step."""
    w = RNG.standard_normal((k, 512), np.float32)
    model = tw.compile(_product(m, w), precision="bf16")
    told = [("layer3", f"multiplies bf16 in f32: {reason}")] if reason else []
    assert _remarks(model) == told
    x = RNG.standard_normal((m, k), np.float32)
    a, b = (v.astype(ml_dtypes.bfloat16).astype(np.float64) for v in (x, w))
    np.testing.assert_allclose(model(x)[0], a @ b, rtol=1e-5, atol=2e-7 * k)
    if m == 1:
        assert f"tensor<8x{k}x64xbf16>" in tw.compile(_product(m, w), precision="bf16", stop_after="plan")


def test_one_row_of_bytes() -> None:
    """Vectors of bytes meet one row, too."""
    w = RNG.integers(-128, 128, (512, 1000)).astype(np.int8)
    proto = _product(1, w, TensorProto.INT32)
    x = RNG.integers(0, 256, (1, 512), np.uint8)
    model = tw.compile(proto)
    np.testing.assert_array_equal(model(x)[0], x.astype(np.int32) @ w.astype(np.int32))
    assert bool(_remarks(model)) == ("i8" not in dot_products(host_features()))
    assert "interleave = 4" in tw.compile(proto, "cpu:znver5", stop_after="tile")
