# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-plan-wavefronts`: which recurrences run along the diagonals of their domain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.devices.device import Device
from tilewright.ir import decisions
from tilewright.ir.diagnostics import remark
from tilewright.ir.generics import ancestors, walk
from tilewright.ir.structure import blocks
from tilewright.ir.target_info import device_of
from tilewright.mlir import ir
from tilewright.passes import Pass, register

_LEAST_GAIN = 1.1
"""How many times as fast diagonals are predicted to be, at least: copies that read along them are not in the law."""

_MOST_UNROLLED = 32
"""Rows that become code of their own, at most."""


@register
@dataclass(frozen=True)
class PlanWavefronts(Pass):
    """Decide which recurrences run along the diagonals of their domain (`tile.pair`, `tile.wavefront`).

    Row by row, a step has one point, the weights of one row stay near, and what needs no state is one product for the
    row. Along diagonals, there are fewer steps, each with a point of every row. The law is `plan/cost/recurrence.py`;
    a remark gives both times. Of pairs in each other, the outermost that gains is taken. Rows with weights of their own
    that stay in order are unrolled (`tile.unroll`); so are those with encoded ones: a product takes one encoded weight.
    Rows that share all weights stay a loop: as code of their own, those of a deep network would be all of its rows.

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
    from tilewright.plan.cost.recurrence import along_diagonals, row_by_row
    from tilewright.plan.recurrences.work import work_of

    body = pair.regions[0].blocks[0].operations
    scan = body[len(body) - 2].operation  # what tile-find-pairs found stands before the yield
    work = work_of(scan)
    one, other = row_by_row(work, rows, columns, device), along_diagonals(work, rows, columns, device)
    encoded = bool(walk(pair, "sparse_tile.matmul"))
    diagonals = one >= _LEAST_GAIN * other and not encoded
    if diagonals:
        decisions.WAVEFRONT.set(pair, True)
    elif rows <= _MOST_UNROLLED and (work.own_weights or encoded):
        decisions.UNROLL.set(pair, True)
    order = f"run as {rows + columns - 1} diagonals" if diagonals else "stay row by row"
    order += " (each has an encoded weight of its own)" if encoded else ""
    times = f"{one * 1e6:.0f} us row by row, {other * 1e6:.0f} us along diagonals"
    remark(pair, f"{rows} x {columns} points of a recurrence {order}: predicted are {times}")


def _is_in_wavefront(op: ir.Operation) -> bool:
    return any(decisions.WAVEFRONT.on(above) for above in ancestors(op))
