# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators in the forms that they had in older opsets."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from support import compare, import_onnx, interpret, node_model

F32, I64 = np.float32, np.int64
RANDOM = np.random.default_rng(0)
X = RANDOM.standard_normal((2, 3, 4, 5)).astype(F32)
M = RANDOM.standard_normal((3, 4)).astype(F32)
C = np.float32([1, 2, 3])
B = X > 0
IMAGE = RANDOM.standard_normal((1, 2, 3, 4)).astype(F32)


def ints(*values):
    return np.array(values, I64)


def results(model, arrays):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, arrays)


def old_model(op, opset, inputs, outputs=1, **attributes):
    names = ["" if x is None else f"x{i}" for i, x in enumerate(inputs)]
    node = helper.make_node(op, names, [f"y{i}" for i in range(outputs)], name="the_node", **attributes)
    values = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for n, x in zip(names, inputs, strict=True)
        if x is not None
    ]
    graph = helper.make_graph([node], "g", values, [helper.make_empty_tensor_value_info(n) for n in node.output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=3)


def check(op, opset, inputs, attributes, modern):
    """Compare an old node with a modern one, (operator, inputs, attributes), or with a NumPy result.

    Where `modern` is an opset version the same node is run by ONNX Runtime under it.
    """
    if isinstance(modern, int):
        modern = (op, inputs, {**attributes, "opset": modern})
    model = old_model(op, opset, inputs, **attributes)
    got = interpret(import_onnx(model), {f"x{i}": x for i, x in enumerate(inputs) if x is not None})
    if isinstance(modern, np.ndarray):
        expected = [modern]
    else:
        name, values, options = modern
        new = node_model(name, values, opset=options.pop("opset", 17), **options)
        expected = results(new, {f"x{i}": x for i, x in enumerate(values) if x is not None})
    compare(got[: len(expected)], expected, 1e-5, 1e-6)


def case(op, opset, inputs, attributes, modern, note=""):
    return pytest.param(op, opset, inputs, attributes, modern, id=f"{op}-{opset}{note}")


def columns(c):
    return c.reshape(1, 3, 1, 1)


BROADCAST = [
    case(op, opset, [x, y.astype(x.dtype)], {"broadcast": 1, "axis": 1}, (op, [x, columns(y).astype(x.dtype)], {}))
    for op, x, y in [
        ("Add", X, C),
        ("Sub", X, C),
        ("Mul", X, C),
        ("Div", X, C),
        ("Pow", abs(X), C),
        ("And", B, C > 1),
        ("Or", B, C > 1),
        ("Xor", B, C > 1),
        ("Greater", X, C),
        ("Less", X, C),
        ("Equal", (4 * X).astype(np.int32), C),
    ]
    for opset in (1, 6)
    if (op, opset) != ("Equal", 6)
]

WINDOWS = ("LpPool", [IMAGE], {"p": 2, "kernel_shape": [2, 2]})
NORMALIZED_IMAGE = ("InstanceNormalization", [IMAGE, C[:2], C[1:]], {})
ATTRIBUTES = [
    case("Add", 6, [X, X[0, 0, 0]], {"broadcast": 1}, ("Add", [X, X[0, 0, 0]], {}), "-suffix"),
    case("PRelu", 1, [X, C], {}, ("PRelu", [X, C.reshape(3, 1, 1)], {})),
    case("PRelu", 6, [X, C], {}, ("PRelu", [X, C.reshape(3, 1, 1)], {})),
    case("Reshape", 1, [X], {"shape": [0, -1, 5], "consumed_inputs": [0]}, ("Reshape", [X, ints(0, -1, 5)], {})),
    case("Relu", 1, [X], {"consumed_inputs": [0]}, ("Relu", [X], {})),
    case("Cast", 1, [X], {"to": "INT32"}, X.astype(np.int32)),
    case("Cast", 6, [X], {"to": TensorProto.DOUBLE}, X.astype(np.float64)),
    case("Clip", 1, [X], {"min": -0.5, "max": 0.5}, np.clip(X, F32(-0.5), F32(0.5))),
    case("Clip", 6, [X], {"max": 0.5}, np.minimum(X, F32(0.5))),
    case("Concat", 1, [X, X], {}, np.concatenate([X, X], 1)),
    case("Dropout", 1, [X], {"is_test": 1, "ratio": 0.3}, X),
    case("Dropout", 6, [X], {"is_test": 1}, X),
    case("Dropout", 7, [X], {"ratio": 0.3}, X),
    case("Dropout", 10, [X], {}, X),
    case("Elu", 1, [X], {"alpha": 0.5}, ("Elu", [X], {"alpha": 0.5})),
    case("Selu", 1, [X], {}, ("Selu", [X], {"alpha": 1.6732, "gamma": 1.0507})),
    case("Gemm", 1, [M, M.T.copy(), C], {"broadcast": 1, "alpha": 0.5}, ("Gemm", [M, M.T.copy(), C], {"alpha": 0.5})),
    case("Gemm", 6, [M, M, C], {"broadcast": 1, "transB": 1}, ("Gemm", [M, M, C], {"transB": 1})),
    case("Pad", 1, [M], {"paddings": [0, 1, 2, 0], "value": 1.0}, np.pad(M, ((0, 2), (1, 0)), constant_values=1)),
    case("Pad", 2, [M], {"pads": [0, 1, 2, 0], "mode": "edge"}, np.pad(M, ((0, 2), (1, 0)), mode="edge")),
    case("Slice", 1, [X], {"starts": [1, -3], "ends": [9, -1], "axes": [1, 3]}, X[:, 1:, :, -3:-1]),
    case("Slice", 1, [X], {"starts": [1, 0], "ends": [2, 2]}, X[1:2, :2], "-leading"),
    case("Split", 1, [X, ints(1, 2)], {"axis": 1, "outputs": 2}, X[:, :1]),
    case("Split", 1, [X], {"axis": 1, "split": [2, 1], "outputs": 2}, X[:, :2], "-attribute"),
    case("Split", 2, [X], {"axis": 2, "outputs": 2}, X[:, :, :2]),
    case("Squeeze", 1, [X[:1]], {"axes": [0]}, X[0]),
    case("Unsqueeze", 1, [X], {"axes": [0, 5]}, X[None, ..., None]),
    case("Tile", 1, [M, ints(2), ints(1)], {}, np.tile(M, (1, 2))),
    case("TopK", 1, [X], {"k": 2, "axis": 2, "outputs": 2}, ("TopK", [X, ints(2)], {"axis": 2, "outputs": 2})),
    case("TopK", 10, [X, ints(2)], {"outputs": 2}, ("TopK", [X, ints(2)], {"outputs": 2})),
    case(
        "Upsample",
        1,
        [IMAGE],
        {"height_scale": 2.0, "width_scale": 3.0, "mode": "nearest"},
        IMAGE.repeat(2, 2).repeat(3, 3),
    ),
    case("Upsample", 7, [IMAGE], {"scales": [1.0, 1.0, 2.0, 1.0]}, IMAGE.repeat(2, 2)),
    case(
        "Upsample",
        9,
        [IMAGE, np.float32([1, 1, 2, 2])],
        {"mode": "linear"},
        9,
    ),
    case(
        "Resize",
        10,
        [IMAGE, np.float32([1, 1, 1.5, 2])],
        {"mode": "linear"},
        10,
    ),
    case(
        "Scatter",
        9,
        [M, ints(0, 2, 1, 0)[None], M[:1] * 9],
        {},
        ("Scatter", [M, ints(0, 2, 1, 0)[None], M[:1] * 9], {"opset": 9}),
    ),
    case("Softmax", 1, [X], {}, ("Softmax", [X], {"axis": 1, "opset": 11})),
    case("Hardmax", 1, [X], {"axis": 2}, 11),
    case("LogSoftmax", 11, [X], {"axis": 2}, 11),
    case("ReduceSum", 1, [X], {"axes": [1, 2], "keepdims": 0}, X.sum((1, 2))),
    case("ReduceMean", 11, [X], {"axes": [-1]}, X.mean(-1, keepdims=True)),
    case("ReduceL2", 1, [X], {}, np.sqrt((X * X).sum(keepdims=True))),
    case("ArgMax", 1, [X], {"axis": 1, "keepdims": 0}, X.argmax(1)),
    case("GlobalLpPool", 1, [IMAGE], {"p": 2.0}, np.sqrt((IMAGE**2).sum((2, 3), keepdims=True))),
    case("LpPool", 1, [IMAGE], {"p": 2.0, "kernel_shape": [2, 2]}, WINDOWS),
    case(
        "AveragePool",
        1,
        [IMAGE],
        {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1]},
        ("AveragePool", [IMAGE], {"kernel_shape": [2, 2], "pads": [1, 1, 1, 1]}),
    ),
    case("MaxPool", 1, [IMAGE], {"kernel_shape": [2, 2]}, 17),
    case(
        "InstanceNormalization",
        1,
        [IMAGE, C[:2], C[1:]],
        {"consumed_inputs": [0, 0, 0]},
        ("InstanceNormalization", [IMAGE, C[:2], C[1:]], {}),
    ),
    case("Sum", 1, [M, M, M], {"consumed_inputs": [0, 0, 0]}, 3 * M),
    case(
        "DepthToSpace",
        1,
        [X.reshape(1, 4, 6, 5)],
        {"blocksize": 2},
        ("DepthToSpace", [X.reshape(1, 4, 6, 5)], {"blocksize": 2}),
    ),
    case("Expand", 8, [C, ints(2, 1)], {}, np.broadcast_to(C, (2, 3))),
    case(
        "OneHot",
        9,
        [ints(0, 2), ints(3), np.float32([0, 1])],
        {},
        ("OneHot", [ints(0, 2), ints(3), np.float32([0, 1])], {}),
    ),
    case("MeanVarianceNormalization", 9, [X], {}, 17),
]
NORMALIZED = (X - columns(C)) / np.sqrt(columns(C) + 1e-5) * columns(C) + columns(C)
ATTRIBUTES += [
    case("BatchNormalization", 1, [X, C, C, C, C], {"is_test": 1, "consumed_inputs": [0] * 5}, NORMALIZED),
    case("BatchNormalization", 6, [X, C, C, C, C], {"is_test": 1}, NORMALIZED),
    case("BatchNormalization", 7, [X, C, C, C, C], {}, NORMALIZED),
    case("BatchNormalization", 9, [X, C, C, C, C], {}, NORMALIZED),
    case(
        "BatchNormalization",
        7,
        [X, *(np.full((3, 4, 5), v, F32) for v in (2, 1, 0.5, 4))],
        {"spatial": 0},
        (X - F32(0.5)) / np.sqrt(F32(4) + F32(1e-5)) * 2 + 1,
        "-not-spatial",
    ),
]


