# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What is known of the largest sizes of tensors."""

from __future__ import annotations

import pytest

from tilewright.ir.bounds import Bounds
from tilewright.ir.structure import Weights, linalg_ops
from tilewright.mlir import ir

TEXT = """
func.func @main(%x: tensor<?x3xf32>, %p: tensor<?xf32>) -> tensor<?x3xf32> {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c5 = arith.constant 5 : index
  %n = tensor.dim %x, %c0 : tensor<?x3xf32>
  %m = tensor.dim %p, %c0 : tensor<?xf32>
  %fits = arith.cmpi sle, %n, %c8 : index
  CHECK
  %size = SIZE
  %e = tensor.empty(%size) : tensor<?x3xf32>
  %zero = arith.constant 0.0 : f32
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x3xf32>) -> tensor<?x3xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
      outs(%f : tensor<?x3xf32>) {
  ^bb0(%o: f32):
    %t = arith.negf %o : f32
    linalg.yield %t : f32
  } -> tensor<?x3xf32>
  return %y : tensor<?x3xf32>
}
"""


@pytest.mark.parametrize(
    ("check", "size", "most"),
    [
        (True, "arith.addi %n, %c5 : index", 13),
        (True, "arith.muli %n, %c5 : index", 40),
        (True, "arith.minsi %m, %n : index", 8),
        (True, "arith.subi %n, %c5 : index", -1),
        (True, "arith.addi %m, %n : index", -1),
        (False, "arith.addi %n, %c5 : index", -1),
    ],
)
def test_sizes_follow_from_checks(check: bool, size: str, most: int) -> None:
    text = TEXT.replace("SIZE", size).replace("CHECK", 'cf.assert %fits, "at most 8"' if check else "")
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.parse(text)
        (op,) = linalg_ops(module.body.operations[0].regions[0].blocks[0], Weights())
        assert Bounds(module.operation).of_loops(op) == [most, 3]
