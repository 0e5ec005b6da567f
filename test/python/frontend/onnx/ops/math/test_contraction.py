# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Matrix products, convolutions and poolings beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from support import check_numbers, feeds, node_model

_RANDOM = np.random.default_rng(2)


def random(*shape):
    return _RANDOM.standard_normal(shape).astype(np.float32)


def run(op, *inputs, **options):
    model = node_model(op, inputs, **options)
    return check_numbers(model, feeds(model, inputs))


def body_of(imported):
    return str(imported.module)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((3, 4), (4, 5)),
        ((2, 3, 4), (4, 5)),
        ((2, 3, 4), (2, 4, 5)),
        ((2, 1, 3, 4), (5, 4, 2)),
        ((4,), (4, 5)),
        ((3, 4), (4,)),
        ((4,), (4,)),
        ((1, 1), (1, 1)),
        ((3, 1), (1, 5)),
        ((1, 7), (7, 3)),
    ],
)
def test_matmul(left, right):
    x, y = random(*left), random(*right)
    run("MatMul", x, y)
    run("MatMul", x, y, known=[1])


@pytest.mark.parametrize("trans_a", [0, 1])
@pytest.mark.parametrize("trans_b", [0, 1])
def test_gemm(trans_a, trans_b):
    x, y = random(*[(3, 4), (4, 3)][trans_a]), random(*[(4, 5), (5, 4)][trans_b])
    for z in (None, random(5), random(3, 1), random(3, 5)):
        inputs = [x, y] if z is None else [x, y, z]
        run("Gemm", *inputs, transA=trans_a, transB=trans_b)
    run("Gemm", x, y, random(5), known=[1, 2], transA=trans_a, transB=trans_b, alpha=0.5, beta=2.0)


@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"pads": [1, 1, 1, 1]},
        {"strides": [2, 2], "pads": [1, 0, 2, 1]},
        {"dilations": [2, 1], "pads": [2, 1, 2, 1]},
        {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
        {"auto_pad": "SAME_LOWER", "strides": [2, 1]},
        {"auto_pad": "VALID"},
    ],
)
@pytest.mark.parametrize("batch", [1, 2])
def test_conv(attributes, batch):
    run("Conv", random(batch, 3, 9, 8), random(4, 3, 3, 3), random(4), known=[1, 2], **attributes)


@pytest.mark.parametrize(("groups", "inputs", "outputs"), [(2, 4, 6), (4, 4, 4), (4, 4, 8), (1, 1, 3)])
def test_grouped_conv(groups, inputs, outputs):
    run("Conv", random(2, inputs, 6, 6), random(outputs, inputs // groups, 3, 3), known=[1], group=groups, pads=[1] * 4)


def test_conv_of_one_and_three_dimensions():
    run("Conv", random(2, 3, 11), random(5, 3, 4), strides=[2], pads=[1, 2])
    run("Conv", random(1, 2, 5, 6, 7), random(3, 2, 2, 3, 2), known=[1])


def test_windows_that_leave_a_rest_unread():
    run("Conv", random(1, 3, 4, 5), random(2, 3, 3, 3), known=[1], strides=[2, 3])
    run("Conv", random(1, 3, 2, 2), random(2, 3, 3, 3), strides=[3, 3], pads=[1, 1, 1, 1])
    run("AveragePool", random(1, 3, 4, 4), kernel_shape=[3, 3], strides=[2, 2])
    run("MaxPool", random(1, 3, 2, 2), kernel_shape=[3, 3], strides=[3, 3], pads=[1, 1, 1, 1])
    run("AveragePool", random(1, 3, 2, 2), kernel_shape=[3, 3], strides=[3, 3], pads=[1] * 4, count_include_pad=1)


def test_conv_with_window_one():
    run("Conv", random(1, 8, 5, 5), random(6, 8, 1, 1), known=[1])
    run("Conv", random(1, 8, 5, 5), random(6, 8, 1, 1), known=[1], strides=[2, 2])


def conv_norm_model(bias: bool, scale_shape=(4,)):
    x, w = random(1, 3, 6, 6), random(4, 3, 3, 3)
    parameters = [random(4) + 2, random(4), random(4), np.abs(random(4)) + 0.5]
    names = ["scale", "shift", "mean", "variance"]
    weights = {"w": w, "b": random(4), **dict(zip(names, parameters, strict=True))}
    nodes = [
        helper.make_node("Conv", ["x", "w"] + ["b"] * bias, ["c"], name="conv"),
        helper.make_node("BatchNormalization", ["c", *names], ["n"], name="norm"),
        helper.make_node("Relu", ["n"], ["y"], name="relu"),
    ]
    graph = helper.make_graph(
        nodes,
        "conv_norm",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x.shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 4, 4, 4))],
        [numpy_helper.from_array(v, n) for n, v in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), {"x": x}


