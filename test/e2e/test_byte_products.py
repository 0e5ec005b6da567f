# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Quantized products, compiled: integers exactly, dequantized ones as in f32."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw
from tilewright.devices import get
from tilewright.devices.x86 import dot_products
from tilewright.runtime.cpu.cpu_features import host_features

RNG = np.random.default_rng(11)
KINDS = {np.uint8: TensorProto.UINT8, np.int8: TensorProto.INT8, np.float32: TensorProto.FLOAT}


def _extremes(shape: tuple[int, ...], dtype: type) -> np.ndarray:
    """Random bytes with a row and a column of extremes."""
    info = np.iinfo(dtype)
    x = RNG.integers(info.min, info.max + 1, shape).astype(dtype)
    x[0], x[:, 0] = info.max, info.min
    return x


def _model(nodes: list, given: dict, weights: dict, output: tuple) -> onnx.ModelProto:
    inputs = [helper.make_tensor_value_info(n, KINDS[x.dtype.type], x.shape) for n, x in given.items()]
    constants = [numpy_helper.from_array(np.asarray(x), n) for n, x in weights.items()]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_tensor_value_info("y", *output)], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("target", ["cpu", "cpu:x86-64-v3"])
@pytest.mark.parametrize("left", [np.uint8, np.int8])
@pytest.mark.parametrize(("right", "points"), [(np.int8, (0, 0)), (np.int8, (5, 0)), (np.uint8, (9, 131))])
def test_integer_product_is_exact(target: str, left: type, right: type, points: tuple[int, int]) -> None:
    """Ragged sizes (primes), zero points, both signs: what a byte's product cannot saturate."""
    x, w = _extremes((7, 61), left), _extremes((61, 37), right)
    zeros = {"zx": left(points[0]), "zw": right(points[1])}
    nodes = [helper.make_node("MatMulInteger", ["x", "w", "zx", "zw"], ["y"])]
    model = tw.compile(_model(nodes, {"x": x}, {"w": w, **zeros}, (TensorProto.INT32, [7, 37])), target)
    want = (x.astype(np.int32) - points[0]) @ (w.astype(np.int32) - points[1])
    np.testing.assert_array_equal(model(x)[0], want)


@pytest.mark.parametrize(
    ("target", "signs"),
    [
        *(("cpu", (a, b)) for a in (np.uint8, np.int8) for b in (np.uint8, np.int8)),
        *(("cpu:icelake-server", (a, a)) for a in (np.uint8, np.int8)),
        ("cpu:x86-64-v3", (np.uint8, np.int8)),
    ],
)
@pytest.mark.parametrize("size", [(128, 96, 256), (101, 53, 67)], ids=lambda s: "x".join(map(str, s)))
def test_two_inputs_of_bytes(target: str, signs: tuple[type, type], size: tuple[int, int, int]) -> None:
    """Both operands come with the run, of any signs, with a zero point of each row and of each column."""
    _require(target)
    m, n, k = size
    x, w = _extremes((m, k), signs[0]), _extremes((k, n), signs[1])
    zeros = {"zx": _extremes((m, 1), signs[0])[:, 0], "zw": _extremes((1, n), signs[1])[0]}
    nodes = [helper.make_node("MatMulInteger", ["x", "w", "zx", "zw"], ["y"])]
    for fixed in (True, False):  # zero points that are weights; those that come with the run
        left = zeros["zx"] if fixed else zeros["zx"][:1]
        want = (x.astype(np.int32) - left[:, None].astype(np.int32)) @ (w.astype(np.int32) - zeros["zw"])
        points = {"zx": left, "zw": zeros["zw"]}
        inputs = {"x": x, "w": w} if fixed else {"x": x, "w": w, **points}
        proto = _model(nodes, inputs, points if fixed else {}, (TensorProto.INT32, [m, n]))
        np.testing.assert_array_equal(tw.compile(proto, target)(*inputs.values())[0], want)
    assert _in_groups(proto, target) == _has_dots(target)


