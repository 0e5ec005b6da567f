# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random nests of `Loop`, `Scan` and `If` over small layers, as ONNX graphs.

Counts and conditions are known, inputs, or follow from what is computed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import onnx

from models._graph import Graph

F32 = np.float32
#: Loops and branches in each other, at most, and statements of a graph.
DEEPEST, MOST = 3, 4


class Scope(NamedTuple):
    """A graph under construction.

    Attributes:
        graph: its builder.
        values: tensors of the common shape that it sees, its own ones last.
        counter: the number of the iteration, a scalar i64; empty where there is no loop around.
        depth: how many loops and branches are around it.
    """

    graph: Graph
    values: list[str]
    counter: str
    depth: int


class Nest:
    """A model, and inputs for it; all choices follow from the seed.

    Inputs are `x` and `z` of the common shape, a list `xs` of such tensors, a count `n` and a switch `on`.
    """

    def __init__(self, seed: int) -> None:
        """Write it."""
        self.choose, self.rng = random.Random(seed), np.random.default_rng(seed)
        self.shape = [self.pick(1, 1, 2, 3), self.pick(7, 16, 24, 33)]
        self.length, self.names = self.pick(1, 2, 3), 0
        self.root = Graph(f"nest{seed}", 20)
        seen = [self.root.input(name, F32, self.shape) for name in ("x", "z")]
        self.root.input("xs", F32, [self.length, *self.shape])
        self.root.input("n", np.int64, [])
        self.root.input("on", np.bool_, [])
        top = Scope(self.root, seen, "", 0)
        self.statements(top, [_loop, _branch, _scan])
        for number, value in enumerate(top.values[-2:]):
            self.root.output(value, f"y{number}", F32, self.shape)
        self.model: onnx.ModelProto = self.root.model()

    def feeds(self, seed: int) -> dict[str, np.ndarray]:
        """Inputs; counts may be zero."""
        rng = np.random.default_rng([seed, 1])
        feeds = {name: rng.standard_normal(self.shape).astype(F32) for name in ("x", "z")}
        feeds["xs"] = rng.standard_normal((self.length, *self.shape)).astype(F32)
        return feeds | {"n": np.asarray(rng.integers(0, 4)), "on": np.asarray(rng.random() < 0.5)}

    # Choices ----------------------------------------------------------------------------------------------------

    def pick(self, *options):
        """One of the options."""
        return self.choose.choice(options)

    def name(self, letter: str) -> str:
        """One that no graph has: inner graphs must not hide names."""
        self.names += 1
        return f"{letter}{self.names}"

    def value(self, s: Scope) -> str:
        """A tensor, a late one more often."""
        return self.choose.choice(s.values[-3:] + s.values)

    def number(self, s: Scope) -> str:
        """A scalar that follows from a tensor; no tie of two numbers is likely."""
        return s.graph.op(self.pick("ReduceMax", "ReduceMean"), self.value(s), keepdims=0)

    def condition(self, s: Scope) -> str:
        """A scalar bool: an input, of data, or of the iteration's number."""
        kind = self.pick("input", "data", "data", "iteration")
        if kind == "iteration" and s.counter:
            odd = s.graph.op("Mod", s.counter, self.root.const(2))
            return s.graph.op("Equal", odd, self.root.const(self.pick(0, 1)))
        if kind == "input":
            return "on"
        return s.graph.op("Greater", self.number(s), self.root.const(round(self.choose.uniform(-0.3, 0.6), 4), F32))

    def count(self, s: Scope) -> str:
        """A scalar i64: known, an input, of data, or of the iteration's number."""
        kind = self.pick("known", "known", "input", "data", "iteration")
        if kind == "iteration" and s.counter:
            return s.graph.op("Min", s.counter, self.root.const(3))
        if kind == "input":
            return "n"
        if kind == "known":
            return self.root.const(self.pick(0, 1, 2, 3))
        scaled = s.graph.op("Mul", s.graph.op("Sigmoid", self.number(s)), self.root.const(4.0, F32))
        return s.graph.op("Cast", s.graph.op("Floor", scaled), to=onnx.TensorProto.INT64)

    # Statements -------------------------------------------------------------------------------------------------

    def statements(self, s: Scope, first: list[Callable[[Nest, Scope], None]] | None = None) -> None:
        """Some, each of which adds tensors."""
        for number in range(self.pick(*range(1, MOST + 1))):
            if number == 0 and first:
                self.pick(*first)(self, s)
            elif s.depth < DEEPEST and self.pick(True, False, False):
                self.pick(_loop, _branch, _scan)(self, s)
            else:
                self.pick(_layer, _layer, _elementwise, _normalized)(self, s)

    def inner(self, s: Scope, name: str, values: list[str], counter: str) -> Scope:
        """A graph in a node: it sees what is around it."""
        return Scope(s.graph.inner(self.name(name)), [*s.values, *values], counter, s.depth + 1)

    def result(self, s: Scope, own: int) -> str:
        """What a graph gives: a tensor that it made, mostly, bounded."""
        made = s.values[own:]
        return s.graph.op("Tanh", self.choose.choice(made[-2:])) if made else s.graph.op("Tanh", self.value(s))


