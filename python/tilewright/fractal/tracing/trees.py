# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trees in a trace: what a recursive function sees of a node, and of which run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from tilewright.fractal.schedule import Schedule
from tilewright.fractal.tree import TreeType
from tilewright.fractal.where import wrong


class Symbol:
    """A node, or the whole tree: what is not known of it is an error.

    Attributes:
        type: of the tree.
    """

    __slots__ = ("type",)
    __hash__ = object.__hash__
    what = "a traced tree"
    advice = (
        "only the function that recurses over it looks at its nodes; define that function inside the ft.function, or "
        "decorate it with @ft.recursive"
    )

    def __init__(self, kind: TreeType) -> None:
        self.type = kind

    def __repr__(self) -> str:
        return f"<{self.what}, {self.type}>"

    def _refuse(self, name: str) -> NoReturn:
        raise wrong(self.what, f"{name} is not known: {self.advice}")

    @property
    def is_leaf(self) -> bool:
        """Whether it has no children."""
        self._refuse("is_leaf")

    @property
    def value(self) -> Any:
        """The tensor there."""
        self._refuse("value")

    @property
    def left(self) -> Any:
        """The first child."""
        self._refuse("left")

    @property
    def right(self) -> Any:
        """The second child."""
        self._refuse("right")

    def __eq__(self, other: object) -> bool:
        self._refuse("what it is equal to")

    def __bool__(self) -> bool:
        self._refuse("whether it is true")

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(name)
        raise wrong(self.what, f"it has no {name}: a traced node has is_leaf, value, left and right")


class Whole(Symbol):
    """A tree that the program takes.

    Attributes:
        parts: the symbolic values that stand for it.
    """

    __slots__ = ("parts",)

    def __init__(self, kind: TreeType, parts: Schedule) -> None:
        super().__init__(kind)
        self.parts = parts


class Run:
    """A function that recurses over a tree, while it is traced.

    Attributes:
        function: that is called.
        others: its arguments that are no node, by name.
    """

    def __init__(self, function: Callable[..., Any], others: dict[str, Any]) -> None:
        self.function, self.others = function, others


class Node(Symbol):
    """The node that a run of the function is for, a leaf or not.

    Attributes:
        run: the recursion.
    """

    __slots__ = ("_children", "_value", "run")
    what = "a node"
    advice = "look at is_leaf, value, left and right only"

    def __init__(self, kind: TreeType, run: Run, value: Any, children: Sequence[Child]) -> None:
        super().__init__(kind)
        self.run, self._value, self._children = run, value, children

    @property
    def is_leaf(self) -> bool:
        """Whether this run is for leaves."""
        return not self._children

    @property
    def value(self) -> Any:
        """The tensor there."""
        if self._value is None:
            raise wrong("a node", 'inner nodes have no value: declare ft.Tree[shape, dtype, "everywhere"]')
        return self._value

    @property
    def left(self) -> Child:
        """The first child."""
        return self._child(0)

    @property
    def right(self) -> Child:
        """The second child."""
        return self._child(1)

    def _child(self, number: int) -> Child:
        if not self._children:
            raise wrong("a node", "a leaf has no children: ask for is_leaf first")
        return self._children[number]


class Child(Symbol):
    """A child, of which the states are known, and nothing else.

    Attributes:
        run: the recursion.
        state: what the function returns for it.
    """

    __slots__ = ("run", "state")
    what = "a child of a node"
    advice = "all that a traced function can do with it is to call itself with it"

    def __init__(self, kind: TreeType, run: Run, state: Any) -> None:
        super().__init__(kind)
        self.run, self.state = run, state
