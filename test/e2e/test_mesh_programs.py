# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of nested lists, of trees and of encoded weights on a mesh of cores: as NumPy has them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import fractal_oracles
import numpy as np
import pytest
import test_compiled_lists as lists
from fractal_runs import values
from tree_runs import grown

import tilewright as tw
import tilewright.fractal as ft

MESH = "mesh:toy8x8"
TEXT = (Path(__file__).parents[1] / "python/pipelines/Inputs/lists.mlir").read_text()

#: Sizes with more than one of everything that goes round.
SIZES: dict[str, tuple] = {
    "stacked_lstm": lists.stacked(3, 2, 2, 2),
    "dilated_lstm": lists.dilated(3, 1, 3, 2),
    "grid_rnn": lists.grid(3, 1, 2, 3, 1),
    "b2b_gemm": lists.gemm((2, 1, 2, 1), (2, 3, 4, 5)),
    "attention": lists.attention(3, 4, (1, 1), 2, 3),
    "bigbird": lists.bigbird(1, 3, 1, 5),
}
#: Those that take a few seconds.
SLOW = ("stacked_lstm", "dilated_lstm", "grid_rnn", "bigbird")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in SIZES]
)
def test_programs_of_lists(name: str) -> None:
    sizes, shapes = SIZES[name]
    function: Any = fractal_oracles.example(name).program(*sizes)
    arrays = [values(*shape, seed=at) for at, shape in enumerate(shapes)]
    arguments = dict(zip(function.parameters, arrays, strict=True))
    lengths = {one: array.shape[: function.parameters[one].depth] for one, array in arguments.items()}
    model: Any = tw.compile(function, MESH, shapes=lengths)
    expected = getattr(fractal_oracles, name)(*(array.astype(np.float64) for array in arrays))
    expected = expected if isinstance(expected, tuple) else (expected,)
    for found, wanted in zip(model(*arrays), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_a_tree_lstm() -> None:
    """How many levels there are, and how many nodes of each, a run says."""
    words, hidden = 3, 2
    function = fractal_oracles.example("tree_lstm").program(words, hidden)
    weights = [values(*shape, seed=at) for at, shape in enumerate(((3, 6), (4, 10), (1, 10)))]
    model: Any = tw.compile(function, MESH, shapes={"tree": (5, 4)})
    seeds = iter(range(100))
    tree = grown(3, lambda: values(1, words, seed=next(seeds)))
    for found, wanted in zip(model(ft.Tree(tree), *weights), function(ft.Tree(tree), *weights), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
    assert "all of the model's arithmetic is done on the grid" in model.explain()
    sizes = [kernel.details["sizes"] for kernel in model.kernels if not kernel.details["is_known"]]
    assert {size for size in sizes if "->" not in size} == {"1xi32"}  # the host sends numbers of levels, nothing else


RECURRENCE = """
#mk = affine_map<(m, n, k) -> (m, k)>
#kn = affine_map<(m, n, k) -> (k, n)>
#mn = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
!state = tensor<3x5xf32>
ml_program.global private @w(#ml_program.extern : tensor<5x5xf32>) : tensor<5x5xf32>
func.func @main(%h0: !state{more}) -> !state {{
  %w = ml_program.global_load_const @w : tensor<5x5xf32>
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %i0 = arith.constant 0 : index
  %i1 = arith.constant 1 : index
  %e = tensor.empty() : !state
  %c = linalg.fill ins(%zero : f32) outs(%e : !state) -> !state
  {loop}
  return %r : !state
}}
"""
STEP = """
    %p = linalg.generic {indexing_maps = [#mk, #kn, #mn], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%h, %w : !state, tensor<5x5xf32>) outs(%c : !state) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %m = arith.mulf %a, %b : f32
      %s = arith.addf %o, %m : f32
      linalg.yield %s : f32
    } -> !state
    %t = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
        ins(%p : !state) outs(%e : !state) {
    ^bb0(%a: f32, %o: f32):
      %u = math.tanh %a : f32
      linalg.yield %u : f32
    } -> !state
"""
FOR = f"%r = scf.for %i = %i0 to %n step %i1 iter_args(%h = %h0) -> !state {{ {STEP} scf.yield %t : !state }}"
WHILE = f"""%r = scf.while (%h = %h0) : (!state) -> !state {{
    %x = tensor.extract %h[%i0, %i0] : !state
    %goes = arith.cmpf ogt, %x, %bound : f32
    scf.condition(%goes) %h : !state
  }} do {{
  ^bb0(%h: !state): {STEP}
    scf.yield %t : !state
  }}"""
IF = f"""%h = linalg.generic {{indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}}
      ins(%h0 : !state) outs(%e : !state) {{
    ^bb0(%a: f32, %o: f32):
      %v = arith.addf %a, %one : f32
      linalg.yield %v : f32
    }} -> !state
  %r = scf.if %goes -> !state {{ {STEP} scf.yield %t : !state }} else {{ scf.yield %h : !state }}"""


def recurrence(loop: str, more: str = "") -> tuple[Any, np.ndarray, np.ndarray]:
    """A model of a loop of states, a first state, and the weight."""
    rng = np.random.default_rng(5)
    w = rng.standard_normal((5, 5)).astype(np.float32) / 2
    h = np.abs(rng.standard_normal((3, 5)).astype(np.float32))
    model: Any = tw.compile(RECURRENCE.format(loop=loop, more=more), MESH, weights={"w": w})
    return model, h, w


def edges(model: Any) -> list[tuple[str, int]]:
    """What passes the edge of the grid, and how often."""
    found = [kernel.details for kernel in model.kernels if not kernel.details["height"]]
    return [(one["name"], one["times"]) for one in found if one["cycles"]]


def test_a_state_stays_on_the_grid() -> None:
    """It passes the edge before the loop and behind it; a program for a step, counted as often as it runs."""
    model, h, w = recurrence(FOR.replace("%n ", "%n0 ").replace("%r", "%n0 = arith.constant 7 : index\n  %r", 1))
    expected = h.astype(np.float64)
    for _ in range(7):
        expected = np.tanh(expected @ w)
    np.testing.assert_allclose(model(h)[0], expected, rtol=1e-4, atol=1e-6)
    assert edges(model) == [("distribute", 1), ("assemble", 1)]
    steps = [kernel.details for kernel in model.kernels if kernel.details["height"]]
    assert sorted({(one["name"], one["times"]) for one in steps}) == [("meshgemm", 7)]


def test_how_often_a_run_decides() -> None:
    given = "%g = tensor.extract %count[%i0] : tensor<1xi64>\n  %n = arith.index_cast %g : i64 to index\n  "
    model, h, w = recurrence(given + FOR, ", %count: tensor<1xi64>")
    expected = h.astype(np.float64)
    for steps in range(3):
        np.testing.assert_allclose(model(h, np.array([steps]))[0], expected, rtol=1e-4, atol=1e-6)
        expected = np.tanh(expected @ w)
    assert "counted once" in model.explain()


def test_a_loop_that_ends_by_its_state() -> None:
    """The host reads the condition: what it collects for that is counted."""
    bound = "%bound = arith.constant 0.05 : f32\n  "
    model, h, w = recurrence(bound + WHILE)
    expected, steps = h.astype(np.float64), 0
    while expected[0, 0] > 0.05:
        expected, steps = np.tanh(expected @ w), steps + 1
    assert steps
    np.testing.assert_allclose(model(h)[0], expected, rtol=1e-4, atol=1e-6)
    assert [name for name, _ in edges(model)].count("assemble") == 2


@pytest.mark.parametrize("goes", [True, False])
def test_a_branch(goes: bool) -> None:
    model, h, w = recurrence("%goes = tensor.extract %asked[%i0] : tensor<1xi1>\n  " + IF, ", %asked: tensor<1xi1>")
    expected = h.astype(np.float64) + 1
    expected = np.tanh(expected @ w) if goes else expected
    np.testing.assert_allclose(model(h, np.array([goes]))[0], expected, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_text_with_encoded_weights_in_a_loop() -> None:
    """That of the lit tests of all targets."""
    x = values(5, 3, 8, 1, seed=3)
    found, expected = (np.asarray(tw.compile(TEXT, target)(x)[0]) for target in (MESH, "reference"))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
