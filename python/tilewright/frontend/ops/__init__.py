# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX operators, one file per family; importing this package registers them all."""

from . import (
    constant,
    contraction,
    convolution,
    einsum,
    elementwise,
    gathering,
    movement,
    normalization,
    pooling,
    recurrent,
    reduction,
    shape,
)

__all__ = [
    "constant",
    "contraction",
    "convolution",
    "einsum",
    "elementwise",
    "gathering",
    "movement",
    "normalization",
    "pooling",
    "recurrent",
    "reduction",
    "shape",
]