def _has_dots(target: str) -> bool:
    """Whether the target's CPU has the instruction for four products of bytes."""
    return "i8" in dot_products(get(target).features)


def _in_groups(proto: onnx.ModelProto, target: str) -> bool:
    """Whether kernels multiply bytes by it: the right operand lies in groups of four."""
    return "interleave = 4" in tw.compile(proto, target, stop_after="tile")


def _require(target: str) -> None:
    """Skips where this machine cannot run what is compiled for another one."""
    if target == "cpu:icelake-server" and "avx512vnni" not in host_features():
        pytest.skip("this CPU has no instruction for products of bytes")


def test_dynamically_quantized_product() -> None:
    """DynamicQuantizeLinear chooses scale and zero point in the run; the product is one of bytes."""
    x, w = RNG.standard_normal((40, 64)).astype(np.float32), _extremes((64, 32), np.int8)
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "w", "z"], ["p"]),
        helper.make_node("Cast", ["p"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "s"], ["y"]),
    ]
    proto = _model(nodes, {"x": x}, {"w": w}, (TensorProto.FLOAT, [40, 32]))
    scale = np.float32((max(x.max(), 0) - min(x.min(), 0)) / np.float32(255))
    zero = np.clip(np.rint(-min(x.min(), 0) / scale), 0, 255)
    q = np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.int64) - int(zero)
    np.testing.assert_allclose(tw.compile(proto)(x)[0], (q @ w.astype(np.int64)) * scale, rtol=1e-5)
    assert "interleave = 4" in tw.compile(proto, "cpu:znver5", stop_after="tile")


def test_dequantized_product_multiplies_bytes() -> None:
    """QuantizeLinear, DequantizeLinear, MatMul: the kernel multiplies bytes, the numbers are those of f32."""
    x = RNG.standard_normal((9, 67)).astype(np.float32)
    weights = {
        "sx": np.float32(0.03),
        "zx": np.uint8(120),
        "w": _extremes((67, 29), np.int8),
        "sw": RNG.uniform(0.001, 0.01, 29).astype(np.float32),
        "zw": np.zeros(29, np.int8),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "sx", "zx"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "sx", "zx"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["v"], axis=1),
        helper.make_node("MatMul", ["d", "v"], ["y"]),
    ]
    proto = _model(nodes, {"x": x}, weights, (TensorProto.FLOAT, [9, 29]))
    q = np.clip(np.rint(x / np.float32(0.03)) + 120, 0, 255).astype(np.int64) - 120
    want = (q @ weights["w"].astype(np.int64)) * (0.03 * weights["sw"].astype(np.float64))
    np.testing.assert_allclose(tw.compile(proto)(x)[0], want, rtol=1e-5, atol=1e-5)
    text = tw.compile(proto, "cpu:znver5", stop_after="tile")
    assert "tile.mma" in text and "interleave = 4" in text
    assert "interleave" not in tw.compile(proto, "cpu:x86-64-v3", stop_after="tile")


#: Inputs, outputs, size of the image and of the window, stride, groups.
CONVOLUTIONS = [
    (64, 64, 14, 3, 1, 1),
    (20, 40, 13, 3, 2, 1),
    (64, 48, 9, 1, 1, 1),
    (32, 64, 9, 3, 1, 2),
    (3, 16, 9, 3, 2, 1),
]


