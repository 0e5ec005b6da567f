# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products on a grid: one collective for each of a batch."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.core.errors import UserError
from tilewright.dialects.coremesh import Layout
from tilewright.ir.generics import create, maps
from tilewright.mlir import ir
from tilewright.mlir.dialects import coremesh as ops
from tilewright.targets.mesh.computations import Product, dims, loop_sizes
from tilewright.targets.mesh.cutting.parts import Parts, Span, length, spans
from tilewright.targets.mesh.elementwise import lies
from tilewright.targets.mesh.placement import Axes, Placement, laid_type
from tilewright.targets.mesh.slices import added, cut_blocks, cut_whole, extracted, joined, sliced, stacked


@dataclass(frozen=True, eq=False)
class Operand:
    """An operand.

    Attributes:
        value: on the grid; weights outside of it, so that they come in part by part.
        axes: how it lies, or is to lie, on the grid.
        loops: along its dimensions; None where one index is always read.
        always: that index, by dimension.
    """

    value: ir.Value
    axes: Axes
    loops: tuple[int | None, ...]
    always: dict[int, int]

    def part(
        self, at: dict[int, int], cut: dict[int, Span], kept: dict[object, ir.Value], where: Placement
    ) -> ir.Value:
        """Its slice at indices of batch loops, and parts of others, on the grid; what was cut once is kept."""
        own = {self.loops.index(loop): index for loop, index in at.items() if loop in self.loops} | self.always
        dims_left = [loop for dim, loop in enumerate(self.loops) if dim not in own]
        spans = {dims_left.index(loop): span for loop, span in cut.items() if loop in dims_left and span is not None}
        key = (self.value, tuple(sorted(own.items())), tuple(sorted(spans.items())))
        if key not in kept:
            kept[key] = self._cut(own, spans, where)
        return kept[key]

    def _cut(self, own: dict[int, int], spans: dict[int, tuple[int, int]], where: Placement) -> ir.Value:
        if Layout.of(self.value.type) is not None:
            value = extracted(self.value, own, where.side) if own else self.value
            return cut_blocks(value, spans, where.side) if spans else value
        value = sliced(self.value, own) if own else self.value
        kept = [dim for dim in range(len(self.axes)) if dim not in own]
        for dim, span in spans.items():
            value = cut_whole(value, dim, span, where.side if self.axes[kept[dim]] else 1)
        return where.laid(value, tuple(self.axes[dim] for dim in kept))


def product(op: ir.Operation, found: Product, algorithm: str, loops: Sequence[str], placement: Placement) -> ir.Value:
    """The result of a generic that multiplies, on the grid.

    Args:
        algorithm: ``gemv``, also for a few rows, which each core has; ``meshgemm``; ``gemm_t``.
        loops: the axis along each, as far as the result lies along it.
    """
    out, sizes = [loop for loop in dims(maps(op)[-1]) if loop is not None], loop_sizes(op)
    batch = [loop for loop in out if loop in found.batch]
    inner = [loop for loop in out if loop not in batch]
    one = _One(op, found, algorithm, loops, placement, inner)
    indices = itertools.product(*(range(sizes[loop]) for loop in batch))
    made = one.of([dict(zip(batch, at, strict=True)) for at in indices])
    return whole(op, found, made, batch, loops, placement)


def whole(
    op: ir.Operation,
    found: Product,
    made: Sequence[ir.Value],
    batch: Sequence[int],
    loops: Sequence[str],
    placement: Placement,
) -> ir.Value:
    """The result, of products for each index of the batch, and of what their sums start from."""
    out = [loop for loop in dims(maps(op)[-1]) if loop is not None]
    axes = lies(maps(op)[-1], loops)
    kind = laid_type(op.results[0].type, axes, placement.side)
    total = stacked(made, kind, [out.index(loop) for loop in batch]) if batch else made[0]
    return added(total, placement.laid(op.operands[2], axes)) if found.starts else total


