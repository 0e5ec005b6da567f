# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers of decoders in NumPy, for comparison."""

from __future__ import annotations

import numpy as np

from tilewright.plan.mesh.decoders.decoder import Decoder, full_width, rotary

Weights = dict[str, np.ndarray]


def weights_of(decoder: Decoder, generator: np.random.Generator) -> Weights:
    """Random weights, as a model has them."""
    narrow = decoder.kv_heads * decoder.head
    shapes = {
        "q": (decoder.width, decoder.width),
        "k": (decoder.width, narrow),
        "v": (decoder.width, narrow),
        "o": (decoder.width, decoder.width),
        "up": (decoder.width, decoder.hidden),
        "gate": (decoder.width, decoder.hidden),
        "down": (decoder.hidden, decoder.width),
    }
    found = {
        name: (generator.standard_normal(shape) / shape[0] ** 0.5).astype(decoder.dtype)
        for name, shape in shapes.items()
    }
    return found | {
        name: generator.uniform(0.5, 1.5, decoder.width).astype(decoder.dtype) for name in ("norm1", "norm2")
    }


def normal(x: np.ndarray, weight: np.ndarray, eps: float) -> np.ndarray:
    """RMSNorm of rows."""
    return x / np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps) * weight


def rotated(x: np.ndarray, decoder: Decoder, positions: np.ndarray) -> np.ndarray:
    """Rotary positions of [tokens, width], by complex numbers."""
    cos, sin = rotary(positions, decoder.width, decoder.head)
    turned = (x[:, ::2] + 1j * x[:, 1::2]) * (cos + 1j * sin)
    return np.stack([turned.real, turned.imag], axis=2).reshape(x.shape).astype(x.dtype)


def attention(decoder: Decoder, query: np.ndarray, keys: np.ndarray, values: np.ndarray, first: int) -> np.ndarray:
    """Causal softmax of each head; the first query is of the token at this place."""
    done = []
    for head in range(decoder.heads):
        part = slice(head * decoder.head, (head + 1) * decoder.head)
        scores = query[:, part] @ keys[:, part].T / decoder.head**0.5
        later = np.arange(len(keys)) > first + np.arange(len(query))[:, None]
        weights = np.exp(np.where(later, -np.inf, scores))
        done.append(weights / weights.sum(axis=1, keepdims=True) @ values[:, part])
    return np.concatenate(done, axis=1)


def attention_of_one(
    decoder: Decoder, weights: Weights, x: np.ndarray, length: int, seen: list[tuple[np.ndarray, np.ndarray]]
) -> np.ndarray:
    """Of one token, whose key and value join those before it."""
    at = np.array([length])
    key = rotated((x @ full_width(weights["k"], decoder))[None], decoder, at)
    seen.append((key[0], x @ full_width(weights["v"], decoder)))
    query = rotated((x @ weights["q"])[None], decoder, at)
    keys, values = (np.array([pair[one] for pair in seen]) for one in (0, 1))
    return attention(decoder, query, keys, values, length)[0]


def layer_tail(decoder: Decoder, weights: Weights, x: np.ndarray, attended: np.ndarray) -> np.ndarray:
    """What follows attention."""
    x = x + attended @ weights["o"]
    inner = normal(x, weights["norm2"], decoder.eps)
    gate = inner @ weights["gate"]
    return x + (gate / (1 + np.exp(-gate)) * (inner @ weights["up"])) @ weights["down"]
