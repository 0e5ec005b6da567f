# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Binary trees with a tensor at each leaf, perhaps at each node: the annotation `ft.Tree[...]`, and values."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.fractal import schedule
from tilewright.fractal.types import Tensor, TensorType, is_number, type_of
from tilewright.fractal.where import wrong

EVERYWHERE = "everywhere"


@dataclass(frozen=True)
class TreeType:
    """Annotation of a tree, made by ``Tree[...]``.

    Attributes:
        leaf: what each leaf has.
        everywhere: whether inner nodes have such a value, too.
    """

    leaf: TensorType
    everywhere: bool = False

    def __str__(self) -> str:
        return f"a tree with {self.leaf} at each {'node' if self.everywhere else 'leaf'}"


class Tree:
    """A node, with all that is below it: ``Tree(nested)`` or :meth:`from_arrays`. Nodes do not change.

    As an annotation, ``Tree[leaf shape]``, ``Tree[leaf shape, dtype]`` or ``Tree[leaf shape, dtype, "everywhere"]``
    (f32 if no dtype is said; with values at inner nodes, too).

    Attributes:
        type: what its annotation would be.
        count: how many nodes there are, this one included.
        depth: how many nodes the longest way down has, this one included.
        children: left and right; of a leaf none.
    """

    __slots__ = ("_value", "children", "count", "depth", "type")

    _value: np.ndarray | None
    children: tuple[Tree, ...]
    type: TreeType
    count: int
    depth: int

    def __new__(cls, nested: Any) -> Tree:
        """A tree from nested tuples or lists.

        Args:
            nested: a leaf is a tensor (an array or a number); an inner node is (left, right) or (left, right, value).

        Raises:
            UserError: a node of another number of parts, tensors of several types, or a list that holds itself.
        """
        with _errors_of("ft.Tree"):
            return _from_nested(nested)

    def __class_getitem__(cls, items: Any) -> TreeType:
        items = items if isinstance(items, tuple) and any(isinstance(i, tuple | str) for i in items) else (items,)
        everywhere = len(items) == 3 and items[2] == EVERYWHERE
        if len(items) > 2 and not everywhere:
            raise UserError(
                f"ft.Tree{list(items)}: expected ft.Tree[leaf shape], [leaf shape, dtype] or [leaf shape, dtype, "
                f'"{EVERYWHERE}"]'
            )
        return TreeType(Tensor[items[:2]].type, everywhere)

    @staticmethod
    def from_arrays(values: Any, children: Any, everywhere: bool = False) -> Tree:
        """A tree from an array of all nodes.

        Args:
            values: [nodes, *leaf shape]; rows of inner nodes count only with `everywhere`.
            children: integers [nodes, 2]: the numbers of both children, -1 and -1 for a leaf.
            everywhere: whether inner nodes have values.

        Raises:
            UserError: a child that does not exist, a node with one child or with two parents, several roots, a circle.
        """
        with _errors_of("ft.Tree.from_arrays"):
            return _from_arrays(np.asarray(values), np.asarray(children), everywhere)

    def __repr__(self) -> str:
        return f"<{self.type}: {self.count} nodes, depth {self.depth}>"

    @property
    def is_leaf(self) -> bool:
        """Whether it has no children."""
        return not self.children

    @property
    def value(self) -> np.ndarray:
        """The tensor here."""
        if self._value is None:
            raise wrong("ft.Tree", "this inner node has no value: it was given as (left, right), without a third part")
        return self._value

    @property
    def left(self) -> Tree:
        """The first child."""
        return self._child(0)

    @property
    def right(self) -> Tree:
        """The second child."""
        return self._child(1)

    def _child(self, side: int) -> Tree:
        if not self.children:
            raise wrong("ft.Tree", "a leaf has no children: ask for is_leaf first")
        return self.children[side]

    def nodes(self) -> Iterator[Tree]:
        """All nodes, each before those below it, left before right."""
        stack: list[Tree] = [self]
        while stack:
            node = stack.pop()
            yield node
            stack += node.children[::-1]

    def levels(self) -> list[list[Tree]]:
        """All nodes by their depth, leaves first; those of a level in the order of `nodes`."""
        found: list[list[Tree]] = [[] for _ in range(self.depth)]
        stack: list[Tree] = [self]
        while stack:  # not `nodes`: a run walks its tree, and a generator takes as long as the rest
            node = stack.pop()
            found[node.depth - 1].append(node)
            if pair := node.children:
                stack += (pair[1], pair[0])
        return found

    def schedule(self, nodes: int, depth: int | None = None, everywhere: bool | None = None) -> schedule.Schedule:
        """The tree as the arrays that a compiled model takes.

        Args:
            nodes: how many nodes the model has room for.
            depth: how deep a tree it takes; None: as deep as one of so many nodes can be.
            everywhere: whether it takes values of inner nodes; None: if this tree has some.

        Raises:
            UserError: the tree is too large or too deep, or inner nodes have no values.
        """
        wanted = self.type.everywhere if everywhere is None else everywhere
        return schedule.of(self, nodes, schedule.deepest(nodes) if depth is None else depth, wanted)

    def model_inputs(self, name: str, shapes: dict[str, tuple[int, ...]]) -> list[np.ndarray]:
        """What a model that was compiled for trees takes for this one.

        Args:
            name: of the input.
            shapes: of all arrays that stand for it, by the names of inputs.

        Raises:
            UserError: the input is no tree, or the tree does not fit.
        """
        return schedule.inputs(self, name, shapes)


