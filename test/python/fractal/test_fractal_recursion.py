# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which functions a trace sees to be recursive, and what it refuses, at the user's line."""

from __future__ import annotations

import numpy as np
import pytest
from fractal_runs import line_of, run, same, values
from tree_runs import chain, complete

import tilewright.fractal as ft
from tilewright.core.errors import UserError

X = ft.Tree[(1, 3)]
TAGGED = ft.Tree[(1, 3), "f32", "everywhere"]


def leaf() -> np.ndarray:
    return values(1, 3, seed=4)


def agree(function: ft.Function, *trees: ft.Tree) -> str:
    """Check the trace by the interpreter against the eager mode; return its text."""
    traced = function.trace({"tree": 15})
    everywhere = function.parameters["tree"].everywhere
    for tree in trees or (ft.Tree(complete(4, leaf, everywhere)), ft.Tree(leaf())):
        found = run(traced, *_inputs(tree.schedule(15, everywhere=everywhere)))
        same(traced.structured(found), function(tree))
    return traced.module_text


def _inputs(plan: tuple) -> list:
    return [ft.Lists(plan[0]), *plan[1:]]


def doubled(node):
    return node.value if node.is_leaf else doubled(node.left) + 2 * doubled(node.right)


def test_inside():
    @ft.function
    def program(tree: X) -> ft.Tensor[1, 3]:
        def total(node, scale=2.0):
            if node.is_leaf:
                return node.value
            return total(node.left) * scale + total(node.right)

        return total(tree) + 1

    text = agree(program)
    assert text.count("fractal.recurse") == 1
    assert line_of(test_inside, "return total(node.left)").split(":")[-1] + ":0" in text


def test_captured():
    weight = values(1, 3)

    def total(node, /, *, w):
        return node.value if node.is_leaf else w * total(node.left, w=w) + total(node.right, w=w)

    @ft.function
    def program(tree: X) -> ft.Tensor[1, 3]:
        return total(tree, w=weight)

    agree(program)


def test_what_is_captured_may_change():
    factor = 1.0

    @ft.function
    def program(tree: X) -> ft.Tensor[1, 3]:
        def total(node):
            return node.value if node.is_leaf else factor * total(node.left) + total(node.right)

        return total(tree)

    agree(program)
    factor = 3.0
    agree(program)


def test_global():
    @ft.function
    def program(tree: X) -> ft.Tensor[1, 3]:
        return doubled(tree)

    agree(program)
    tree = ft.Tree((leaf(), leaf()))
    np.testing.assert_array_equal(doubled(tree), 3 * leaf())  # what is global is as it was


@ft.function
def summed(tree: TAGGED, w: ft.Tensor[1, 3]) -> tuple[ft.Tensor[1, 3], ft.Tensor[()]]:
    if tree.is_leaf:
        return tree.value, ft.full((), 1.0)
    (a, n), (b, m) = summed(tree.left, w), summed(tree.right, w)
    return a * w + b * tree.value, n + m


def test_the_function_itself():
    """A tuple of states; values at inner nodes, too."""
    tree, w = ft.Tree(complete(3, leaf, True)), values(1, 3, seed=5)
    traced = summed.trace({"tree": (7, 3)})
    same(traced.structured(run(traced, *_inputs(tree.schedule(7, 3)), w)), summed(tree, w))
    assert summed(tree, w)[1] == 4


class Model:
    def __init__(self) -> None:
        self.w = values(1, 3, seed=6)

    @ft.recursive
    def encode(self, node):
        return node.value if node.is_leaf else self.w * self.encode(node.left) + self.encode(node.right)


def test_said_to_be_recursive():
    model = Model()

    @ft.function
    def program(tree: X) -> ft.Tensor[1, 3]:
        return model.encode(tree)

    agree(program)


SOURCE = """
def total(node):
    return node.value if node.is_leaf else total(node.left) - total(node.right)

def program(tree):
    return total(tree)
"""


@pytest.mark.parametrize("said", [False, True])
def test_without_source(said: bool):
    names: dict = {}
    exec(SOURCE, names)
    names["program"].__annotations__ = {"tree": X}
    if said:
        names["total"] = ft.recursive(names["total"])
        agree(ft.function(names["program"]))
        return
    with pytest.raises(UserError, match="define that function inside the ft.function, or decorate it with @ft.recur"):
        ft.function(names["program"]).trace({"tree": 3})


def test_twice_and_within_a_map():
    @ft.function
    def program(tree: X, ws: ft.Array[1, (1, 3)]) -> ft.Array[1, (1, 3)]:
        def depth(node):
            return ft.zeros(1, 1) if node.is_leaf else 1 + ft.maximum(depth(node.left), depth(node.right))

        def scaled(w):
            def total(node):
                return node.value if node.is_leaf else w * total(node.left) + total(node.right)

            return total(tree)

        levels = depth(tree)
        return ft.map(lambda w: scaled(w) + levels, ws)

    traced = program.trace({"tree": 9, "ws": 2})
    tree, ws = ft.Tree(chain(4, leaf)), ft.Lists(values(2, 1, 3))
    same(traced.structured(run(traced, *_inputs(tree.schedule(9)), ws)), program(tree, ws))


