# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decides in which order the dimensions of intermediate tensors lie (`tile.order`).

The last dimension of a contraction's result runs along the lanes of vectors, and so does what reads it. Which one that
is, is free where only generics see the tensor: the one is chosen for which the fewest bytes are read against their
order, since these are transposed in registers, each time that a task reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import ceil, prod
from typing import ClassVar

from tilewright.ir import decisions
from tilewright.ir.generics import place_of
from tilewright.ir.structure import Access, Kind, LinalgOp, Weights, blocks, linalg_ops, set_attribute, sizes_of
from tilewright.mlir import ir
from tilewright.passes import Pass, register
from tilewright.plan.model.traffic import tensor_bytes

#: Rows that a task is expected to take: what it reads for all rows is read again for each that many.
_ROWS = 64


@dataclass
class Sheet:
    """A contraction's result and all tensors that elementwise operations make of it, point by point."""

    root: LinalgOp
    #: per operation that makes a tensor of the sheet: for each of its loops the dimension of the root's result
    makers: dict[LinalgOp, dict[int, int]]
    #: operations that read a tensor of the sheet and make none: reductions and contractions, with the same
    readers: list[tuple[LinalgOp, Access, dict[int, int]]]

    @property
    def extents(self) -> list[int]:
        """Sizes of the root's result."""
        return sizes_of(self.root.result)

    @property
    def reduced(self) -> set[int]:
        """Dimensions along which some reader reduces: a task holds them whole."""
        return {dims[d] for op, _, dims in self.readers for d in op.reductions if d in dims}


class Sheets:
    """Finds the sheets of a block; those that share a tensor with one before are left out."""

    def __init__(self, ops: list[LinalgOp]) -> None:
        self._contractions = [op for op in ops if op.kind is Kind.CONTRACTION]
        self._readers: dict[LinalgOp, list[tuple[LinalgOp, Access]]] = {}
        #: operations whose results keep their order
        self._fixed: set[LinalgOp] = set()
        of = {op.op: op for op in ops}
        for op in reversed(ops):
            self._look(op, of)

    def __iter__(self) -> Iterator[Sheet]:
        for root in self._contractions:
            sheet = None if root in self._fixed else self._grow(root)
            if sheet is not None:
                self._fixed |= sheet.makers.keys()
                yield sheet

    def _look(self, op: LinalgOp, of: dict[ir.Operation, LinalgOp]) -> None:
        """Take note of who reads a result, all later operations being known."""
        self._readers[op] = []
        if place_of(op.op) is None:
            self._fixed.add(op)  # adds to what is there, in its order
            return
        for use in op.result.uses:
            reader = of.get(use.owner.operation)
            if reader is None or use.operand_number >= len(reader.inputs):
                self._fixed.add(op)  # seen by something else
                return
            access = reader.inputs[use.operand_number]
            if None in access.dims or (reader.kind is Kind.ELEMENTWISE and self._keeps(reader, access)):
                self._fixed.add(op)
                return
            self._readers[op].append((reader, access))

    def _keeps(self, reader: LinalgOp, access: Access) -> bool:
        """Whether an elementwise operation asks for the order that its input lies in."""
        return reader in self._fixed or len(set(access.dims)) != reader.rank

    def _grow(self, root: LinalgOp) -> Sheet | None:
        if None in root.output.dims:
            return None
        sheet = Sheet(root, {root: _dims(root.output, range(len(root.output.dims)))}, [])
        todo = [root]
        while todo:
            maker = todo.pop()
            made = [sheet.makers[maker][d] for d in maker.output.dims if d is not None]
            for reader, access in self._readers[maker]:
                if reader in self._fixed and reader.kind is Kind.ELEMENTWISE:
                    return None  # of another sheet
                if not self._read(sheet, reader, access, _dims(access, made), todo):
                    return None
        return sheet if sheet.readers else None

    @staticmethod
    def _read(sheet: Sheet, reader: LinalgOp, access: Access, dims: dict[int, int], todo: list[LinalgOp]) -> bool:
        """Takes note of one reader; whether the sheet may still be stored in any order."""
        if reader.kind is not Kind.ELEMENTWISE:
            sheet.readers.append((reader, access, dims))
            return True
        known = sheet.makers.get(reader)
        if known is None:
            sheet.makers[reader] = dims
            todo.append(reader)
        return known is None or known == dims


def _dims(access: Access, dims: Iterable[int]) -> dict[int, int]:
    return {loop: d for loop, d in zip(access.dims, dims, strict=True) if loop is not None}


