# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MoE: a mixture of experts, each token's best ones weighed by a router."""

from __future__ import annotations

from tilewright.frontend.builder.dims import same
from tilewright.frontend.builder.emit import Space
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.ops.common.precision import widened
from tilewright.frontend.onnx.ops.contrib.activations import fast_gelu_of
from tilewright.frontend.onnx.ops.contrib.domain import DOMAIN
from tilewright.frontend.onnx.ops.math.activations import swish_of
from tilewright.frontend.onnx.ops.math.contraction import sum_of_products
from tilewright.frontend.onnx.ops.math.reduction import softmax
from tilewright.frontend.onnx.registry import Builder, Node, op

_PLAIN = {
    "relu": lambda m, x: m.maximum(x, 0.0),
    "gelu": fast_gelu_of,
    "silu": lambda m, x: swish_of(m, x, 1.0),
    "identity": lambda m, x: x,
}


def _weights(b: Builder, node: Node, logits: Tensor, experts: int) -> Tensor:
    """[tokens, experts]: softmax over all or over the best k experts of each token, 0 for the others.

    An expert is among the best k where fewer than k have more, or as much and stand before it.
    """
    best = node.attr("k", 1)
    if not 1 <= best <= experts:
        node.wrong(f"{best} best of {experts} experts")
    if node.attr("use_sparse_mixer", 0):
        node.unsupported("the sparse mixer as router; export the routing apart from the experts")
    place = b.positions(experts, "i4")
    rows, columns = logits.unsqueeze([2]), logits.unsqueeze([1])

    def ahead(m, own, other, i, j):
        tie = m.logical_and(m.eq(own, other), j < i)
        return m.cast(m.logical_or(other > own, tie), "i4")

    before = b.elementwise(ahead, rows, columns, place.unsqueeze([1]), place, dtype="i4")
    rank = b.reduce("sum", before, [2], keepdims=False)
    if node.attr("normalize_routing_weights", 0):
        kept = b.elementwise(lambda m, x, r: m.where(r < best, x, -float("inf")), logits, rank)
        return softmax(b, kept, [1])
    whole = softmax(b, logits, [1])
    return b.elementwise(lambda m, p, r: m.where(r < best, p, 0.0), whole, rank)


def _layer(b: Builder, x: Tensor, w: Tensor, bias: Tensor | None) -> Tensor:
    """[experts or 1, tokens, inputs] by weights [experts, outputs, inputs]: [experts, tokens, outputs]."""
    expert = 0 if not same(x.shape[0], 1) else None
    tokens, inputs = x.shape[1], x.shape[2]
    space = Space([w.shape[0], tokens, w.shape[1], inputs], frozenset([3]))
    left = (x, [0, 1, 3]) if expert == 0 else (x.squeeze([0]), [1, 3])
    y = sum_of_products(b, space, [left, (w, [0, 2, 3])], [0, 1, 2])
    return y if bias is None else b.elementwise(lambda m, y, v: y + v, y, bias.unsqueeze([1]))


def _hidden(b: Builder, node: Node, rows: Tensor, one: tuple, three: tuple) -> Tensor:
    """The first layer and its activation: [experts, tokens, inner]."""
    name = node.attr("activation_type", "relu").lower()
    y = _layer(b, rows, *one)
    if name != "swiglu":
        if name not in _PLAIN:
            node.unsupported(f"the activation {name}; use one of {', '.join(_PLAIN)}, swiglu")
        y = b.elementwise(_PLAIN[name], y)
        return y if three[0] is None else b.elementwise(lambda m, y, z: y * z, y, _layer(b, rows, *three))
    gate, linear = _halves(b, node, y, rows, three)
    alpha, beta, limit = (node.attr(n, v) for n, v in _SWIGLU.items())

    def body(m, g, v):
        if limit is not None:
            g, v = m.minimum(g, limit), m.maximum(m.minimum(v, limit), -limit)
        return swish_of(m, g, alpha) * (v + beta)

    return b.elementwise(body, gate, linear)


_SWIGLU = {"activation_alpha": 1.0, "activation_beta": 0.0, "swiglu_limit": None}


def _halves(b: Builder, node: Node, y: Tensor, rows: Tensor, three: tuple) -> tuple[Tensor, Tensor]:
    """The gate and what it scales: of two layers, or of one, interleaved (1) or side by side (2)."""
    fusion = node.attr("swiglu_fusion", 0)
    if fusion == 0:
        if three[0] is None:
            node.wrong("swiglu with swiglu_fusion=0 needs fc3_experts_weights")
        return y, _layer(b, rows, *three)
    half = y.shape[2] // 2
    step, second = (2, 1) if fusion == 1 else (1, half)
    sizes, steps = [*y.shape[:2], half], [1, 1, step]
    return b.slice(y, [0, 0, 0], sizes, steps), b.slice(y, [0, 0, second], sizes, steps)


@op("MoE", domain=DOMAIN)
@widened
def mixture(
    b: Builder,
    node: Node,
    x: Tensor,
    logits: Tensor,
    w1: Tensor,
    v1: Tensor | None,
    w2: Tensor,
    v2: Tensor | None = None,
    w3: Tensor | None = None,
    v3: Tensor | None = None,
) -> Tensor:
    """Every token through every expert, weighed: experts that a token leaves out have weight 0."""
    if node.attr("swiglu_limit_after_activation", 0):
        node.unsupported("a limit behind the activation, which only CUDA's kernels have")
    experts = w1.shape[0]
    if not isinstance(experts, int):
        node.unsupported("a number of experts that is known at run time only")
    b.remark(f"each token goes through all {experts} experts, though {node.attr('k', 1)} of them count")
    rows = b.reshape(x, (1, logits.shape[0], x.shape[-1]))
    y = _layer(b, _hidden(b, node, rows, (w1, v1), (w3, v3)), w2, v2)
    share = _weights(b, node, logits, experts).transpose([1, 0]).unsqueeze([2])
    total = b.reduce("sum", b.elementwise(lambda m, y, p: y * p, y, share), [0], keepdims=False)
    return b.reshape(total, x.shape)
