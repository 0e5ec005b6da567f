# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops that write single elements are shared out among cores, where an index tells that these do not meet."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.demo.graph import GraphBuilder
from tilewright.mlir import ir
from tilewright.passes import load_builtin_passes, run_pipeline
from tilewright.targets.mesh.control.shared_loops import Shared

load_builtin_passes()
MESH = "mesh:toy8x8"
RNG = np.random.default_rng(11)
SHARED = "each core runs the loop, which writes single elements, on its own elements"
WHOLE = "each core runs the loop, which writes single elements, on whole tensors"


def compiled(g: GraphBuilder, *made: tuple[str, type, list[int]], said: str = SHARED) -> Any:
    for number, (value, kind, shape) in enumerate(made):
        g.output(value, f"z{number}", kind, shape)
    model: Any = tw.compile(g.model(), MESH)
    text = model.explain()
    assert said in text and "interpreted outside" not in text
    return model


def scatter(shape: list[int], count: int, axis: int, reduction: str = "none") -> Any:
    g = GraphBuilder("scatter")
    part = [count if dim == axis else size for dim, size in enumerate(shape)]
    x, i, u = g.input("x", np.float32, shape), g.input("i", np.int64, part), g.input("u", np.float32, part)
    return compiled(g, (g.op("ScatterElements", x, i, u, axis=axis, reduction=reduction), np.float32, shape))


@pytest.mark.parametrize("reduction", ["none", "add"])
@pytest.mark.parametrize(("shape", "axis"), [([13, 6], 0), ([13, 6], 1), ([3, 5, 11], 1), ([9, 4, 10], 2)])
def test_scatter(shape: list[int], axis: int, reduction: str) -> None:
    """Along one axis and two, of sizes that are multiples of the grid's and not."""
    part = [2 if dim == axis else size for dim, size in enumerate(shape)]
    x, u = np.zeros(shape, np.float32), RNG.integers(1, 9, part).astype(np.float32)
    i = RNG.integers(-shape[axis], shape[axis], part)
    expected = x.copy()
    for at in np.ndindex(*part):
        to = tuple(i[at] if dim == axis else index for dim, index in enumerate(at))
        expected[to] = u[at] + (expected[to] if reduction == "add" else 0)
    np.testing.assert_array_equal(scatter(shape, 2, axis, reduction)(x, i, u)[0], expected)


@pytest.mark.parametrize("at", [(0, 0), (1, 12), (0, 7)])
def test_each_core_tells_what_is_wrong(at: tuple[int, int]) -> None:
    """Of an index beyond the tensor, whoever has it; what lies behind the tensor on the last core is none."""
    i = np.zeros((2, 13), np.int64)
    model = scatter([4, 13], 2, 0)
    x, u = np.ones((4, 13), np.float32), np.ones((2, 13), np.float32)
    np.testing.assert_array_equal(model(x, i, u)[0], x)
    i[at] = 4
    with pytest.raises(tw.TilewrightError, match="an index lies outside of the data"):
        model(x, i, u)


def test_first_elements() -> None:
    """The loops of a row know when to end by what they have written."""
    x = RNG.permutation(13 * 9).reshape(13, 9).astype(np.float32)
    g = GraphBuilder("first")
    values, places = g.ops("TopK", g.input("x", np.float32, [13, 9]), g.weight(np.array([4], np.int64)), outputs=2)
    model = compiled(g, (values, np.float32, [13, 4]), (places, np.int64, [13, 4]))
    got, order = model(x), np.argsort(-x, axis=1, kind="stable")[:, :4]
    np.testing.assert_array_equal(got[0], np.take_along_axis(x, order, 1))
    np.testing.assert_array_equal(got[1], order)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("reverse", [0, 1])
def test_scans(axis: int, reverse: int) -> None:
    """Of what the grid has made: rows lie as they were."""
    x = RNG.standard_normal((10, 3, 9)).astype(np.float32)
    g = GraphBuilder("scan")
    given = g.op("Neg", g.input("x", np.float32, [10, 3, 9]))
    made = g.op("CumSum", given, g.weight(np.array(axis, np.int64)), reverse=reverse)
    model = compiled(g, (g.op("Abs", made), np.float32, [10, 3, 9]))
    expected = np.flip(np.cumsum(np.flip(x, axis), axis), axis) if reverse else np.cumsum(x, axis)
    np.testing.assert_allclose(model(x)[0], np.abs(expected), rtol=1e-5, atol=1e-5)


def test_cores_share_the_time() -> None:
    """An eighth of the rows each: an eighth of the cycles."""
    spent = []
    for rows in (8, 64):
        g = GraphBuilder("long")
        made = g.op("CumSum", g.input("x", np.float32, [rows, 40]), g.weight(np.array(1, np.int64)))
        model = compiled(g, (made, np.float32, [rows, 40]))
        spent.append(sum(one.details["compute"] for one in model.kernels if one.symbol == "local"))
    assert spent[1] == pytest.approx(8 * spent[0], rel=0.05)
    assert spent[0] < 40 * 16


LOOP = """
func.func @main(%x: tensor<12xf32>) -> tensor<12xf32> {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c12 = arith.constant 12 : index
  %r = scf.for %k = %c0 to %c12 step %c1 iter_args(%t = %x) -> tensor<12xf32> {{
    %v = tensor.extract %t[{place}] : tensor<12xf32>
    %n = arith.index_cast %k : index to i32
    %f = arith.sitofp %n : i32 to f32
    %w = arith.addf %v, %f : f32
    %u = tensor.insert %w into %t[%k] : tensor<12xf32>
    scf.yield %u : tensor<12xf32>
  }} {attributes}
  return %r : tensor<12xf32>
}}"""


