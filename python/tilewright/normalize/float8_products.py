# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-float8-products`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tilewright.devices import facts
from tilewright.ir.decodes import is_argument, yielded
from tilewright.ir.generics import (
    constant_of,
    create,
    create_generic,
    create_scaled,
    kinds,
    loops_of,
    maker,
    maps,
    open_sizes,
    positions,
    read_through,
    walk,
)
from tilewright.ir.target_info import find_device
from tilewright.mlir import ir
from tilewright.normalize.sink_scales import is_product
from tilewright.passes import Pass, register

#: What matrix units of compute capability 9.0 multiply.
_KINDS = ("f8E4M3FN", "f8E5M2")


@register
@dataclass(frozen=True)
class Float8Products(Pass):
    """Multiply dequantized float8 as float8, and scale the sums.

    For machines that have an instruction for it.

    sum over k of (a[m, k] * s) * (b[n, k] * t[n]) is (sum over k of a[m, k] * b[n, k]) * s * t[n]. Both operands of a
    product are float8 that an operation has widened and scaled (ONNX's DequantizeLinear): the product reads a fourth of
    the bytes, in types that matrix units multiply. Products of float8 are exact in f32, so the scales round once.

    Before:
    ```mlir
    #id = affine_map<(i, j) -> (i, j)>
    #row = affine_map<(i, j) -> (i)>
    #a = affine_map<(m, n, k) -> (m, k)>
    #b = affine_map<(m, n, k) -> (n, k)>
    #y = affine_map<(m, n, k) -> (m, n)>
    func.func @main(%a: tensor<8x16xf8E4M3FN>, %b: tensor<32x16xf8E4M3FN>, %t: tensor<32xf32>) -> tensor<8x32xf32> {
      %zero = arith.constant 0.0 : f32
      %s = arith.constant 0.25 : f32
      %d = tensor.empty() : tensor<8x16xf32>
      %p = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%a : tensor<8x16xf8E4M3FN>) outs(%d : tensor<8x16xf32>) {
      ^bb0(%x: f8E4M3FN, %o: f32):
        %v = sparse_tile.decode %x scale %s : f32 : f8E4M3FN to f32
        linalg.yield %v : f32
      } -> tensor<8x16xf32>
      %e = tensor.empty() : tensor<32x16xf32>
      %q = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
          ins(%b, %t : tensor<32x16xf8E4M3FN>, tensor<32xf32>) outs(%e : tensor<32x16xf32>) {
      ^bb0(%x: f8E4M3FN, %u: f32, %o: f32):
        %v = sparse_tile.decode %x scale %u : f32 : f8E4M3FN to f32
        linalg.yield %v : f32
      } -> tensor<32x16xf32>
      %g = tensor.empty() : tensor<8x32xf32>
      %f = linalg.fill ins(%zero : f32) outs(%g : tensor<8x32xf32>) -> tensor<8x32xf32>
      %y = linalg.generic {indexing_maps = [#a, #b, #y], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%p, %q : tensor<8x16xf32>, tensor<32x16xf32>) outs(%f : tensor<8x32xf32>) {
      ^bb0(%x: f32, %z: f32, %o: f32):
        %v = arith.mulf %x, %z : f32
        %w = arith.addf %o, %v : f32
        linalg.yield %w : f32
      } -> tensor<8x32xf32>
      return %y : tensor<8x32xf32>
    }
    ```
    After:
    ```mlir
    %z = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<8x16xf8E4M3FN>, tensor<32x16xf8E4M3FN>) outs(%f : tensor<8x32xf32>) {
    ...
    %y = linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel"]}
        ins(%z, %t : tensor<8x32xf32>, tensor<32xf32>) outs(%h : tensor<8x32xf32>) {
    ^bb0(%x: f32, %u: f32, %o: f32):
      %v = arith.mulf %x, %s : f32
      %w = arith.mulf %v, %u : f32
    ```
    """

    name: ClassVar[str] = "tile-float8-products"
    dialects: ClassVar[tuple[str, ...]] = ("arith", "linalg", "sparse_tile", "tensor")

    def run(self, op: ir.Operation) -> None:
        """Visit each product of f32 sums, where the device multiplies float8."""
        device = find_device(op)
        if device is not None and not facts.multiplies_float8(device):
            return
        for product in walk(op, "linalg.generic"):
            if not is_product(product):
                continue
            found = [operand for number in range(2) if (operand := _operand_of(product, number)) is not None]
            if len(found) == 2:
                _replace(product, found)


