# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Constants behind operations that compile time carries out: their elements, and whether zeros are among them."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.ir.generics import walk
from tilewright.mlir import ir
from tilewright.passes.weights import bound
from tilewright.plan.sparse.constants import array_of, has_zeros

PROGRAM = """
#same = affine_map<(i, j) -> (i, j)>
#swap = affine_map<(i, j) -> (j, i)>
#row = affine_map<(i, j) -> (j)>
ml_program.global private @w(#ml_program.extern<tensor<60x80xf32>>) : tensor<60x80xf32>
func.func @main(%x: tensor<60x80xf32>) -> (tensor<60x80xf32>, tensor<80x60xf32>, tensor<4800xf32>, tensor<60x80xf32>,
    tensor<60x80xf32>) {
  %w = ml_program.global_load_const @w : tensor<60x80xf32>
  %s = arith.constant dense<2.0> : tensor<80xf32>
  %e = tensor.empty() : tensor<80x60xf32>
  %t = linalg.generic {indexing_maps = [#swap, #same], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<60x80xf32>) outs(%e : tensor<80x60xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<80x60xf32>
  %c = tensor.collapse_shape %w [[0, 1]] : tensor<60x80xf32> into tensor<4800xf32>
  %f = tensor.empty() : tensor<60x80xf32>
  %g = linalg.generic {indexing_maps = [#same, #row, #same], iterator_types = ["parallel", "parallel"]}
      ins(%w, %s : tensor<60x80xf32>, tensor<80xf32>) outs(%f : tensor<60x80xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    linalg.yield %m : f32
  } -> tensor<60x80xf32>
  return %w, %t, %c, %g, %x : tensor<60x80xf32>, tensor<80x60xf32>, tensor<4800xf32>, tensor<60x80xf32>,
      tensor<60x80xf32>
}
"""


def test_what_a_run_would_compute() -> None:
    """As it is, transposed, reshaped, scaled (by the interpreter); what an argument brings is not known."""
    w = np.random.default_rng(0).standard_normal((60, 80)).astype(np.float32)
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(PROGRAM)
        (last,) = walk(module.operation, "func.return")
        plain, turned, flat, scaled, given = last.operands
        with bound(module.operation, {"w": w}):
            for value, expected in ((plain, w), (turned, w.T), (flat, w.reshape(-1)), (scaled, 2 * w)):
                np.testing.assert_array_equal(array_of(value), expected)
        for value in (plain, turned, flat, scaled, given):
            assert array_of(value) is None  # nobody says what the global holds
            assert not has_zeros(value)


@pytest.mark.parametrize("zeros", [0.0, 0.01, 0.5])
def test_a_first_look(zeros: float) -> None:
    """Of runs of neighbours: weights with few zeros or none are left alone."""
    w = np.random.default_rng(0).standard_normal((60, 80)).astype(np.float32)
    w *= np.random.default_rng(1).random((60, 80)) >= zeros
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(PROGRAM)
        (last,) = walk(module.operation, "func.return")
        with bound(module.operation, {"w": w}):
            assert [has_zeros(value) for value in last.operands] == [zeros == 0.5] * 4 + [False]