@pytest.mark.parametrize("bias", [False, True])
def test_batch_norm_is_folded_into_the_convolution(bias):
    imported = check_numbers(*conv_norm_model(bias))
    text = body_of(imported)
    assert "math.sqrt" not in text
    assert "math.rsqrt" not in text
    assert text.count("arith.addf") == 2  # the convolution's sum and one bias


def test_interior_transposes_cancel():
    """Two convolutions in a row: one transposing copy for the input, none between them."""
    weights = {"u": random(8, 3, 3, 3), "v": random(8, 8, 3, 3)}
    nodes = [
        helper.make_node("Conv", ["x", "u"], ["a"]),
        helper.make_node("Relu", ["a"], ["r"]),
        helper.make_node("Conv", ["r", "v"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "two",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 9, 9))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, (1, 8, 5, 5))],
        [numpy_helper.from_array(v, n) for n, v in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    imported = check_numbers(model, {"x": random(1, 3, 9, 9)})
    shapes = [str(op.results[0].type) for op in generics(imported)]
    assert shapes[-1] == "tensor<8x5x5xf32>"  # the second convolution writes the output's own order
    assert "tensor<7x7x8xf32>" in shapes
    assert "tensor<8x7x7xf32>" not in shapes


def generics(imported):
    main = next(op for op in imported.module.body.operations if op.operation.name == "func.func")
    return [op for op in main.regions[0].blocks[0].operations if op.operation.name == "linalg.generic"]


@pytest.mark.parametrize(
    "attributes",
    [
        {"kernel_shape": [2, 2]},
        {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]},
        {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
        {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1},
        {"kernel_shape": [2, 3], "auto_pad": "SAME_UPPER"},
    ],
)
@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_pool(op, attributes):
    run(op, random(2, 3, 8, 7), opset=19, **attributes)
    if op == "AveragePool" and "pads" in attributes:
        run(op, random(2, 3, 8, 7), opset=19, count_include_pad=1, **attributes)


def test_pool_dilated_and_of_one_dimension():
    run("MaxPool", random(1, 2, 9, 9), kernel_shape=[2, 2], dilations=[3, 2])
    run("MaxPool", random(2, 2, 9), kernel_shape=[3], strides=[3])


def test_global_pools():
    run("GlobalAveragePool", random(2, 3, 4, 5))
    run("GlobalMaxPool", random(2, 3, 4, 5))


def test_wrong_shapes_name_the_node():
    from tilewright.core.errors import UserError
    from tilewright.frontend import import_onnx

    node = helper.make_node("MatMul", ["x", "y"], ["z"], name="/encoder/MatMul")
    graph = helper.make_graph(
        [node],
        "bad",
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", (2, 3)), ("y", (4, 5)))],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    with pytest.raises(UserError, match=r"MatMul: inner dimensions differ: \[2, 3\] times \[4, 5\]") as caught:
        import_onnx(model)
    assert caught.value.location == "/encoder/MatMul"
    assert isinstance(model, onnx.ModelProto)