@pytest.mark.parametrize(
    ("target", "left", "right", "points"),
    [
        ("cpu", np.uint8, np.int8, (3, 0)),
        ("cpu", np.int8, np.uint8, (-5, 131)),
        ("cpu:icelake-server", np.int8, np.int8, (-5, 0)),
        ("cpu:icelake-server", np.uint8, np.uint8, (9, 128)),
        ("cpu:x86-64-v3", np.uint8, np.int8, (3, 0)),
    ],
)
@pytest.mark.parametrize("shape", CONVOLUTIONS, ids=lambda s: "x".join(map(str, s)))
def test_integer_convolution_is_exact(target: str, left: type, right: type, points: tuple, shape: tuple) -> None:
    """Borders hold the zero point; that of the weights is corrected by sums of windows."""
    _require(target)
    c, o, size, window, stride, groups = shape
    x, w = _extremes((1, c, size, size), left), _extremes((o, c // groups, window, window), right)
    zeros = {"zx": left(points[0]), "zw": np.full(o, points[1], right)}
    pad = window // 2
    out = (size + 2 * pad - window) // stride + 1
    attributes = dict(pads=[pad] * 4, strides=[stride] * 2, group=groups)
    nodes = [helper.make_node("ConvInteger", ["x", "w", "zx", "zw"], ["y"], **attributes)]
    proto = _model(nodes, {"x": x}, {"w": w, **zeros}, (TensorProto.INT32, [1, o, out, out]))
    image = np.pad(x.astype(np.int64) - points[0], [(0, 0), (0, 0), (pad, pad), (pad, pad)])
    filters = (w.astype(np.int64) - points[1]).reshape(groups, o // groups, c // groups, window, window)
    patches = np.lib.stride_tricks.sliding_window_view(image[0], (window, window), (1, 2))[:, ::stride, ::stride]
    patches = patches.reshape(groups, c // groups, out, out, window, window)
    want = np.einsum("gcijkl,gockl->goij", patches, filters).reshape(1, o, out, out)
    np.testing.assert_array_equal(tw.compile(proto, target)(x)[0], want)
    assert c // groups <= 3 or _in_groups(proto, target) == _has_dots(target)


def test_convolution_between_dequantized_images() -> None:
    """QuantizeLinear, DequantizeLinear, Conv, Relu: a convolution of bytes, with a scale of each channel."""
    x, w = RNG.standard_normal((1, 32, 10, 10)).astype(np.float32), _extremes((32, 32, 3, 3), np.int8)
    scales = RNG.uniform(0.001, 0.01, 32).astype(np.float32)
    weights = {"sx": np.float32(0.03), "zx": np.uint8(120), "w": w, "sw": scales, "zw": np.zeros(32, np.int8)}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "sx", "zx"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "sx", "zx"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["v"], axis=0),
        helper.make_node("Conv", ["d", "v"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    proto = _model(nodes, {"x": x}, weights, (TensorProto.FLOAT, [1, 32, 10, 10]))
    q = np.clip(np.rint(x / np.float32(0.03)) + 120, 0, 255).astype(np.int64) - 120
    image = np.pad(q, [(0, 0), (0, 0), (1, 1), (1, 1)])[0]
    patches = np.lib.stride_tricks.sliding_window_view(image, (3, 3), (1, 2))
    want = np.einsum("cijkl,ockl->oij", patches, w.astype(np.int64)) * (0.03 * scales.astype(np.float64))[:, None, None]
    np.testing.assert_allclose(tw.compile(proto)(x)[0][0], np.maximum(want, 0), rtol=1e-5, atol=1e-5)
    assert "interleave = 4" in tw.compile(proto, "cpu:znver5", stop_after="tile")


def _open_rows(nodes: list, x: np.ndarray, weights: dict, kind: int, columns: int) -> onnx.ModelProto:
    """A model whose number of rows a run brings."""
    proto = _model(nodes, {"x": x}, weights, (kind, ["n", columns]))
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    return proto


OPEN_ROWS = (1, 7, 16, 33, 128)


@pytest.mark.parametrize("target", ["cpu", "cpu:icelake-server", "cpu:x86-64-v3"])
@pytest.mark.parametrize(
    ("left", "right", "points"),
    [(np.uint8, np.int8, (3, 0)), (np.int8, np.int8, (-5, 7)), (np.uint8, np.uint8, (0, 131))],
)
@pytest.mark.parametrize("size", [(64, 256), (37, 61)], ids=lambda s: "x".join(map(str, s)))
def test_rows_of_the_run(target: str, left: type, right: type, points: tuple[int, int], size: tuple[int, int]) -> None:
    """One artifact for any number of rows: exact, by the vectors' instruction for bytes."""
    _require(target)
    n, k = size
    x, w = _extremes((128, k), left), _extremes((k, n), right)
    nodes = [helper.make_node("MatMulInteger", ["x", "w", "zx", "zw"], ["y"])]
    zeros = {"zx": left(points[0]), "zw": right(points[1])}
    proto = _open_rows(nodes, x, {"w": w, **zeros}, TensorProto.INT32, n)
    model = tw.compile(proto, target)
    want = (x.astype(np.int32) - points[0]) @ (w.astype(np.int32) - points[1])
    for rows in OPEN_ROWS:
        np.testing.assert_array_equal(model(x[:rows])[0], want[:rows])
    assert target != "cpu:icelake-server" or "interleave = 4" in tw.compile(proto, target, stop_after="tile")


@pytest.mark.parametrize("target", ["cpu", "cpu:icelake-server"])
def test_dequantized_rows_of_the_run(target: str) -> None:
    """Between DequantizeLinear, with a scale of each column, and something elementwise behind."""
    _require(target)
    x = RNG.standard_normal((128, 67)).astype(np.float32)
    w, scales = _extremes((67, 29), np.int8), RNG.uniform(0.001, 0.01, 29).astype(np.float32)
    weights = {"sx": np.float32(0.03), "zx": np.uint8(120), "w": w, "sw": scales, "zw": np.zeros(29, np.int8)}
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "sx", "zx"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "sx", "zx"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["v"], axis=1),
        helper.make_node("MatMul", ["d", "v"], ["p"]),
        helper.make_node("Relu", ["p"], ["y"]),
    ]
    proto = _open_rows(nodes, x, weights, TensorProto.FLOAT, 29)
    model = tw.compile(proto, target)
    q = np.clip(np.rint(x / np.float32(0.03)) + 120, 0, 255).astype(np.int64) - 120
    want = np.maximum((q @ w.astype(np.int64)) * (0.03 * scales.astype(np.float64)), 0)
    for rows in OPEN_ROWS:
        np.testing.assert_allclose(model(x[:rows])[0], want[:rows], rtol=1e-5, atol=1e-5)
    assert target == "cpu" or "interleave = 4" in tw.compile(proto, target, stop_after="tile")


def test_batches_and_lines_of_the_run() -> None:
    """Two open dimensions become the rows; scale and zero point are chosen in the run."""
    w = _extremes((64, 48), np.int8)
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["q", "s", "z"]),
        helper.make_node("MatMulInteger", ["q", "w", "z"], ["p"]),
        helper.make_node("Cast", ["p"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "s"], ["y"]),
    ]
    x = RNG.standard_normal((4, 33, 64)).astype(np.float32)
    proto = _model(nodes, {"x": x}, {"w": w}, (TensorProto.FLOAT, ["b", "n", 48]))
    for name, dim in zip("bn", proto.graph.input[0].type.tensor_type.shape.dim[:2], strict=True):
        dim.dim_param = name
    model = tw.compile(proto)
    for shape in ((1, 1), (2, 7), (4, 33)):
        x = RNG.standard_normal((*shape, 64)).astype(np.float32)
        scale = np.float32((max(x.max(), 0) - min(x.min(), 0)) / np.float32(255))
        zero = np.clip(np.rint(-min(x.min(), 0) / scale), 0, 255)
        q = np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.int64) - int(zero)
        np.testing.assert_allclose(model(x)[0], (q @ w.astype(np.int64)) * scale, rtol=1e-5)
    assert "interleave = 4" in tw.compile(proto, "cpu:znver5", stop_after="tile")