def test_a_child_that_nobody_needs():
    @ft.function
    def program(tree: X) -> ft.Tensor[1, 3]:
        def first(node):
            return node.value if node.is_leaf else first(node.left)

        return first(tree)

    agree(program)


def lists(node):
    return ft.stack([node.value, node.value]) if node.is_leaf else ft.map(ft.tanh, lists(node.right))


def test_a_state_that_is_a_list():
    @ft.function
    def program(tree: X) -> ft.Array[1, (1, 3)]:
        return lists(tree)

    agree(program)


# What is refused -----------------------------------------------------------------------------------------------


def own(node):
    return node.value if node.is_leaf else own(node) + own(node.left)  # here


def grandchild(node):
    return node.value if node.is_leaf else grandchild(node.left.right)  # here


def no_end(node):
    return no_end(node.left) + no_end(node.right)  # here


def looks(node):
    return node.value if node.is_leaf else looks(node.left) + node.right.value  # here


def asks(node):
    return node.value if node.is_leaf else asks(node.left if node.left.is_leaf else node.right)  # here


def compares(node):
    return node.value if node.is_leaf else compares(node.left if node.left == node.right else node.right)  # here


def depth(node, n=0):
    return node.value * n if node.is_leaf else depth(node.left, n + 1) + depth(node.right, n + 1)  # here


def inner(node):
    return node.value if node.is_leaf else inner(node.left) + node.value  # here


def gives(node):  # here
    return node.value if node.is_leaf else (gives(node.left), node.left)[1]


def misspelt(node):
    return node.value if node.is_leaf else misspelt(node.lft)  # here


def other(node):
    return node.value if node.is_leaf else doubled_child(node.left) + other(node.right)  # here


@ft.recursive
def doubled_child(node):
    return node.value if node.is_leaf else doubled_child(node.left)


def shape(node):  # here
    return node.value if node.is_leaf else ft.cat([shape(node.left), shape(node.right)])


def pair(node):  # here
    return (node.value, node.value) if node.is_leaf else pair(node.left)[0]


def plain(node):
    return node.value if node.is_leaf else node.value  # here


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (own, "own: the recursion does not end: it is called on the node itself; go on with its children"),
        (grandchild, "a child of a node: right is not known: all that a traced function can do with it is to call"),
        (no_end, "a node: a leaf has no children: ask for is_leaf first"),
        (looks, "a child of a node: value is not known"),
        (asks, "a child of a node: is_leaf is not known"),
        (compares, "a child of a node: what it is equal to is not known"),
        (depth, "depth: its argument n is another one for a child than for the node: a traced recursion depends on"),
        (inner, "a node: inner nodes have no value: declare ft.Tree.shape, dtype, .everywhere.."),
        (gives, "gives: it returns a node: a recursion gives tensors"),
        (misspelt, "a node: it has no lft: a traced node has is_leaf, value, left and right"),
        (other, "doubled_child: it is called on a child in the recursion of other: one function recurses"),
        (shape, r"shape: it returns a tensor f32\[1, 3\] for a leaf and a tensor f32\[2, 3\] for an inner node"),
        (pair, r"pair: it returns \(_, _\) for a leaf and _ for an inner node: the state of a recursion has one type"),
        (plain, "a traced tree: is_leaf is not known: only the function that recurses over it looks at its nodes"),
    ],
)
def test_refused(function, message: str):
    @ft.function
    def program(tree: X) -> ft.Tensor[1, 3]:
        return function(tree)

    with pytest.raises(UserError, match=message) as caught:
        program.trace({"tree": 15})
    assert caught.value.location == line_of(function, "# here")


@pytest.mark.parametrize("size", [None, 0, (7, 3, 1), "7", (7, True)])
def test_sizes_are_numbers(size):
    @ft.function
    def program(tree: X) -> ft.Tensor[1, 3]:
        return doubled(tree)

    with pytest.raises(UserError, match="the size of the tree tree is .*: say how many nodes it has at most, or"):
        program.trace({} if size is None else {"tree": size})


def test_arguments_are_checked():
    with pytest.raises(UserError, match="summed: tree: inner nodes have no values: give them as"):
        summed(((leaf(), leaf()), leaf()), leaf())
    with pytest.raises(UserError, match=r"summed: tree is a tree with a tensor f32\[1, 4\] at each leaf; declared are"):
        summed(ft.Tree(values(1, 4)), leaf())