@pytest.mark.parametrize(("place", "said"), [("%k", SHARED), ("%c0", WHOLE)])
def test_what_iterations_read(place: str, said: str) -> None:
    """Their own elements, with the index of the whole tensor; or one that another has written."""
    x = RNG.integers(-4, 5, 12).astype(np.float32)
    model: Any = tw.compile(LOOP.format(place=place, attributes=""), MESH)
    expected = x.copy()
    for k in range(12):
        expected[k] = expected[k if place == "%k" else 0] + k
    np.testing.assert_array_equal(model(x)[0], expected)
    assert said in model.explain()


@pytest.mark.parametrize(
    ("place", "loops", "said"),
    [
        ("%c0", '["y"]', "splits index 0 .0 to 11., but iterations with another one may read or write"),
        ("%k", '["z"]', "each of .y., .x. stands there once at most"),
        ("%k", '["y", "x"]', "has 2 entries on loops that count 1 indices"),
    ],
)
def test_decisions_that_do_not_fit(place: str, loops: str, said: str) -> None:
    """Edited ones."""
    text = LOOP.format(place=place, attributes=f'{{coremesh.algorithm = "elements", coremesh.loops = {loops}}}')
    text = text.replace("-> tensor<12xf32> {", "-> tensor<12xf32> attributes {coremesh.side = 8 : i64} {", 1)
    with ir.Context(), ir.Location.unknown(), pytest.raises(tw.TilewrightError, match=said):
        run_pipeline(ir.Module.parse(text), "builtin.module(tile-distribute)")


TWO = """
func.func @main(%x: tensor<12xf32>, %y: tensor<12xf32>, %c: i1) -> tensor<12xf32> {{
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c12 = arith.constant 12 : index
  %r:2 = scf.for %k = %c0 to %c12 step %c1 iter_args(%a = %x, %b = %y) -> (tensor<12xf32>, tensor<12xf32>) {{
    %v = tensor.extract %b[%k] : tensor<12xf32>
    %u = tensor.insert %v into {into}[%k] : tensor<12xf32>
    {then}
    scf.yield {given} : tensor<12xf32>, tensor<12xf32>
  }}
  return %r#0 : tensor<12xf32>
}}"""
INNER = """%w:2 = scf.for %i = %c0 to %c1 step %c1 iter_args(%p = %u, %q = %b) -> (tensor<12xf32>, tensor<12xf32>) {{
      scf.yield {given} : tensor<12xf32>, tensor<12xf32>
    }}"""
UNTIL = """%w = scf.while (%p = %u) : (tensor<12xf32>) -> tensor<12xf32> {{
      scf.condition(%c) {given} : tensor<12xf32>
    }} do {{
    ^bb0(%q: tensor<12xf32>):
      scf.yield %q : tensor<12xf32>
    }}"""
BRANCH = """%w = scf.if %c -> tensor<12xf32> {{
      scf.yield %u : tensor<12xf32>
    }} else {{
      scf.yield {given} : tensor<12xf32>
    }}"""


@pytest.mark.parametrize(
    ("into", "then", "given", "splits"),
    [
        ("%a", "", "%u, %b", True),
        ("%x", "", "%u, %b", False),
        ("%a", "", "%u, %y", False),
        ("%a", "", "%b, %u", False),
        ("%a", INNER.format(given="%p, %q"), "%w#0, %w#1", True),
        ("%a", INNER.format(given="%q, %p"), "%w#0, %w#1", False),
        ("%a", UNTIL.format(given="%p"), "%w, %b", True),
        ("%a", UNTIL.format(given="%x"), "%w, %b", False),
        ("%a", BRANCH.format(given="%a"), "%w, %b", True),
        ("%a", BRANCH.format(given="%x"), "%w, %b", False),
        ("%a", "%w = arith.select %c, %u, %a : tensor<12xf32>", "%w, %b", True),
        ("%a", "%w = arith.select %c, %u, %x : tensor<12xf32>", "%w, %b", False),
        ("%a", "%w = arith.addf %u, %u : tensor<12xf32>", "%w, %b", False),
    ],
)
def test_iterations_hand_on_what_they_were_given(into: str, then: str, given: str, splits: bool) -> None:
    """Whoever runs the second half of them has not seen what the first half swapped, or forgot."""
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(TWO.format(into=into, then=then, given=given))
        (function,) = module.body.operations
        (loop,) = [one for one in function.regions[0].blocks[0].operations if one.operation.name == "scf.for"]
        assert Shared(loop.operation).can_split(0) == splits


def test_a_write_that_is_taken_back() -> None:
    """Each negative element makes an iteration begin with the input again."""
    then = "%f = arith.cmpf ogt, %v, %z : f32\n    %w = arith.select %f, %u, %x : tensor<12xf32>"
    text = TWO.format(into="%a", then=then, given="%w, %b").replace(", %c: i1", "")
    text = text.replace("  %r:2 =", "  %z = arith.constant 0.0 : f32\n  %r:2 =")
    x, y = (RNG.standard_normal(12).astype(np.float32) for _ in range(2))
    expected = x.copy()
    for k in range(12):
        expected = np.where(np.arange(12) == k, y, expected) if y[k] > 0 else x
    model: Any = tw.compile(text, MESH)
    np.testing.assert_array_equal(model(x, y)[0], expected)
