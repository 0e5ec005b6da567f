# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Normalizations of com.microsoft beside ONNX Runtime, and those that only its GPUs have beside NumPy."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from beside import F32, agree, beside_runtime, model_of, real, run_runtime
from support import interpret

from tilewright.core.errors import UnsupportedError
from tilewright.frontend import import_onnx

X, SKIP, GAMMA, BETA, BIAS = real(2, 3, 8), real(2, 3, 8), real(8), real(8), real(8)
SUM = ["float", None, None, "float"]


@pytest.mark.parametrize("rest", [[], [BETA], [None, BIAS], [BETA, BIAS]])
@pytest.mark.parametrize("outputs", [["float"], SUM])
def test_skip_layer_norm(rest, outputs):
    beside_runtime("SkipLayerNormalization", [X, SKIP, GAMMA, *rest], outputs, epsilon=1e-3)


@pytest.mark.parametrize("shape", [(1, 3, 8), (3, 8)])
def test_skip_without_batch(shape):
    beside_runtime("SkipLayerNormalization", [X, real(*shape), GAMMA, BETA])


def test_rows_of_tokens():
    beside_runtime("SkipLayerNormalization", [X[0], SKIP[0], GAMMA, BETA])
    beside_runtime("SkipSimplifiedLayerNormalization", [X[0], SKIP[0], GAMMA])


def test_statistics():
    wide = (X + SKIP).astype(np.float64)
    mean, deviation = wide.mean(-1, keepdims=True), 1 / np.sqrt(wide.var(-1, keepdims=True) + 1e-12)
    want = [(wide - mean) * deviation * GAMMA, mean, deviation, wide]
    kinds = ["float"] * 4
    want = [v.astype(F32) for v in want]
    beside_runtime("SkipLayerNormalization", [X, SKIP, GAMMA], kinds, expected=want, half=False)


@pytest.mark.parametrize("rest", [[], [BIAS]])
@pytest.mark.parametrize("outputs", [["float"], SUM])
def test_skip_simplified(rest, outputs):
    beside_runtime("SkipSimplifiedLayerNormalization", [X, SKIP, GAMMA, *rest], outputs, epsilon=1e-3)


def test_simplified_has_no_mean():
    model = model_of("SkipSimplifiedLayerNormalization", [X, SKIP, GAMMA], ["float", "float"])
    with pytest.raises(UnsupportedError, match="remove that output"):
        import_onnx(model)


@pytest.mark.parametrize("domain", ["", "com.microsoft"])
@pytest.mark.parametrize("axis", [-1, 1])
def test_simplified(domain, axis):
    gamma = GAMMA if axis == -1 else real(3, 8)
    expected = None if domain == "" else [X / np.sqrt((X * X).mean(-1, keepdims=True) + 1e-6) * gamma]
    if domain == "" or axis == -1:
        beside_runtime(
            "SimplifiedLayerNormalization", [X, gamma], domain=domain, epsilon=1e-6, axis=axis, expected=expected
        )


def test_layer_norm_before_opset_17():
    model = model_of("LayerNormalization", [X, GAMMA, BETA], domain="", axis=-1)
    model.opset_import[0].version = 13
    arrays = {"x0": X, "x1": GAMMA, "x2": BETA}
    agree(interpret(import_onnx(model), arrays), run_runtime(model, arrays))
    assert onnx.defs.get_schema("LayerNormalization").since_version == 17


def _group_norm(x, gamma, beta, groups, silu):  # channels last
    split = x.astype(np.float64).reshape(x.shape[0], -1, groups, x.shape[-1] // groups)
    mean, variance = (f(split, axis=(1, 3), keepdims=True) for f in (np.mean, np.var))
    y = ((split - mean) / np.sqrt(variance + 1e-5)).reshape(x.shape) * gamma + beta
    return (y / (1 + np.exp(-y)) if silu else y).astype(F32)


@pytest.mark.parametrize("silu", [0, 1])
@pytest.mark.parametrize("last", [0, 1])
def test_group_norm(silu, last):
    x = real(2, 5, 6, 8)
    want = _group_norm(x, GAMMA, BETA, 4, silu)
    if not last:
        x, want = (np.ascontiguousarray(v.transpose(0, 3, 1, 2)) for v in (x, want))
    options = {"groups": 4, "activation": silu, "channels_last": last}
    beside_runtime("GroupNorm", [x, GAMMA, BETA], expected=[want], opens=(2, 5, 6), **options)


@pytest.mark.parametrize("shape", [(2, 8), (2, 1, 1, 8), (2, 5, 6, 8)])
def test_skip_group_norm(shape):
    x, skip = real(2, 5, 6, 8), real(*shape)
    total = x + (skip[:, None, None] if skip.ndim == 2 else skip) + BIAS
    want = [_group_norm(total, GAMMA, BETA, 4, 1), total]
    inputs = [x, GAMMA, BETA, skip, BIAS]
    beside_runtime("SkipGroupNorm", inputs, ["float", "float"], expected=want, opens=(2, 5, 6), groups=4, activation=1)
