# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recursive programs, eager and compiled, against recursion over NumPy arrays in f64; trees that do not fit."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from fractal_oracles import example, sigmoid
from fractal_runs import values
from tree_runs import chain, complete, grown

import tilewright as tw
import tilewright.fractal as ft
from tilewright.core.errors import UserError

H, WORDS = 8, 6
NODES, DEPTH = 127, 40


def autoencoder(node, w, b):
    if not isinstance(node, tuple):
        return node
    return np.tanh(np.concatenate([autoencoder(child, w, b) for child in node], 1) @ w + b)


def tree_lstm(node, w, u, b):
    if isinstance(node, tuple):
        (hl, cl), (hr, cr) = (tree_lstm(child, w, u, b) for child in node)
        i, o, g, f, e = np.split(np.concatenate([hl, hr], 1) @ u + b, 5, 1)
        c = sigmoid(i) * np.tanh(g) + sigmoid(f) * cl + sigmoid(e) * cr
    else:
        i, o, g = np.split(node @ w + b[:, : 3 * H], 3, 1)
        c = sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


PROGRAMS: dict[str, tuple[Any, tuple, int, list[tuple[int, ...]]]] = {
    "recursive_autoencoder": (autoencoder, (H,), H, [(2 * H, H), (1, H)]),
    "tree_lstm": (tree_lstm, (WORDS, H), WORDS, [(WORDS, 3 * H), (2 * H, 5 * H), (1, 5 * H)]),
}
SHAPES: dict[str, Any] = {
    "leaf": lambda leaf: leaf(),
    "pair": lambda leaf: (leaf(), leaf()),
    "chain": lambda leaf: chain(40, leaf),
    "complete": lambda leaf: complete(7, leaf),
    **{f"grown{n}": functools.partial(lambda n, leaf: grown(n, leaf, seed=n), n) for n in (3, 5, 6, 17, 33)},
}


def leaves(size: int):
    """Makes a leaf other than those before."""
    seeds = iter(range(1000))
    return lambda: values(1, size, seed=next(seeds))


def prepared(name: str):
    _, sizes, words, shapes = PROGRAMS[name]
    return example(name).program(*sizes), words, [values(*shape, seed=i) for i, shape in enumerate(shapes)]


@functools.cache
def compiled(name: str, target: str, nodes: int, depth: int):
    emulate = {"emulate": True} if target.startswith("cuda") else {}
    return tw.compile(prepared(name)[0], target, shapes={"tree": (nodes, depth)}, **emulate)


