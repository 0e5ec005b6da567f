# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What may follow a maximum that grows from block to block: only what is linear in exp(x - maximum)."""

from __future__ import annotations

import pytest

from tilewright.ir.structure import Weights, blocks, linalg_ops
from tilewright.mlir import ir
from tilewright.plan.attention.online_reduction import find_chains

TEXT = """
#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
func.func @main(%x: tensor<16x4096xf32>, %w: tensor<16x4096xf32>) -> tensor<16xf32> {{
  %low = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %row = tensor.empty() : tensor<16xf32>
  %whole = tensor.empty() : tensor<16x4096xf32>
  %lows = linalg.fill ins(%low : f32) outs(%row : tensor<16xf32>) -> tensor<16xf32>
  %zeros = linalg.fill ins(%zero : f32) outs(%row : tensor<16xf32>) -> tensor<16xf32>
  %m = linalg.generic {{indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}}
      ins(%x : tensor<16x4096xf32>) outs(%lows : tensor<16xf32>) {{
  ^bb0(%a: f32, %o: f32):
    %t = arith.maximumf %o, %a : f32
    linalg.yield %t : f32
  }} -> tensor<16xf32>
  %p = linalg.generic {{indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}}
      ins(%x, %m : tensor<16x4096xf32>, tensor<16xf32>) outs(%whole : tensor<16x4096xf32>) {{
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %t = math.exp %d : f32
    linalg.yield %t : f32
  }} -> tensor<16x4096xf32>
  %q = linalg.generic {{indexing_maps = [#ij, #ij, #i, #ij], iterator_types = ["parallel", "parallel"]}}
      ins(%p, %w, %m : tensor<16x4096xf32>, tensor<16x4096xf32>, tensor<16xf32>)
      outs(%whole : tensor<16x4096xf32>) {{
  ^bb0(%p0: f32, %w0: f32, %b: f32, %o: f32):
    {body}
    linalg.yield %t : f32
  }} -> tensor<16x4096xf32>
  %s = linalg.generic {{indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}}
      ins(%q : tensor<16x4096xf32>) outs(%zeros : tensor<16xf32>) {{
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  }} -> tensor<16xf32>
  return %s : tensor<16xf32>
}}
"""
POWER = "%d = arith.subf %w0, %b : f32\n%e = math.exp %d : f32\n"
LINEAR = {
    "a sum of two": f"{POWER}%t = arith.addf %e, %p0 : f32",
    "times a number of another tensor": f"{POWER}%z = arith.mulf %p0, %w0 : f32\n%t = arith.addf %e, %z : f32",
}
OTHER = {
    "a product of two": f"{POWER}%t = arith.mulf %e, %p0 : f32",
    "a sum with what does not shrink": f"{POWER}%t = arith.addf %e, %w0 : f32",
    "a power of a power": "%d = arith.subf %p0, %b : f32\n%t = math.exp %d : f32",
}


def chains(body: str) -> int:
    """The chains found in the program with that body of %q."""
    with ir.Context():
        module = ir.Module.parse(TEXT.format(body=body))
        ops = [op for block in blocks(module.operation) for op in linalg_ops(block, Weights())]
        return len(find_chains(ops))


@pytest.mark.parametrize("name", LINEAR)
def test_what_is_linear_runs_in_blocks(name: str) -> None:
    assert chains(LINEAR[name]) == 1


@pytest.mark.parametrize("name", OTHER)
def test_what_is_not_linear_does_not(name: str) -> None:
    assert chains(OTHER[name]) == 0
