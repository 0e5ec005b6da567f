# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-fold-roundings`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir.generics import body, constant_of, kinds, maker, maps, terminator, uses, walk
from tilewright.mlir import ir
from tilewright.passes import Pass, register

_EXTREMA = ("arith.maximumf", "arith.minimumf", "arith.maxnumf", "arith.minnumf")


@register
@dataclass(frozen=True)
class FoldRoundings(Pass):
    """Let readers see a maximum or minimum before it is rounded, where rounding cannot change it.

    The largest of some values that were widened from bf16 is one of them: to round it to bf16 and widen it again does
    nothing. A softmax in 16 bits is then exp(x - m) of its maximum itself, as in 32 bits.

    Before:
    ```mlir
    #ij = affine_map<(i, j) -> (i, j)>
    #i = affine_map<(i, j) -> (i)>
    #id = affine_map<(i) -> (i)>
    func.func @main(%x: tensor<4x8xbf16>) -> tensor<4x8xf32> {
      %low = arith.constant 0xFF800000 : f32
      %e = tensor.empty() : tensor<4xf32>
      %f = linalg.fill ins(%low : f32) outs(%e : tensor<4xf32>) -> tensor<4xf32>
      %m = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
          ins(%x : tensor<4x8xbf16>) outs(%f : tensor<4xf32>) {
      ^bb0(%a: bf16, %o: f32):
        %w = arith.extf %a : bf16 to f32
        %t = arith.maximumf %o, %w : f32
        linalg.yield %t : f32
      } -> tensor<4xf32>
      %g = tensor.empty() : tensor<4xbf16>
      %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
          ins(%m : tensor<4xf32>) outs(%g : tensor<4xbf16>) {
      ^bb0(%a: f32, %o: bf16):
        %t = arith.truncf %a : f32 to bf16
        linalg.yield %t : bf16
      } -> tensor<4xbf16>
      %h = tensor.empty() : tensor<4x8xf32>
      %y = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
          ins(%x, %r : tensor<4x8xbf16>, tensor<4xbf16>) outs(%h : tensor<4x8xf32>) {
      ^bb0(%a: bf16, %b: bf16, %o: f32):
        %v = arith.extf %a : bf16 to f32
        %w = arith.extf %b : bf16 to f32
        %d = arith.subf %v, %w : f32
        linalg.yield %d : f32
      } -> tensor<4x8xf32>
      return %y : tensor<4x8xf32>
    }
    ```
    After:
    ```mlir
    %m = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]}
    ...
    %y = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]}
        ins(%x, %m : tensor<4x8xbf16>, tensor<4xf32>) outs(%h : tensor<4x8xf32>) {
    ^bb0(%a: bf16, %b: f32, %o: f32):
      %v = arith.extf %a : bf16 to f32
      %d = arith.subf %v, %b : f32
    ```
    """

    name: ClassVar[str] = "tile-fold-roundings"
    dialects: ClassVar[tuple[str, ...]] = ("arith", "linalg", "tensor")

    def run(self, op: ir.Operation) -> None:
        """Visit each operation that does nothing but round."""
        for rounding in walk(op, "linalg.generic"):
            if is_rounding(rounding) and _is_exact(rounding):
                for reader, number in uses(rounding.results[0]):
                    _read_before(reader, number, rounding.operands[0])
                if not list(rounding.results[0].uses):
                    rounding.erase()


def is_rounding(op: ir.Operation) -> bool:
    """Whether an operation does nothing but round each element of its input, in place."""
    if len(op.operands) != 2 or len(op.results) != 1 or any(kinds(op)):
        return False
    inner, own = body(op).operations, maps(op)
    if len(inner) != 2 or inner[0].operation.name != "arith.truncf":
        return False
    return own[0] == own[1] and own[0].is_permutation


def _is_exact(rounding: ir.Operation) -> bool:
    """Whether what is rounded is one of some values that have the narrow type, or what these start from."""
    extremum = maker(rounding.operands[0])
    if extremum is None or extremum.name != "linalg.generic" or len(extremum.operands) != 2:
        return False
    last = maker(terminator(extremum.regions[0]).operands[0])
    if not any(kinds(extremum)) or last is None or last.name not in _EXTREMA:
        return False
    total, kind = body(extremum).arguments[1], ir.RankedTensorType(rounding.results[0].type).element_type
    terms = [value for value in last.operands if value != total]
    widened = maker(terms[0]) if len(terms) == 1 else None
    if widened is None or widened.name != "arith.extf" or widened.operands[0].type != kind:
        return False
    start = maker(extremum.operands[1])
    first = constant_of(start.operands[0]) if start is not None and start.name == "linalg.fill" else None
    with rounding.location:
        return first is not None and ir.FloatAttr.get(kind, first).value == first


def _read_before(reader: ir.Operation, number: int, value: ir.Value) -> None:
    """Let a generic that widens all it reads of an operand read `value`, which is wide."""
    if reader.name != "linalg.generic" or number == len(reader.operands) - 1:
        return
    element = body(reader).arguments[number]
    wide = ir.RankedTensorType(value.type).element_type
    widenings = [user for user, _ in uses(element)]
    if any(user.name != "arith.extf" or user.results[0].type != wide for user in widenings):
        return
    reader.operands[number] = value
    element.set_type(wide)
    for widening in widenings:
        widening.results[0].replace_all_uses_with(element)
        widening.erase()
