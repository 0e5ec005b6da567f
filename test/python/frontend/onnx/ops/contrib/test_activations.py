# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Activations of com.microsoft beside ONNX Runtime, and those that only its GPUs have beside NumPy."""

from __future__ import annotations

from math import erf

import numpy as np
import pytest
from beside import F32, beside_runtime, model_of, real

from tilewright.core.errors import UnsupportedError, UserError
from tilewright.frontend import import_onnx

X, BIAS = real(2, 3, 8), real(8)


def gelu(x):
    return x * 0.5 * (1 + np.vectorize(erf)(x / np.sqrt(2)))


def softmax(x, axes):
    powers = np.exp(x - x.max(axis=axes, keepdims=True))
    return powers / powers.sum(axis=axes, keepdims=True)


@pytest.mark.parametrize("inputs", [1, 2])
def test_fast_gelu(inputs):
    beside_runtime("FastGelu", [X, BIAS][:inputs])


def test_bias_gelu():
    beside_runtime("BiasGelu", [X, BIAS])


@pytest.mark.parametrize("attributes", [{}, {"alpha": 0.7}])
def test_quick_gelu(attributes):
    beside_runtime("QuickGelu", [X], **attributes)


def test_bias_split_gelu():
    total = (X + BIAS).astype(np.float64)
    beside_runtime("BiasSplitGelu", [X, BIAS], expected=[(total[..., :4] * gelu(total[..., 4:])).astype(F32)])
    with pytest.raises(UserError, match="no two halves"):
        import_onnx(model_of("BiasSplitGelu", [real(2, 3, 7), real(7)]))


def test_bias_add():
    skip = real(2, 3, 8)
    beside_runtime("BiasAdd", [X, BIAS, skip], expected=[X + BIAS + skip])


@pytest.mark.parametrize(("axis", "shape", "inner"), [(3, (2, 1, 1, 5), 0), (2, (3, 5), 1), (2, (2, 3, 5), 1)])
def test_bias_softmax(axis, shape, inner):
    x, bias = real(2, 4, 3, 5), real(*shape)
    wide = bias if inner == 0 or bias.ndim < 3 else bias[:, None]
    want = softmax(x + wide, tuple(range(axis, 4)))
    beside_runtime("BiasSoftmax", [x, bias], axis=axis, is_inner_broadcast=inner, expected=[want], opens=(2, 4))


def test_bias_dropout_drops_nothing():
    skip = real(2, 3, 8)
    want = [X + BIAS + skip, np.ones(X.shape, bool)]
    beside_runtime("BiasDropout", [X, BIAS, skip], ["float", "bool"], expected=want)
    training = model_of("BiasDropout", [X, BIAS, skip, np.array(0.5, F32), np.array(True)], known=(3, 4))
    with pytest.raises(UnsupportedError, match="evaluation mode"):
        import_onnx(training)


@pytest.mark.parametrize("attributes", [{}, {"activation_alpha": 1.7, "activation_beta": 1.0, "limit": 0.5}])
@pytest.mark.parametrize("count", [1, 2])
def test_swiglu(attributes, count):
    inputs = [real(2, 3, 8) for _ in range(count)]
    gate, value = inputs if count == 2 else (inputs[0][..., :4], inputs[0][..., 4:])
    limit = attributes.get("limit", np.inf)
    gate, value = np.minimum(gate, limit), np.clip(value, -limit, limit)
    want = gate / (1 + np.exp(-attributes.get("activation_alpha", 1.0) * gate))
    want = want * (value + attributes.get("activation_beta", 0.0))
    beside_runtime("SwiGLU", inputs, expected=[want.astype(F32)], **attributes)
