# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MoE beside ONNX Runtime, and what only its GPUs have beside NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from beside import F32, beside_runtime, model_of, real

from tilewright.core.errors import UnsupportedError
from tilewright.frontend import import_onnx

EXPERTS, WIDTH, INNER, TOKENS = 4, 6, 8, 10


def inputs(inner=INNER, bias=True):
    biases = [real(EXPERTS, inner), real(EXPERTS, WIDTH)] if bias else [None, None]
    layers = [real(EXPERTS, inner, WIDTH), biases[0], real(EXPERTS, WIDTH, INNER), biases[1]]
    return [real(TOKENS, WIDTH), real(TOKENS, EXPERTS), *layers]


def check(given, **attributes):
    known = [i for i, x in enumerate(given) if i > 1 and x is not None]
    beside_runtime("MoE", given, known=known, opens=(TOKENS,), **attributes)


@pytest.mark.parametrize("activation", ["relu", "gelu", "silu", "identity"])
@pytest.mark.parametrize(("best", "normalized"), [(1, 0), (2, 0), (2, 1)])
def test_activations(activation, best, normalized):
    check(inputs(), k=best, normalize_routing_weights=normalized, activation_type=activation)


def test_batches():
    given = inputs()
    given[0] = given[0].reshape(2, 5, WIDTH)
    beside_runtime("MoE", given, known=(2, 3, 4, 5), opens=False, k=2, activation_type="silu")


def test_interleaved_gates():
    how = {"activation_alpha": 1.7, "activation_beta": 1.0, "swiglu_limit": 0.8, "swiglu_fusion": 1}
    check(inputs(2 * INNER), k=2, normalize_routing_weights=1, activation_type="swiglu", **how)


@pytest.mark.parametrize("fusion", [0, 2])
def test_other_gates(fusion):
    x, logits, w1, _, w2, _ = given = inputs(INNER if fusion == 0 else 2 * INNER, bias=False)
    w3 = real(EXPERTS, INNER, WIDTH) if fusion == 0 else w1[:, INNER:]
    gate, linear = (np.einsum("ti,eoi->eto", x, w) for w in (w1[:, :INNER], w3))
    y = np.einsum("eti,eoi->eto", gate / (1 + np.exp(-gate)) * linear, w2)
    share = np.where(logits >= np.sort(logits)[:, -2:-1], np.exp(logits), 0)
    share /= share.sum(1, keepdims=True)
    want = [np.einsum("eto,te->to", y, share).astype(F32)]
    more = [None, w3] if fusion == 0 else []
    given = [*given[:5], *more]
    how = {"normalize_routing_weights": 1, "activation_type": "swiglu", "swiglu_fusion": fusion}
    check(given, k=2, expected=want, half=False, **how)


def test_remark_and_refusal():
    remarks = import_onnx(model_of("MoE", inputs(), k=2)).remarks
    assert any("all 4 experts" in text for text in remarks.values())
    with pytest.raises(UnsupportedError, match="export the routing apart"):
        import_onnx(model_of("MoE", inputs(), k=2, use_sparse_mixer=1))
