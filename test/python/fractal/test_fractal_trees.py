# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`ft.Tree`: how one is made, what is none, and the arrays that stand for one in a compiled program."""

from __future__ import annotations

import numpy as np
import pytest
from fractal_runs import line_of, values
from tree_runs import chain, complete, grown

import tilewright.fractal as ft
from tilewright.core.errors import UserError
from tilewright.fractal.schedule import Schedule
from tilewright.fractal.tree import TreeType
from tilewright.fractal.types import TensorType

A, B, C, V = (values(1, 3, seed=seed) for seed in range(4))
SEVEN = [[-1, -1], [0, 2], [-1, -1], [1, 4], [-1, -1]]  # node 3 is ((0 2) 4)


def test_nested():
    tree = ft.Tree(((A, B), C))
    assert (tree.count, tree.depth, tree.is_leaf) == (5, 3, False)
    assert tree.left.left.value is A and tree.right.value is C
    assert str(tree) == "<a tree with a tensor f32[1, 3] at each leaf: 5 nodes, depth 3>"
    assert ft.Tree([[A, B], C]).left.right.value is B
    assert ft.Tree((tree, A)).left is tree
    assert ft.Tree(tree) is tree
    assert ft.Tree((1.0, 2)).right.value == np.float32(2)


def test_values_at_all_nodes():
    tree = ft.Tree(((A, B, V), C, A))
    assert tree.value is A and tree.left.value is V and tree.type.everywhere


def test_from_arrays():
    rows = values(5, 1, 3)
    tree = ft.Tree.from_arrays(rows, SEVEN)
    assert (tree.count, tree.depth) == (5, 3)
    for node, row in ((tree.left.left, 0), (tree.left.right, 2), (tree.right, 4)):
        np.testing.assert_array_equal(node.value, rows[row])
    with pytest.raises(UserError, match="this inner node has no value"):
        _ = tree.value
    np.testing.assert_array_equal(ft.Tree.from_arrays(rows, SEVEN, everywhere=True).left.value, rows[1])


def test_annotations():
    assert ft.Tree[(1, 8)] == ft.Tree[1, 8] == TreeType(TensorType((1, 8), np.dtype(np.float32)))
    assert ft.Tree[8, "f16"].leaf == TensorType((8,), np.dtype(np.float16))
    assert ft.Tree[(1, 8), "f32", "everywhere"].everywhere
    with pytest.raises(UserError, match="expected ft.Tree.leaf shape., .leaf shape, dtype. or"):
        ft.Tree[(1, 8), "f32", "somewhere"]


def test_deep_trees_take_no_stack():
    tree = ft.Tree(chain(20_000, lambda: A))
    assert tree.depth == 20_000 and len(list(tree.nodes())) == tree.count == 39_999
    assert tree.schedule(39_999).levels[-1] == tree.count


CIRCLE: list = [A]
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize(
    ("nested", "message"),
    [
        (CIRCLE, "a list holds itself, at some depth: a tree has no circle"),
        ((A,), "found a tuple of 1; a leaf is a NumPy array or a number"),
        ([A, B, V, C], "found a list of 4"),
        ((A, "word"), "a leaf is a tensor .an array or a number., found a str"),
        ((A, values(1, 4)), r"a tree has equal tensors, found a tensor f32\[1, 3\] and a tensor f32\[1, 4\]"),
        ((A, B, values(2)), r"an inner node's value is a tensor f32\[2\], those of leaves are"),
        (((A, B, V), C), "inner nodes have a value, .left, right, value., either all or none of them"),
    ],
)
def test_what_is_no_tree(nested: list, message: str):
    def run():
        ft.Tree(nested)  # here

    with pytest.raises(UserError, match=f"ft.Tree: .*{message}") as caught:
        run()
    assert caught.value.location == line_of(run, "# here")


