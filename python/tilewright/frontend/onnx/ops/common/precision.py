# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operators on floats narrower than 32 bits: computed in f32 and rounded once."""

from __future__ import annotations

import functools

from tilewright.frontend.builder.dtypes import F32, is_narrow, promoted
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.registry import Builder, OpFunction


def widen(b: Builder, x: Tensor) -> Tensor:
    """`x` in f32 where its floats are narrower."""
    return b.cast(x, promoted(x.dtype))


def widened(function: OpFunction) -> OpFunction:
    """Decorate an operator: it sees f32 for narrower floats, and its f32 results become the first input's type."""

    @functools.wraps(function)
    def operator(b: Builder, node, x: Tensor, *rest: Tensor | None):
        if not is_narrow(x.dtype):
            return function(b, node, x, *rest)
        results = function(b, node, *(v if v is None else widen(b, v) for v in (x, *rest)))
        if isinstance(results, Tensor):
            return b.cast(results, x.dtype)
        return [b.cast(y, x.dtype) if y is not None and y.dtype == F32 else y for y in results]

    return operator
