# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks that a mask does not cut skip its arithmetic (FlashAttention-2, Dao 2023, section 3.1: causal masking)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir.generics import create, maker, walk
from tilewright.mlir import ir
from tilewright.passes import Pass, register

#: Signed orders among arith.cmpi's numbers of predicates, and the one that holds where the first one does not.
_LESS, _LESS_EQUAL, _GREATER, _GREATER_EQUAL = 2, 3, 4, 5
_OPPOSITE = {_LESS: _GREATER_EQUAL, _LESS_EQUAL: _GREATER, _GREATER: _LESS_EQUAL, _GREATER_EQUAL: _LESS}


def _maker(value: ir.Value, *names: str) -> ir.Operation | None:
    made = maker(value)
    return made if made is not None and made.name in names else None


@dataclass(frozen=True)
class _Ramp:
    """A tile whose elements are base, base + 1, ... along a dimension."""

    base: ir.Value
    size: int


def _ramp(value: ir.Value) -> _Ramp | None:
    """The ramp that is spread over a tile; None where a value is none."""
    while (spread := _maker(value, "tile.broadcast", "tile.reshape")) is not None:
        value = spread.operands[0]
    total = _maker(value, "arith.addi")
    if total is None:
        return None
    sides = list(total.operands)
    ticks = next((side for side in sides if _maker(side, "tile.iota")), None)
    base = next((_maker(side, "tile.splat") for side in sides if _maker(side, "tile.splat")), None)
    if ticks is None or base is None:
        return None
    shape = ir.ShapedType(ticks.type).shape
    return _Ramp(base.operands[0], shape[0]) if len(shape) == 1 else None


def _plus(value: ir.Value, add: int) -> ir.Value:
    """The scalar and a number."""
    if not add:
        return value
    number = create("arith.constant", [], value.type, {"value": ir.IntegerAttr.get(value.type, add)})
    return create("arith.addi", [value, number], value.type)


def _both(left: ir.Value | None, right: ir.Value | None) -> ir.Value | None:
    if left is None or right is None:
        return None
    return ir.Operation.create("arith.andi", [left.type], [left, right]).results[0]


def _everywhere(condition: ir.Value, truth: bool) -> ir.Value | None:
    """An i1, made here: if it holds, all elements of a condition are `truth`. None where ramps do not say it."""
    joined = _maker(condition, "arith.andi" if truth else "arith.ori")
    if joined is not None:
        return _both(*(_everywhere(side, truth) for side in joined.operands))
    compared = _maker(condition, "arith.cmpi")
    if compared is None:
        return None
    predicate = ir.IntegerAttr(compared.attributes["predicate"]).value
    left, right = map(_ramp, compared.operands)
    if predicate not in _OPPOSITE or left is None or right is None:
        return None
    predicate = predicate if truth else _OPPOSITE[predicate]
    smaller = predicate in (_LESS, _LESS_EQUAL)
    ends = [
        _plus(left.base, left.size - 1 if smaller else 0),
        _plus(right.base, 0 if smaller else right.size - 1),
    ]
    kind = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)
    return ir.Operation.create("arith.cmpi", [ir.IntegerType.get_signless(1)], ends, {"predicate": kind}).results[0]


def _sink(value: ir.Value, last: ir.Operation) -> None:
    """Moves what makes a value, and has no other reader, in front of an operation of an inner block."""
    if isinstance(value, ir.BlockArgument) or len(list(value.uses)) != 1:
        return
    owner = value.owner.operation
    if owner.name == "arith.constant" or owner.block != last.block.owner.operation.block:
        return
    owner.move_before(last)
    for operand in owner.operands:
        _sink(operand, owner)


def _is_uniform(value: ir.Value) -> bool:
    """Whether all elements of a tile are the same: what a mask puts in the place of others."""
    return _maker(value, "tile.splat", "arith.constant") is not None


def _split(select: ir.Operation) -> None:
    """Puts a selection into the else region of a condition that holds for blocks that nothing cuts."""
    condition, chosen, other = select.operands
    truth = not _is_uniform(chosen)
    with ir.InsertionPoint(select), select.location:
        whole = _everywhere(condition, truth)
        if whole is None:
            return
        branch = ir.Operation.create("scf.if", [select.results[0].type], [whole], regions=2)
        for region in branch.regions:
            region.blocks.append()
        with ir.InsertionPoint(branch.regions[0].blocks[0]):
            ir.Operation.create("scf.yield", [], [chosen if truth else other])
        select.results[0].replace_all_uses_with(branch.results[0])
        with ir.InsertionPoint(branch.regions[1].blocks[0]):
            end = ir.Operation.create("scf.yield", [], [select.results[0]])
        select.move_before(end.operation)
    _sink(condition, select)


@register
@dataclass(frozen=True)
class SplitMasks(Pass):
    """Skip a mask's comparisons in blocks that it does not cut.

    In a loop of a kernel, a selection by comparisons of positions (tiles that count up from a base) moves into the else
    region of one comparison of the ends: where the largest position on the smaller side is in order, all are. What only
    the selection reads goes with it. All threads take the same side. Of a condition that says what is masked, no
    element may hold. No attribute says what to split: a comparison of two scalars is never the slower one. A selection
    of a whole task, outside loops, stays: it is paid once.

    Before:
    ```mlir
    tile.kernel @causal(%x: memref<16x64xf32>, %y: memref<16x64xf32>) grid(%i) {
      %c0 = arith.constant 0 : index
      %c16 = arith.constant 16 : index
      %c64 = arith.constant 64 : index
      %low = arith.constant 0xFF800000 : f32
      %masked = tile.splat %low : f32 -> !tile.tile<16x16xf32>
      %ticks = tile.iota dim 0 : !tile.tile<16xi32>
      %first = arith.index_cast %i : index to i32
      %f = tile.splat %first : i32 -> !tile.tile<16xi32>
      %q = arith.addi %f, %ticks : !tile.tile<16xi32>
      %qc = tile.reshape %q : !tile.tile<16xi32> -> !tile.tile<16x1xi32>
      %rows = tile.broadcast %qc : !tile.tile<16x1xi32> -> !tile.tile<16x16xi32>
      scf.for %k = %c0 to %c64 step %c16 {
        %at = arith.index_cast %k : index to i32
        %s = tile.splat %at : i32 -> !tile.tile<16xi32>
        %p = arith.addi %s, %ticks : !tile.tile<16xi32>
        %columns = tile.broadcast %p : !tile.tile<16xi32> -> !tile.tile<16x16xi32>
        %seen = arith.cmpi sle, %columns, %rows : !tile.tile<16x16xi32>
        %t = tile.load %x[%c0, %k] : memref<16x64xf32>, !tile.tile<16x16xf32>
        %z = tile.select %seen, %t, %masked : !tile.tile<16x16xi1>, !tile.tile<16x16xf32>
        tile.store %z, %y[%c0, %k] : !tile.tile<16x16xf32>, memref<16x64xf32>
      }
      tile.return
    }
    ```
    After:
    ```mlir
    %7 = arith.addi %6, %c15_i32 : i32
    %8 = arith.cmpi sle, %7, %2 : i32
    %9 = scf.if %8 -> (!tile.tile<16x16xf32>) {
      scf.yield %5 : !tile.tile<16x16xf32>
    } else {
    ```
    """

    name: ClassVar[str] = "tile-split-masks"
    dialects: ClassVar[tuple[str, ...]] = ("tile", "arith", "scf")

    def run(self, op: ir.Operation) -> None:
        """All selections in loops of kernels."""
        for select in walk(op, "tile.select"):
            if select.parent is not None and select.parent.name == "scf.for":
                _split(select)
