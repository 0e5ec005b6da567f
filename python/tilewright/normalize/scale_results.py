# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-scale-results`."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from tilewright.ir.generics import (
    body,
    create,
    create_generic,
    kinds,
    maker,
    maps,
    place_of,
    positions,
    set_maps,
    terminator,
    uses,
    walk,
)
from tilewright.mlir import ir
from tilewright.normalize.guards import is_reciprocal_of_sum, without_guard, zero_unless_finite
from tilewright.passes import Pass, option, register

#: What a size counts as that is known at run time only: most of them are positions.
_MANY = 128


@register
@dataclass(frozen=True)
class ScaleResults(Pass):
    """Scale a contraction's result where that takes fewer multiplications than scaling what it reads.

    sum over j of (x[i, j] * f[i]) * v[j, n] is (sum over j of x[i, j] * v[j, n]) * f[i]. It is done for exponentials of
    differences to a maximum only (a softmax before a product): they are at most 1, so that no sum overflows that did
    not before (FlashAttention-2, Dao 2023, section 3.1, defers the division for the same reason).

    Zeros that stand for what is no number (rows of which a mask hides all) are put into the result instead: with
    f[i] = 1 / (sum over j of x[i, j]), a row has numbers where f[i] is finite, and none elsewhere.

    Before:
    ```mlir
    #ij = affine_map<(i, j) -> (i, j)>
    #i = affine_map<(i, j) -> (i)>
    #x = affine_map<(i, n, j) -> (i, j)>
    #v = affine_map<(i, n, j) -> (j, n)>
    #y = affine_map<(i, n, j) -> (i, n)>
    func.func @main(%s: tensor<64x64xf32>, %f: tensor<64xf32>, %v: tensor<64x8xf32>) -> tensor<64x8xf32> {
      %zero = arith.constant 0.0 : f32
      %low = arith.constant 0xFF800000 : f32
      %r = tensor.empty() : tensor<64xf32>
      %g = linalg.fill ins(%low : f32) outs(%r : tensor<64xf32>) -> tensor<64xf32>
      %m = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
          ins(%s : tensor<64x64xf32>) outs(%g : tensor<64xf32>) {
      ^bb0(%a: f32, %o: f32):
        %t = arith.maximumf %o, %a : f32
        linalg.yield %t : f32
      } -> tensor<64xf32>
      %e = tensor.empty() : tensor<64x64xf32>
      %x = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
          ins(%s, %m : tensor<64x64xf32>, tensor<64xf32>) outs(%e : tensor<64x64xf32>) {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %d = arith.subf %a, %b : f32
        %t = math.exp %d : f32
        linalg.yield %t : f32
      } -> tensor<64x64xf32>
      %p = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
          ins(%x, %f : tensor<64x64xf32>, tensor<64xf32>) outs(%e : tensor<64x64xf32>) {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %t = arith.mulf %a, %b : f32
        linalg.yield %t : f32
      } -> tensor<64x64xf32>
      %h = tensor.empty() : tensor<64x8xf32>
      %k = linalg.fill ins(%zero : f32) outs(%h : tensor<64x8xf32>) -> tensor<64x8xf32>
      %y = linalg.generic {indexing_maps = [#x, #v, #y], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%p, %v : tensor<64x64xf32>, tensor<64x8xf32>) outs(%k : tensor<64x8xf32>) {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %q = arith.mulf %a, %b : f32
        %t = arith.addf %o, %q : f32
        linalg.yield %t : f32
      } -> tensor<64x8xf32>
      return %y : tensor<64x8xf32>
    }
    ```
    After:
    ```mlir
    %z = linalg.generic {indexing_maps = [#map2, #map3, #map4], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %v : tensor<64x64xf32>, tensor<64x8xf32>) outs(%k : tensor<64x8xf32>) {
    ...
    %y = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]}
        ins(%z, %f : tensor<64x8xf32>, tensor<64xf32>) outs(%h : tensor<64x8xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %t = arith.mulf %a, %b : f32
    ```
    """

    name: ClassVar[str] = "tile-scale-results"
    dialects: ClassVar[tuple[str, ...]] = ("linalg", "tensor")

    rounded: bool = option(False, "also where what is scaled is rounded before the product reads it")
    always: bool = option(False, "also where it takes more multiplications: then the product needs no whole rows")

    def run(self, op: ir.Operation) -> None:
        """Visit each contraction once."""
        for product in walk(op, "linalg.generic"):
            if not _is_product(product):
                continue
            for number in range(2):
                _scale_after(product, number, self.rounded, self.always)


