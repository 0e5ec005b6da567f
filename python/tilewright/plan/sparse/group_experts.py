# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-group-experts`: a mixture of experts multiplies the tokens that each expert got, and no others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.mlir import ir
from tilewright.passes import Pass, register


@register
@dataclass(frozen=True)
class GroupExperts(Pass):
    """Make grouped products of mixtures of experts that are written as dense ones (PIT, SOSP 2023).

    The form that computes all experts for all tokens and multiplies by a gate is found; a run lists, for each expert,
    the tokens whose gate is not zero, multiplies those rows, and adds them up in the experts' order. Where most pairs
    are live it runs as it is written: above the share `dense_above` in the `tile.sparsity` of the sum, if given.

    Before:
    ```mlir
    #x = affine_map<(e, t, f, d) -> (t, d)>
    #w = affine_map<(e, t, f, d) -> (e, d, f)>
    #h = affine_map<(e, t, f, d) -> (e, t, f)>
    #i = affine_map<(e, t, f) -> (e, t, f)>
    #g = affine_map<(e, t, f) -> (t, e)>
    #r = affine_map<(t, f, e) -> (e, t, f)>
    #o = affine_map<(t, f, e) -> (t, f)>
    ml_program.global private @w(#ml_program.extern<tensor<8x16x24xf32>>) : tensor<8x16x24xf32>
    func.func @main(%x: tensor<32x16xf32>, %gate: tensor<32x8xf32>) -> tensor<32x24xf32> {
      %zero = arith.constant 0.0 : f32
      %w = ml_program.global_load_const @w : tensor<8x16x24xf32>
      %p = tensor.empty() : tensor<8x32x24xf32>
      %f = linalg.fill ins(%zero : f32) outs(%p : tensor<8x32x24xf32>) -> tensor<8x32x24xf32>
      %h = linalg.generic {indexing_maps = [#x, #w, #h], iterator_types = ["parallel", "parallel", "parallel",
          "reduction"]} ins(%x, %w : tensor<32x16xf32>, tensor<8x16x24xf32>) outs(%f : tensor<8x32x24xf32>) {
      ^bb0(%a: f32, %b: f32, %c: f32):
        %m = arith.mulf %a, %b : f32
        %s = arith.addf %c, %m : f32
        linalg.yield %s : f32
      } -> tensor<8x32x24xf32>
      %y = linalg.generic {indexing_maps = [#i, #g, #i], iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%h, %gate : tensor<8x32x24xf32>, tensor<32x8xf32>) outs(%p : tensor<8x32x24xf32>) {
      ^bb0(%a: f32, %b: f32, %c: f32):
        %m = arith.mulf %a, %b : f32
        linalg.yield %m : f32
      } -> tensor<8x32x24xf32>
      %q = tensor.empty() : tensor<32x24xf32>
      %n = linalg.fill ins(%zero : f32) outs(%q : tensor<32x24xf32>) -> tensor<32x24xf32>
      %z = linalg.generic {indexing_maps = [#r, #o], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%y : tensor<8x32x24xf32>) outs(%n : tensor<32x24xf32>) {
      ^bb0(%a: f32, %c: f32):
        %s = arith.addf %c, %a : f32
        linalg.yield %s : f32
      } -> tensor<32x24xf32>
      return %z : tensor<32x24xf32>
    }
    ```
    After:
    ```mlir
    scf.if
    ```
    """

    name: ClassVar[str] = "tile-group-experts"
    dialects: ClassVar[tuple[str, ...]] = ("linalg", "tensor", "arith", "tile", "scf", "memref", "math")

    def run(self, op: ir.Operation) -> None:
        """Sum by sum."""
        from tilewright.plan.sparse.dynamic.grouping import group_experts  # numpy and kernels: when it runs

        group_experts(op)
