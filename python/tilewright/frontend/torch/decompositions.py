# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators that PyTorch's ONNX exporter has no form of, or a wrong one, as operators that it has."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any


@functools.cache
def table() -> dict[Any, Callable[..., Any]]:
    """What AOTAutograd replaces while it traces.

    These are the fused layers of `torch.nn.TransformerEncoder` at inference, and batch norms by the statistics of the
    batch, of which the exporter makes ones by the running statistics.
    """
    import torch
    from torch._decomp import get_decompositions

    aten = torch.ops.aten
    norms = [aten._native_batch_norm_legit_functional, aten._native_batch_norm_legit, aten.native_batch_norm]
    return {
        **get_decompositions(norms),
        aten._native_multi_head_attention.default: multi_head_attention,
        aten._transformer_encoder_layer_fwd.default: encoder_layer,
    }


def multi_head_attention(
    query: Any,
    key: Any,
    value: Any,
    embed_dim: int,
    num_head: int,
    qkv_weight: Any,
    qkv_bias: Any,
    proj_weight: Any,
    proj_bias: Any,
    mask: Any = None,
    need_weights: bool = True,
    average_attn_weights: bool = True,
    mask_type: int | None = None,
) -> tuple[Any, Any]:
    """`aten._native_multi_head_attention`; operands [batch, tokens, embed_dim], a mask is true where none may look."""
    import torch
    from torch.nn.functional import linear, scaled_dot_product_attention

    weights, biases = qkv_weight.chunk(3), qkv_bias.chunk(3)
    parts = [
        linear(x, w, b).unflatten(-1, (num_head, embed_dim // num_head)).transpose(1, 2)
        for x, w, b in zip((query, key, value), weights, biases, strict=True)
    ]
    live = None if mask is None else _broadcast(mask, mask_type).to(torch.bool).logical_not()
    if need_weights:
        scores = parts[0] @ parts[1].transpose(-2, -1) * (embed_dim // num_head) ** -0.5
        scores = scores if live is None else scores.masked_fill(live.logical_not(), float("-inf"))
        seen = scores.softmax(-1)
        mixed = seen @ parts[2]
        seen = seen.mean(1) if average_attn_weights else seen
    else:
        mixed = scaled_dot_product_attention(*parts, attn_mask=live)
        seen = query.new_zeros(0)
    return linear(mixed.transpose(1, 2).flatten(-2), proj_weight, proj_bias), seen


def _broadcast(mask: Any, mask_type: int | None) -> Any:
    """A mask of [queries, keys] (type 0), [batch, keys] (1), or whole (2), for [batch, heads, queries, keys]."""
    return mask[:, None, None, :] if mask_type == 1 else mask


def encoder_layer(
    src: Any,
    embed_dim: int,
    num_heads: int,
    qkv_weight: Any,
    qkv_bias: Any,
    proj_weight: Any,
    proj_bias: Any,
    use_gelu: bool,
    norm_first: bool,
    eps: float,
    norm_weight_1: Any,
    norm_bias_1: Any,
    norm_weight_2: Any,
    norm_bias_2: Any,
    ffn_weight_1: Any,
    ffn_bias_1: Any,
    ffn_weight_2: Any,
    ffn_bias_2: Any,
    mask: Any = None,
    mask_type: int | None = None,
) -> Any:
    """`aten._transformer_encoder_layer_fwd`: what `torch.nn.TransformerEncoderLayer` computes, step by step."""
    from torch.nn.functional import gelu, layer_norm, linear, relu

    def first(x: Any) -> Any:
        return layer_norm(x, (embed_dim,), norm_weight_1, norm_bias_1, eps)

    def second(x: Any) -> Any:
        return layer_norm(x, (embed_dim,), norm_weight_2, norm_bias_2, eps)

    def attended(x: Any) -> Any:
        projections = (qkv_weight, qkv_bias, proj_weight, proj_bias)
        return multi_head_attention(x, x, x, embed_dim, num_heads, *projections, mask, False, False, mask_type)[0]

    def fed(x: Any) -> Any:
        hidden = linear(x, ffn_weight_1, ffn_bias_1)
        return linear(gelu(hidden) if use_gelu else relu(hidden), ffn_weight_2, ffn_bias_2)

    if norm_first:
        x = src + attended(first(src))
        return x + fed(second(x))
    x = first(src + attended(src))
    return second(x + fed(x))