def against_order(sheet: Sheet, lane: int, weights: Weights) -> int:
    """Bytes that are read against their order where dimension `lane` of the sheet is the last one.

    What a task reads for all rows that it takes is counted once per task.
    """
    total = 0
    whole, own = sheet.reduced, {m.result for m in sheet.makers}
    blocks_along = [1 if d in whole or d == lane else ceil(e / _ROWS) for d, e in enumerate(sheet.extents)]
    for op, dims in sheet.makers.items():
        loops = {d: loop for loop, d in dims.items()}
        for access in op.inputs:
            if access.value in own or weights.only(access.value):
                continue
            if loops[lane] not in access.loops or access.dims[-1] == loops[lane]:
                continue
            again = prod(n for d, n in enumerate(blocks_along) if loops[d] not in access.loops)
            total += tensor_bytes(access.value) * again
    for op, _, dims in sheet.readers:
        if op.kind is Kind.CONTRACTION and op.output.dims[-1] in dims and dims[op.output.dims[-1]] != lane:
            total += tensor_bytes(sheet.root.result)
    return total


@register
@dataclass(frozen=True)
class PlanOrders(Pass):
    """Decide in which order results are stored that only kernels see (`tile.order`).

    In the example the scores are stored by keys first: then queries lie along the lanes, keys are read as they are,
    and the maximum over keys needs no exchange between lanes.

    Before:
    ```mlir
    #q = affine_map<(i, j, k) -> (i, k)>
    #k = affine_map<(i, j, k) -> (j, k)>
    #s = affine_map<(i, j, k) -> (i, j)>
    #id = affine_map<(i, j) -> (i, j)>
    #row = affine_map<(i, j) -> (i)>
    func.func @main(%q: tensor<512x64xf32>, %k: tensor<512x64xf32>) -> tensor<512xf32> {
      %zero = arith.constant 0.0 : f32
      %low = arith.constant 0xFF800000 : f32
      %e = tensor.empty() : tensor<512x512xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512x512xf32>) -> tensor<512x512xf32>
      %s = linalg.generic {indexing_maps = [#q, #k, #s], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%q, %k : tensor<512x64xf32>, tensor<512x64xf32>) outs(%f : tensor<512x512xf32>) {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %p = arith.mulf %a, %b : f32
        %t = arith.addf %o, %p : f32
        linalg.yield %t : f32
      } -> tensor<512x512xf32>
      %g = tensor.empty() : tensor<512xf32>
      %h = linalg.fill ins(%low : f32) outs(%g : tensor<512xf32>) -> tensor<512xf32>
      %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
          ins(%s : tensor<512x512xf32>) outs(%h : tensor<512xf32>) {
      ^bb0(%a: f32, %o: f32):
        %t = arith.maximumf %o, %a : f32
        linalg.yield %t : f32
      } -> tensor<512xf32>
      return %m : tensor<512xf32>
    }
    ```
    After:
    ```mlir
    %s = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%q, %k : tensor<512x64xf32>, tensor<512x64xf32>) outs(%f : tensor<512x512xf32>)
        attrs = {tile.order = array<i64: 1, 0>} {
    ```
    """

    name: ClassVar[str] = "tile-plan-orders"
    dialects: ClassVar[tuple[str, ...]] = ("tile",)

    def run(self, op: ir.Operation) -> None:
        """Order each sheet."""
        weights = Weights()
        for block in blocks(op):
            for sheet in Sheets(linalg_ops(block, weights)):
                self._order(sheet, weights)

    @staticmethod
    def _order(sheet: Sheet, weights: Weights) -> None:
        rank = len(sheet.extents)
        current = rank - 1
        shared = [set(a.loops) for a in sheet.root.inputs]
        choices = [
            d
            for d, loop in enumerate(sheet.root.output.dims)
            if sheet.extents[d] > 1 and not all(loop in loops for loops in shared)
        ]
        if current not in choices:
            return
        best = min(choices, key=lambda d: (against_order(sheet, d, weights), d != current))
        if best == current:
            return
        for op, dims in sheet.makers.items():
            made = [dims[d] for d in op.output.dims if d is not None]
            at = made.index(best)
            order = [*(t for t in range(rank) if t != at), at]
            decisions.ORDER.set(op.op, order)
            if op is not sheet.root:
                _lay_out_weights(op, {d: loop for loop, d in dims.items()}[best], weights)


def _lay_out_weights(op: LinalgOp, lane: int, weights: Weights) -> None:
    """Weights that an elementwise operation would read against the order are laid out anew at compile time."""
    kinds = ["unit"] * len(op.inputs)
    for number, access in enumerate(op.inputs):
        if lane not in access.dims or access.dims[-1] == lane or not weights.only(access.value):
            continue
        at = access.dims.index(lane)
        perm = [*(t for t in range(len(access.dims)) if t != at), at]
        kinds[number] = f"#tile.layout<perm = {perm}>"
    if any(kind != "unit" for kind in kinds):
        set_attribute(op.op, decisions.LAYOUTS, f"[{', '.join(kinds)}]")