def _make(children: tuple[Tree, ...], value: np.ndarray | None, kind: TreeType) -> Tree:
    node = object.__new__(Tree)
    node.children, node._value, node.type = children, value, kind
    node.count = 1 + sum(child.count for child in children)
    node.depth = 1 + max((child.depth for child in children), default=0)
    return node


def _tensor(value: Any) -> np.ndarray:
    if is_number(value):
        return np.asarray(value, np.float32)
    if not isinstance(value, np.ndarray | np.generic):
        raise UserError(f"a leaf is a tensor (an array or a number), found a {type(value).__name__}")
    return np.asarray(value)


def _leaf(value: Any) -> Tree:
    array = _tensor(value)
    kind = type_of(array)
    assert isinstance(kind, TensorType)
    return _make((), array, TreeType(kind))


def _node(left: Tree, right: Tree, value: Any) -> Tree:
    leaf = left.type.leaf
    if leaf != right.type.leaf:
        raise UserError(f"a tree has equal tensors, found {leaf} and {right.type.leaf}")
    array = None if value is None else _tensor(value)
    if array is not None and type_of(array) != leaf:
        raise UserError(f"an inner node's value is {type_of(array)}, those of leaves are {leaf}")
    if any(child.type.everywhere != (array is not None) for child in (left, right) if not child.is_leaf):
        raise UserError("inner nodes have a value, (left, right, value), either all or none of them")
    return _make((left, right), array, TreeType(leaf, array is not None))


def _from_nested(nested: Any) -> Tree:
    if isinstance(nested, Tree):
        return nested
    made: list[Tree] = []
    around: set[int] = set()
    todo: list[tuple[Any, bool]] = [(nested, False)]
    while todo:
        part, done = todo.pop()
        if not isinstance(part, tuple | list):
            made.append(part if isinstance(part, Tree) else _leaf(part))
        elif done:
            right, left = made.pop(), made.pop()
            made.append(_node(left, right, part[2] if len(part) == 3 else None))
            around.discard(id(part))
        else:
            _check_node(part, around)
            around.add(id(part))
            todo += [(part, True), (part[1], False), (part[0], False)]
    return made[0]


def _check_node(part: Any, around: set[int]) -> None:
    if id(part) in around:
        raise UserError("a list holds itself, at some depth: a tree has no circle")
    if len(part) not in (2, 3):
        raise UserError(
            f"an inner node is (left, right) or (left, right, value), found a {type(part).__name__} of {len(part)}; "
            "a leaf is a NumPy array or a number"
        )


def _from_arrays(values: np.ndarray, children: np.ndarray, everywhere: bool) -> Tree:
    order = schedule.children_first(children, len(values) if values.ndim else 0)
    made: dict[int, Tree] = {}
    for place in order:
        left, right = (int(child) for child in children[place])
        value = np.array(values[place])
        if left < 0:
            made[place] = _leaf(value)
        else:
            made[place] = _node(made.pop(left), made.pop(right), value if everywhere else None)
    return made[order[-1]]


@contextlib.contextmanager
def _errors_of(name: str) -> Iterator[None]:
    """While inside, errors get a name and the user's line."""
    try:
        yield
    except UserError as error:
        raise (error if error.location else wrong(name, error.message)) from None
