# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Elementwise operators, reductions and images of com.microsoft on codes, beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from quantized_support import beside_runtime, codes, number

from tilewright.core.errors import UserError
from tilewright.frontend import import_onnx

S, T, R = number(0.02), number(0.03), number(0.05)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("op", ["QLinearAdd", "QLinearMul"])
@pytest.mark.parametrize("shapes", [((2, 3, 5), (2, 3, 5)), ((2, 3, 5), (5,)), ((3, 1), (2, 1, 4))])
def test_binary(op, dtype, shapes):
    x, y = (codes(dtype, *shape) for shape in shapes)
    zero = np.array(5, dtype)
    beside_runtime(op, [x, S, zero, y, T, np.array(-3 if dtype == "int8" else 120, dtype), R, zero])


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_binary_without_zero_points(dtype):
    """ONNX Runtime wants them, the definition does not."""
    x, y, info = codes(dtype, 4, 6), codes(dtype, 4, 6), np.iinfo(dtype)
    want = np.clip(np.rint((x * S + y * T) / R), info.min, info.max).astype(dtype)
    beside_runtime("QLinearAdd", [x, S, None, y, T, None, R], want=want)
    slope = np.where(x < 0, np.float32(0.01), np.float32(1))
    want = np.clip(np.rint(x * T * slope / R), info.min, info.max).astype(dtype)
    beside_runtime("QLinearLeakyRelu", [x, T, None, R], want=want)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_unary(dtype):
    x, zero = codes(dtype, 3, 7), np.array(11, dtype)
    beside_runtime("QLinearSigmoid", [x, T, zero, number(1 / 256), np.array(0, dtype)])
    beside_runtime("QLinearLeakyRelu", [x, T, zero, R, np.array(7, dtype)], alpha=0.1)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_where_and_concat(dtype):
    zeros = [np.array(n, dtype) for n in (3, 9, 20)]
    x, y = codes(dtype, 2, 4, 3), codes(dtype, 2, 5, 3)
    condition = np.random.default_rng(0).integers(0, 2, (2, 4, 1)).astype(bool)
    beside_runtime("QLinearWhere", [condition, x, S, zeros[0], codes(dtype, 3), T, zeros[1], R, zeros[2]])
    # ONNX Runtime asks for parameters that are known
    beside_runtime("QLinearConcat", [R, zeros[2], x, S, zeros[0], y, T, zeros[1]], (0, 1, 3, 4, 6, 7), axis=1)


def test_concat_of_incomplete_triples():
    from support import node_model

    inputs = [R, np.array(0, np.uint8), codes("uint8", 2, 2), S]
    with pytest.raises(UserError, match="no triples"):
        import_onnx(node_model("QLinearConcat", inputs, domain="com.microsoft", axis=0))


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("attributes", [{"opset": 13, "axis": -1}, {"opset": 12, "axis": 1}, {"opset": 13, "axis": 1}])
def test_softmax(dtype, attributes):
    zero = np.array(0 if dtype == "uint8" else -128, dtype)
    inputs = [codes(dtype, 2, 5, 6), T, np.array(4, dtype), number(1 / 256), zero]
    beside_runtime("QLinearSoftmax", inputs, (1, 2, 3, 4), more=attributes)


def test_integers_alone():
    """These have no kernel in ONNX Runtime on a CPU for every type: beside their definitions."""
    x, y = codes("int8", 3, 4), codes("int8", 4)
    want = (x.astype(np.int32) - 3) * (y.astype(np.int32) + 2)
    beside_runtime("MulInteger", [x, np.array(3, np.int8), y, np.array(-2, np.int8)], want=want)
    want = x.astype(np.int32).sum(1, keepdims=True, dtype=np.int32)
    beside_runtime("ReduceSumInteger", [x], want=want, axes=[1], keepdims=1)
    want = (np.rint((x.astype(np.int32) - 5).mean((0, 1))) + 1).astype(np.int8)
    inputs = [x, S, np.array(5, np.int8), S, np.array(1, np.int8)]
    beside_runtime("QLinearReduceMean", inputs, want=want, axes=[0, 1], keepdims=0)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("last", [0, 1])
def test_pools(dtype, last):
    x, zero = codes(dtype, 2, 6, 7, 5), np.array(9, dtype)
    known = (1, 2, 3, 4)
    beside_runtime("QLinearGlobalAveragePool", [x, S, zero, R, zero], known, channels_last=last)
    attributes = {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "strides": [2, 1], "channels_last": last}
    for count in (0, 1):
        inputs = [x, S, zero, R, zero]
        beside_runtime("QLinearAveragePool", inputs, known, count_include_pad=count, **attributes)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
def test_max_pool_of_channels_last(dtype):
    attributes = {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1], "strides": [2, 1]}
    beside_runtime("NhwcMaxPool", [codes(dtype, 2, 6, 7, 5)], **attributes)


@pytest.mark.parametrize("last", [0, 1])
@pytest.mark.parametrize("group", [1, 2])
def test_convolution(last, group):
    x, w = codes("uint8", 1, *((6, 7, 4) if last else (4, 6, 7))), codes("int8", 6, 4 // group, 3, 3)
    bias = np.arange(-300, 300, 100, dtype=np.int32)
    parameters = [np.full(6, 0.01, np.float32), np.zeros(6, np.int8), number(0.9), np.array(100, np.uint8)]
    inputs = [x, S, np.array(7, np.uint8), w, *parameters, bias]
    attributes = {"channels_last": last, "group": group, "pads": [1, 1, 1, 1]}
    beside_runtime("QLinearConv", inputs, tuple(range(1, 9)), **attributes)
