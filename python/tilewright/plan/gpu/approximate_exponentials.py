# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-approximate-exponentials`: exponentials that feed a 16-bit operand of a product need no 23 bits.

`ex2.approx.ftz` is within 2^-22 of the power, and the multiply-add in front of it rounds once: for probabilities above
2^-24 the relative error stays below 2^-19, 1/512 of what rounding to f16 allows itself and 1/4096 of bf16's (PTX ISA,
ex2; FlashAttention-3, Shah et al., 2024, computes softmax the same way). `tile-fold-exponents` carries it out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir import decisions
from tilewright.ir.structure import Kind, LinalgOp, Weights, blocks, linalg_ops
from tilewright.mlir import ir
from tilewright.passes import Pass, register

#: Largest relative error of a probability that does not vanish in the operand's type.
ERROR = 2.0**-19


def _is_narrow(kind: ir.Type) -> bool:
    return isinstance(kind, (ir.F16Type, ir.BF16Type))


def rounded_exponential(op: ir.Operation) -> ir.Operation | None:
    """The exponential of a difference that a body rounds to 16 bits and yields; None where it does something else."""
    inner = op.regions[0].blocks[0].operations
    result = inner[len(inner) - 1].operation.operands[0]
    rounding = None if isinstance(result, ir.BlockArgument) else result.owner
    if rounding is None or rounding.name != "arith.truncf" or not _is_narrow(result.type):
        return None
    value = rounding.operands[0]
    found = None if isinstance(value, ir.BlockArgument) else value.owner
    if found is None or found.name != "math.exp" or len(list(value.uses)) != 1:
        return None
    exponent = found.operands[0]
    is_difference = not isinstance(exponent, ir.BlockArgument) and exponent.owner.name == "arith.subf"
    return found if is_difference and isinstance(value.type, ir.F32Type) else None


def _exponentials(ops: list[LinalgOp]) -> list[ir.Operation]:
    """Those whose results products read as they are."""
    operands = {access.value for op in ops if op.kind is Kind.CONTRACTION for access in op.inputs}
    found = [rounded_exponential(op.op) for op in ops if op.result in operands]
    return [op for op in found if op is not None]


@register
@dataclass(frozen=True)
class ApproximateExponentials(Pass):
    """Mark exponentials that a product reads in 16 bits: `tile.approximate`.

    Results in f32, and exponentials that something else reads in f32, stay as exact as they are.

    Before:
    ```mlir
    #ij = affine_map<(i, j) -> (i, j)>
    #i = affine_map<(i, j) -> (i)>
    #a = affine_map<(m, n, k) -> (m, k)>
    #b = affine_map<(m, n, k) -> (k, n)>
    #c = affine_map<(m, n, k) -> (m, n)>
    func.func @main(%s: tensor<8x64xf32>, %m: tensor<8xf32>, %v: tensor<64x32xf16>, %o: tensor<8x32xf32>)
        -> tensor<8x32xf32> {
      %e = tensor.empty() : tensor<8x64xf16>
      %p = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
          ins(%s, %m : tensor<8x64xf32>, tensor<8xf32>) outs(%e : tensor<8x64xf16>) {
      ^bb0(%x: f32, %t: f32, %q: f16):
        %d = arith.subf %x, %t : f32
        %r = math.exp %d : f32
        %h = arith.truncf %r : f32 to f16
        linalg.yield %h : f16
      } -> tensor<8x64xf16>
      %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%p, %v : tensor<8x64xf16>, tensor<64x32xf16>) outs(%o : tensor<8x32xf32>) {
      ^bb0(%x: f16, %w: f16, %q: f32):
        %xw = arith.extf %x : f16 to f32
        %ww = arith.extf %w : f16 to f32
        %m2 = arith.mulf %xw, %ww : f32
        %t = arith.addf %q, %m2 : f32
        linalg.yield %t : f32
      } -> tensor<8x32xf32>
      return %y : tensor<8x32xf32>
    }
    ```
    After:
    ```mlir
    %r = math.exp %d {tile.approximate} : f32
    ```
    """

    name: ClassVar[str] = "tile-approximate-exponentials"

    def run(self, op: ir.Operation) -> None:
        """Mark the exponentials."""
        weights = Weights()
        for block in blocks(op):
            for found in _exponentials(list(linalg_ops(block, weights))):
                found.attributes[decisions.APPROXIMATE] = ir.UnitAttr.get(op.context)
