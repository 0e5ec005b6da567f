# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of recurrent attentions beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from beside import F32, beside_runtime, model_of, real

from tilewright.core.errors import UnsupportedError
from tilewright.frontend import import_onnx

BATCH, TOKENS, HEADS, SIZE = 2, 5, 2, 4


@pytest.mark.parametrize("rest", [[], [real(6)], [real(6), real(BATCH, 6, 3)]])
@pytest.mark.parametrize("activation", ["none", "silu"])
def test_causal_convolution(rest, activation):
    inputs = [real(BATCH, 6, TOKENS), real(6, 1, 4), *rest]
    beside_runtime("CausalConvWithState", inputs, ["float"] * 2, opens=(TOKENS,), activation=activation)


def test_causal_convolution_refused():
    model = model_of("CausalConvWithState", [real(BATCH, 6, TOKENS), real(6, 1, 4)], ["float"] * 2, dilation=2)
    with pytest.raises(UnsupportedError, match="export the model with dilation=1"):
        import_onnx(model)


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
def test_linear_attention(rule):
    q, k, v = (real(BATCH, TOKENS, HEADS * SIZE) * F32(0.5) for _ in range(3))
    decay = -np.abs(real(BATCH, TOKENS, HEADS)) if "gated" in rule else None
    beta = np.abs(real(BATCH, TOKENS, HEADS)) * F32(0.3) if "delta" in rule else None
    inputs = [q, k, v, real(BATCH, HEADS, SIZE, SIZE), decay, beta]
    while inputs[-1] is None:
        inputs.pop()
    counts = {"q_num_heads": HEADS, "kv_num_heads": HEADS}
    beside_runtime("LinearAttention", inputs, ["float"] * 2, opens=(TOKENS,), half=False, update_rule=rule, **counts)


def test_gate():
    inputs = [real(BATCH, TOKENS, HEADS), real(HEADS), real(HEADS), real(BATCH, TOKENS, HEADS)]
    beside_runtime("LinearAttentionGate", inputs, ["float"] * 2, opens=(TOKENS,), half=False)


@pytest.mark.parametrize("activation", ["silu", "swish", "sigmoid"])
def test_gated_norm(activation):
    inputs = [real(BATCH, TOKENS, 8), real(4), real(BATCH, TOKENS, 8)]
    beside_runtime("GatedRMSNorm", inputs, opens=(TOKENS,), activation=activation)


def test_branches():
    beside_runtime("BranchwiseRMSNorm", [real(BATCH, TOKENS, 2, 4)], opens=(TOKENS,))
    beside_runtime("BranchwiseRMSNorm", [real(BATCH, TOKENS, 2, 4), real(4)], opens=(TOKENS,))
    beside_runtime("BranchwiseRMSNorm", [real(BATCH, TOKENS, 8), real(8)], opens=(TOKENS,), num_branches=2)


def test_scaled_silu():
    beside_runtime("ScaledSiLU", [real(BATCH, TOKENS)], alpha=0.5)
    beside_runtime("ScaledSiLU", [real(BATCH, TOKENS), np.array(0.7, F32)], half=False)


def test_gated_add():
    inputs = [real(BATCH, TOKENS, 8), real(BATCH, TOKENS, 8), real(BATCH, TOKENS, 1)]
    beside_runtime("GatedAdd", inputs, opens=(TOKENS,))
    with pytest.raises(UnsupportedError, match="gate_weight"):
        import_onnx(model_of("GatedAdd", [*inputs[:2], real(BATCH, TOKENS, 3), real(3, 1)]))