@pytest.mark.parametrize(
    ("children", "message"),
    [
        ([[-1, -1], [0, 5]], r"node 1 has the children \[0, 5\]: both are numbers of nodes, 0 to 1, or both are -1"),
        ([[-1, -1], [0, -1]], r"node 1 has the children \[0, -1\]"),
        ([[-1, -1], [-1, -1], [0, 1], [0, 2]], "node 0 is twice a child, of nodes 2 and 3"),
        ([[-1, -1], [0, 0]], "node 0 is twice a child, of nodes 1 and 1"),
        ([[-1, -1], [-1, -1]], r"a tree has one root, a node that is no node's child: nodes \[0, 1\] are"),
        ([[1, 2], [0, 3], [-1, -1], [-1, -1]], "there is none, so there is a circle"),
        ([[-1, -1], [2, 3], [1, 4], [-1, -1], [-1, -1]], r"nodes \[1, 2, 3, 4\] are below themselves"),
        ([[0, 1, 2]], r"children are integers \[nodes, 2\], as many rows as values: found int64 \[1, 3\] for 1 values"),
        (np.full((2, 2), -1.0), "found float64"),
        (np.zeros((0, 2), int), "for 0 values"),
    ],
)
def test_what_are_no_children(children: list, message: str):
    with pytest.raises(UserError, match=f"ft.Tree.from_arrays: .*{message}"):
        ft.Tree.from_arrays(values(len(children), 1, 3), children)


@pytest.mark.parametrize("make", [complete, chain, grown])
@pytest.mark.parametrize("everywhere", [False, True])
def test_schedule(make, everywhere: bool):
    """Children stand before their parents, in lower levels; a sum over the arrays is that over the tree."""
    tree = ft.Tree(make(5, lambda: values(1, 3, seed=2), everywhere))
    plan = tree.schedule(40, 6)
    assert [part.shape for part in plan] == [(40 if everywhere else 20, 1, 3), (40, 2), (7,), (1,)]
    count = plan.levels[-1]
    assert count == tree.count and plan.levels[tree.depth] == count and list(plan.levels) == sorted(plan.levels)
    sums = list(plan.values[: plan.levels[1]])
    for start, end in zip(plan.levels[1:-1], plan.levels[2:], strict=True):
        assert (plan.children[start:end] < start).all()
        own = plan.values[start:end] if everywhere else np.zeros((end - start, 1, 3))
        sums += [sums[a] + 2 * sums[b] + x for (a, b), x in zip(plan.children[start:end], own, strict=True)]
    np.testing.assert_allclose(sums[plan.roots[0]], total(tree), rtol=1e-5)


def total(node: ft.Tree) -> np.ndarray:
    if node.is_leaf:
        return node.value
    return total(node.left) + 2 * total(node.right) + (node.value if node.type.everywhere else 0)


def test_a_node_at_two_places():
    tree = ft.Tree((A, B))
    plan = ft.Tree((tree, tree)).schedule(7)
    assert plan.levels.tolist() == [0, 4, 6, 7, 7]
    np.testing.assert_array_equal(plan.values[plan.children[plan.children[6]]], [[A, B]] * 2)


@pytest.mark.parametrize(
    ("nodes", "depth", "everywhere", "message"),
    [
        (4, None, None, "the tree has 5 nodes, there is room for 4"),
        (9, 2, None, "the tree is 3 nodes deep, there is room for 2"),
        (9, 3, True, "inner nodes of the tree have no values, which are asked for"),
    ],
)
def test_what_does_not_fit(nodes: int, depth: int | None, everywhere: bool | None, message: str):
    with pytest.raises(UserError, match=message):
        ft.Tree(((A, B), C)).schedule(nodes, depth, everywhere)


def test_inputs_by_name():
    tree = ft.Tree((A, B))
    plan = tree.schedule(5)
    shapes = {name: part.shape for name, part in zip(("x", "x.children", "x.levels", "x.roots"), plan, strict=True)}
    for ours, theirs in zip(Schedule(*tree.model_inputs("x", shapes)), plan, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(UserError, match="input x is no tree; a tree was given"):
        tree.model_inputs("x", {"x": (3,)})
