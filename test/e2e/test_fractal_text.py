# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Text with nested lists, encoded weights and formats, compiled for each target: as NumPy has it."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tilewright as tw
from cpus import skip_where_it_cannot_run
from tilewright.core.errors import UnsupportedError

TEXT = (Path(__file__).parents[1] / "python/pipelines/Inputs/lists.mlir").read_text()
TARGETS = ("cpu:x86-64-v4", "cpu:x86-64-v3", "cuda:sm_80", "cuda:sm_90a", "reference")


def run(text: str, target: str, *inputs: np.ndarray, weights: dict[str, np.ndarray] | None = None) -> np.ndarray:
    """The only result."""
    emulate = {"emulate": True} if target.startswith("cuda") else {}
    model = tw.compile(text, target, weights=weights or {}, **emulate)
    skip_where_it_cannot_run(target)
    return np.asarray(model(*inputs)[0])


def constant(name: str) -> np.ndarray:
    """A constant of the text."""
    found = re.search(rf"%{name} = arith.constant dense<(.*?)>", TEXT, re.DOTALL)
    assert found
    return np.array(eval(found[1]), np.float64)


@pytest.mark.parametrize("target", TARGETS)
def test_the_text_of_the_lit_tests(target: str) -> None:
    x = np.random.default_rng(3).standard_normal((5, 3, 8, 1)).astype(np.float32)
    h, expected = np.zeros((3, 8, 1)), []
    for xs in x:
        h = np.tanh(constant("w") @ xs + constant("codes") * constant("scales") @ h)
        expected.append(h)
    np.testing.assert_allclose(run(TEXT, target, x), expected, rtol=1e-4, atol=1e-5)


PRODUCT = """
#tesa = #sparse_tile.tesa<{pattern}>
ml_program.global private @w(#ml_program.extern : tensor<{m}x{k}xf32>) : tensor<{m}x{k}xf32>
func.func @main(%xss: !fractal.array<[4, 3] of tensor<{x}xf32>>, %c: tensor<{y}xf32>)
    -> !fractal.array<[4, 3] of tensor<{y}xf32>> {{
  %w = ml_program.global_load_const @w : tensor<{m}x{k}xf32>
  %p = sparse_tile.pack %w : tensor<{m}x{k}xf32> to tensor<{m}x{k}xf32, #tesa>
  %r = fractal.map (%xs = %xss) : (!fractal.array<[4, 3] of tensor<{x}xf32>>)
      -> !fractal.array<[4, 3] of tensor<{y}xf32>> {{
    %s = fractal.map (%x = %xs) : (!fractal.array<[3] of tensor<{x}xf32>>) -> !fractal.array<[3] of tensor<{y}xf32>> {{
      %y = sparse_tile.matmul {operands}, %c : {types}, tensor<{y}xf32>
      fractal.yield %y : tensor<{y}xf32>
    }}
    fractal.yield %s : !fractal.array<[3] of tensor<{y}xf32>>
  }}
  return %r : !fractal.array<[4, 3] of tensor<{y}xf32>>
}}
"""


