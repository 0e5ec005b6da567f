# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A convolution of all channels as a product: windows become rows of a matrix (im2col), whole or in parts."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from math import prod

from tilewright.dialects.coremesh import block_type
from tilewright.ir.generics import constant_of, create, create_fill, create_transposed, create_zero, maps
from tilewright.ir.views import consecutive, create_joined
from tilewright.mlir import ir
from tilewright.mlir.dialects import coremesh as ops
from tilewright.targets.mesh.cutting.parts import Parts, Span, length, spans
from tilewright.targets.mesh.elementwise import lies
from tilewright.targets.mesh.images.on_grid import bordered, widened
from tilewright.targets.mesh.images.plan import Roles, roles_of
from tilewright.targets.mesh.images.windows import Windows, starts_from
from tilewright.targets.mesh.placement import Placement, before_users, laid_type, local
from tilewright.targets.mesh.slices import added, concatenated, cut_whole, expanded, inserted, joined, places


def as_product(op: ir.Operation, found: Windows, loops: Sequence[str], placement: Placement) -> ir.Value:
    """The result of a convolution of all channels."""
    result = laid_type(op.results[0].type, lies(maps(op)[-1], loops), placement.side)
    block = ir.RankedTensorType(block_type(result))
    made = _Product(op, found, block, placement).made()
    groups = [[*range(block.rank - 1)], [block.rank - 1]]
    total = local([made], result, lambda blocks: expanded(blocks[0], list(block.shape), groups))
    start = starts_from(op)
    if start is not None and start.name == "linalg.fill" and constant_of(start.operands[0]) == 0:
        return total
    return added(total, placement.laid(op.operands[len(op.operands) - 1], lies(maps(op)[-1], loops)))


