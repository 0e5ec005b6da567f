# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`fractal.recurse`: states of trees and forests, and numbers that are those of none."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.dialects.fractal.values import Lists
from tilewright.reference import InterpreterError

LEAF, LIST = "tensor<1x2xf32>", "!fractal.array<[?] of tensor<1x2xf32>>"
WORDS = Lists(np.arange(8, dtype=np.float32).reshape(4, 1, 2))
#: ((0 1) (2 3)) and, from node 4 on, (0 1), (2 3), all.
CHILDREN, LEVELS = [[9, 9]] * 4 + [[0, 1], [2, 3], [4, 5]], [0, 4, 6, 7]

BINARY = f"""
%r0 = fractal.recurse %0, %1, %2 leaves(%3) nodes()
    : (tensor<?x2xi32>, tensor<?xi32>, tensor<?xi32>, {LIST}) -> {LIST}
leaf (%x) {{
  fractal.yield %x : {LEAF}
}} node (%l, %r) {{
  %d = arith.addf %l, %l : {LEAF}
  %s = arith.addf %d, %r : {LEAF}
  fractal.yield %s : {LEAF}
}}
"""
TAGGED = f"""
%r0, %r1 = fractal.recurse %0, %1, %2 leaves() nodes(%3)
    : (tensor<?x1xi32>, tensor<?xi32>, tensor<?xi32>, {LIST}) -> ({LIST}, {LIST})
leaf () {{
  %c = arith.constant dense<1.0> : {LEAF}
  fractal.yield %c, %c : {LEAF}, {LEAF}
}} node (%a, %b, %tag) {{
  %s = arith.mulf %b, %tag : {LEAF}
  fractal.yield %b, %s : {LEAF}, {LEAF}
}}
"""


def given(children, levels, roots, values=WORDS):
    arrays = [np.array(numbers, np.int32) for numbers in (children, levels, roots)]
    return [
        (arrays[0], f"tensor<?x{arrays[0].shape[1]}xi32>"),
        *((numbers, "tensor<?xi32>") for numbers in arrays[1:]),
        (values, LIST),
    ]


def test_states_of_roots(programs):
    (states,) = programs.run(BINARY, given(CHILDREN, LEVELS, [6, 4, 0]), [LIST])
    a, b, c, d = WORDS.flat
    left, right = 2 * a + b, 2 * c + d
    np.testing.assert_array_equal(states.flat, np.stack([2 * left + right, left, a]))


def test_a_leaf_alone_and_room_behind_it(programs):
    (states,) = programs.run(BINARY, given([[7, 7]] * 5, [0, 1, 1, 1], [0]), [LIST])
    np.testing.assert_array_equal(states.flat, WORDS.flat[:1])


def test_no_root(programs):
    (states,) = programs.run(BINARY, given(CHILDREN, LEVELS, []), [LIST])
    assert len(states) == 0


def test_several_states_and_values_of_nodes(programs):
    """A chain: the second state is a product of the tags so far, the first one that before."""
    before, product = programs.run(TAGGED, given([[0], [0], [1]], [0, 1, 2, 3], [2]), [LIST, LIST])
    np.testing.assert_array_equal(before.flat[0], WORDS.flat[1])
    np.testing.assert_array_equal(product.flat[0], WORDS.flat[1] * WORDS.flat[2])


@pytest.mark.parametrize(
    ("children", "levels", "roots", "message"),
    [
        (CHILDREN, [1, 4, 6, 7], [6], "levels are .1, 4, 6, 7.: they begin with 0 and ascend"),
        (CHILDREN, [0, 4, 3, 7], [6], "levels are .0, 4, 3, 7.: they begin with 0 and ascend"),
        (CHILDREN, [0, 4, 6, 8], [6], "8 nodes, but 7 rows of children"),
        (CHILDREN, [0, 5, 6, 7], [6], "5 leaves, but fewer elements for them"),
        ([[0, 0]] * 4 + [[0, 1], [2, 4], [4, 5]], LEVELS, [6], "a child of node 5, whose level begins with 4, is 4"),
        ([[0, 0]] * 4 + [[0, -1], [2, 3], [4, 5]], LEVELS, [6], "a child of node 4, whose level begins with 4, is -1"),
        (CHILDREN, LEVELS, [7], "a root of 7 nodes is 7"),
    ],
)
def test_numbers_of_no_tree(programs, children, levels, roots, message):
    with pytest.raises(InterpreterError, match=message):
        programs.run(BINARY, given(children, levels, roots), [LIST])
