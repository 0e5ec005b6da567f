# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of few rows on GPUs with weights that stay small in memory: bytes, int4, scales of columns or of blocks."""

from __future__ import annotations

import re
import shutil
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tilewright.plan.lowbit import fuse_dequantization

ARCHS = ("sm_80", "sm_90a")
KINDS = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
SMALL = {"int8": TensorProto.INT8, "uint8": TensorProto.UINT8, "int4": TensorProto.INT4, "uint4": TensorProto.UINT4}
RANGES = {"int8": (-128, 128), "uint8": (0, 256), "int4": (-8, 8), "uint4": (0, 16)}
#: Relative to the largest result.
ERRORS = {"f32": 1e-5, "f16": 2e-3, "bf16": 2e-2}
RNG = np.random.default_rng(41)


def model(
    m: int, k: int, n: int, floats: str = "f16", small: str = "int8", block: int = 0, point: bool = False
) -> tuple[onnx.ModelProto, np.ndarray, np.ndarray]:
    """`x` [m, k] times dequantized weights, and a bias: model, input, result.

    Args:
        m: rows.
        k: terms of a sum.
        n: columns.
        floats: the type of what is multiplied.
        small: that of the weights.
        block: terms that share a scale; 0: all of a column.
        point: whether there are zero points.
    """
    kind = np.dtype(KINDS[floats])
    low, high = RANGES[small]
    x, w = RNG.standard_normal((m, k)).astype(kind), RNG.integers(low, high, (k, n))
    blocks = k // block if block else 1
    scales = RNG.uniform(0.5, 1.0, (blocks, n)).astype(kind) if block else RNG.uniform(0.5, 1.0, n).astype(kind)
    points = RNG.integers(low, high, scales.shape)
    bias = RNG.standard_normal(n).astype(kind)
    held = [
        helper.make_tensor("w", SMALL[small], w.shape, w.flatten()),
        numpy_helper.from_array(scales, "s"),
        numpy_helper.from_array(bias, "b"),
    ]
    if point:
        held.append(helper.make_tensor("z", SMALL[small], points.shape, points.flatten()))
    way = {"axis": 0, "block_size": block} if block else {"axis": 1}
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "s", *(["z"] if point else [])], ["v"], **way),
        helper.make_node("MatMul", ["x", "v"], ["p"]),
        helper.make_node("Add", ["p", "b"], ["y"]),
    ]
    number = helper.np_dtype_to_tensor_dtype(kind)
    given, made = (helper.make_tensor_value_info(name, number, shape) for name, shape in (("x", [m, k]), ("y", [m, n])))
    proto = helper.make_model(
        helper.make_graph(nodes, "g", [given], [made], held), opset_imports=[helper.make_opsetid("", 21)], ir_version=10
    )
    whole = np.repeat(scales, block, 0) if block else scales
    lowered = (np.repeat(points, block, 0) if block else points) if point else 0
    wide = ((w - lowered).astype(np.float32) * whole.astype(np.float32)).astype(kind).astype(np.float64)
    return proto, x, x.astype(np.float64) @ wide + bias.astype(np.float64)


def predicted(proto: onnx.ModelProto, arch: str) -> list[dict[str, Any]]:
    """The predictions of a plan, in order."""
    text = tw.compile(proto, f"cuda:{arch}", stop_after="plan")
    found = re.findall(r"tile\.prediction = \{([^}]*)\}", text)
    return [dict(re.findall(r'(\w+) = "?([^",]+?)"?(?: : i64)?(?:,|$)', fields)) for fields in found]


def check(proto: onnx.ModelProto, x: np.ndarray, want: np.ndarray, arch: str, error: float, seed: int = 1) -> Any:
    """Run on the emulator; gives the compiled model."""
    compiled = tw.compile(proto, f"cuda:{arch}", emulate={"seed": seed})
    (got,) = compiled(x)
    np.testing.assert_allclose(got.astype(np.float64), want, rtol=0, atol=error * np.abs(want).max())
    return compiled


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights stay small in products of any size."""
    monkeypatch.setattr(fuse_dequantization, "_seconds", lambda op, gpu: 1.0 if len(op.inputs) > 2 else 2.0)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(
    ("m", "floats", "small", "block", "point"),
    [
        (2, "f16", "int8", 0, False),
        (5, "f16", "uint8", 0, True),
        (16, "bf16", "int8", 64, False),
        (16, "f16", "uint4", 32, True),
        (3, "bf16", "int4", 128, False),
        (4, "f32", "int8", 0, False),
        (40, "f32", "uint8", 64, True),
        (70, "f16", "int8", 128, False),
    ],
)
def test_few_rows_read_small_weights(m: int, floats: str, small: str, block: int, point: bool, arch: str) -> None:
    proto, x, want = model(m, 512, 192, floats, small, block, point)
    assert "tile.packed" in tw.compile(proto, f"cuda:{arch}", stop_after="plan")
    compiled = check(proto, x, want, arch, ERRORS[floats])
    assert floats == "f32" or "mma.sync" in "".join(compiled.ptx().values())


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("seed", [2, 3])
@pytest.mark.parametrize(("m", "k", "n", "block"), [(7, 768, 208, 96), (33, 352, 144, 0), (9, 200, 100, 40)])
def test_sizes_that_no_tile_divides(m: int, k: int, n: int, block: int, seed: int, arch: str) -> None:
    proto, x, want = model(m, k, n, "f16", "int8", block, True)
    check(proto, x, want, arch, ERRORS["f16"], seed)


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("m", [2, 8, 16])
@pytest.mark.parametrize("block", [0, 128])
def test_decoding_reads_half_the_bytes(m: int, block: int, arch: str) -> None:
    """By prediction, against the same product with weights of f16."""
    k = n = 4096
    now = predicted(model(m, k, n, "f16", "int8", block)[0], arch)
    number = TensorProto.FLOAT16
    x, y = (helper.make_tensor_value_info(name, number, shape) for name, shape in (("x", [m, k]), ("y", [m, n])))
    w = numpy_helper.from_array(np.ones((k, n), np.float16), "w")
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", [x], [y], [w])
    before = predicted(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), arch)
    assert int(now[0]["memory_bytes"]) < 0.56 * int(before[0]["memory_bytes"])
    worth = 1.0 if block else 0.8  # tiles of 64 lanes and more where scales go through the ring: fewer tasks
    assert sum(int(one["ns"]) for one in now) < worth * sum(int(one["ns"]) for one in before), (now, before)


def test_many_rows_multiply_what_was_widened_before() -> None:
    """Their time is that of the units, and wgmma is faster than mma.sync."""
    text = tw.compile(model(4096, 4096, 4096)[0], "cuda:sm_90a", stop_after="plan")
    assert "tile.packed" not in text and "tile.specialized" in text


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("ptxas") is None, reason="needs ptxas")
@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("m", "floats", "small", "block"), [(16, "f16", "int8", 0), (4, "bf16", "int4", 128)])
def test_full_sizes_assemble(m: int, floats: str, small: str, block: int, arch: str) -> None:
    compiled = tw.compile(model(m, 4096, 4096, floats, small, block)[0], f"cuda:{arch}", emulate=True)
    assert all(kernel.details["spilled_bytes"] == 0 for kernel in compiled._manifest.kernels)
