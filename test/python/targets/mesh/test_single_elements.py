# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops of the model that write single elements (scatter, scan, sort) run on the cores of a mesh."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.demo.graph import GraphBuilder

MESH = "mesh:toy8x8"
RNG = np.random.default_rng(3)


def compiled(g: GraphBuilder, *made: tuple[str, type, list[int]]) -> Any:
    """A model whose loops run on the cores."""
    for number, (value, kind, shape) in enumerate(made):
        g.output(value, f"z{number}", kind, shape)
    model: Any = tw.compile(g.model(), MESH)
    text = model.explain()
    assert "each core runs the loop, which writes single elements, on " in text
    assert "interpreted outside" not in text
    return model


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("exclusive", [0, 1])
def test_scans(axis: int, exclusive: int) -> None:
    """Of what the grid has made, read by what the grid does next."""
    x = RNG.standard_normal((4, 6)).astype(np.float32)
    g = GraphBuilder("scan")
    given = g.op("Neg", g.input("x", np.float32, [4, 6]))
    made = g.op("CumSum", given, g.weight(np.array(axis, np.int64)), exclusive=exclusive)
    got = compiled(g, (g.op("Abs", made), np.float32, [4, 6]))(x)[0]
    expected = np.abs(np.cumsum(-x, axis) + exclusive * x)
    np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


def scattered(reduction: str) -> Any:
    g = GraphBuilder("scatter")
    x, i, u = g.input("x", np.float32, [4, 6]), g.input("i", np.int64, [2, 6]), g.input("u", np.float32, [2, 6])
    return compiled(g, (g.op("ScatterElements", x, i, u, reduction=reduction), np.float32, [4, 6]))


@pytest.mark.parametrize("reduction", ["none", "add"])
def test_scatter(reduction: str) -> None:
    """The host checks that places lie in the tensor: it reads what the cores have found."""
    x, u = np.zeros((4, 6), np.float32), RNG.integers(1, 9, (2, 6)).astype(np.float32)
    i = np.stack([np.arange(6) % 4, (np.arange(6) + 1) % 4]).astype(np.int64)
    expected = np.zeros_like(x)
    for row, column in np.ndindex(*i.shape):
        expected[i[row, column], column] += u[row, column]
    model = scattered(reduction)
    np.testing.assert_array_equal(model(x, i, u)[0], expected)
    with pytest.raises(tw.TilewrightError, match="an index lies outside of the data"):
        model(x, i + 9, u)


def test_sort_is_counted_once() -> None:
    """How far each element moves only a run knows; a step of which that holds says so."""
    x = RNG.permutation(12).reshape(3, 4).astype(np.float32)
    g = GraphBuilder("sort")
    count = g.weight(np.array([3], np.int64))
    values, places = g.ops("TopK", g.input("x", np.float32, [3, 4]), count, outputs=2)
    model = compiled(g, (values, np.float32, [3, 3]), (places, np.int64, [3, 3]))
    got = model(x)
    order = np.argsort(-x, axis=1, kind="stable")[:, :3]
    np.testing.assert_array_equal(got[1], order)
    np.testing.assert_array_equal(got[0], np.take_along_axis(x, order, 1))
    assert "steps with ? stand in loops or branches of which a run decides: counted once" in model.explain()


def test_each_turn_is_counted() -> None:
    """Twice the elements, twice the cycles."""
    spent = []
    for size in (64, 128):
        g = GraphBuilder("long")
        made = g.op("CumSum", g.input("x", np.float32, [size]), g.weight(np.array(0, np.int64)))
        model = compiled(g, (made, np.float32, [size]))
        spent.append(sum(one.details["cycles"] for one in model.kernels if one.symbol == "local"))
    assert spent[0] > 64 * 4 and 1.9 < spent[1] / spent[0] < 2.1


