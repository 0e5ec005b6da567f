# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of neural networks: convolutions, normalizations, attention, recurrence, optimizers."""

from tilewright.frontend.onnx.ops.nn import (
    attention,
    convolution,
    linear_attention,
    normalization,
    pooling,
    recurrent,
    recurrent_cells,
    rotary,
    training,
    unfolding,
)

__all__ = [
    "attention",
    "convolution",
    "linear_attention",
    "normalization",
    "pooling",
    "recurrent",
    "recurrent_cells",
    "rotary",
    "training",
    "unfolding",
]
