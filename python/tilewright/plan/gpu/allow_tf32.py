# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-allow-tf32`: products of f32 may run on tensor cores, which read 10 bits of each operand's mantissa.

TF32 has the exponent of f32: nothing overflows, and sums stay in f32 (NVIDIA A100 architecture white paper, 2020). The
decision is the user's (`precision="tf32"`); which unit multiplies is then the plan's and the lowering's, by shapes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir import decisions
from tilewright.ir.structure import Kind, LinalgOp, Weights, blocks, linalg_ops
from tilewright.ir.target_info import options_of
from tilewright.mlir import ir
from tilewright.passes import Pass, option, register

#: On a product: its operands may be rounded to tf32.
ATTRIBUTE = decisions.TF32


def wide_products(root: ir.Operation) -> list[LinalgOp]:
    """The sums of products of two operands in f32."""
    weights = Weights()
    return [
        op
        for block in blocks(root)
        for op in linalg_ops(block, weights)
        if op.kind is Kind.CONTRACTION and len(op.inputs) == 2 and all(_is_f32(access.value) for access in op.inputs)
    ]


def _is_f32(value: ir.Value) -> bool:
    return isinstance(ir.RankedTensorType(value.type).element_type, ir.F32Type)


@register
@dataclass(frozen=True)
class AllowTf32(Pass):
    """Let matrix units multiply f32 in tf32: `tile.tf32` on each sum of products of two operands in f32.

    Before:
    ```mlir
    #a = affine_map<(m, n, k) -> (m, k)>
    #b = affine_map<(m, n, k) -> (k, n)>
    #c = affine_map<(m, n, k) -> (m, n)>
    func.func @main(%x: tensor<8x64xf32>, %w: tensor<64x32xf32>, %s: tensor<8x32xf32>) -> tensor<8x32xf32> {
      %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x, %w : tensor<8x64xf32>, tensor<64x32xf32>) outs(%s : tensor<8x32xf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %m = arith.mulf %p, %q : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
      } -> tensor<8x32xf32>
      return %y : tensor<8x32xf32>
    }
    ```
    After:
    ```mlir
    outs(%s : tensor<8x32xf32>) attrs = {tile.tf32} {
    ```
    """

    name: ClassVar[str] = "tile-allow-tf32"

    asked: bool = option(False, "only where tile.options ask for it: precision tf32")

    def run(self, op: ir.Operation) -> None:
        """Mark the products."""
        if self.asked and options_of(op).precision != "tf32":
            return
        for product in wide_products(op):
            product.op.attributes[ATTRIBUTE] = ir.UnitAttr.get(op.context)