def _yielded(op: ir.Operation) -> ir.Value:
    return terminator(op.regions[0]).operands[0]


def _is_product(op: ir.Operation) -> bool:
    """Whether the body is acc + a * b, with a fill to start from."""
    if len(op.operands) != 3 or len(op.results) != 1 or not any(kinds(op)):
        return False
    names = [inner.operation.name for inner in body(op).operations if inner.operation.name != "arith.extf"]
    return names == ["arith.mulf", "arith.addf", "linalg.yield"] and maker(op.operands[2]) is not None


def _is_rounding(op: ir.Operation | None, readers: int) -> bool:
    """Whether an operation does nothing but round each element, for so many readers."""
    if op is None or op.name != "linalg.generic" or len(op.operands) != 2 or any(kinds(op)):
        return False
    inner = body(op).operations
    return (
        len(inner) == 2
        and inner[0].operation.name == "arith.truncf"
        and maps(op)[0] == maps(op)[1]
        and maps(op)[0].is_projected_permutation
        and len(maps(op)[0].results) == maps(op)[0].n_dims
        and len(list(uses(op.results[0]))) == readers
    )


def _scale_after(product: ir.Operation, number: int, rounded: bool, always: bool) -> None:
    source, guards = without_guard(product.operands[number])
    readers = len(guards) or 1  # both of a guard read what it guards
    scaling, rounding = maker(source), None
    if rounded and scaling is not None and _is_rounding(scaling, readers) and scaling.block == product.block:
        scaling, rounding, readers = maker(scaling.operands[0]), scaling, 1
    if scaling is None or scaling.name != "linalg.generic" or scaling.block != product.block:
        return
    if len(list(uses(scaling.results[0]))) != readers or not _is_scaled_softmax(scaling, rounded, bool(guards)):
        return
    scale = _scale_loops(scaling, product, number)
    if scale is None or place_of(product) is None:
        return
    if prod(_shape(product)) >= prod(_shape(scaling)) and not always:
        return
    if rounding is not None:
        if maps(scaling)[0] != maps(scaling)[2]:
            return
        rounding.operands[0] = scaling.operands[0]
    product.operands[number] = scaling.operands[0] if rounding is None else rounding.results[0]
    for guard in guards:
        guard.erase()
    _move(scaling, product, number, scale, bool(guards))


def _is_scaled_softmax(scaling: ir.Operation, rounded: bool, guarded: bool) -> bool:
    """Whether an operation scales exponentials; those behind a guard by the reciprocal of their sum."""
    if not _is_scaling(scaling, rounded) or not _is_bounded(scaling.operands[0], rounded):
        return False
    return not guarded or is_reciprocal_of_sum(scaling.operands[1], scaling.operands[0])


def _scale_loops(scaling: ir.Operation, product: ir.Operation, number: int) -> list[int] | None:
    """The loops of the product that the scale depends on; None where its result does not have them all."""
    own, outer = maps(scaling), maps(product)
    if not all(m.is_projected_permutation for m in [*own, outer[number], outer[2]]):
        return None
    loops = _loops(own[2], outer[number])
    scale = [loops[d] for d in positions(own[1])] if len(loops) == own[2].n_dims else None
    return scale if scale is not None and set(scale) <= set(positions(outer[2])) else None


def _shape(op: ir.Operation) -> list[int]:
    """The sizes of a result; one known at run time only counts as many."""
    return [_MANY if size < 0 else size for size in ir.RankedTensorType(op.results[0].type).shape]