@dataclass(frozen=True)
class _Operand:
    """What an operand is made of: elements of float8 times a scale, which is a constant, a tensor or both.

    Attributes:
        op: the operation that makes it.
        elements: the tensor of float8.
        reads: where the product's loops read it.
        constant: what all elements are scaled by.
        scale: what else they are scaled by.
        at: where the product's loops read that.
    """

    op: ir.Operation
    elements: ir.Value
    reads: ir.AffineMap
    constant: float = 1.0
    scale: ir.Value | None = None
    at: ir.AffineMap | None = None


def _operand_of(product: ir.Operation, number: int) -> _Operand | None:
    """What an operand of a product stands for; None where it is no dequantized float8."""
    op, outer = maker(product.operands[number]), maps(product)[number]
    if op is None or op.name != "linalg.generic" or op.block != product.block or any(kinds(op)):
        return None
    if len(op.results) != 1 or not maps(op)[-1].is_permutation or not outer.is_projected_permutation:
        return None
    found = yielded(op)
    if found is None or str(found.code.type) not in _KINDS:
        return None
    loops = dict(zip(positions(maps(op)[-1]), outer.results, strict=True))
    value, reads = _read(op, found.code, loops, outer.n_dims)
    constant = 1.0 if found.scale is None else constant_of(found.scale)
    if constant is not None:
        return _Operand(op, value, reads, constant=float(constant))
    if not is_argument(found.scale, op):
        return None
    by, at = _read(op, found.scale, loops, outer.n_dims)
    reduced = {d for d, reduces in enumerate(kinds(product)) if reduces}
    if any(loops_of(e) & reduced for e in at.results):
        return None
    return _Operand(op, value, reads, scale=by, at=at)


def _read(
    op: ir.Operation, argument: ir.Value, loops: dict[int, ir.AffineExpr], rank: int
) -> tuple[ir.Value, ir.AffineMap]:
    """The tensor that an argument of a body is an element of, and where the product's loops read it."""
    number = ir.BlockArgument(argument).arg_number
    return op.operands[number], read_through(maps(op)[number], loops, rank)


def _wide(value: ir.Value) -> ir.Value:
    """An element as f32."""
    kind = ir.F32Type.get()
    return value if value.type == kind else create("arith.extf", [value], kind)


def _times(x: ir.Value, y: ir.Value) -> ir.Value:
    return create("arith.mulf", [x, y], x.type)


def _replace(product: ir.Operation, found: Sequence[_Operand]) -> None:
    """Put the product of the elements, scaled, in the place of `product`."""
    result, written = product.results[0], maps(product)[2]
    with product.location, ir.InsertionPoint(product):
        total = create_generic(
            [(operand.elements, operand.reads) for operand in found],
            product.operands[2],
            written,
            kinds(product),
            lambda e: create("arith.addf", [e[2], _times(_wide(e[0]), _wide(e[1]))], e[2].type),
        )
        constant = found[0].constant * found[1].constant
        loops = {loop: ir.AffineDimExpr.get(d) for d, loop in enumerate(positions(written))}
        scales = [
            (f.scale, read_through(f.at, loops, len(loops))) for f in found if f.scale is not None and f.at is not None
        ]
        new = create_scaled(total, scales, constant if constant != 1.0 else None, open_sizes(product))
    result.replace_all_uses_with(new)
    product.erase()
    for op in dict.fromkeys(operand.op for operand in found):
        if not any(True for _ in op.results[0].uses):
            op.erase()
