# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-byte-products`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import ClassVar

from tilewright.mlir import ir
from tilewright.normalize.generics import body, kinds, maker, maps
from tilewright.passes import Pass, register
from tilewright.plan import byte_products
from tilewright.plan.byte_products import Bytes, Scale
from tilewright.plan.dots import factors
from tilewright.plan.structure import Kind, LinalgOp, Weights, blocks, describe, linalg_ops


def _constant(value: ir.Value) -> float | int | None:
    op = maker(value)
    if op is None or op.name != "arith.constant":
        return None
    attribute = op.attributes["value"]
    return attribute.value if isinstance(attribute, ir.IntegerAttr | ir.FloatAttr) else None


class _Reader:
    """What an elementwise operation computes from an operand of bytes."""

    def __init__(self, op: ir.Operation) -> None:
        self.op = op
        self.block = body(op)
        self.scale = Scale()
        self.zero = 0

    def read(self) -> Bytes | None:
        """The bytes that its result stands for; None where it computes something else."""
        value = self.block.operations[len(self.block.operations) - 1].operands[0]
        if isinstance(value.type, ir.F32Type):
            op = maker(self._unscaled(value))
            if op is None or op.name not in ("arith.sitofp", "arith.uitofp"):
                return None
            value = op.operands[0]
            if str(value.type) == "i8":
                return self._bytes(value, op.name == "arith.uitofp")
        op = maker(self._centred(value))
        if op is None or op.name not in ("arith.extui", "arith.extsi"):
            return None
        return self._bytes(op.operands[0], op.name == "arith.extui")

    def _unscaled(self, value: ir.Value) -> ir.Value:
        op = maker(value)
        if op is None or op.name != "arith.mulf":
            return value
        for x, scale in (tuple(op.operands), tuple(op.operands)[::-1]):
            known = _constant(scale)
            if known is not None:
                self.scale = Scale(float(known))
                return x
            if isinstance(scale, ir.BlockArgument) and scale.owner == self.block:
                dims = maps(self.op)[scale.arg_number].results
                if all(isinstance(d, ir.AffineDimExpr) for d in dims):
                    positions = tuple(ir.AffineDimExpr(d).position for d in dims)
                    self.scale = Scale(1.0, self.op.operands[scale.arg_number], positions)
                    return x
        return value

    def _centred(self, value: ir.Value) -> ir.Value:
        op = maker(value)
        if op is None or op.name not in ("arith.subi", "arith.addi"):
            return value
        known = _constant(op.operands[1])
        if known is None:
            return value
        self.zero = int(known) if op.name == "arith.subi" else -int(known)
        return op.operands[0]

    def _bytes(self, source: ir.Value, unsigned: bool) -> Bytes | None:
        if not isinstance(source, ir.BlockArgument) or source.owner != self.block or str(source.type) != "i8":
            return None
        found = maps(self.op)
        if found[source.arg_number] != found[-1] or found[-1] != ir.AffineMap.get_identity(found[-1].n_dims):
            return None
        tensor = self.op.operands[source.arg_number]
        return Bytes(tensor, unsigned, self.zero, self.scale)


def dequantized(value: ir.Value) -> Bytes | None:
    """The bytes that a tensor of i32 or f32 is made of, element by element."""
    op = maker(value)
    if op is None or op.name != "linalg.generic" or len(op.results) != 1 or any(kinds(op)):
        return None
    return _Reader(op).read()


def bytes_of(op: LinalgOp) -> list[Bytes] | None:
    """What the two inputs of a sum of products stand for, where both are bytes."""
    terms = {factor.operand: factor for factor in factors(op)}
    if set(terms) != {0, 1} or not byte_products.takes(op) or not _starts_from_zero(op):
        return None
    found = []
    for number, access in enumerate(op.inputs):
        if terms[number].element == "i8":
            x = Bytes(access.value, terms[number].unsigned)
        else:
            x = dequantized(access.value)
        if x is None or any(access.dims[d] in op.reductions for d in x.scale.dims):
            return None
        found.append(x)
    return found


def _starts_from_zero(op: LinalgOp) -> bool:
    fill = maker(op.output.value)
    return fill is not None and fill.name == "linalg.fill" and _constant(fill.operands[0]) == 0


