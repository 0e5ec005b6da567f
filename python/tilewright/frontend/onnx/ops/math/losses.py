# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Losses of classifiers: the element of the labelled class, weighted and reduced."""

from __future__ import annotations

from tilewright.frontend.builder.emit import Space
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.precision import widened
from tilewright.frontend.onnx.ops.math.reduction import log_softmax
from tilewright.frontend.onnx.registry import Builder, Node, op


def _of_class(b: Builder, values: Tensor, target: Tensor, ignore: int | None, sign: float) -> Tensor:
    """sign * values at the target's class: of [n, c, d...] per place, of [c] alike; 0 where it is to be ignored."""
    space, values = Space(target.shape), b.stored(values)
    classes = values.shape[min(1, values.rank - 1)]

    def body(m, label, _):
        at = b.wrapped_index(m.maximum(label, 0), classes)
        places = [b.counter(space, d) for d in range(target.rank)] if values.rank > 1 else []
        value = b.read(values, [*places[:1], at, *places[1:]]) * sign
        return value if ignore is None else m.where(m.eq(label, ignore), 0.0, value)

    loops = range(target.rank)
    return b.generic(space, [(target, loops)], loops, values.dtype, body, order=target.stored_order())


def _reduced(b: Builder, node: Node, x: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
    """The loss of log-probabilities [n, c, d...]."""
    if x.rank < 2 or target.rank != x.rank - 1:
        node.wrong(f"scores {list(x.shape)} and labels {list(target.shape)} do not fit")
    ignore, reduction = node.attr("ignore_index"), node.attr("reduction", "mean")
    loss, share = _of_class(b, x, target, ignore, -1.0), None
    if weight is not None:
        if weight.rank != 1:
            node.wrong(f"weights have {weight.rank} dimensions instead of one")
        share = _of_class(b, weight, target, ignore, 1.0)
        loss = b.elementwise(lambda m, v, w: v * w, loss, share)
    elif ignore is not None:
        share = b.elementwise(lambda m, t: m.cast(m.logical_not(m.eq(t, ignore)), x.dtype), target, dtype=x.dtype)
    if reduction == "none":
        return loss
    axes = list(range(target.rank))
    total = b.reduce("sum", loss, axes, keepdims=False)
    if reduction == "sum":
        return total
    if share is None:
        return b.elementwise(lambda m, s, n: s / n, total, b.size_tensor(target.size, x.dtype))
    return b.elementwise(lambda m, s, w: s / w, total, b.reduce("sum", share, axes, keepdims=False))


@op("NegativeLogLikelihoodLoss", since=12)
@widened
def nll_loss(b: Builder, node: Node, x: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
    """Of log-probabilities."""
    return _reduced(b, node, x, target, weight)


@op("SoftmaxCrossEntropyLoss", since=12)
@widened
def cross_entropy_loss(b: Builder, node: Node, x: Tensor, target: Tensor, weight: Tensor | None = None) -> list[Tensor]:
    """Of scores; the log-probabilities as an optional second result."""
    logs = log_softmax(b, x, [1])
    return [_reduced(b, node, logs, target, weight), logs]
