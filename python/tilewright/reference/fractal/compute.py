# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The ops of `fractal` that apply a region to elements: it gets tensors as arrays, other elements as `Lists`."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from tilewright.dialects.fractal.values import Lists
from tilewright.reference.errors import InterpreterError
from tilewright.reference.fractal.registry import kinds, op
from tilewright.reference.program import Node
from tilewright.reference.registry import terminators
from tilewright.reference.upstream.scf_ops import as_condition, results

terminators("fractal.yield")


@op("map")
def map_(frame: Any, node: Node, *arrays: Lists) -> Any:
    """The region applied to each element."""
    rows = [frame.run(node.body, elements) for elements in _together(arrays)]
    return _collected(node, rows)


@op("scan")
def scan(frame: Any, node: Node, *operands: Any) -> Any:
    """The states after each step; from the right, the first of them stands last."""
    rows = list(_steps(frame, node, operands))
    return _collected(node, rows[::-1] if _from_right(node) else rows)


@op("fold")
def fold(frame: Any, node: Node, *operands: Any) -> Any:
    """The state after the last step."""
    inits, _ = node.groups(operands)
    last = deque(_steps(frame, node, operands), maxlen=1)
    return results(node, list(last.pop() if last else inits))


@op("reduce")
def reduce(frame: Any, node: Node, *operands: Any) -> Any:
    """All elements combined in order, from the left; with a seed, in any bracketing, and the inits once more."""
    arrays, inits = node.groups(operands)
    terms = [list(inits), *_together(arrays)]
    random = frame.machine.random
    if random:
        terms.insert(random.randrange(len(terms) + 1), list(inits))
    while len(terms) > 1:
        at = random.randrange(len(terms) - 1) if random else 0
        terms[at : at + 2] = [frame.run(node.body, [*terms[at], *terms[at + 1]])]
    return results(node, terms[0])


@op("filter")
def filter_(frame: Any, node: Node, array: Lists) -> Lists:
    """The elements for which the region holds."""
    return array.take([place for place, x in enumerate(array) if as_condition(frame.run(node.body, [x])[0])])


def _together(arrays: Sequence[Lists]) -> Iterator[list[Any]]:
    """The elements of all arrays at each place.

    Raises:
        InterpreterError: the arrays differ in length.
    """
    lengths = [len(array) for array in arrays]
    for number, length in enumerate(lengths):
        if length != lengths[0]:
            raise InterpreterError(
                f"array 0 has length {lengths[0]}, but array {number} has length {length}: elements of arrays are "
                "taken together, so all arrays have one length"
            )
    return ([array[place] for array in arrays] for place in range(lengths[0]))


def _steps(frame: Any, node: Node, operands: Sequence[Any]) -> Iterator[Sequence[Any]]:
    """The state after each step, in the order of the steps."""
    state, arrays = node.groups(tuple(operands))
    rows = list(_together(arrays))
    for elements in reversed(rows) if _from_right(node) else rows:
        state = frame.run(node.body, [*state, *elements])
        yield state


def _from_right(node: Node) -> bool:
    return node.attribute("right") is not None


def _collected(node: Node, rows: Sequence[Sequence[Any]]) -> Any:
    """A list of what the region gave for each result."""
    lists = [Lists.stack(column) for column in zip(*rows, strict=True)]
    return results(node, lists if rows else [kind.empty() for kind in kinds(node) if kind is not None])
