# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-widen-floats`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir.generics import (
    body,
    create,
    create_copy,
    create_fill,
    create_number,
    kinds,
    maker,
    open_sizes,
    place_of,
    terminator,
    uses,
    walk,
)
from tilewright.mlir import ir
from tilewright.passes import Pass, register

_NARROW = ("f16", "bf16")


@register
@dataclass(frozen=True)
class WidenFloats(Pass):
    """Let reductions of f16 and bf16 accumulate in f32.

    A reduction that widens its accumulator for each step and narrows it again keeps it wide instead, as registers do;
    the result is narrowed once. Maxima and minima are the same, sums more accurate.

    Before:
    ```mlir
    #row = affine_map<(i, j) -> (i)>
    #id = affine_map<(i, j) -> (i, j)>
    func.func @main(%x: tensor<4x8xbf16>, %e: tensor<4xbf16>) -> tensor<4xbf16> {
      %low = arith.constant 0xFF80 : bf16
      %f = linalg.fill ins(%low : bf16) outs(%e : tensor<4xbf16>) -> tensor<4xbf16>
      %y = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
          ins(%x : tensor<4x8xbf16>) outs(%f : tensor<4xbf16>) {
      ^bb0(%a: bf16, %o: bf16):
        %old = arith.extf %o : bf16 to f32
        %new = arith.extf %a : bf16 to f32
        %m = arith.maximumf %old, %new : f32
        %r = arith.truncf %m : f32 to bf16
        linalg.yield %r : bf16
      } -> tensor<4xbf16>
      return %y : tensor<4xbf16>
    }
    ```
    After:
    ```mlir
    %y = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "reduction"]}
        ins(%x : tensor<4x8xbf16>) outs(%f : tensor<4xf32>) {
    ^bb0(%a: bf16, %o: f32):
      %new = arith.extf %a : bf16 to f32
      %m = arith.maximumf %o, %new : f32
      linalg.yield %m : f32
    } -> tensor<4xf32>
    ```
    """

    name: ClassVar[str] = "tile-widen-floats"
    dialects: ClassVar[tuple[str, ...]] = ("arith", "linalg", "tensor")

    def run(self, op: ir.Operation) -> None:
        """Visit each reduction with a narrow result."""
        for generic in walk(op, "linalg.generic"):
            if len(generic.results) == 1 and any(kinds(generic)):
                kind = generic.results[0].type
                if isinstance(kind, ir.RankedTensorType) and (kind.has_static_shape or place_of(generic) is not None):
                    _widen(generic, kind, open_sizes(generic))


def _widen(op: ir.Operation, kind: ir.RankedTensorType, sizes: list[ir.Value]) -> None:
    """`sizes` are those of the result that a run brings."""
    if str(kind.element_type) not in _NARROW:
        return
    block = body(op)
    total = block.arguments[len(block.arguments) - 1]
    end = terminator(op.regions[0])
    narrowed = maker(end.operands[0])
    reads = [user for user, _ in uses(total)]
    if narrowed is None or narrowed.name != "arith.truncf" or any(user.name != "arith.extf" for user in reads):
        return
    f32 = narrowed.operands[0].type
    if not isinstance(f32, ir.F32Type) or any(user.results[0].type != f32 for user in reads):
        return
    wide = ir.RankedTensorType.get(kind.shape, f32)
    last = len(op.operands) - 1
    old = op.operands[last]
    with op.location, ir.InsertionPoint(op):
        op.operands[last] = _convert(old, wide, "arith.extf", sizes)
    total.set_type(f32)
    for user in reads:
        user.results[0].replace_all_uses_with(total)
        user.erase()
    end.operands[0] = narrowed.operands[0]
    if not list(narrowed.results[0].uses):
        narrowed.erase()
    result = op.results[0]
    result.set_type(wide)
    readers = list(uses(result))
    with op.location, ir.InsertionPoint.after(op):
        narrow = _convert(result, kind, "arith.truncf", sizes)
    for user, number in readers:
        user.operands[number] = narrow


def _convert(value: ir.Value, kind: ir.RankedTensorType, name: str, sizes: list[ir.Value]) -> ir.Value:
    """`value` with elements of another type, at the current insertion point."""
    made = maker(value)
    empty = create("tensor.empty", sizes, kind)
    constant = maker(made.operands[0]) if made is not None and made.name == "linalg.fill" else None
    if constant is None or constant.name != "arith.constant":
        return create_copy(value, empty, name)
    number = ir.FloatAttr(constant.attributes["value"]).value
    return create_fill(create_number(number, kind.element_type), empty)
