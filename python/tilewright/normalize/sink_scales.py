# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-sink-scales`."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite, prod
from typing import ClassVar

from tilewright.ir.generics import (
    body,
    constant_of,
    create_scaled,
    kinds,
    maker,
    maps,
    open_sizes,
    place_of,
    positions,
    read_through,
    set_maps,
    uses,
    walk,
)
from tilewright.ir.views import RESHAPES
from tilewright.mlir import ir
from tilewright.passes import Pass, register

_VIEWS = (*RESHAPES, "tensor.extract_slice")


@register
@dataclass(frozen=True)
class SinkScales(Pass):
    """Scale the sums of a product instead of what it reads, where a constant scales that.

    sum over k of (a[m, k] * c) * b[n, k] is (sum over k of a[m, k] * b[n, k]) * c. What is read is then the tensor that
    is there already (keys of attention, scaled for the sake of narrow floats), no copy of it. Sums are in f32, where
    products of f16 cannot overflow; they err less, as scaled operands would be rounded. What follows from weights alone
    is left as it is: it is scaled at compile time.

    Before:
    ```mlir
    #id = affine_map<(i, j) -> (i, j)>
    #a = affine_map<(m, n, k) -> (m, k)>
    #b = affine_map<(m, n, k) -> (n, k)>
    #y = affine_map<(m, n, k) -> (m, n)>
    func.func @main(%a: tensor<8x16xf16>, %b: tensor<32x16xf16>) -> tensor<8x32xf32> {
      %zero = arith.constant 0.0 : f32
      %c = arith.constant 0.25 : f32
      %d = tensor.empty() : tensor<32x16xf16>
      %s = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%b : tensor<32x16xf16>) outs(%d : tensor<32x16xf16>) {
      ^bb0(%p: f16, %o: f16):
        %w = arith.extf %p : f16 to f32
        %t = arith.mulf %w, %c : f32
        %r = arith.truncf %t : f32 to f16
        linalg.yield %r : f16
      } -> tensor<32x16xf16>
      %e = tensor.empty() : tensor<8x32xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x32xf32>) -> tensor<8x32xf32>
      %y = linalg.generic {indexing_maps = [#a, #b, #y], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%a, %s : tensor<8x16xf16>, tensor<32x16xf16>) outs(%f : tensor<8x32xf32>) {
      ^bb0(%p: f16, %q: f16, %o: f32):
        %v = arith.extf %p : f16 to f32
        %w = arith.extf %q : f16 to f32
        %t = arith.mulf %v, %w : f32
        %u = arith.addf %o, %t : f32
        linalg.yield %u : f32
      } -> tensor<8x32xf32>
      return %y : tensor<8x32xf32>
    }
    ```
    After:
    ```mlir
    %z = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<8x16xf16>, tensor<32x16xf16>) outs(%f : tensor<8x32xf32>) {
    ...
    %c = arith.constant 2.500000e-01 : f32
    ...
    %y = linalg.generic {indexing_maps = [#map3, #map3], iterator_types = ["parallel", "parallel"]}
        ins(%z : tensor<8x32xf32>) outs(%h : tensor<8x32xf32>) {
    ^bb0(%p: f32, %o: f32):
      %t = arith.mulf %p, %c : f32
    ```
    """

    name: ClassVar[str] = "tile-sink-scales"
    dialects: ClassVar[tuple[str, ...]] = ("arith", "linalg", "tensor")

    def run(self, op: ir.Operation) -> None:
        """Visit each product of f32 sums."""
        for product in walk(op, "linalg.generic"):
            if is_product(product):
                found = {number: scale for number in range(2) if (scale := _scale_of(product, number)) is not None}
                if found:
                    _move(product, found)


@dataclass(frozen=True)
class _Scale:
    """What scales an operand: the operation, and the constant."""

    op: ir.Operation
    constant: float


def is_product(op: ir.Operation) -> bool:
    """Whether the body is acc + a * b in f32, started from zero, in a tensor of its own."""
    if len(op.operands) != 3 or len(op.results) != 1 or not any(kinds(op)):
        return False
    names = [inner.operation.name for inner in body(op).operations if inner.operation.name != "arith.extf"]
    start, kind = maker(op.operands[2]), ir.RankedTensorType(op.results[0].type)
    if names != ["arith.mulf", "arith.addf", "linalg.yield"] or start is None or start.name != "linalg.fill":
        return False
    own = kind.has_static_shape or place_of(op) is not None
    return constant_of(start.operands[0]) == 0 and isinstance(kind.element_type, ir.F32Type) and own


def _scale_of(product: ir.Operation, number: int) -> _Scale | None:
    """What scales an operand by a constant, for this product only; None where nothing does."""
    op = maker(product.operands[number])
    if op is None or op.name != "linalg.generic" or op.block != product.block or len(op.operands) != 2:
        return None
    own = maps(op)
    if any(kinds(op)) or len(list(op.results[0].uses)) != 1 or not own[1].is_permutation:
        return None
    if not maps(product)[number].is_projected_permutation or _is_weight(op.operands[0]):
        return None
    if ir.RankedTensorType(op.operands[0].type).element_type != ir.RankedTensorType(op.results[0].type).element_type:
        return None
    names = [inner.operation.name for inner in body(op).operations]
    if names not in (["arith.mulf", "linalg.yield"], ["arith.extf", "arith.mulf", "arith.truncf", "linalg.yield"]):
        return None
    operands = list(body(op).operations[names.index("arith.mulf")].operands)
    constants = [found for value in operands if (found := constant_of(value)) is not None]
    return _Scale(op, float(constants[0])) if len(constants) == 1 and isfinite(constants[0]) else None


def _is_weight(value: ir.Value) -> bool:
    """Whether a tensor is known at compile time."""
    while (made := maker(value)) is not None and made.name in _VIEWS:
        value = made.operands[0]
    return made is not None and made.name in ("ml_program.global_load_const", "arith.constant")


def _move(product: ir.Operation, found: dict[int, _Scale]) -> None:
    """Let the product read what was scaled, and scale its result."""
    result = product.results[0]
    own, readers = maps(product), list(uses(result))
    for number, scale in found.items():
        read, written = maps(scale.op)
        outer = dict(zip(positions(written), own[number].results, strict=True))
        own[number] = read_through(read, outer, own[number].n_dims)
        product.operands[number] = scale.op.operands[0]
    set_maps(product, own)
    for scale in found.values():
        scale.op.erase()
    with product.location, ir.InsertionPoint.after(product):
        new = create_scaled(result, [], prod(scale.constant for scale in found.values()), open_sizes(product))
    for reader, at in readers:
        reader.operands[at] = new
