# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of ONNX Runtime (com.microsoft) that its optimizer and its tools for transformers write."""

from tilewright.frontend.onnx.ops.contrib import (
    activations,
    blocked,
    convolution,
    embedding,
    group_query,
    inverse,
    mixture,
    multi_head,
    normalization,
    products,
    recurrent,
    relative_position,
    rotary,
    self_attention,
    standard,
)

__all__ = [
    "activations",
    "blocked",
    "convolution",
    "embedding",
    "group_query",
    "inverse",
    "mixture",
    "multi_head",
    "normalization",
    "products",
    "recurrent",
    "relative_position",
    "rotary",
    "self_attention",
    "standard",
]
