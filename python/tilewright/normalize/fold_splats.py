# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-fold-splats`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir.generics import body, create, create_fill, maker, maps, walk
from tilewright.mlir import ir
from tilewright.passes import Pass, register


@register
@dataclass(frozen=True)
class FoldSplats(Pass):
    """Fill a tensor where a constant of one number is copied into it.

    Copies repeat or turn the constant: initial states of all elements of a list are an example. A fill is what kernels
    start their sums from; a copy would be a tensor in memory, which they read. What reads single elements of a fill
    (lengths that are all the same), or of such a constant (what is left of a state of zeros), gets the number: a kernel
    makes both itself, and has no place to read them from.

    Before:
    ```mlir
    #row = affine_map<(i, j) -> (j)>
    #all = affine_map<(i, j) -> (i, j)>
    func.func @main() -> tensor<4x8xf32> {
      %z = arith.constant dense<0.0> : tensor<8xf32>
      %e = tensor.empty() : tensor<4x8xf32>
      %y = linalg.generic {indexing_maps = [#row, #all], iterator_types = ["parallel", "parallel"]}
          ins(%z : tensor<8xf32>) outs(%e : tensor<4x8xf32>) {
      ^bb0(%a: f32, %o: f32):
        linalg.yield %a : f32
      } -> tensor<4x8xf32>
      return %y : tensor<4x8xf32>
    }
    ```
    After:
    ```mlir
    %c = arith.constant 0.000000e+00 : f32
    %y = linalg.fill ins(%c : f32) outs(%e : tensor<4x8xf32>) -> tensor<4x8xf32>
    return %y : tensor<4x8xf32>
    ```
    """

    name: ClassVar[str] = "tile-fold-splats"
    dialects: ClassVar[tuple[str, ...]] = ("arith", "linalg")

    def run(self, op: ir.Operation) -> None:
        """Visit each copy of a constant."""
        for copy in walk(op, "linalg.generic"):
            number = _copied_number(copy)
            if number is None:
                continue
            with copy.location, ir.InsertionPoint(copy):
                scalar = create("arith.constant", [], number.type, {"value": number})
                filled = create_fill(scalar, copy.operands[1])
            copy.results[0].replace_all_uses_with(filled)
            copy.erase()
        for read in walk(op, "tensor.extract"):
            scalar = _element_of(read)
            if scalar is not None:
                read.results[0].replace_all_uses_with(scalar)
                read.erase()


def _element_of(read: ir.Operation) -> ir.Value | None:
    """What a read gets wherever it reads; None where elements differ, or nothing is known of them."""
    made = maker(read.operands[0])
    if made is None:
        return None
    if made.name == "linalg.fill":
        return made.operands[0] if made.operands[0].type == read.results[0].type else None
    number = _number_of(made)
    if number is None:
        return None
    with read.location, ir.InsertionPoint(read):
        return create("arith.constant", [], number.type, {"value": number})


def _copied_number(copy: ir.Operation) -> ir.Attribute | None:
    """The number that all elements of a copied constant are; None where it is no such copy."""
    if len(copy.operands) != 2 or len(copy.results) != 1 or not maps(copy)[1].is_permutation:
        return None
    block, made = body(copy), maker(copy.operands[0])
    if len(block.operations) != 1 or block.operations[0].operands[0] != block.arguments[0]:
        return None
    return None if made is None else _number_of(made)


def _number_of(made: ir.Operation) -> ir.Attribute | None:
    """The number that all elements of a constant tensor are."""
    if made.name != "arith.constant" or not isinstance(made.results[0].type, ir.RankedTensorType):
        return None
    element = ir.RankedTensorType(made.results[0].type).element_type
    plain = isinstance(element, ir.IntegerType) and element.is_signless
    if not (plain or isinstance(element, ir.FloatType | ir.IndexType)):
        return None  # a constant is no single number of another type
    value = made.attributes["value"]
    return value.get_splat_value() if isinstance(value, ir.DenseElementsAttr) and value.is_splat else None
