# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trigonometric functions and activations beside onnx's reference: far from and near their zeros."""

from __future__ import annotations

import numpy as np
import pytest
from support import check_numbers, check_reference, check_values, feeds, node_model

_RANDOM = np.random.default_rng(27)
NEAR_ZERO = np.float32([0.0, -0.0, 1e-30, -1e-7, 3e-5, 1e-3, -0.1])

RANGES = {
    "Acos": (-1, 1),
    "Acosh": (1, 50),
    "Asin": (-1, 1),
    "Asinh": (-50, 50),
    "Atan": (-50, 50),
    "Atanh": (-0.999, 0.999),
    "Cosh": (-10, 10),
    "Sinh": (-10, 10),
    "Tan": (-1.5, 1.5),
    "Softplus": (-30, 30),
    "Softsign": (-30, 30),
    "Elu": (-5, 5),
    "Selu": (-5, 5),
    "Celu": (-5, 5),
    "HardSigmoid": (-5, 5),
    "HardSwish": (-5, 5),
    "ThresholdedRelu": (-5, 5),
    "Mish": (-20, 20),
}


def values(op):
    low, high = RANGES[op]
    x = _RANDOM.uniform(low, high, 40).astype(np.float32)
    return np.concatenate([x, NEAR_ZERO[(low <= NEAR_ZERO) & (high >= NEAR_ZERO)]])


@pytest.mark.parametrize("op", RANGES)
@pytest.mark.parametrize("known", [[], [0]])
def test_function(op, known):
    x = values(op)
    model = node_model(op, [x], opset=22, known=known)
    exact = op.startswith(("A", "Co", "Si", "Ta"))
    check_reference(model, feeds(model, [x]), *((2e-6, 1e-37) if exact else (1e-5, 1e-6)))


@pytest.mark.parametrize("op", RANGES)
@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_other_types(op, dtype):
    x = values(op).astype(dtype)
    model = node_model(op, [x], opset=22)
    check_reference(model, feeds(model, [x]), 5e-3 if dtype == np.float16 else 1e-6, 1e-3)


@pytest.mark.parametrize("alpha", [1.0, 1.7])
def test_swish(alpha):
    x, v = values("Mish"), values("Mish")[::-1].copy()
    y = x / (1 + np.exp(-alpha * x))
    model = node_model("Swish", [x], opset=24, alpha=alpha)
    model.ir_version = 11
    check_values(model, feeds(model, [x]), [y])
    model = node_model("SwiGLU", [x, v], opset=28, alpha=alpha)
    model.ir_version = 13
    check_values(model, feeds(model, [x, v]), [y * v])


@pytest.mark.parametrize("dtype", [np.float32, np.int32, np.uint8])
def test_shrink(dtype):
    x = _RANDOM.integers(0, 9, 20).astype(dtype)
    model = node_model("Shrink", [x], opset=9, lambd=3.5, bias=1.5)
    check_numbers(model, feeds(model, [x]))


@pytest.mark.parametrize("opset", [11, 13])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_hardmax(opset, axis):
    x = _RANDOM.integers(0, 3, (2, 3, 4)).astype(np.float32)
    model = node_model("Hardmax", [x], opset=opset, axis=axis)
    check_numbers(model, feeds(model, [x]))