@pytest.mark.parametrize(("op", "opset", "inputs", "attributes", "modern"), BROADCAST + ATTRIBUTES)
def test_old_form(op, opset, inputs, attributes, modern):
    check(op, opset, inputs, attributes, modern)


def test_recurrent_operators_of_opset_1():
    weights = {"w": (1, 12, 4), "r": (1, 12, 3)}
    x, w, r = (RANDOM.standard_normal(s).astype(F32) for s in ((5, 2, 4), *weights.values()))
    options = {"hidden_size": 3, "outputs": 2}
    check("LSTM", 1, [x, w, r], options | {"output_sequence": 1}, ("LSTM", [x, w, r], dict(options)))
    check("GRU", 3, [x, w[:, :9], r[:, :9]], dict(options), ("GRU", [x, w[:, :9], r[:, :9]], dict(options)))
    check("RNN", 1, [x, w[:, :3], r[:, :3]], dict(options), ("RNN", [x, w[:, :3], r[:, :3]], dict(options)))


@pytest.mark.parametrize("version", [1, 3, 99])
def test_any_ir_version(version):
    model = old_model("Relu", 17, [X])
    model.ir_version = version
    np.testing.assert_array_equal(interpret(import_onnx(model), {"x0": X})[0], np.maximum(X, 0))


def test_weights_that_are_inputs_too_keep_their_values():
    model = old_model("Add", 17, [M, M])
    model.graph.initializer.append(onnx.numpy_helper.from_array(2 * M, "x1"))
    imported = import_onnx(model)
    assert [i.name for i in imported.inputs] == ["x0"]
    np.testing.assert_allclose(interpret(imported, {"x0": M})[0], 3 * M, rtol=1e-6)