def replace_product(op: LinalgOp, factors: list[Bytes], unsigned: int, result: str) -> None:
    """Put the product of bytes in the place of `op`."""
    with op.op.location, ir.InsertionPoint(op.op):
        made = byte_products.emit(op, factors, unsigned, result)
    op.op.results[0].replace_all_uses_with(made)
    op.op.erase()


@register
@dataclass(frozen=True)
class ByteProducts(Pass):
    """Multiply quantized bytes as bytes.

    For machines that have an instruction for it.

    Both factors of a sum of products are bytes that were centred on a zero point, and maybe scaled: integer operators,
    and graphs that dequantize what they multiply. The product of the bytes is exact, so the result is that of f32
    arithmetic without the roundings of its sums.

    Before:
    ```mlir
    #a = affine_map<(m, n, k) -> (m, k)>
    #b = affine_map<(m, n, k) -> (k, n)>
    #c = affine_map<(m, n, k) -> (m, n)>
    #id = affine_map<(i, j) -> (i, j)>
    ml_program.global private @w(#ml_program.extern<tensor<64x32xi8>>) : tensor<64x32xi8>
    func.func @main(%x: tensor<8x64xi8>) -> tensor<8x32xi32> {
      %w = ml_program.global_load_const @w : tensor<64x32xi8>
      %zero = arith.constant 0 : i32
      %point = arith.constant 7 : i32
      %ex = tensor.empty() : tensor<8x64xi32>
      %xi = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%x : tensor<8x64xi8>) outs(%ex : tensor<8x64xi32>) {
      ^bb0(%q: i8, %o: i32):
        %u = arith.extui %q : i8 to i32
        %d = arith.subi %u, %point : i32
        linalg.yield %d : i32
      } -> tensor<8x64xi32>
      %ew = tensor.empty() : tensor<64x32xi32>
      %wi = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%w : tensor<64x32xi8>) outs(%ew : tensor<64x32xi32>) {
      ^bb0(%q: i8, %o: i32):
        %s = arith.extsi %q : i8 to i32
        linalg.yield %s : i32
      } -> tensor<64x32xi32>
      %e = tensor.empty() : tensor<8x32xi32>
      %f = linalg.fill ins(%zero : i32) outs(%e : tensor<8x32xi32>) -> tensor<8x32xi32>
      %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%xi, %wi : tensor<8x64xi32>, tensor<64x32xi32>) outs(%f : tensor<8x32xi32>) {
      ^bb0(%p: i32, %q: i32, %o: i32):
        %m = arith.muli %p, %q : i32
        %t = arith.addi %o, %m : i32
        linalg.yield %t : i32
      } -> tensor<8x32xi32>
      return %y : tensor<8x32xi32>
    }
    ```
    After:
    ```mlir
    %y = linalg.generic {indexing_maps = [#map1, #map2, #map3],
        iterator_types = ["parallel", "parallel", "reduction"]} ...
        ^bb0(%p: i8, %q: i8, %o: i32):
    ```
    followed by the subtraction of 7 times the sums of the columns of `%w`.
    """

    name: ClassVar[str] = "tile-byte-products"
    dialects: ClassVar[tuple[str, ...]] = ("arith", "linalg", "tensor")

    def run(self, op: ir.Operation) -> None:
        """Visit each sum of products that has a weight."""
        weights = Weights()
        for block in blocks(op):
            for member in linalg_ops(block, weights):
                if member.kind is Kind.CONTRACTION:
                    self._visit(describe(member.op, member.position), weights)  # its inputs may be new

    @staticmethod
    def _visit(op: LinalgOp, weights: Weights) -> None:
        result = str(ir.RankedTensorType(op.result.type).element_type)
        constant = [weights.only(access.value) for access in op.inputs]
        if result not in ("i32", "f32") or sum(constant) != 1:
            return
        terms = prod(op.extents[d] for d in op.reductions)
        if result == "f32" and terms > byte_products.MOST_TERMS:
            return
        found = bytes_of(op)
        if found is None or _is_bare(found, op):
            return
        if result == "i32":
            found = [replace(x, scale=Scale()) for x in found]
        replace_product(op, found, constant.index(False), result)


def _is_bare(found: list[Bytes], op: LinalgOp) -> bool:
    """Whether the operation multiplies bytes of both kinds already."""
    return all(x.tensor == a.value for x, a in zip(found, op.inputs, strict=True)) and (
        found[0].unsigned != found[1].unsigned
    )