def loop(end: str, place: str) -> str:
    """A loop over a list, of which it doubles elements."""
    return f"""
    func.func @main(%x: tensor<64xf32>, %n: tensor<64xi64>) -> tensor<64xf32> {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c64 = arith.constant 64 : index
      %first = tensor.extract %n[%c0] : tensor<64xi64>
      %end = arith.index_cast %first : i64 to index
      %r = scf.for %k = %c0 to {end} step %c1 iter_args(%t = %x) -> tensor<64xf32> {{
        %e = tensor.extract %n[%k] : tensor<64xi64>
        %i = arith.index_cast %e : i64 to index
        %before = arith.subi %i, %c1 : index
        %v = tensor.extract %x[{place}] : tensor<64xf32>
        %w = arith.addf %v, %v : f32
        %u = tensor.insert %w into %t[{place}] : tensor<64xf32>
        scf.yield %u : tensor<64xf32>
      }}
      return %r : tensor<64xf32>
    }}"""


def test_turns_that_a_run_counts_are_told() -> None:
    model: Any = tw.compile(loop("%end", "%k"), MESH)
    x = RNG.standard_normal(64).astype(np.float32)
    np.testing.assert_array_equal(model(x, np.full(64, 9))[0], np.where(np.arange(64) < 9, 2 * x, x))
    text = model.explain()
    assert "each core runs the loop" in text and "steps with ? stand in loops or branches" in text


def test_places_that_no_zeros_have() -> None:
    """Counted from 1: what checks shapes before there are numbers must not read beside the tensor."""
    model: Any = tw.compile(loop("%c64", "%before"), MESH)
    x = RNG.standard_normal(64).astype(np.float32)
    np.testing.assert_array_equal(model(x, RNG.permutation(64) + 1)[0], 2 * x)
    assert "each core runs the loop" in model.explain()


def test_a_loop_in_a_branch_is_told_once() -> None:
    """It runs on the cores, whatever else the branch does."""
    text = """
    func.func @main(%c: tensor<1xi1>, %x: tensor<8xf32>) -> tensor<8xf32> {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %is = tensor.extract %c[%c0] : tensor<1xi1>
      %r = scf.if %is -> tensor<8xf32> {
        %s = scf.for %k = %c1 to %c8 step %c1 iter_args(%t = %x) -> tensor<8xf32> {
          %before = arith.subi %k, %c1 : index
          %a = tensor.extract %t[%before] : tensor<8xf32>
          %b = tensor.extract %t[%k] : tensor<8xf32>
          %w = arith.addf %a, %b : f32
          %u = tensor.insert %w into %t[%k] : tensor<8xf32>
          scf.yield %u : tensor<8xf32>
        }
        %e = tensor.empty() : tensor<8xf32>
        %m = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>],
            iterator_types = ["parallel"]} ins(%s : tensor<8xf32>) outs(%e : tensor<8xf32>) {
          ^bb0(%p: f32, %q: f32):
            %n = arith.mulf %p, %p : f32
            linalg.yield %n : f32
        } -> tensor<8xf32>
        scf.yield %m : tensor<8xf32>
      } else {
        scf.yield %x : tensor<8xf32>
      }
      return %r : tensor<8xf32>
    }"""
    model: Any = tw.compile(text, MESH)
    x = RNG.integers(-4, 5, 8).astype(np.float32)
    for chosen in (True, False):
        expected = np.cumsum(x) ** 2 if chosen else x
        np.testing.assert_array_equal(model(np.array([chosen]), x)[0], expected)
    said = model.explain()
    assert "each core runs the loop" in said and "interpreted outside" not in said


def test_numbers_take_memory() -> None:
    """All that is left of a core is filled by a tensor and the result, beside a number that the host brings."""
    size = (48 * 1024 - 4096) // 8
    g = GraphBuilder("full")
    made = g.op("CumSum", g.input("x", np.float32, [size]), g.input("axis", np.int64, []))
    g.output(made, "y", np.float32, [size])
    assert "outside of the grid: it writes single elements of tensors of" in tw.compile(g.model(), MESH).explain()


def test_tensors_that_no_core_holds_stay_outside() -> None:
    g = GraphBuilder("large")
    made = g.op("CumSum", g.input("x", np.float32, [9000]), g.weight(np.array(0, np.int64)))
    g.output(made, "y", np.float32, [9000])
    text = tw.compile(g.model(), MESH).explain()
    assert "outside of the grid: it writes single elements of tensors of 72000 bytes, and a core has" in text
