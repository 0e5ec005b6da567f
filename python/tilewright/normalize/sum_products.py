# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-sum-products`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir.generics import body, is_zeros, iterator_types, kinds, loops_of, maker, maps, positions, uses, walk
from tilewright.mlir import ir
from tilewright.passes import Pass, register

_SUMS = {"arith.addf": "arith.mulf", "arith.addi": "arith.muli"}
_WIDEN = ("arith.extf", "arith.extsi", "arith.extui")


@register
@dataclass(frozen=True)
class SumProducts(Pass):
    """Let a product sum over its batch, where only its sum is read.

    sum over b of (sum over k of x[b, m, k] * y[b, k, n]) is one sum over b and k: products of blocks of matrices, added
    up, are a product of matrices, of which no partial result is in memory. Sums over a loop that only one operand runs
    over stay: that operand can be summed alone, and the product would multiply the other one again and again. A loop
    that runs once is no sum, whoever reads along it. Sums that do not start from zero stay.

    Before:
    ```mlir
    #x = affine_map<(b, m, n, k) -> (b, m, k)>
    #y = affine_map<(b, m, n, k) -> (b, k, n)>
    #p = affine_map<(b, m, n, k) -> (b, m, n)>
    #all = affine_map<(m, n, b) -> (b, m, n)>
    #sum = affine_map<(m, n, b) -> (m, n)>
    func.func @main(%x: tensor<4x8x16xf32>, %y: tensor<4x16x32xf32>) -> tensor<8x32xf32> {
      %zero = arith.constant 0.0 : f32
      %d = tensor.empty() : tensor<4x8x32xf32>
      %f = linalg.fill ins(%zero : f32) outs(%d : tensor<4x8x32xf32>) -> tensor<4x8x32xf32>
      %p = linalg.generic {indexing_maps = [#x, #y, #p],
          iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%x, %y : tensor<4x8x16xf32>, tensor<4x16x32xf32>) outs(%f : tensor<4x8x32xf32>) {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %t = arith.mulf %a, %b : f32
        %u = arith.addf %o, %t : f32
        linalg.yield %u : f32
      } -> tensor<4x8x32xf32>
      %e = tensor.empty() : tensor<8x32xf32>
      %g = linalg.fill ins(%zero : f32) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
      %s = linalg.generic {indexing_maps = [#all, #sum], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%p : tensor<4x8x32xf32>) outs(%g : tensor<8x32xf32>) {
      ^bb0(%a: f32, %o: f32):
        %u = arith.addf %o, %a : f32
        linalg.yield %u : f32
      } -> tensor<8x32xf32>
      return %s : tensor<8x32xf32>
    }
    ```
    After:
    ```mlir
    #map = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3)>
    #map1 = affine_map<(d0, d1, d2, d3) -> (d0, d3, d2)>
    #map2 = affine_map<(d0, d1, d2, d3) -> (d1, d2)>
    ...
    %s = linalg.generic {indexing_maps = [#map, #map1, #map2],
        iterator_types = ["reduction", "parallel", "parallel", "reduction"]}
        ins(%x, %y : tensor<4x8x16xf32>, tensor<4x16x32xf32>) outs(%g : tensor<8x32xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %t = arith.mulf %a, %b : f32
      %u = arith.addf %o, %t : f32
      linalg.yield %u : f32
    } -> tensor<8x32xf32>
    return %s : tensor<8x32xf32>
    ```
    """

    name: ClassVar[str] = "tile-sum-products"
    dialects: ClassVar[tuple[str, ...]] = ("linalg",)

    def run(self, op: ir.Operation) -> None:
        """Visit each sum, in order: a sum of sums of products is one, too."""
        for total in walk(op, "linalg.generic"):
            product = _summed(total)
            if product is not None:
                _join(product, total)


def _summed(total: ir.Operation) -> ir.Operation | None:
    """The product that a sum can be part of; None where it is no such sum."""
    if not _only_adds(total) or not is_zeros(total.operands[1]):
        return None
    product = maker(total.operands[0])
    if product is None or product.block != total.block or len(list(uses(product.results[0]))) != 1:
        return None
    if not _is_product(product, _names(total)[0]) or not is_zeros(product.operands[2]):
        return None
    if not all(
        maps(total)[0].is_permutation and m.is_projected_permutation for m in (maps(total)[1], maps(product)[2])
    ):
        return None
    kind = ir.RankedTensorType(product.results[0].type)
    if kind.element_type != ir.RankedTensorType(total.results[0].type).element_type:
        return None
    written, read = positions(maps(product)[2]), positions(maps(total)[0])
    both = [frozenset().union(*(loops_of(e) for e in m.results)) for m in maps(product)[:2]]
    shared = all(
        kind.shape[d] == 1 or all(written[d] in loops for loops in both)
        for d, loop in enumerate(read)
        if kinds(total)[loop]
    )
    return product if shared else None


def _names(op: ir.Operation) -> list[str]:
    return [inner.operation.name for inner in body(op).operations]


def _only_adds(op: ir.Operation) -> bool:
    """Whether it adds up its single input."""
    if len(op.operands) != 2 or len(op.results) != 1 or not any(kinds(op)):
        return False
    first, *rest = body(op).operations
    return (
        first.operation.name in _SUMS
        and len(rest) == 1
        and set(first.operands) == set(body(op).arguments)
        and rest[0].operands[0] == first.results[0]
    )


def _is_product(op: ir.Operation, add: str) -> bool:
    """Whether the body is acc + a * b, of widened numbers or not."""
    if op.name != "linalg.generic" or len(op.operands) != 3 or len(op.results) != 1 or not any(kinds(op)):
        return False
    names = [name for name in _names(op) if name not in _WIDEN]
    block = body(op)
    *_, last, end = block.operations
    accumulator = block.arguments[2]
    return names == [_SUMS[add], add, "linalg.yield"] and (
        accumulator in list(last.operands) and len(list(uses(accumulator))) == 1 and end.operands[0] == last.results[0]
    )


def _join(product: ir.Operation, total: ir.Operation) -> None:
    """Let the product write the sum."""
    first, second, written = maps(product)
    read, kept = maps(total)
    loop_of = dict(zip(positions(read), positions(written), strict=True))
    reduces = kinds(product)
    for loop, summed in enumerate(kinds(total)):
        reduces[loop_of[loop]] |= summed
    target = ir.AffineMap.get(written.n_dims, 0, [ir.AffineDimExpr.get(loop_of[loop]) for loop in positions(kept)])
    with total.location, ir.InsertionPoint(total):
        joined = ir.Operation.create(
            "linalg.generic",
            results=[total.results[0].type],
            operands=[*list(product.operands)[:2], total.operands[1]],
            attributes={
                "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in (first, second, target)]),
                "iterator_types": iterator_types(reduces),
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get([2, 1]),
            },
            regions=1,
        )
    body(product).append_to(joined.regions[0])
    total.results[0].replace_all_uses_with(joined.results[0])
    total.erase()
    product.erase()
