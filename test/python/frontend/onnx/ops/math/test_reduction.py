# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions, softmax and normalizations beside ONNX Runtime."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from support import check_numbers, check_reference, feeds, node_model

_RANDOM = np.random.default_rng(3)


def random(*shape):
    return _RANDOM.standard_normal(shape).astype(np.float32)


def run(op, *inputs, **options):
    model = node_model(op, inputs, **options)
    return check_numbers(model, feeds(model, inputs))


REDUCTIONS = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2"]
REDUCTIONS += ["ReduceSumSquare", "ReduceLogSumExp"]


@pytest.mark.parametrize("op", REDUCTIONS)
@pytest.mark.parametrize(("axes", "keepdims"), [([1], 1), ([0, -1], 0), ([0, 1, 2], 1), ([0, 1, 2], 0)])
def test_reduce_by_attribute(op, axes, keepdims):
    x = random(2, 3, 4)
    if op == "ReduceSum":
        run(op, x, axes=axes, keepdims=keepdims, opset=12)
    else:
        run(op, x, axes=axes, keepdims=keepdims, opset=13)


@pytest.mark.parametrize("op", REDUCTIONS)
def test_reduce_by_input(op):
    run(op, random(2, 3, 4), np.array([-1], np.int64), known=[1], opset=18)
    run(op, random(2, 3, 4), opset=18)
    run(op, random(2, 3, 4), opset=18, noop_with_empty_axes=0, keepdims=0)


def test_reduce_of_integers():
    x = _RANDOM.integers(-5, 5, (3, 4), dtype=np.int64)
    run("ReduceSum", x, np.array([1], np.int64), known=[1])
    run("ReduceMax", x.astype(np.int32), axes=[0])


FLOATS, INTEGERS = ["f2", "f8", ml_dtypes.bfloat16], ["i4", "i8", "u4"]
OF_INTEGERS = ["ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2"]  # that onnx evaluates
CASES = [(op, d) for op in REDUCTIONS for d in FLOATS] + [(op, d) for op in OF_INTEGERS for d in INTEGERS]


@pytest.mark.parametrize(("op", "dtype"), CASES)
def test_reduce_any_number(op, dtype):
    """Axes at run time and at compile time."""
    x = _RANDOM.integers(0, 4, (2, 3, 4)).astype(dtype)
    for known in ((), (1,)):
        for axes in ([1], [0, -1]):
            inputs = [x, np.array(axes, np.int64)]
            model = node_model(op, inputs, known=known, opset=20, keepdims=len(axes) % 2)
            check_reference(model, feeds(model, inputs), rtol=2e-2)


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
def test_reduce_bool(op):
    inputs = [random(3, 4) > 0.5, np.array([1], np.int64)]
    model = node_model(op, inputs, opset=20)
    check_reference(model, feeds(model, inputs))


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceProd", "ReduceMax", "ReduceLogSumExp"])
@pytest.mark.parametrize("axis", [1, 2])
@pytest.mark.parametrize("known", [(), (1,)])
def test_reduce_nothing(op, axis, known):
    inputs = [random(2, 0, 4), np.array([axis], np.int64)]
    model = node_model(op, inputs, known=known, opset=20)
    check_reference(model, feeds(model, inputs))


def test_reduce_infinite():
    run("ReduceLogSumExp", np.float32([[-np.inf, -np.inf], [np.inf, 1.0]]), axes=[1], opset=13)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_softmax(op, axis):
    run(op, random(2, 3, 4) * 10, axis=axis)
    run(op, random(2, 3, 4), axis=axis, opset=11)


def test_softmax_of_masked_row():
    x = np.float32([[-np.inf, 0.0, 1.0], [-1e4, -1e4, -1e4]])
    run("Softmax", x)


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("last", [0, 1])
def test_arg_extremum(op, last):
    x = _RANDOM.integers(0, 3, (4, 6)).astype(np.float32)
    run(op, x, axis=1, select_last_index=last)
    run(op, x, axis=0, keepdims=0, select_last_index=last)


@pytest.mark.parametrize("axis", [-1, 1])
def test_layer_norm(axis):
    x = random(2, 3, 4)
    shape = x.shape[axis:]
    run("LayerNormalization", x, random(*shape), random(*shape), axis=axis, epsilon=1e-3)
    run("LayerNormalization", x, random(*shape), axis=axis)


def test_layer_norm_with_statistics():
    run("LayerNormalization", random(2, 3, 4), random(4), random(4), outputs=3)


def test_batch_norm():
    parameters = [random(3), random(3), random(3), np.abs(random(3)) + 0.1]
    run("BatchNormalization", random(2, 3, 4, 5), *parameters, known=[1, 2, 3, 4], epsilon=1e-3)
    run("BatchNormalization", random(2, 3), *parameters, epsilon=1e-3)


def test_instance_norm():
    run("InstanceNormalization", random(2, 3, 4, 5), random(3), random(3), epsilon=1e-2)


def test_group_norm():
    run("GroupNormalization", random(2, 6, 4, 5), random(6), random(6), num_groups=3, opset=21)


def test_rms_norm():
    run("RMSNormalization", random(2, 3, 8), random(8), opset=23, axis=-1)
