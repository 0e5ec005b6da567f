# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-promote-float8`: how many products of float8 a matrix unit may add up before f32 takes over.

Hopper's wgmma adds products of float8 with 13 bits of fraction, whatever PTX calls its accumulator. DeepSeek-V3
(arXiv 2412.19437, section 3.3.2) adds what it has of 128 terms to registers of f32; CUTLASS does so after every 4
instructions of 32 terms (`mma_promotion_interval`). To leave it out ("fast accumulation" in cuBLAS) is the user's
decision (`precision="fp8-fast"`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.devices.nvidia import has_hopper
from tilewright.ir import decisions
from tilewright.ir.structure import Kind, LinalgOp, Weights, blocks, linalg_ops
from tilewright.ir.target_info import find_device, options_of
from tilewright.mlir import ir
from tilewright.passes import Pass, option, register

#: Element types whose products Hopper adds with few bits.
FLOAT8 = frozenset({"f8E4M3FN", "f8E5M2"})
#: The precision that leaves sums in the units.
FAST = "fp8-fast"


def float8_products(root: ir.Operation) -> list[LinalgOp]:
    """The sums of products of two operands in float8."""
    weights = Weights()
    return [
        op
        for block in blocks(root)
        for op in linalg_ops(block, weights)
        if op.kind is Kind.CONTRACTION and len(op.inputs) == 2 and all(_is_float8(access.value) for access in op.inputs)
    ]


def _is_float8(value: ir.Value) -> bool:
    return str(ir.RankedTensorType(value.type).element_type) in FLOAT8


@register
@dataclass(frozen=True)
class PromoteFloat8(Pass):
    """Say how many terms of a sum of float8 a warpgroup's matrix unit adds itself.

    `tile.promotion` on each sum of products of two operands in float8 that has none yet, where the device has wgmma;
    0, which is all of them, where `tile.options` ask for precision fp8-fast.

    Before:
    ```mlir
    #a = affine_map<(m, n, k) -> (m, k)>
    #b = affine_map<(m, n, k) -> (n, k)>
    #c = affine_map<(m, n, k) -> (m, n)>
    func.func @main(%x: tensor<64x512xf8E4M3FN>, %w: tensor<32x512xf8E4M3FN>, %s: tensor<64x32xf32>)
        -> tensor<64x32xf32> {
      %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x, %w : tensor<64x512xf8E4M3FN>, tensor<32x512xf8E4M3FN>) outs(%s : tensor<64x32xf32>) {
      ^bb0(%p: f8E4M3FN, %q: f8E4M3FN, %o: f32):
        %u = arith.extf %p : f8E4M3FN to f32
        %v = arith.extf %q : f8E4M3FN to f32
        %m = arith.mulf %u, %v : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
      } -> tensor<64x32xf32>
      return %y : tensor<64x32xf32>
    }
    ```
    After:
    ```mlir
    outs(%s : tensor<64x32xf32>) attrs = {tile.promotion = 128 : i64} {
    ```
    """

    name: ClassVar[str] = "tile-promote-float8"

    interval: int = option(128, "terms that a unit adds, a multiple of 32; 0: all")

    def run(self, op: ir.Operation) -> None:
        """Mark the products."""
        device = find_device(op)
        if device is not None and not has_hopper(device):
            return
        interval = 0 if options_of(op).precision == FAST else self.interval
        for product in float8_products(op):
            if decisions.PROMOTION.get(product.op) is None:
                decisions.PROMOTION.set(product.op, interval)
