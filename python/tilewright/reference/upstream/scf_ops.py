# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The `scf` dialect: structured control flow."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from tilewright.reference import types
from tilewright.reference.errors import InterpreterError
from tilewright.reference.liveness import captured
from tilewright.reference.program import Node
from tilewright.reference.registry import HANDLERS, handles, terminators
from tilewright.reference.sums import sum_loop, summed

terminators("scf.yield", "scf.condition", "scf.reduce", "scf.reduce.return")


def results(node: Node, values: list[Any]) -> Any:
    """Return ``values`` in the form a handler returns: nothing, the value, or the list."""
    return values[0] if len(node.results) == 1 else values


def as_condition(value: Any) -> bool:
    """Return a scalar i1 as a bool.

    Raises:
        InterpreterError: it is not one value (a branch inside a vectorised linalg body).
    """
    if np.size(value) != 1:
        raise InterpreterError("the condition is not a scalar; use arith.select inside a linalg body")
    return bool(np.asarray(value).reshape(()))


@handles("scf.for")
def for_(frame: Any, node: Node, lower: Any, upper: Any, step: Any, *carried: Any) -> Any:
    """Loop from ``lower`` below ``upper``; the step must be positive. Sums of products are done at once (sums.py)."""
    if step <= 0:
        raise InterpreterError(f"scf.for needs a positive step, got {step}")
    plan = sum_loop(node)
    if plan is not None and step == plan.step and upper > lower and (upper - lower) % plan.step == 0:
        read = {number: frame.values[number] for number in captured(node)}
        read.update(zip(node.operands, (lower, upper, step, *carried), strict=True))
        return results(node, summed(frame, node, plan, read))
    values: list[Any] = list(carried)
    kind = type(lower)
    for i in range(int(lower), int(upper), int(step)):
        values = frame.run(node.body, [kind(i), *values])
    return results(node, values)


@handles("scf.if")
def if_(frame: Any, node: Node, condition: Any) -> Any:
    """Run one of the two regions."""
    block = node.regions[0 if as_condition(condition) else 1]
    return results(node, frame.run(block) if block else [])


@handles("scf.while")
def while_(frame: Any, node: Node, *carried: Any) -> Any:
    """Run "before"; while its condition holds, run "after" with what it passed on."""
    before, after = node.regions
    values: list[Any] = list(carried)
    while True:
        condition, *passed = frame.run(before, values)
        if not as_condition(condition):
            return results(node, passed)
        values = frame.run(after, passed)


@handles("scf.execute_region")
def execute_region(frame: Any, node: Node) -> Any:
    """Run the region once."""
    return results(node, frame.run(node.body))


@handles("scf.index_switch")
def index_switch(frame: Any, node: Node, value: Any) -> Any:
    """Run the region of the case that equals ``value``, else the default (first) region."""
    cases = types.integers(node.op.attributes["cases"])
    block = node.regions[1 + cases.index(int(value))] if int(value) in cases else node.body
    return results(node, frame.run(block))


@handles("scf.parallel")
def parallel(frame: Any, node: Node, *operands: Any) -> Any:
    """A loop nest in lexicographic order, with reductions combined in that order."""
    lower, upper, step, values = (list(group) for group in node.groups(operands))
    ranges = [range(int(lo), int(hi), int(st)) for lo, hi, st in zip(lower, upper, step, strict=True)]
    reduce = node.body.nodes[-1]
    for point in itertools.product(*ranges):
        given = frame.run(node.body, [np.int64(i) for i in point])
        for k, (value, combiner) in enumerate(zip(given, reduce.regions, strict=True)):
            values[k] = frame.run(combiner, [values[k], value])[0]
    return results(node, values)


@handles("scf.forall")
def forall(frame: Any, node: Node, *operands: Any) -> Any:
    """Run all points; what they insert into the shared outputs is seen after the loop only."""
    lower, upper, step, outputs = node.groups(operands)
    bounds = [
        types.fill_dynamic(types.integers(node.op.attributes[name]), dynamic)
        for name, dynamic in (("staticLowerBound", lower), ("staticUpperBound", upper), ("staticStep", step))
    ]
    shared = [np.array(output) for output in outputs]
    *body, ending = node.body.nodes
    ids = node.body.arguments[: len(bounds[0])]
    arguments = node.body.arguments[len(ids) :]
    for point in itertools.product(*(range(*triple) for triple in zip(*bounds, strict=True))):
        frame.values.update(zip(ids, map(np.int64, point), strict=True))
        frame.values.update(zip(arguments, outputs, strict=True))
        frame.run_nodes(body)
        frame.values.update(zip(arguments, shared, strict=True))
        frame.run(ending.body)
    return results(node, shared)


@handles("tensor.parallel_insert_slice")
def parallel_insert_slice(frame: Any, node: Node, source: Any, target: np.ndarray, *dynamic: Any) -> None:
    """Write a slice of the shared output that encloses this point of scf.forall."""
    target[...] = HANDLERS["tensor.insert_slice"](frame, node, source, target, *dynamic)