def check(name: str, run: Any, nested: Any, weights: list[np.ndarray]) -> None:
    wide = [array.astype(np.float64) for array in weights]
    expected, found = PROGRAMS[name][0](nested, *wide), run(ft.Tree(nested), *weights)
    for ours, theirs in zip(*((x if isinstance(x, tuple | list) else (x,)) for x in (found, expected)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_compiled(name: str, shape: str):
    """Eager and on the CPU; all trees by one model."""
    function, words, weights = prepared(name)
    nested = SHAPES[shape](leaves(words))
    check(name, function, nested, weights)
    check(name, compiled(name, "cpu", NODES, DEPTH), nested, weights)


@pytest.mark.parametrize("target", ["cuda:sm_80", pytest.param("cuda:sm_90a", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_on_the_emulator(name: str, target: str):
    """All levels of any tree are one launch, which a graph could record."""
    _, words, weights = prepared(name)
    model = compiled(name, target, 11, 6)
    assert sum(kernel.launches for kernel in model.kernels) == 1
    assert model._loaded().is_recordable
    for nested in (leaves(words)(), grown(6, leaves(words))):
        check(name, model, nested, weights)


def test_a_model_for_one_leaf():
    _, words, weights = prepared("tree_lstm")
    check("tree_lstm", compiled("tree_lstm", "cpu", 1, 1), leaves(words)(), weights)


def test_values_at_all_nodes_and_other_types():
    tagged, row = ft.Tree[(1, 3), "f64", "everywhere"], ft.Tensor[1, 3, "f64"]

    @ft.function
    def program(tree: tagged, w: row) -> row:
        def total(node):
            return node.value if node.is_leaf else w * total(node.left) - total(node.right) + node.value

        return total(tree)

    model, w = tw.compile(program, shapes={"tree": 15}), values(1, 3, dtype=np.float64)
    for nested in (values(1, 3, dtype=np.float64), complete(4, lambda: values(1, 3, dtype=np.float64), True)):
        tree = ft.Tree(nested)
        np.testing.assert_allclose(model(tree, w)[0], program(tree, w), rtol=1e-12)


DIVIDING = """
!leaf = tensor<3xi32>
func.func @main(%words: !fractal.array<[8] of !leaf>, %children: tensor<15x2xi32>, %levels: tensor<9xi32>,
    %roots: tensor<1xi32>) -> !fractal.array<[1] of !leaf> {
  %r = fractal.recurse %children, %levels, %roots leaves(%words) nodes()
      : (tensor<15x2xi32>, tensor<9xi32>, tensor<1xi32>, !fractal.array<[8] of !leaf>) -> !fractal.array<[1] of !leaf>
  leaf (%x) {
    %c = arith.constant dense<60> : !leaf
    %0 = arith.divsi %c, %x : !leaf
    fractal.yield %0 : !leaf
  } node (%l, %m) {
    %0 = arith.divsi %l, %m : !leaf
    %1 = arith.addi %0, %m : !leaf
    fractal.yield %1 : !leaf
  }
  return %r : !fractal.array<[1] of !leaf>
}
"""


def divided(node):
    if not isinstance(node, tuple):
        return 60 // node
    left, right = map(divided, node)
    return left // right + right


def test_regions_run_for_nodes_only():
    """A division by a zero of which no node knows would end the process."""
    model = tw.compile(DIVIDING)
    numbers = iter(range(1, 100))
    nested = grown(5, lambda: np.arange(3, dtype=np.int32) + next(numbers))
    (state,) = model(*ft.Tree(nested).schedule(15))
    np.testing.assert_array_equal(state[0], divided(nested))


def test_by_name_and_as_arrays():
    model = compiled("recursive_autoencoder", "cpu", NODES, DEPTH)
    function, words, (w, b) = prepared("recursive_autoencoder")
    tree = ft.Tree(grown(9, leaves(words)))
    expected = function(tree, w, b)
    for (found,) in (model(b=b, tree=tree, w=w), model(tree, b=b, w=w), model(*tree.schedule(NODES, DEPTH), w, b)):
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


def test_trees_that_do_not_fit():
    model = compiled("recursive_autoencoder", "cpu", NODES, DEPTH)
    _, words, (w, b) = prepared("recursive_autoencoder")
    limits = "the model was compiled for up to 127 nodes and a depth of 40"
    with pytest.raises(UserError, match=f"input tree: the tree has 255 nodes, there is room for 127; {limits}"):
        model(ft.Tree(complete(8, leaves(words))), w, b)
    with pytest.raises(UserError, match=f"input tree: the tree is 41 nodes deep, there is room for 40; {limits}"):
        model(ft.Tree(chain(41, leaves(words))), w, b)
    with pytest.raises(UserError, match="input w is no tree; a tree was given"):
        model(w=ft.Tree(values(1, words)), tree=ft.Tree(values(1, words)), b=b)
    with pytest.raises(UserError, match=r"input tree must have shape \[64, 1, 8\], got \[64, 1, 3\]"):
        model(ft.Tree(values(1, 3)), w, b)


@pytest.mark.parametrize("seed", range(4))
def test_numbers_of_no_tree_read_nothing_outside(seed: int):
    """The emulator checks each access; what the states are, nobody says."""
    model = compiled("recursive_autoencoder", "cuda:sm_80", 11, 6)
    _, words, (w, b) = prepared("recursive_autoencoder")
    rng = np.random.default_rng(seed)
    children, roots = (rng.integers(-40, 40, shape, np.int32) for shape in ((11, 2), 1))
    levels = rng.integers(-4, 20, 7, np.int32) if seed else np.full(7, 2**31 - 1, np.int32)
    (state,) = model(values(6, 1, words), children, levels, roots, w, b)
    assert state.shape == (1, H)
