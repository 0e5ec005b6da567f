# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of numbers of a few bits, by scale and zero point."""

from tilewright.frontend.onnx.ops.quantized import (
    attention,
    bnb4,
    elementwise,
    embedding,
    nbits,
    products,
    quantization,
    recurrent,
    windows,
)

__all__ = [
    "attention",
    "bnb4",
    "elementwise",
    "embedding",
    "nbits",
    "products",
    "quantization",
    "recurrent",
    "windows",
]