def _loops(written: ir.AffineMap, read: ir.AffineMap) -> dict[int, int]:
    """For each loop of the maker of a tensor, the loop of its reader."""
    return dict(zip(positions(written), positions(read), strict=True))


def _steps(op: ir.Operation, rounded: bool) -> list[ir.Operation]:
    """What a body computes; with `rounded`, without what widens and rounds the elements."""
    return [
        inner.operation
        for inner in body(op).operations
        if not (rounded and inner.operation.name in ("arith.extf", "arith.truncf"))
    ]


def _elements(op: ir.Operation) -> list[ir.Value]:
    """What the operands of a step are, before they are widened."""
    return [made.operands[0] if (made := maker(v)) and made.name == "arith.extf" else v for v in op.operands]


def _is_scaling(op: ir.Operation, rounded: bool) -> bool:
    """Whether the body is a * b of two inputs, the second with fewer loops."""
    if len(op.operands) != 3 or any(kinds(op)):
        return False
    steps = _steps(op, rounded)
    if [step.name for step in steps] != ["arith.mulf", "linalg.yield"]:
        return False
    if _elements(steps[0]) != list(body(op).arguments)[:2]:
        return False
    return len(maps(op)[1].results) < len(maps(op)[0].results)


def _is_bounded(value: ir.Value, rounded: bool) -> bool:
    """Whether a tensor holds exp(x - max x), whose values are at most 1."""
    op = maker(value)
    if op is None or op.name != "linalg.generic" or len(op.operands) != 3:
        return False
    steps = _steps(op, rounded)
    if [step.name for step in steps] != ["arith.subf", "math.exp", "linalg.yield"]:
        return False
    if _elements(steps[0]) != list(body(op).arguments)[:2]:
        return False
    top = maker(op.operands[1])
    return top is not None and _is_maximum_of(top, op.operands[0])


def _is_maximum_of(top: ir.Operation, value: ir.Value) -> bool:
    if top.name != "linalg.generic" or top.operands[0] != value or len(top.operands) != 2:
        return False
    return any(kinds(top)) and _yielded(top).owner.name in ("arith.maximumf", "arith.maxnumf")


def _move(scaling: ir.Operation, product: ir.Operation, number: int, scale: list[int], guarded: bool) -> None:
    """Let the product, which reads what was scaled by now, do so by the maps of that, and scale its result."""
    own, outer = maps(scaling), maps(product)
    by_dim = dict(zip(positions(own[2]), outer[number].results, strict=True))
    outer[number] = ir.AffineMap.get(outer[number].n_dims, 0, [by_dim[d] for d in positions(own[0])])
    written = positions(outer[2])
    rank = len(written)
    readers = list(uses(product.results[0]))
    set_maps(product, outer)
    kind = product.results[0].type
    identity = ir.AffineMap.get_identity(rank)
    broadcast = ir.AffineMap.get(rank, 0, [ir.AffineDimExpr.get(written.index(loop)) for loop in scale])
    with product.location, ir.InsertionPoint.after(product):
        place = place_of(product)
        assert place is not None
        empty = create("tensor.empty", list(place.operands), kind)
        reads = [(product.results[0], identity), (scaling.operands[1], broadcast)]
        scaled = create_generic(
            reads, empty, identity, [False] * rank, lambda elements: _product_of(scaling, elements, guarded)
        )
    for reader, at in readers:
        reader.operands[at] = scaled
    scaling.erase()


def _product_of(scaling: ir.Operation, elements: list[ir.Value], guarded: bool) -> ir.Value:
    """The product of a result and a scale, in the type of the result; guarded: 0 where the scale is not finite."""
    own = next(step for step in _steps(scaling, True) if step.name == "arith.mulf")
    wide = elements[2].type
    operands = [e if e.type == wide else create("arith.extf", [e], wide) for e in elements[:2]]
    made = own.clone()
    for number, operand in enumerate(operands):
        made.operands[number] = operand
    made.results[0].set_type(wide)
    return zero_unless_finite(operands[1], made.results[0]) if guarded else made.results[0]
