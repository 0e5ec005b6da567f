# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random functions that call themselves on the children of a node, as the text of a Python function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from random_leaves import LEAF_STEPS
from random_lists import SHAPES, Program, Value, Writer

import tilewright.fractal as ft


class TreeProgram(Program):
    """A recursive function of a tree and a tensor, with one state or two.

    Attributes:
        leaf: shape of the values at leaves, and at other nodes where `everywhere`.
        everywhere: whether all nodes have values.
    """

    def __init__(self, seed: int) -> None:
        """Write it."""
        Writer.__init__(self, seed)
        self.leaf, self.everywhere = self.pick(*SHAPES[1:]), self.pick(True, False)
        self.other = Value("x", (), self.pick(*SHAPES))
        self.scopes[0].append(self.other)
        shapes = [self.pick(*SHAPES) for _ in range(self.pick(1, 1, 2))]
        self.emit("@ft.recursive")
        self.emit("def states(node):")
        self.scopes.append([])
        self.emit("if node.is_leaf:")
        self._side(shapes, self._value)
        self._side(shapes, lambda: self._children(shapes))
        self.scopes.pop()
        self.emit("return states(tree)")

    @property
    def text(self) -> str:
        """The function."""
        return "\n".join(["def program(tree, x):", *self.lines, ""])

    def function(self, file: str) -> ft.Function:
        """The function, compiled by Python under a file's name."""
        names: dict[str, Any] = {"ft": ft, **self.constants}
        exec(compile(self.text, file, "exec"), names)
        python = names["program"]
        kind: Any = ft.Tree[(self.leaf, "f32", "everywhere")] if self.everywhere else ft.Tree[self.leaf]
        python.__annotations__ = {"tree": kind, "x": ft.Tensor[self.other.shape]}
        return ft.function(python)

    def kinds(self) -> list[Callable[[Program], bool]]:
        """Math on tensors alone: states are no lists."""
        return list(LEAF_STEPS)

    def _value(self) -> None:
        self.new("node.value", (), self.leaf)

    def _children(self, shapes: list[tuple[int, ...]]) -> None:
        for side in ("left", "right"):
            states = [Value(self.name("h"), (), shape) for shape in shapes]
            self.emit(f"{', '.join(state.name for state in states)} = states(node.{side})")
            self.scopes[-1] += states
        if self.everywhere:
            self._value()

    def _side(self, shapes: list[tuple[int, ...]], begin: Callable[[], None]) -> None:
        """What a leaf gives, one block deeper; or any other node, behind it."""
        deeper = not any("is_leaf" in line for line in self.lines[:-1])
        if deeper:
            self.scopes.append([])
        begin()
        self.steps(self.pick(1, 2, 3, 4))
        results = [self.wanted((), shape).name for shape in shapes]
        self.emit(f"return {', '.join(results)}")
        if deeper:
            self.scopes.pop()
