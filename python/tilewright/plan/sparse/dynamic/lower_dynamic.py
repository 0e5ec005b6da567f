# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Lowers `sparse_tile.index`, `gather` and `scatter` to launches, where no kernel of a product has taken them in."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from tilewright.ir.generics import create
from tilewright.ir.target_info import find_device
from tilewright.ir.views import create_joined, create_split
from tilewright.mlir import ir
from tilewright.plan.sparse.dynamic.micro_tiles import flags_text, group_of, list_text
from tilewright.plan.sparse.dynamic.moves import (
    SLICES,
    WIDTH,
    gather_text,
    is_ordered,
    piece_of,
    pieces_text,
    scatter_text,
)
from tilewright.plan.sparse.forms.indices import number
from tilewright.plan.sparse.forms.making import kernel, launch


def lower_index(op: ir.Operation) -> list[ir.Value]:
    """Live micro-tiles and their counts: flags, then lists. Arrival order may be any, so it is ascending too."""
    unit = list(ir.DenseI64ArrayAttr(op.attributes["unit"]))
    return list(index_of(op.operands[0], unit, ir.IntegerAttr(op.attributes["axis"]).value))


def index_of(source: ir.Value, unit: Sequence[int], axis: int) -> tuple[ir.Value, ir.Value]:
    """`sparse_tile.index` of a tensor as launches, at the current insertion point."""
    kind, rank = ir.RankedTensorType(source.type), len(unit)
    grid = [-1 if size < 0 else -(-size // step) for size, step in zip(kind.shape, unit, strict=True)]
    flags_shape = [ceil_div(size_of(source, d), step) for d, step in enumerate(unit)]
    name = kernel(flags_text(kind.shape, str(kind.element_type), unit, grid), "live_micro_tiles")
    tasks = [*flags_shape[:-1], ceil_div(flags_shape[-1], group_of(unit))]
    (flags,) = launch(name, tasks, [source], [empty(flags_shape, ir.IntegerType.get_signless(8))])
    lists = kernel(list_text(grid, axis), "list_micro_tiles")
    i32 = ir.IntegerType.get_signless(32)
    counts = [1 if d == axis else size for d, size in enumerate(flags_shape)]
    rows = [size for d, size in enumerate(flags_shape) if d != axis] if rank > 1 else [1]
    live, count = launch(lists, rows, [flags], [empty(flags_shape, i32), empty(counts, i32)])
    return live, count


def lower_gather(op: ir.Operation) -> list[ir.Value]:
    """Slices side by side, by a kernel."""
    source, indices = op.operands
    axis, kind = ir.IntegerAttr(op.attributes["axis"]).value, ir.RankedTensorType(source.type)
    count = ir.RankedTensorType(indices.type).shape[0]
    shape = [size_of(indices, 0) if d == axis else size_of(source, d) for d in range(kind.rank)]
    if _in_pieces(op, axis):
        flat = _joined(source)
        made = empty([shape[0], ir.RankedTensorType(flat.type).shape[1]], kind.element_type)
        return [_split(_move(flat, indices, made, scatters=False), list(kind.shape)[1:])]
    name = kernel(gather_text(kind.shape, count, str(kind.element_type), axis), "gather_slices")
    tasks = [*shape[:-1], ceil_div(shape[-1], WIDTH)]
    return launch(name, tasks, [source, indices], [empty(shape, kind.element_type)])


def lower_scatter(op: ir.Operation) -> list[ir.Value]:
    """Slices at their places, by a kernel that changes what is there."""
    source, init, indices = op.operands
    axis, kind = ir.IntegerAttr(op.attributes["axis"]).value, ir.RankedTensorType(source.type)
    add = "accumulate" in op.attributes
    if not add and _in_pieces(op, axis):
        return [_split(_move(_joined(source), indices, _joined(init), scatters=True), list(kind.shape)[1:])]
    shape: list[ir.Value | int] = [size_of(source, d) for d in range(kind.rank)]
    shape[-1] = ceil_div(shape[-1], WIDTH)
    if is_ordered(kind.rank, axis, add):
        shape[axis] = 1
    text = scatter_text(kind.shape, ir.RankedTensorType(init.type).shape, str(kind.element_type), axis, add)
    return launch(kernel(text, "scatter_slices"), shape, [source, indices], [init])


def _in_pieces(op: ir.Operation, axis: int) -> bool:
    """Whether slices along an axis are moved in whole pieces, several by a task: CPUs do so."""
    slices = list(ir.RankedTensorType(op.operands[0].type).shape)[1:]
    device = find_device(op)
    if device is None or device.kind != "cpu" or axis > 0 or not slices or min(slices) < 0:
        return False
    return piece_of(prod(slices)) is not None


def _move(source: ir.Value, indices: ir.Value, result: ir.Value, scatters: bool) -> ir.Value:
    """Slices of a tensor [slices, size], moved to a result."""
    kinds = [ir.RankedTensorType(value.type) for value in (source, result)]
    text = pieces_text(kinds[0].shape, kinds[1].shape, str(kinds[0].element_type), scatters)
    piece = piece_of(kinds[0].shape[1])
    assert piece is not None
    tasks = [ceil_div(size_of(indices, 0), SLICES), kinds[0].shape[1] // piece]
    name = kernel(text, "scatter_slices" if scatters else "gather_slices")
    (moved,) = launch(name, tasks, [source, indices], [result])
    return moved


def _joined(value: ir.Value) -> ir.Value:
    """A tensor with one dimension behind the first."""
    rank = ir.RankedTensorType(value.type).rank
    return value if rank == 2 else create_joined(value, [[0], [*range(1, rank)]])


def _split(value: ir.Value, sizes: Sequence[int]) -> ir.Value:
    """A tensor whose second dimension is several again."""
    if len(sizes) == 1:
        return value
    count = size_of(value, 0)
    shape = [count if isinstance(count, int) else ir.ShapedType.get_dynamic_size(), *sizes]
    opened = [] if isinstance(count, int) else [count]
    return create_split(value, [[0], [*range(1, len(shape))]], shape, opened)


def size_of(value: ir.Value, dim: int) -> ir.Value | int:
    """The size of a tensor's dimension: a number, or a value where a run brings it."""
    size = ir.RankedTensorType(value.type).shape[dim]
    if size >= 0:
        return int(size)
    return create("tensor.dim", [value, number(dim)], ir.IndexType.get())


def ceil_div(size: ir.Value | int, step: int) -> ir.Value | int:
    """How many steps cover a size."""
    if isinstance(size, int):
        return -(-size // step)
    return size if step == 1 else create("arith.ceildivui", [size, number(step)], ir.IndexType.get())


def empty(shape: Sequence[ir.Value | int], element: ir.Type) -> ir.Value:
    """An empty tensor."""
    static = [size if isinstance(size, int) else ir.ShapedType.get_dynamic_size() for size in shape]
    opened = [size for size in shape if not isinstance(size, int)]
    return create("tensor.empty", opened, ir.RankedTensorType.get(static, element))
