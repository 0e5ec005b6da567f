# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`fractal.recurse`: node after node, children first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.dialects.fractal.values import Lists
from tilewright.reference.errors import InterpreterError
from tilewright.reference.fractal.registry import kinds, op
from tilewright.reference.program import Block, Node
from tilewright.reference.upstream.scf_ops import results


@op("recurse")
def recurse(frame: Any, node: Node, *operands: Any) -> Any:
    """The states of the roots.

    Raises:
        InterpreterError: the numbers are those of no trees.
    """
    (children,), (levels,), (roots,), leaves, nodes = node.groups(operands)
    leaf_body, node_body = _bodies(node)
    starts = _starts(levels, children, leaves)
    states = [frame.run(leaf_body, [xs[place] for xs in leaves]) for place in range(starts[1])]
    for start, end in zip(starts[1:-1], starts[2:], strict=True):
        for place in range(start, end):
            below = _named(children[place], start, f"a child of node {place}, whose level begins with {start},")
            values = [state for child in below for state in states[child]]
            states.append(frame.run(node_body, [*values, *(xs[place] for xs in nodes)]))
    rows = [states[root] for root in _named(roots, len(states), f"a root of {len(states)} nodes")]
    empty = [kind.empty() for kind in kinds(node) if kind is not None]
    return results(node, [Lists.stack(column) for column in zip(*rows, strict=True)] if rows else empty)


def _bodies(node: Node) -> tuple[Block, Block]:
    leaf, inner = node.regions
    assert leaf is not None and inner is not None  # the verifier asks for a block in each
    return leaf, inner


def _starts(levels: np.ndarray, children: np.ndarray, leaves: Sequence[Lists]) -> list[int]:
    """Where each level begins, and where the last one ends."""
    starts = [int(start) for start in levels]
    if starts[0] != 0 or starts != sorted(starts):
        raise InterpreterError(f"fractal.recurse: levels are {starts}: they begin with 0 and ascend")
    if starts[-1] > len(children):
        raise InterpreterError(f"fractal.recurse: {starts[-1]} nodes, but {len(children)} rows of children")
    if any(len(xs) < starts[1] for xs in leaves):
        raise InterpreterError(f"fractal.recurse: {starts[1]} leaves, but fewer elements for them")
    return starts


def _named(numbers: np.ndarray, end: int, what: str) -> list[int]:
    """Numbers of nodes, of which there are `end` so far."""
    for number in numbers:
        if not 0 <= number < end:
            raise InterpreterError(f"fractal.recurse: {what} is {int(number)}")
    return [int(number) for number in numbers]
