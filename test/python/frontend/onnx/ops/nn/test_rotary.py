# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""RotaryEmbedding and LinearAttention beside ONNX's reference evaluator."""

from __future__ import annotations

import numpy as np
import pytest
from test_attention import check, model_of, random

from tilewright.core.errors import UserError
from tilewright.frontend import import_onnx


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("rotated", [0, 4])
@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("rank", [3, 4])
def test_rotary(interleaved, rotated, ids, rank):
    batch, heads, sequence, size = 2, 3, 4, 8
    half = (rotated or size) // 2
    x = random(batch, heads, sequence, size) if rank == 4 else random(batch, sequence, heads * size)
    caches = [random(10, half) if ids else random(batch, sequence, half) for _ in range(2)]
    positions = [np.array([[0, 9, 3, 3], [1, 2, 3, 4]])] if ids else []
    options = {"num_heads": heads} if rank == 3 else {}
    inputs = [x, *caches, *positions]
    check("RotaryEmbedding", inputs, interleaved=interleaved, rotary_embedding_dim=rotated, **options)


def test_rotary_half_precision():
    x = random(2, 3, 4, 8, dtype=np.float16)
    caches = [random(2, 4, 4, dtype=np.float16) for _ in range(2)]
    check("RotaryEmbedding", [x, *caches], rtol=4e-3, atol=4e-3)


@pytest.mark.parametrize(
    ("x", "half", "options", "message"),
    [((2, 3, 4, 8), 3, {}, "cannot rotate"), ((2, 4, 24), 4, {"num_heads": 5}, "do not divide")],
)
def test_rotary_wrong(x, half, options, message):
    inputs = [random(*x), random(2, 4, half), random(2, 4, half)]
    with pytest.raises(UserError, match=message):
        import_onnx(model_of("RotaryEmbedding", inputs, 1, **options))


def linear_inputs(rule, heads, groups, tokens, state, per_head, dtype=np.float32):
    batch, key, value = 2, 4, 3
    inputs = [random(batch, tokens, heads * groups * key), random(batch, tokens, heads * key)]
    inputs.append(random(batch, tokens, heads * value))
    inputs.append(random(batch, heads, key, value) if state else None)
    decay = random(batch, tokens, heads if per_head else heads * key) * 0.3
    inputs.append(decay if "gated" in rule else None)
    inputs.append(np.abs(random(batch, tokens, heads)) if "delta" in rule else None)
    inputs = [x if x is None else x.astype(dtype) for x in inputs]
    while inputs[-1] is None:
        inputs.pop()
    return inputs


@pytest.mark.parametrize("rule", ["linear", "gated", "delta", "gated_delta"])
@pytest.mark.parametrize("tokens", [1, 5])
@pytest.mark.parametrize("state", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
def test_linear_attention(rule, tokens, state, groups):
    inputs = linear_inputs(rule, 2, groups, tokens, state, per_head=groups == 2)
    options = {"q_num_heads": 2 * groups, "kv_num_heads": 2, "update_rule": rule}
    check("LinearAttention", inputs, 2, opset=27, **options)


def test_linear_attention_half_precision():
    inputs = linear_inputs("gated_delta", 2, 1, 4, True, per_head=False, dtype=np.float16)
    check("LinearAttention", inputs, 2, 5e-3, 5e-3, opset=27, q_num_heads=2, kv_num_heads=2, scale=0.4)


def test_linear_attention_without_what_its_rule_needs():
    inputs = linear_inputs("linear", 2, 1, 4, False, per_head=False)
    with pytest.raises(UserError, match="needs decay and needs beta"):
        import_onnx(model_of("LinearAttention", inputs, 2, opset=27, q_num_heads=2, kv_num_heads=2))
