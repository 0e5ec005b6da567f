# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators of numbers: elementwise, products, reductions, sums along an axis, sorting, losses."""

from tilewright.frontend.onnx.ops.math import (
    activations,
    contraction,
    cumulative,
    einsum,
    elementwise,
    linear_algebra,
    losses,
    reduction,
    sorting,
    tensorflow,
)

__all__ = [
    "activations",
    "contraction",
    "cumulative",
    "einsum",
    "elementwise",
    "linear_algebra",
    "losses",
    "reduction",
    "sorting",
    "tensorflow",
]