def pruned(rng: np.random.Generator, rows: int, columns: int, axis: int, pattern: str) -> np.ndarray:
    """Small integers in the pattern."""
    array = rng.integers(1, 5, (rows, columns)).astype(np.float32)
    if pattern.startswith("nm"):
        place = np.arange(array.shape[axis]) % 4
        keep = (place == 1) | (place == 2)
        return array * (keep[:, None] if axis == 0 else keep)
    blocks = rng.random((-(-rows // 4), -(-columns // 4))) < 0.5
    return array * blocks.repeat(4, 0).repeat(4, 1)[:rows, :columns]


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("pattern", ["nm<2 : 4, axis = {}>", "block<[4, 4]>"])
def test_products_in_maps(pattern: str, left: bool, target: str) -> None:
    """One encoded weight times all elements of lists in lists, on either side; ragged sizes."""
    rng, m, k, n = np.random.default_rng(8), 13, 22, 5
    rows, depth = (m, k) if left else (k, m)
    w = pruned(rng, rows, depth, int(left), pattern)
    x = rng.integers(-3, 4, (4, 3, k, n) if left else (4, 3, n, k)).astype(np.float32)
    c = rng.integers(-3, 4, (m, n) if left else (n, m)).astype(np.float32)
    kinds = [f"tensor<{rows}x{depth}xf32, #tesa>", f"tensor<{x.shape[2]}x{x.shape[3]}xf32>"]
    sides = "%p, %x" if left else "%x, %p"
    shapes = {"m": rows, "k": depth, "x": f"{x.shape[2]}x{x.shape[3]}", "y": f"{c.shape[0]}x{c.shape[1]}"}
    kind = pattern.format(int(left))
    text = PRODUCT.format(pattern=kind, operands=sides, types=", ".join(kinds if left else kinds[::-1]), **shapes)
    found = run(text, target, x, c, weights={"w": w})
    np.testing.assert_array_equal(found, (w @ x if left else x @ w) + c)


def test_weights_of_each_element_are_refused() -> None:
    text = """
    #tesa = #sparse_tile.tesa<nm<2 : 4, axis = 0>>
    !x = tensor<2x8xf32>
    func.func @main(%xs: !fractal.array<[3] of !x>, %ws: !fractal.array<[3] of tensor<8x2xf32>>, %c: tensor<2x2xf32>)
        -> !fractal.array<[3] of tensor<2x2xf32>> {
      %r = fractal.map (%x = %xs, %w = %ws) : (!fractal.array<[3] of !x>, !fractal.array<[3] of tensor<8x2xf32>>)
          -> !fractal.array<[3] of tensor<2x2xf32>> {
        %p = sparse_tile.pack %w : tensor<8x2xf32> to tensor<8x2xf32, #tesa>
        %y = sparse_tile.matmul %x, %p, %c : !x, tensor<8x2xf32, #tesa>, tensor<2x2xf32>
        fractal.yield %y : tensor<2x2xf32>
      }
      return %r : !fractal.array<[3] of tensor<2x2xf32>>
    }
    """
    with pytest.raises(UnsupportedError, match="cannot be computed for all elements of a list at once"):
        tw.compile(text, "cpu")


STACK = """
#tesa = #sparse_tile.tesa<nm<2 : 4, axis = 0>>
!x = tensor<2x12xf32>
ml_program.global private @w(#ml_program.extern : tensor<3x12x12xf32>) : tensor<3x12x12xf32>
func.func @main(%xs: !fractal.array<[5] of !x>) -> !fractal.array<[5] of !x> {
  %w = ml_program.global_load_const @w : tensor<3x12x12xf32>
  %ws = fractal.from_tensor %w : tensor<3x12x12xf32> -> !fractal.array<[3] of tensor<12x12xf32>>
  %h0 = arith.constant dense<0.0> : !x
  %r = fractal.fold left (%s = %xs) over (%v = %ws)
      : (!fractal.array<[5] of !x>, !fractal.array<[3] of tensor<12x12xf32>>) -> !fractal.array<[5] of !x> {
    %hs = fractal.scan left (%h = %h0) over (%x = %s) : (!x, !fractal.array<[5] of !x>) -> !fractal.array<[5] of !x> {
      %p = sparse_tile.pack %v : tensor<12x12xf32> to tensor<12x12xf32, #tesa>
      %y = sparse_tile.matmul %h, %p, %x : !x, tensor<12x12xf32, #tesa>, !x
      %t = math.tanh %y : !x
      fractal.yield %t : !x
    }
    fractal.yield %hs : !fractal.array<[5] of !x>
  }
  return %r : !fractal.array<[5] of !x>
}
"""


@pytest.mark.parametrize("target", TARGETS)
def test_layers_of_encoded_weights(target: str) -> None:
    """A list of weights, each of which is packed when its layer is unrolled: no diagonals, whatever they would save."""
    rng = np.random.default_rng(4)
    w = np.stack([pruned(rng, 12, 12, 0, "nm") for _ in range(3)]) / 16
    x = rng.standard_normal((5, 2, 12)).astype(np.float32)
    expected = x.astype(np.float64)
    for layer in w:
        h, hs = np.zeros((2, 12)), []
        for one in expected:
            h = np.tanh(h @ layer + one)
            hs.append(h)
        expected = np.stack(hs)
    emulate = {"emulate": True} if target.startswith("cuda") else {}
    model = tw.compile(STACK, target, weights={"w": w.astype(np.float32)}, **emulate)
    skip_where_it_cannot_run(target)
    np.testing.assert_allclose(np.asarray(model(x)[0]), expected, rtol=1e-4, atol=1e-5)
    if target != "reference":
        told = [entry["message"] for entry in model.report_data()["remarks"]]
        assert any("row by row (each has an encoded weight of its own)" in message for message in told), told
