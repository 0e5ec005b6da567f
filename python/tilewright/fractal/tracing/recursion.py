# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recursion over a tree as `fractal.recurse`: the function runs for a leaf, then for a node of known children."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tilewright.core.errors import UserError
from tilewright.fractal.schedule import Schedule
from tilewright.fractal.tracing.compute import Tracer
from tilewright.fractal.tracing.trees import Child, Node, Run, Symbol, Whole
from tilewright.fractal.tracing.values import Value
from tilewright.fractal.tree import TreeType
from tilewright.fractal.trees import describe, flatten, rebuild, unzipped
from tilewright.fractal.types import ListType, Type, is_number, list_of
from tilewright.fractal.where import wrong
from tilewright.mlir import ir


class TreeTracer(Tracer):
    """Also knows functions that call themselves."""

    def tree(self, kind: TreeType, parts: Schedule) -> Whole:
        """A tree that the program takes."""
        return Whole(kind, parts)

    def recursion(self, function: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """A call of a recursive function: a new recursion for a tree, a state for a child."""
        bound = inspect.signature(function).bind(*args, **named)
        bound.apply_defaults()
        nodes = [name for name, value in bound.arguments.items() if isinstance(value, Symbol)]
        if not nodes:
            return function(*args, **named)
        others = {name: value for name, value in bound.arguments.items() if name not in nodes}
        name, node = function.__name__, bound.arguments[nodes[0]]
        if len(nodes) > 1:
            raise wrong(name, f"a traced function recurses over one tree, {', '.join(nodes)} are nodes of trees")
        if isinstance(node, Child):
            return _state(node, function, others)
        if isinstance(node, Node):
            raise wrong(name, "the recursion does not end: it is called on the node itself; go on with its children")
        assert isinstance(node, Whole)

        def run(at: Node) -> Any:
            bound.arguments[nodes[0]] = at
            return function(*bound.args, **bound.kwargs)

        return self._recurse(Run(function, others), run, node)

    def _recurse(self, run: Run, call: Callable[[Node], Any], tree: Whole) -> Any:
        """The state of the root."""
        arity = 2
        shapes: list[Any] = []

        def traced(node: Node) -> list[Value]:
            values, shape = flatten(unzipped(call(node)))
            shapes.append(shape)
            return [self._as_state(run.function, value) for value in values]

        element = tree.parts.values.type.element(0)
        leaf = self._region(lambda number: [element], lambda given: traced(Node(tree.type, run, given[0], [])))
        kinds = [value.type for value in leaf.values]
        count = len(kinds)

        def inner(given: list[Any]) -> list[Value]:
            states = [rebuild(shapes[0], given[i * count : (i + 1) * count]) for i in range(arity)]
            children = [Child(tree.type, run, state) for state in states]
            return traced(Node(tree.type, run, given[-1] if tree.type.everywhere else None, children))

        extra = [element] if tree.type.everywhere else []
        node = self._region(lambda number: [*kinds * arity, *extra], inner)
        _check_states(run.function, shapes, kinds, [value.type for value in node.values])
        states = self._emitted(tree, [leaf, node], kinds)
        return rebuild(shapes[0], [self.at(state, 0) for state in states])

    def _as_state(self, function: Callable[..., Any], value: Any) -> Value:
        if isinstance(value, Symbol):
            raise _wrong(function, "a node: a recursion gives tensors")
        state = self.as_value(value)
        if isinstance(state.type, ListType) and not all(isinstance(n, int) for n in state.type.lengths):
            raise _wrong(function, f"{state.type}: the lists that a recursion gives have known lengths")
        return state

    def _emitted(self, tree: Whole, regions: list[Any], kinds: Sequence[Type]) -> list[Any]:
        """The op; a list of one root's states for each."""
        parts = tree.parts
        operands = [parts.children, parts.levels, parts.roots, parts.values]
        operands += [parts.values] if tree.type.everywhere else []
        segments = ir.DenseI32ArrayAttr.get([1, 1, 1, 1, int(tree.type.everywhere)])
        lists = [list_of(1, kind) for kind in kinds]
        for region in regions:
            with ir.InsertionPoint(region.block):
                self.op("fractal.yield", [value.value for value in region.values], [])
        op = ir.Operation.create(
            "fractal.recurse",
            [self.mlir(kind) for kind in lists],
            [x.value for x in operands],
            {"operandSegmentSizes": segments},
            regions=2,
            loc=self.here(),
        )
        for number, region in enumerate(regions):
            region.block.append_to(op.regions[number])
            region.holder.erase()
        return [self.symbol(result, kind) for result, kind in zip(op.results, lists, strict=True)]


def _state(child: Child, function: Callable[..., Any], others: Mapping[str, Any]) -> Any:
    """What the function returns for a child."""
    name, run = function.__name__, child.run
    if run.function is not function:
        raise wrong(name, f"it is called on a child in the recursion of {run.function.__name__}: one function recurses")
    for key, value in others.items():
        if not _same(value, run.others[key]):
            raise wrong(
                name,
                f"its argument {key} is another one for a child than for the node: a traced recursion depends on "
                "nothing but the node; let the state hold what varies with depth",
            )
    return child.state


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    plain = is_number(a) and is_number(b) or isinstance(a, str) and isinstance(b, str)
    return type(a) is type(b) and plain and a == b


def _check_states(function: Callable[..., Any], shapes: Sequence[Any], leaf: list[Type], node: list[Type]) -> None:
    """Pass a function that gives one type, whatever node it is for.

    Raises:
        UserError: it does not.
    """
    if shapes[0] == shapes[1] and leaf == node:
        return
    found = [
        describe(shape) if shapes[0] != shapes[1] else ", ".join(map(str, kinds))
        for shape, kinds in zip(shapes, (leaf, node), strict=True)
    ]
    raise _wrong(
        function, f"{found[0]} for a leaf and {found[1]} for an inner node: the state of a recursion has one type"
    )


def _wrong(function: Callable[..., Any], returned: str) -> UserError:
    """An error of what a function returns."""
    code = inspect.unwrap(function).__code__
    return UserError(
        f"{function.__name__}: it returns {returned}", location=f"{code.co_filename}:{code.co_firstlineno}"
    )
