# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops that were unrolled before a model came here: one weight multiplies states again and again.

Exporters trace Python: a loop over time that a user wrote becomes all of its steps, one behind the other. What computes
is right, and equal kernels are compiled once, but there is no loop that a plan could run along diagonals, in one launch
of a GPU, or in a program of a CPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import onnx

from tilewright.frontend.onnx.node import label

_PRODUCTS = ("MatMul", "Gemm")
_LEAST = 8
"""Products with one weight, each behind the last one, that are taken for a loop."""


def unrolled(graph: onnx.GraphProto) -> dict[str, str]:
    """A remark for the last product of each such chain, by the node's label; one for loops of equal steps.

    Args:
        graph: a main graph, nodes in order.
    """
    constants = {tensor.name for tensor in graph.initializer}
    constants |= {node.output[0] for node in graph.node if node.op_type == "Constant"}
    constants |= {n.output[0] for n in graph.node if n.op_type == "Transpose" and n.input[0] in constants}
    uses = Counter(name for node in graph.node for name in _factors(node) & constants)
    found: dict[int, str] = {}
    for weight in (name for name, count in uses.items() if count >= _LEAST):
        steps, last = _chain(graph.node, weight)
        if steps >= _LEAST and steps not in found:
            found[steps] = last
    return {
        name: (
            f"a loop of {steps} steps that was unrolled before it came here: one weight multiplies {steps} times, each "
            "time what follows from the last one. It stays unrolled: every step is planned and launched for itself. "
            "LSTM, GRU, RNN, Scan and Loop of ONNX (torch.nn.LSTM and GRU) enter as loops"
        )
        for steps, name in found.items()
    }


def _factors(node: onnx.NodeProto) -> set[str]:
    """What a product multiplies: not what Gemm adds, which layers of weights of their own may share."""
    return set(node.input[:2]) if node.op_type in _PRODUCTS else set()


def _chain(nodes: Sequence[onnx.NodeProto], weight: str) -> tuple[int, str]:
    """The largest number of products with a weight on one way through the graph, and the last one's label."""
    behind: dict[str, int] = {}
    longest, last = 0, ""
    for node in nodes:
        steps = max((behind.get(name, 0) for name in node.input), default=0)
        if weight in _factors(node):
            steps += 1
            if steps > longest:
                longest, last = steps, label(node)
        if steps:
            behind.update(dict.fromkeys(node.output, steps))
    return longest, last
