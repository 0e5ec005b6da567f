# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One step of the optimizers of ai.onnx.preview.training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.frontend.builder.dtypes import F64
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.registry import Builder, Node, op

_DOMAIN = "ai.onnx.preview.training"


def _groups(node: Node, tensors: Sequence[Tensor], kinds: int) -> list[tuple[Tensor, ...]]:
    """One tuple (parameter, gradient, states...) for each optimized tensor."""
    count = len(tensors) // kinds
    if not count or len(tensors) % kinds:
        node.wrong(f"{len(tensors)} tensors do not make groups of {kinds}")
    return [tuple(tensors[kind * count + i] for kind in range(kinds)) for i in range(count)]


def _by_kind(results: Sequence[Sequence[Tensor]]) -> list[Tensor]:
    """All new parameters, then all states of each kind."""
    return [result[kind] for kind in range(len(results[0])) for result in results]


def _regularized(b: Builder, node: Node, x: Tensor, gradient: Tensor) -> Tensor:
    factor = node.attr("norm_coefficient", 0.0)
    return gradient if factor == 0.0 else b.elementwise(lambda m, x, g: x * factor + g, x, gradient)


def _rate(b: Builder, body: Any, rate: Tensor, time: Tensor, dtype: np.dtype) -> Tensor:
    """A function of the learning rate and the update count, in float64, as the parameters' type."""
    scalars = [b.cast(x, F64) for x in (rate, time)]
    return b.cast(b.elementwise(body, *scalars), dtype)


@op("Adagrad", domain=_DOMAIN)
def adagrad(b: Builder, node: Node, rate: Tensor, time: Tensor, *tensors: Tensor) -> list[Tensor]:
    """Rates fall with the sum of squared gradients."""
    decay, epsilon = node.attr("decay_factor", 0.0), node.attr("epsilon", 1e-6)
    results = []
    for x, gradient, squares in _groups(node, tensors, 3):
        scale = _rate(b, lambda m, r, t: r / (1.0 + t * decay), rate, time, x.dtype)
        g = _regularized(b, node, x, gradient)
        h = b.elementwise(lambda m, h, g: h + g * g, squares, g)
        new = b.elementwise(lambda m, x, r, g, h: x - r * g / (m.sqrt(h) + epsilon), x, scale, g, h)
        results.append((new, h))
    return _by_kind(results)


@op("Adam", domain=_DOMAIN)
def adam(b: Builder, node: Node, rate: Tensor, time: Tensor, *tensors: Tensor) -> list[Tensor]:
    """Averages of gradients and of their squares, with the correction of their start at zero."""
    alpha, beta, epsilon = node.attr("alpha", 0.9), node.attr("beta", 0.999), node.attr("epsilon", 1e-6)
    after = 1.0 - node.attr("norm_coefficient_post", 0.0)

    def corrected(m, r, t):
        late = m.where(t > 0.0, t, 1.0)
        factor = m.sqrt(1.0 - m.power(beta, late)) / (1.0 - m.power(alpha, late))
        return m.where(t > 0.0, r * factor, r)

    results = []
    for x, gradient, average, squares in _groups(node, tensors, 4):
        scale = _rate(b, corrected, rate, time, x.dtype)
        g = _regularized(b, node, x, gradient)
        v = b.elementwise(lambda m, v, g: v * alpha + g * (1.0 - alpha), average, g)
        h = b.elementwise(lambda m, h, g: h * beta + g * g * (1.0 - beta), squares, g)
        new = b.elementwise(lambda m, x, r, v, h: (x - r * (v / (m.sqrt(h) + epsilon))) * after, x, scale, v, h)
        results.append((new, v, h))
    return _by_kind(results)


@op("Momentum", domain=_DOMAIN)
def momentum(b: Builder, node: Node, rate: Tensor, time: Tensor, *tensors: Tensor) -> list[Tensor]:
    """Gradient descent with momentum; mode `nesterov` looks ahead."""
    alpha, beta, mode = node.attr("alpha"), node.attr("beta"), node.attr("mode")
    if mode not in ("standard", "nesterov"):
        node.wrong(f"there is no mode {mode}")
    results = []
    for x, gradient, velocity in _groups(node, tensors, 3):
        scale = _rate(b, lambda m, r, t: r, rate, time, x.dtype)
        first = _rate(b, lambda m, r, t: m.where(t > 0.0, t * 0.0 + beta, 1.0), rate, time, x.dtype)
        g = _regularized(b, node, x, gradient)
        v = b.elementwise(lambda m, v, g, w: v * alpha + w * g, velocity, g, first)
        if mode == "nesterov":
            new = b.elementwise(lambda m, x, r, g, v: x - r * (g + v * alpha), x, scale, g, v)
        else:
            new = b.elementwise(lambda m, x, r, v: x - r * v, x, scale, v)
        results.append((new, v))
    return _by_kind(results)
