# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-approximate-exponentials`: exponentials that feed a 16-bit operand of a product need no 23 bits.

`ex2.approx.ftz` is within 2^-22 of the power, and the multiply-add in front of it rounds once: but for a factor that
its row shares, the relative error of a probability above 2^-24 stays below 2^-19, 1/256 of half a unit of f16 and
1/2048 of bf16's (PTX ISA, ex2; FlashAttention-3, Shah et al., 2024, computes softmax the same way).
`tile-fold-exponents` carries it out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir import decisions
from tilewright.ir.structure import Kind, LinalgOp, Weights, blocks, linalg_ops
from tilewright.mlir import ir
from tilewright.passes import Pass, register, remark

#: Largest relative error of a probability that does not vanish in the operand's type.
ERROR = 2.0**-19


def _is_narrow(kind: ir.Type) -> bool:
    return isinstance(kind, (ir.F16Type, ir.BF16Type))


def _yielded(op: ir.Operation) -> ir.Value:
    inner = op.regions[0].blocks[0].operations
    return inner[len(inner) - 1].operation.operands[0]


def _maker(value: ir.Value, name: str) -> ir.Operation | None:
    """The operation of the name that makes a scalar of a body; None for another one."""
    owner = None if isinstance(value, ir.BlockArgument) else value.owner
    return owner if owner is not None and owner.name == name else None


def _exponential(value: ir.Value) -> ir.Operation | None:
    """The f32 exponential of a difference that a scalar of a body is, with one reader."""
    found = _maker(value, "math.exp")
    if found is None or len(list(value.uses)) != 1 or not isinstance(value.type, ir.F32Type):
        return None
    return found if _maker(found.operands[0], "arith.subf") is not None else None


def _rounds(op: LinalgOp) -> bool:
    """Whether an operation does nothing but round its one input to 16 bits."""
    result = _yielded(op.op)
    rounding = _maker(result, "arith.truncf")
    return rounding is not None and _is_narrow(result.type) and isinstance(rounding.operands[0], ir.BlockArgument)


def _adds(op: LinalgOp) -> bool:
    return bool(op.reductions) and len(op.inputs) == 1 and _maker(_yielded(op.op), "arith.addf") is not None


def _found(op: LinalgOp, ops: list[LinalgOp], operands: set[ir.Value]) -> ir.Operation | None:
    """The exponential that an operation makes for a product alone, and for the sum of its row."""
    result = _yielded(op.op)
    if op.result in operands:
        rounding = _maker(result, "arith.truncf")
        return _exponential(rounding.operands[0]) if rounding is not None and _is_narrow(result.type) else None
    readers = [reader for reader in ops if any(access.value == op.result for access in reader.inputs)]
    rounded = [reader for reader in readers if _rounds(reader) and reader.result in operands]
    others = [reader for reader in readers if reader not in rounded]
    if not rounded or len(readers) != len(list(op.result.uses)) or not all(_adds(reader) for reader in others):
        return None
    return _exponential(result)


def _exponentials(ops: list[LinalgOp]) -> list[ir.Operation]:
    """Those that products read in 16 bits."""
    operands = {access.value for op in ops if op.kind is Kind.CONTRACTION for access in op.inputs}
    found = [_found(op, ops, operands) for op in ops if _maker(_yielded(op.op), "math.exp") or op.result in operands]
    return [op for op in found if op is not None]


@register
@dataclass(frozen=True)
class ApproximateExponentials(Pass):
    """Mark exponentials that a product reads in 16 bits: `tile.approximate`.

    A remark tells how many there are, and their error. Results in f32, and exponentials that something else reads in
    f32, stay as exact as they are.

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
        found = [each for block in blocks(op) for each in _exponentials(list(linalg_ops(block, weights)))]
        for each in found:
            each.attributes[decisions.APPROXIMATE] = ir.UnitAttr.get(op.context)
        if found:
            kinds = "exponential that a product reads" if len(found) == 1 else "exponentials that products read"
            remark(found[0], f"{len(found)} {kinds} in 16 bits: powers by ex2.approx, relative error below {ERROR:.2g}")
