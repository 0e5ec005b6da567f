# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-turn-weights`: weights that matrix units multiply have neighbours in memory where their sums run.

Matrix units take packs of 32 bits along the sums. Of 16-bit elements ldmatrix and wgmma turn what lies the other way;
of bytes and of tf32 they do not (PTX ISA, ldmatrix `.trans` and the major-ness of wgmma's shared memory operands).
Weights are known at compile time, so turning them costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from tilewright.mlir import ir
from tilewright.passes import Pass, register
from tilewright.plan.gpu.tf32 import ATTRIBUTE
from tilewright.plan.gpu.turning import Turns
from tilewright.plan.structure import Access, Kind, LinalgOp, Weights, blocks, linalg_ops

#: Elements that matrix units multiply, and that nothing turns on the way.
_BYTES = ("i8", "f8E4M3FN", "f8E5M2")


@register
@dataclass(frozen=True)
class TurnWeights(Pass):
    """Turn weights of bytes and of tf32: neighbours along a product's sums become neighbours in memory.

    Where the other factor has its neighbours there, and several rows.

    Before:
    ```mlir
    #a = affine_map<(m, n, k) -> (m, k)>
    #b = affine_map<(m, n, k) -> (k, n)>
    #c = affine_map<(m, n, k) -> (m, n)>
    ml_program.global private @w(#ml_program.extern<tensor<64x32xi8>>) : tensor<64x32xi8>
    func.func @main(%x: tensor<16x64xi8>) -> tensor<16x32xi32> {
      %w = ml_program.global_load_const @w : tensor<64x32xi8>
      %zero = arith.constant 0 : i32
      %e = tensor.empty() : tensor<16x32xi32>
      %f = linalg.fill ins(%zero : i32) outs(%e : tensor<16x32xi32>) -> tensor<16x32xi32>
      %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x, %w : tensor<16x64xi8>, tensor<64x32xi8>) outs(%f : tensor<16x32xi32>) {
      ^bb0(%p: i8, %q: i8, %o: i32):
        %u = arith.extui %p : i8 to i32
        %v = arith.extsi %q : i8 to i32
        %m = arith.muli %u, %v : i32
        %t = arith.addi %o, %m : i32
        linalg.yield %t : i32
      } -> tensor<16x32xi32>
      return %y : tensor<16x32xi32>
    }
    ```
    After:
    ```mlir
    %t = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel"]}
        ins(%w : tensor<64x32xi8>) outs(%e : tensor<32x64xi8>) {
    ...
    %y = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %t : tensor<16x64xi8>, tensor<32x64xi8>) outs(%f : tensor<16x32xi32>) {
    ```
    """

    name: ClassVar[str] = "tile-turn-weights"
    dialects: ClassVar[tuple[str, ...]] = ("linalg", "tensor")

    def run(self, op: ir.Operation) -> None:
        """Visit the sums of products; those that share a weight share its turned form."""
        weights = Weights()
        for block in blocks(op):
            turns = Turns()
            products = [op for op in linalg_ops(block, weights) if op.kind is Kind.CONTRACTION]
            for product, number in ((product, number) for product in products for number in (0, 1)):
                depth = _depth_against(product, number, weights)
                if depth is not None:
                    turns.turn(product, number, depth)


def _depth_against(op: LinalgOp, number: int, weights: Weights) -> int | None:
    """The loop along which the other factor's neighbours are summed, and a weight's are not; None where it may stay."""
    access, other = op.inputs[number], op.inputs[1 - number]
    if not _is_packed(op, access) or not _is_packed(op, other) or not access.pure or not weights.only(access.value):
        return None
    depth = other.dims[-1] if other.dims else None
    rows = prod(op.extents[d] for d in op.parallel if d in other.loops and d not in access.loops)
    if depth is None or depth not in op.reductions or depth not in access.dims[:-1] or rows < 2:
        return None
    return depth


def _is_packed(op: LinalgOp, access: Access) -> bool:
    element = str(ir.RankedTensorType(access.value.type).element_type)
    return element in _BYTES or (element == "f32" and ATTRIBUTE in op.op.attributes)
