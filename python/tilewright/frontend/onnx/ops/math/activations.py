# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trigonometric and hyperbolic functions, and the activations that are more than one of elementwise.py's bodies."""

from __future__ import annotations

from math import prod

import numpy as np

from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.extrema import extremum_places
from tilewright.frontend.onnx.registry import Builder, Node, op

_FUNCTIONS = ("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cosh", "Sinh", "Tan")


@op(*_FUNCTIONS)
def transcendental(b: Builder, node: Node, x: Tensor) -> Tensor:
    """Trigonometric and hyperbolic functions and their inverses: each has an op upstream, accurate around its zeros."""
    name = node.proto.op_type.lower()
    return b.elementwise(lambda m, x: getattr(m, name)(x), x)


def swish_of(m, x, alpha: float):
    """x * sigmoid(alpha * x)."""
    return x / (1.0 + m.exp(x * -alpha))


@op("Swish", since=24)
def swish(b: Builder, node: Node, x: Tensor) -> Tensor:
    """x * sigmoid(alpha * x)."""
    alpha = node.attr("alpha", 1.0)
    return b.elementwise(lambda m, x: swish_of(m, x, alpha), x)


@op("SwiGLU", since=28)
def swiglu(b: Builder, node: Node, gate: Tensor, value: Tensor) -> Tensor:
    """Swish of the gate, times the value."""
    alpha = node.attr("alpha", 1.0)
    if gate.rank != value.rank or gate.shape != value.shape:
        node.wrong(f"the gate {list(gate.shape)} and the value {list(value.shape)} need the same shape")
    return b.elementwise(lambda m, a, v: swish_of(m, a, alpha) * v, gate, value)


@op("Shrink", since=9)
def shrink(b: Builder, node: Node, x: Tensor) -> Tensor:
    """x + bias below -lambd, x - bias above lambd, else 0."""
    bias, limit = node.attr("bias", 0.0), node.attr("lambd", 0.5)
    if x.dtype.kind in "iu":
        return b.cast(shrink_of(b, b.cast(x, np.float64), bias, limit), x.dtype)
    return shrink_of(b, x, bias, limit)


def shrink_of(b: Builder, x: Tensor, bias: float, limit: float) -> Tensor:
    """Shrink on floats."""
    return b.elementwise(lambda m, x: m.where(x < -limit, x + bias, m.where(x > limit, x - bias, x * 0.0)), x)


@op("Hardmax")
def hardmax(b: Builder, node: Node, x: Tensor) -> Tensor:
    """1 at the first maximum along `axis` (before opset 13: over all dimensions from `axis` on), else 0."""
    old = node.version < 13
    axis = node.axis(node.attr("axis", 1 if old else -1), x.rank)
    axes = list(range(axis, x.rank)) if old else [axis]
    sizes = [n if d in axes else 1 for d, n in enumerate(x.shape)]
    places = b.reshape(b.positions(prod(sizes)), sizes)
    first = extremum_places(b, "max", x, axes)
    return b.elementwise(lambda m, p, f: m.cast(m.eq(p, f), x.dtype), places, first, dtype=x.dtype, shape=x.shape)
