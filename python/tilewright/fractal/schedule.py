# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Trees as arrays: nodes numbered by level, leaves first, so that each level is computed at once."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tilewright.core.errors import UserError

if TYPE_CHECKING:
    from tilewright.fractal.tree import Tree


class Schedule(NamedTuple):
    """What stands for a tree in a compiled program; its parts are inputs `tree`, `tree.children`, ....

    Attributes:
        values: [leaves, *leaf shape], or [nodes, *leaf shape] where inner nodes have values; by the nodes' numbers.
        children: i32 [nodes, 2], the numbers of both children; zero for a leaf.
        levels: i32 [depth + 1], the first node of each level, then where the last one ends.
        roots: i32 [1].
    """

    values: np.ndarray
    children: np.ndarray
    levels: np.ndarray
    roots: np.ndarray


class Shapes(NamedTuple):
    """Shapes of the parts of a :class:`Schedule`, in their order."""

    values: tuple[int, ...]
    children: tuple[int, ...]
    levels: tuple[int, ...]
    roots: tuple[int, ...]


def leaves_of(nodes: int) -> int:
    """How many leaves a binary tree of at most so many nodes has at most."""
    return (nodes + 1) // 2


def deepest(nodes: int) -> int:
    """How deep a binary tree of at most so many nodes is at most, counted in nodes."""
    return leaves_of(nodes)


def shapes(nodes: int, depth: int, leaf: tuple[int, ...], everywhere: bool) -> Shapes:
    """Shapes of the arrays for trees up to a size."""
    return Shapes((nodes if everywhere else leaves_of(nodes), *leaf), (nodes, 2), (depth + 1,), (1,))


def of(tree: Tree, nodes: int, depth: int, everywhere: bool) -> Schedule:
    """The arrays for one tree.

    Raises:
        UserError: it does not fit.
    """
    _check(tree, nodes, depth, everywhere)
    levels = tree.levels()
    order = list(itertools.chain(*levels))
    leaf = tree.type.leaf
    room = shapes(nodes, depth, leaf.shape, everywhere)
    values, children = np.empty(room.values, leaf.dtype), np.zeros(room.children, np.int32)
    with_values = order if everywhere else levels[0]
    _copy([node.value for node in with_values], values)
    values[len(with_values) :] = 0
    # A node that stands at several places is computed at each, and read at the last one.
    numbers = dict(zip(order, range(len(order)), strict=True))
    inner = order[len(levels[0]) :]
    pairs = [numbers[child] for node in inner for child in node.children]
    children[len(levels[0]) : len(order)] = np.array(pairs, np.int32).reshape(-1, 2)
    ends = np.full(depth + 1, len(order), np.int32)
    ends[: len(levels) + 1] = list(itertools.accumulate(map(len, levels), initial=0))
    return Schedule(values, children, ends, np.array([tree.count - 1], np.int32))


def _copy(tensors: list[np.ndarray], to: np.ndarray) -> None:
    """Copy tensors into the first rows of an array. One call for all of them: each costs as much as a small tensor."""
    if tensors[0].ndim:
        rows = len(tensors) * tensors[0].shape[0]
        np.concatenate(tensors, out=to[: len(tensors)].reshape(rows, *to.shape[2:]))
    else:
        to[: len(tensors)] = np.array(tensors)


def _check(tree: Tree, nodes: int, depth: int, everywhere: bool) -> None:
    if tree.count > nodes:
        raise UserError(f"the tree has {tree.count} nodes, there is room for {nodes}")
    if tree.depth > depth:
        raise UserError(f"the tree is {tree.depth} nodes deep, there is room for {depth}")
    if everywhere and not tree.is_leaf and not tree.type.everywhere:
        raise UserError("inner nodes of the tree have no values, which are asked for: give (left, right, value)")


def inputs(tree: Tree, name: str, given: dict[str, tuple[int, ...]]) -> list[np.ndarray]:
    """The arrays for a tree, in the order of a model's inputs, whose shapes say what there is room for.

    Raises:
        UserError: the model has no tree there, or the tree does not fit.
    """
    names = [name, *(f"{name}.{part}" for part in Schedule._fields[1:])]
    if list(given) != names:
        raise UserError(f"input {name} is no tree; a tree was given")
    room = Shapes(*given.values())
    nodes, depth = room.children[0], room.levels[0] - 1
    try:
        return list(of(tree, nodes, depth, room.values[0] == nodes))
    except UserError as error:
        raise UserError(
            f"input {name}: {error.message}; the model was compiled for up to {nodes} nodes and a depth of {depth}"
        ) from None


def children_first(children: np.ndarray, count: int) -> list[int]:
    """The numbers of all nodes of a tree, each behind its children, the root last.

    Args:
        children: [count, 2], -1 and -1 for a leaf.
        count: of nodes.

    Raises:
        UserError: they are those of no tree.
    """
    if children.shape != (count, 2) or children.dtype.kind not in "iu" or not count:
        raise UserError(
            f"children are integers [nodes, 2], as many rows as values: found {children.dtype} {list(children.shape)} "
            f"for {count} values"
        )
    order, todo = [], [_root(children)]
    while todo:
        order.append(node := todo.pop())
        todo += [int(child) for child in children[node] if child >= 0]
    if len(order) != count:
        rest = sorted(set(range(count)) - set(order))
        raise UserError(f"nodes {rest[:5]} are below themselves: a tree has no circle")
    return order[::-1]


def _root(children: np.ndarray) -> int:
    """The one node that is nobody's child; each other one is one node's."""
    parents: dict[int, int] = {}
    for node, pair in enumerate(children.tolist()):
        if pair == [-1, -1]:
            continue
        for child in pair:
            if not 0 <= child < len(children):
                raise UserError(
                    f"node {node} has the children {pair}: both are numbers of nodes, 0 to {len(children) - 1}, or "
                    "both are -1 for a leaf"
                )
            if child in parents:
                raise UserError(f"node {child} is twice a child, of nodes {parents[child]} and {node}: once at most")
            parents[child] = node
    roots = [node for node in range(len(children)) if node not in parents]
    if len(roots) != 1:
        found = f"nodes {roots[:5]} are" if roots else "there is none, so there is a circle; that is the one"
        raise UserError(f"a tree has one root, a node that is no node's child: {found}")
    return roots[0]
