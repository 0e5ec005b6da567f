# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-plan-wavefronts`: which recurrences run along the diagonals of their domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tilewright.devices.device import Device
from tilewright.ir import decisions
from tilewright.ir.diagnostics import remark
from tilewright.ir.generics import ancestors, maker, walk
from tilewright.ir.structure import blocks
from tilewright.ir.target_info import device_of, options_of
from tilewright.mlir import ir
from tilewright.mlir.dialects.fractal import ArrayType
from tilewright.passes import Pass, register

_LEAST_GAIN = 1.1
"""How many times as fast diagonals are predicted to be, at least: copies that read along them are not in the law."""

_MOST_WHOLE = 32
"""Rows that become code of their own, at most, where each has to be looked at for itself."""

_UNROLLED = 4
"""Rows that are an iteration of a loop over the others: `tile-plan-shifts` makes one loop of as many."""


@register
@dataclass(frozen=True)
class PlanWavefronts(Pass):
    """Decide which recurrences run along the diagonals of their domain (`tile.pair`, `tile.wavefront`).

    Row by row, a step has one point, the weights of one row stay near, and what needs no state is one product for the
    row. Along diagonals, there are fewer steps, each with a point of every row; where compute counts, in bands of fewer
    rows (a number), since diagonals have points outside of the domain. The law is `plan/cost/recurrence.py`; a remark
    gives both times. Of pairs in each other, the outermost that gains is taken. Of rows with weights of their
    own that stay in order, a few are unrolled (`tile.unroll`), in a loop where there are more: deep networks are no
    more code than others. All are where weights are encoded or hold zeros, since a product takes one encoded weight,
    and where fewer bits than those of f32 were asked for. Rows that share all weights stay a loop.

    Before:
    ```mlir
    func.func @f(%xs: !fractal.array<[9] of tensor<8xf32>>, %ws: !fractal.array<[3] of tensor<8xf32>>,
        %h0: tensor<8xf32>) -> !fractal.array<[9] of tensor<8xf32>> {
      %r = fractal.fold left (%s = %xs) over (%w = %ws)
          : (!fractal.array<[9] of tensor<8xf32>>, !fractal.array<[3] of tensor<8xf32>>)
          -> !fractal.array<[9] of tensor<8xf32>> attributes {tile.pair = array<i64: 3, 9>} {
        %hs = fractal.scan left (%h = %h0) over (%x = %s)
            : (tensor<8xf32>, !fractal.array<[9] of tensor<8xf32>>) -> !fractal.array<[9] of tensor<8xf32>> {
          %0 = arith.addf %h, %x : tensor<8xf32>
          fractal.yield %0 : tensor<8xf32>
        }
        fractal.yield %hs : !fractal.array<[9] of tensor<8xf32>>
      }
      return %r : !fractal.array<[9] of tensor<8xf32>>
    }
    ```
    After (launches of a GPU cost more than what one row's state takes):
    ```mlir
    attributes {tile.wavefront} {
    ```
    """

    name: ClassVar[str] = "tile-plan-wavefronts"
    dialects: ClassVar[tuple[str, ...]] = ("fractal", "tile")

    def run(self, op: ir.Operation) -> None:
        """Visit pairs, outer ones first."""
        for block in blocks(op):
            for view in block.operations:
                if decisions.PAIR.on(view.operation):
                    _decide(view.operation, device_of(op, self.name))


def _decide(pair: ir.Operation, device: Device) -> None:
    rows, columns = decisions.PAIR.read(pair)
    decisions.PAIR.drop(pair)
    if _is_in_wavefront(pair):
        return
    # Most programs hold no recurrences: what decides about them is loaded when one is met.
    from tilewright.plan.cost.recurrence import along_diagonals, best_band, row_by_row
    from tilewright.plan.recurrences.work import work_of

    body = pair.regions[0].blocks[0].operations
    scan = body[len(body) - 2].operation  # what tile-find-pairs found stands before the yield
    work = work_of(scan)
    band = best_band(work, rows, columns, device)
    one, other = row_by_row(work, rows, columns, device), along_diagonals(work, rows, columns, device, band)
    encoded = bool(walk(pair, "sparse_tile.matmul"))
    obstacle = _obstacle([*pair.operands, *scan.operands], encoded)
    diagonals = one >= _LEAST_GAIN * other and not obstacle and (band > 1 or rows == 1)
    if diagonals:
        whole = band == rows
        decisions.WAVEFRONT.set(pair, ir.UnitAttr.get(pair.context) if whole else _number(pair, band))
    elif work.own_weights or work.own_free_weights or encoded:
        _unroll(pair, rows, encoded)
    order = f"run as {_diagonals(rows, columns, band)}" if diagonals else f"stay row by row{obstacle}"
    times = f"{one * 1e6:.0f} us row by row, {other * 1e6:.0f} us along diagonals"
    remark(pair, f"{rows} x {columns} points of a recurrence {order}: predicted are {times}")


def _obstacle(operands: Sequence[ir.Value], encoded: bool) -> str:
    """Why a pair with these operands cannot run along diagonals; empty if it can."""
    if encoded:
        return " (each has an encoded weight of its own)"
    if any(isinstance(value.type, ArrayType) and _is_ragged(value) for value in operands):
        return " (lists whose lengths only a run knows are not read along diagonals)"
    return ""


def _unroll(pair: ir.Operation, rows: int, encoded: bool) -> None:
    """Write which rows of a pair that stays in order are code of their own."""
    lists = [value for value in pair.operands if isinstance(value.type, ArrayType)]
    narrow = options_of(pair).precision != "f32"  # of products in loops none is
    each = encoded or narrow or any(map(_is_ragged, lists)) or any(map(_is_pruned, lists))
    if rows <= (_MOST_WHOLE if each else _UNROLLED):
        decisions.UNROLL.set(pair, ir.UnitAttr.get(pair.context))
    elif not each:
        decisions.UNROLL.set(pair, _number(pair, _UNROLLED))


def _number(op: ir.Operation, number: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64, op.context), number)


def _diagonals(rows: int, columns: int, band: int) -> str:
    """How a remark calls an order."""
    if band == rows:
        return f"{rows + columns - 1} diagonals"
    rest = f", the last one of {rows % band}," if rows % band else ""
    return f"bands of {band} rows{rest} of {band + columns - 1} diagonals each"


def _is_ragged(value: ir.Value) -> bool:
    """Whether a run tells a length: such lists are not cut into groups, nor read along diagonals."""
    return any(length < 0 for length in ArrayType(value.type).lengths)


def _is_pruned(value: ir.Value) -> bool:
    """Whether a list of weights has zeros that a product may leave out: where they are differs from row to row."""
    from tilewright.plan.sparse.constants import has_zeros

    made = maker(value)
    return made is not None and made.name == "fractal.from_tensor" and has_zeros(made.operands[0])


def _is_in_wavefront(op: ir.Operation) -> bool:
    return any(decisions.WAVEFRONT.on(above) for above in ancestors(op))