class _Product:
    """Windows by filters, in the parts that the op says: along rows, places of a window, columns.

    Args:
        block: what a core makes.
    """

    def __init__(self, op: ir.Operation, found: Windows, block: ir.RankedTensorType, placement: Placement) -> None:
        roles = roles_of(op, found)
        assert roles is not None
        self.op, self.found, self.roles, self.block, self.placement = op, found, roles, block, placement
        self.side, self.rows, self.columns = placement.side, prod(block.shape[:-1]), found.sizes[roles.columns]
        self.axes, self.taps = roles.axes(found), _taps(roles, found.sizes)
        parts = Parts.of(op)
        self.row_spans = spans(self.side * self.rows, self.side, parts.m)
        self.tap_spans = spans(len(self.taps), 1, parts.k)
        self.column_spans = spans(self.columns, self.side, parts.n)
        value = op.operands[roles.filter]
        with before_users(value):
            filters = _filters(op, found, roles, placement)
            self.filters = {
                (taps, columns): self._placed(filters, taps, columns)
                for taps in self.tap_spans
                for columns in self.column_spans
            }

    def made(self) -> ir.Value:
        """The result, a matrix [places, channels]."""
        image = widened(self.op, self.found, self.roles.image, self.axes, self.placement)
        strips = [self._strip(image, rows) for rows in self.row_spans]
        return strips[0] if len(strips) == 1 else joined(strips, self._kind(None, None), 0)

    def _strip(self, image: ir.Value, rows: Span) -> ir.Value:
        """Some rows of each core: windows of a few places at a time, which all columns read."""
        sums: dict[Span, ir.Value] = {}
        for taps in self.tap_spans:
            windows = self._windows(image, rows, taps)
            for columns in self.column_spans:
                made = self._multiplied(windows, self.filters[taps, columns], self._kind(rows, columns))
                sums[columns] = added(sums[columns], made) if columns in sums else made
        parts = list(sums.values())
        return parts[0] if len(parts) == 1 else joined(parts, self._kind(rows, None), 1)

    def _windows(self, image: ir.Value, rows: Span, taps: Span) -> ir.Value:
        first, count = (0, len(self.taps)) if taps is None else taps
        channels = -(-self.found.sizes[self.roles.summed] // self.side)
        own = self.rows if rows is None else rows[1]
        element = ir.RankedTensorType(image.type).element_type
        shape = ir.RankedTensorType.get([self.side * own, self.side * count * channels], element)

        def unfold(blocks: list[ir.Value]) -> ir.Value:
            whole = bordered(self.op, self.found, self.roles.image, self.axes, blocks[0])
            read = [_tap(whole, self.found, self.roles, at, self.block) for at in self.taps[first : first + count]]
            return concatenated([one if rows is None else _rows(one, rows) for one in read], 1)

        return local([image], laid_type(shape, ("y", "x"), self.side), unfold)

    def _placed(self, filters: ir.Value, taps: Span, columns: Span) -> ir.Value:
        matrix = _matrix(filters, taps)
        matrix = matrix if columns is None else cut_whole(matrix, 1, columns, self.side)
        return self.placement.laid(matrix, ("y skew", "x"))

    def _multiplied(self, windows: ir.Value, filters: ir.Value, kind: ir.RankedTensorType) -> ir.Value:
        i32 = ir.IntegerType.get_signless(32)
        algorithm = {"algorithm": ir.IntegerAttr.get(i32, int(ops.Gemm.meshgemm))}
        return create("coremesh.gemm", [windows, filters], kind, algorithm)

    def _kind(self, rows: Span, columns: Span) -> ir.RankedTensorType:
        shape = [self.side * (self.rows if rows is None else rows[1]), length(self.columns, self.side, columns)]
        return laid_type(ir.RankedTensorType.get(shape, self.block.element_type), ("y", "x"), self.side)


def _taps(roles: Roles, sizes: Sequence[int]) -> list[dict[int, int]]:
    """Places of a window, as indices of its loops."""
    ranges = itertools.product(*(range(sizes[loop]) for loop in roles.kernel))
    return [dict(zip(roles.kernel, at, strict=True)) for at in ranges]


def _tap(whole: ir.Value, found: Windows, roles: Roles, at: dict[int, int], block: ir.RankedTensorType) -> ir.Value:
    """What one place of all windows of a core reads, a matrix [rows, channels]."""
    kind, dims = ir.RankedTensorType(whole.type), found.operands[roles.image]
    axes, out = roles.axes(found), found.out
    offsets, counts, steps = [], [], []
    for dim, how in enumerate(dims):
        is_channel = how.loop is None and [loop for loop, _ in how.kernel] == [roles.summed]
        place = sum(at.get(loop, 0) * dilation for loop, dilation in how.kernel)
        offsets.append(0 if is_channel else place if axes[dim] else place + how.first)
        own = 1 if how.loop is None else block.shape[out.index(how.loop)]
        counts.append(kind.shape[dim] if is_channel else own)
        steps.append(1 if is_channel else how.stride)
    shape = ir.RankedTensorType.get(counts, kind.element_type)
    part = create("tensor.extract_slice", [whole], shape, places(offsets, counts, [1, 0, 0, 0], steps))
    order = sorted(range(len(dims)), key=lambda dim: _rank(dims[dim].loop, out, roles, dims[dim].kernel))
    part = part if order == list(range(len(dims))) else create_transposed(part, order)
    return _collapsed(part, 2)


def _rank(loop: int | None, out: list[int], roles: Roles, kernel: tuple[tuple[int, int], ...]) -> int:
    """Where a dimension of the image stands in a matrix of windows: places as in the result, channels last."""
    if loop is not None:
        return out.index(loop)
    return len(out) if [own for own, _ in kernel] == [roles.summed] else -1


def _collapsed(value: ir.Value, rank: int) -> ir.Value:
    """A tensor whose first dimensions become one, so that so many are left."""
    first = ir.RankedTensorType(value.type).rank - rank + 1
    return value if first == 1 else create_joined(value, consecutive([first, *[1] * (rank - 1)]))


def _rows(matrix: ir.Value, span: tuple[int, int]) -> ir.Value:
    """Some rows of a matrix."""
    kind = ir.RankedTensorType(matrix.type)
    shape = ir.RankedTensorType.get([span[1], kind.shape[1]], kind.element_type)
    return create("tensor.extract_slice", [matrix], shape, places([span[0], 0], list(shape.shape), [1, 0, 0, 0]))


def _filters(op: ir.Operation, found: Windows, roles: Roles, placement: Placement) -> ir.Value:
    """The filters as [places of a window, cores, channels of a core, columns], outside of the grid."""
    value, side, sizes = op.operands[roles.filter], placement.side, found.sizes
    dims = [dim.kernel[0][0] if dim.loop is None else dim.loop for dim in found.operands[roles.filter]]
    wanted = [*roles.kernel, roles.summed, roles.columns]
    order = [dims.index(loop) for loop in wanted]
    value = placement.outside(value, "its windows are rows of a matrix")
    value = value if order == list(range(len(order))) else create_transposed(value, order)
    element = ir.RankedTensorType(value.type).element_type
    taps, channels, columns = roles.taps(sizes), sizes[roles.summed], sizes[roles.columns]
    part = -(-channels // side)
    if roles.kernel:
        value = _collapsed(value, 3)
    else:
        value = expanded(value, [1, channels, columns], [[0, 1], [2]])
    if part * side != channels:
        empty = create("tensor.empty", [], ir.RankedTensorType.get([taps, part * side, columns], element))
        value = inserted(value, create_fill(create_zero(element), empty), {})
    return expanded(value, [taps, side, part, columns], [[0], [1, 2], [3]])


def _matrix(filters: ir.Value, taps: Span) -> ir.Value:
    """Filters of some places as a matrix whose blocks of rows are those of cores' channels, place by place."""
    kind = ir.RankedTensorType(filters.type)
    shape = list(kind.shape)
    if taps is not None:
        shape[0] = taps[1]
        part = ir.RankedTensorType.get(shape, kind.element_type)
        where = places([taps[0], 0, 0, 0], shape, [1, 0, 0, 0])
        filters = create("tensor.extract_slice", [filters], part, where)
    return _collapsed(create_transposed(filters, [1, 0, 2, 3]), 2)
