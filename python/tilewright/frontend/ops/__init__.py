# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX operators, one file per family; importing this package registers them all."""

from . import (
    activations,
    attention,
    cast,
    constant,
    contraction,
    convolution,
    cumulative,
    detection,
    einsum,
    elementwise,
    gathering,
    losses,
    movement,
    normalization,
    pooling,
    random,
    recurrent,
    reduction,
    scatter,
    selection,
    shape,
    sorting,
)

__all__ = [
    "activations",
    "attention",
    "cast",
    "constant",
    "contraction",
    "convolution",
    "cumulative",
    "detection",
    "einsum",
    "elementwise",
    "gathering",
    "losses",
    "movement",
    "normalization",
    "pooling",
    "random",
    "recurrent",
    "reduction",
    "scatter",
    "selection",
    "shape",
    "sorting",
]
