# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Each elementwise operator beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto
from support import check_numbers, feeds, node_model

_RANDOM = np.random.default_rng(1)
X = _RANDOM.standard_normal((3, 1, 5)).astype(np.float32) * 3
Y = _RANDOM.standard_normal((2, 5)).astype(np.float32)
POSITIVE = np.abs(X) + np.float32(0.25)
FLAGS = _RANDOM.random((3, 1, 5)) > 0.5
WIDE_FLAGS = _RANDOM.random((2, 5)) > 0.5
INTS = _RANDOM.integers(-9, 9, (3, 4), dtype=np.int64)
DIVISORS = np.array([-3, 2, 5, -1], np.int64)


def run(op, *inputs, **options):
    model = node_model(op, inputs, **options)
    return check_numbers(model, feeds(model, inputs))


@pytest.mark.parametrize(
    "op",
    [
        "Relu",
        "Tanh",
        "Sigmoid",
        "Erf",
        "Exp",
        "Abs",
        "Neg",
        "Floor",
        "Ceil",
        "Round",
        "Sin",
        "Cos",
        "Softplus",
        "Softsign",
    ]
    + ["HardSwish", "Identity", "LeakyRelu", "Elu", "HardSigmoid", "ThresholdedRelu", "Celu", "Selu"],
)
def test_unary(op):
    run(op, X)


@pytest.mark.parametrize("op", ["Log", "Sqrt", "Reciprocal"])
def test_unary_of_positive(op):
    run(op, POSITIVE)


def test_unary_attributes_are_used():
    run("LeakyRelu", X, alpha=0.3)
    run("HardSigmoid", X, alpha=0.4, beta=0.1)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div"])
def test_binary_broadcasts_both_ways(op):
    run(op, X, Y)
    run(op, Y, X)


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div"])
def test_binary_with_a_known_scalar_and_vector(op):
    run(op, X, np.array(1.5, np.float32), known=[1])
    run(op, np.array([2.5], np.float32), X, known=[0])
    run(op, X, Y[0], known=[1])


@pytest.mark.parametrize("op", ["Add", "Sub", "Mul", "Div"])
def test_binary_of_integers(op):
    run(op, INTS, DIVISORS)


@pytest.mark.parametrize("op", ["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"])
def test_compare(op):
    run(op, X, Y)
    run(op, INTS, DIVISORS)


@pytest.mark.parametrize("op", ["And", "Or", "Xor"])
def test_logic(op):
    run(op, FLAGS, WIDE_FLAGS)


def test_not():
    run("Not", FLAGS)


@pytest.mark.parametrize("op", ["Sum", "Mean", "Max", "Min"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_variadic(op, count):
    run(op, *[X, Y, X * 2][:count])


@pytest.mark.parametrize("exponent", [0.5, 1.0, 2.0, 3.0, -1.5])
def test_pow_with_known_exponent(exponent):
    run("Pow", POSITIVE, np.array(exponent, np.float32), known=[1])


def test_pow_with_runtime_exponent():
    run("Pow", POSITIVE, Y)


def test_mod_signs():
    run("Mod", INTS, DIVISORS)
    run("Mod", INTS, DIVISORS, fmod=1)


@pytest.mark.parametrize("bounds", [(-1.0, 1.0), (None, 0.5), (0.0, None)])
def test_clip(bounds):
    limits = [None if v is None else np.array(v, np.float32) for v in bounds]
    run("Clip", X, *limits, known=[i + 1 for i, v in enumerate(bounds) if v is not None])


def test_clip_by_attributes():
    run("Clip", X, opset=10, min=-1.0, max=0.5)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu(approximate):
    run("Gelu", X, opset=20, approximate=approximate)


def test_gelu_of_microsoft():
    run("Gelu", X, domain="com.microsoft")


@pytest.mark.parametrize("to", [TensorProto.INT64, TensorProto.INT32, TensorProto.BOOL, TensorProto.FLOAT])
def test_cast(to):
    run("Cast", X, to=to)
    run("Cast", INTS, to=to)
    run("Cast", FLAGS, to=to)


def test_where():
    run("Where", FLAGS, X, Y)
    run("Where", FLAGS, np.array(-1e4, np.float32), X, known=[1])


def test_prelu():
    run("PRelu", X, np.float32([0.1, 0.2, 0.3, 0.4, 0.5]), known=[1])


def test_dropout_of_inference():
    run("Dropout", X, np.array(0.5, np.float32), known=[1])


def test_nan_passes_through_max_and_relu():
    x = np.float32([np.nan, 1.0, -np.inf, np.inf])
    run("Relu", x)
    run("Max", x, np.float32([0.0, np.nan, 0.0, 0.0]))