class _One:
    """One product of a batch, in parts.

    Args:
        inner: loops of its result.
    """

    def __init__(
        self,
        op: ir.Operation,
        found: Product,
        algorithm: str,
        loops: Sequence[str],
        placement: Placement,
        inner: list[int],
    ) -> None:
        self.algorithm, self.placement, self.inner = algorithm, placement, inner
        self.axes = tuple(loops[loop] for loop in inner)
        self.element = ir.RankedTensorType(op.results[0].type).element_type
        self.operands = _operands(op, found, algorithm, loops, placement)
        self.sizes, parts = loop_sizes(op), Parts.of(op)
        self.cuts = {found.summed: parts.k, found.columns: parts.n}
        self.cores = dict.fromkeys(self.cuts, placement.side)
        if found.rows is not None:
            self.cuts[found.rows], self.cores[found.rows] = parts.m, 1 if algorithm == "gemv" else placement.side
        self.summed = found.summed
        self.kept: dict[object, ir.Value] = {}

    def of(self, batch: list[dict[int, int]]) -> list[ir.Value]:
        """The results at indices of the batch: a part of weights comes in once for all of them."""
        strips = [self._strips(batch, span) for span in self._spans(self.inner[-1])]
        whole: dict[int, Span] = dict.fromkeys(self.inner)
        return [self._joined(list(own), whole, len(self.inner) - 1) for own in zip(*strips, strict=True)]

    def _strips(self, batch: list[dict[int, int]], columns: Span) -> list[ir.Value]:
        """All rows of some columns, per index of the batch."""
        rows = self._spans(self.inner[0]) if len(self.inner) > 1 else [columns]
        pieces = [(at, dict(zip(self.inner, self._at(row, columns), strict=True))) for at in batch for row in rows]
        made: list[ir.Value] = []
        for depth in self._spans(self.summed):
            terms = [self._term(at, result, depth) for at, result in pieces]
            made = [added(*pair) for pair in zip(made, terms, strict=True)] if made else terms
        strip = dict(zip(self.inner, self._at(None, columns), strict=True))
        return [self._joined(made[at : at + len(rows)], strip, 0) for at in range(0, len(made), len(rows))]

    def _at(self, row: Span, columns: Span) -> tuple[Span, ...]:
        return (row, columns) if len(self.inner) > 1 else (columns,)

    def _term(self, batch: dict[int, int], result: dict[int, Span], depth: Span) -> ir.Value:
        cut = {**result, self.summed: depth}
        pair = [one.part(batch, cut, self.kept, self.placement) for one in self.operands]
        return _multiplied(pair, self._kind(result), self.algorithm)

    def _joined(self, parts: list[ir.Value], result: dict[int, Span], dim: int) -> ir.Value:
        return parts[0] if len(parts) == 1 else joined(parts, self._kind(result), dim)

    def _kind(self, result: dict[int, Span]) -> ir.RankedTensorType:
        shape = [length(self.sizes[loop], self.cores[loop], result[loop]) for loop in self.inner]
        return laid_type(ir.RankedTensorType.get(shape, self.element), self.axes, self.placement.side)

    def _spans(self, loop: int) -> list[Span]:
        return spans(self.sizes[loop], self.cores[loop], self.cuts[loop])


def _operands(
    op: ir.Operation, found: Product, algorithm: str, loops: Sequence[str], placement: Placement
) -> tuple[Operand, Operand]:
    summed, columns, rows = found.summed, found.columns, found.rows
    if algorithm == "gemv":
        axis = loops[summed]
        of_left, of_right = {summed: axis}, {summed: axis, columns: loops[columns]}
        orders = [[summed] if rows is None else [rows, summed], [summed, columns]]
    else:
        assert rows is not None
        skew = " skew" if placement.fixed(op.operands[found.right]) and algorithm == "meshgemm" else ""
        of_left = {rows: "y", summed: "x" + (" skew" if placement.fixed(op.operands[found.left]) and skew else "")}
        of_right = {summed: "y" + skew, columns: "x"}
        orders = [[rows, summed], [summed, columns]]
        if algorithm == "gemm_t":
            of_right, orders[1] = {columns: "y", summed: "x"}, [columns, summed]
    numbers = (found.left, found.right)
    made = [
        operand(op, number, order, axes, placement)
        for number, order, axes in zip(numbers, orders, (of_left, of_right), strict=True)
    ]
    return made[0], made[1]


def operand(op: ir.Operation, number: int, order: Sequence[int], axes: dict[int, str], placement: Placement) -> Operand:
    """An operand with two of its loops in this order; transposed where it has them in the other one."""
    read = maps(op)[number]
    have = dims(read)
    turn = list(range(len(have)))
    for place, loop in zip(sorted(have.index(loop) for loop in order), order, strict=True):
        turn[place] = have.index(loop)
    wanted = [have[at] for at in turn]
    lie = tuple("" if loop is None else axes.get(loop, "") for loop in wanted)
    always = {place: ir.AffineConstantExpr(read.results[at]).value for place, at in enumerate(turn) if have[at] is None}
    value = placement.transposed(op.operands[number], turn, lie)
    if not placement.fixed(op.operands[number]):
        value = placement.laid(value, lie)
    return Operand(value, lie, tuple(wanted), always)


def _multiplied(pair: list[ir.Value], kind: ir.Type, algorithm: str) -> ir.Value:
    if algorithm not in ("gemv", "meshgemm", "gemm_t"):
        raise UserError(f"coremesh.algorithm is '{algorithm}': use gemv, meshgemm or gemm_t")
    if algorithm == "gemm_t":
        return create("coremesh.gemm_t", pair, kind)
    i32 = ir.IntegerType.get_signless(32)
    chosen = ops.Gemm.meshgemm if algorithm == "meshgemm" else ops.Algorithm.chain
    attributes = {"algorithm": ir.IntegerAttr.get(i32, int(chosen))}
    return create("coremesh.gemm" if algorithm == "meshgemm" else "coremesh.gemv", pair, kind, attributes)