def _layer(nest: Nest, s: Scope) -> None:
    """A product with a weight."""
    width = nest.shape[1]
    weight = (nest.rng.standard_normal((width, width)) / np.sqrt(width)).astype(F32)
    product = s.graph.op("MatMul", nest.value(s), nest.root.weight(weight, nest.name("w")))
    s.values.append(s.graph.op("Tanh", s.graph.op("Add", product, nest.value(s))))


def _elementwise(nest: Nest, s: Scope) -> None:
    a, b = nest.value(s), nest.value(s)
    kind = nest.pick("Add", "Mul", "Sub", "Max")
    s.values.append(s.graph.op(nest.pick("Tanh", "Sin", "Sigmoid"), s.graph.op(kind, a, b)))


def _normalized(nest: Nest, s: Scope) -> None:
    """Rows are reduced, too."""
    x = nest.value(s)
    s.values.append(
        s.graph.op("Softmax", x)
        if nest.pick(True, False)
        else s.graph.op("Sub", x, s.graph.op("ReduceMean", x, nest.root.const([1])))
    )


def _loop(nest: Nest, s: Scope) -> None:
    """One state or two; it ends by its count, by data, or both; it may list what it makes."""
    states = [nest.value(s) for _ in range(nest.pick(1, 1, 2))]
    counted = nest.pick(True, True, False)
    ends = not counted or nest.pick(True, False)
    count = nest.count(s) if counted else nest.root.const(4)
    go = nest.condition(s) if ends and nest.pick(True, False) else ""
    names = [nest.name(letter) for letter in ("i", "c", *("s" * len(states)))]
    body = nest.inner(s, "loop", names[2:], names[0])
    body.graph.input(names[0], np.int64, [])
    body.graph.input(names[1], np.bool_, [])
    for name in names[2:]:
        body.graph.input(name, F32, nest.shape)
    own = len(body.values)
    nest.statements(body)
    results = [nest.result(body, own) for _ in states]
    goes_on = nest.condition(body) if ends else names[1]
    body.graph.output(goes_on, nest.name("d"), np.bool_, [])
    for result in results:
        body.graph.output(result, nest.name("r"), F32, nest.shape)
    s.values.extend(s.graph.ops("Loop", count, go, *states, outputs=len(states), body=body.graph.as_attribute()))


def _branch(nest: Nest, s: Scope) -> None:
    """Either side gives as many tensors; one may only hand on what is there."""
    count, which = nest.pick(1, 1, 2), nest.condition(s)
    sides = []
    for side, does in (("then", True), ("else", nest.pick(True, False))):
        inner = nest.inner(s, side, [], s.counter)
        own = len(inner.values)
        if does:
            nest.statements(inner)
        for _ in range(count):
            value = nest.result(inner, own) if does else nest.value(inner)
            inner.graph.output(value, nest.name("b"), F32, nest.shape)
        sides.append(inner.graph.as_attribute())
    s.values.extend(s.graph.ops("If", which, outputs=count, then_branch=sides[0], else_branch=sides[1]))


def _scan(nest: Nest, s: Scope) -> None:
    """Over the list of the model, from either end; what it lists is summed, or the state goes on."""
    state, element = nest.name("s"), nest.name("e")
    body = nest.inner(s, "scan", [state, element], s.counter)
    for name in (state, element):
        body.graph.input(name, F32, nest.shape)
    own = len(body.values)
    nest.statements(body)
    for _ in range(2):
        body.graph.output(nest.result(body, own), nest.name("r"), F32, nest.shape)
    way = {"scan_input_directions": [1]} if nest.pick(True, False) else {}
    graph = body.graph.as_attribute()
    last, listed = s.graph.ops("Scan", nest.value(s), "xs", outputs=2, body=graph, num_scan_inputs=1, **way)
    total = s.graph.op("ReduceSum", listed, nest.root.const([0]), keepdims=0)
    s.values.extend([last, s.graph.op("Tanh", total)])
