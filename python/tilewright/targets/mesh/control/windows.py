# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Slices of tensors on the grid, and slices put into them: each core's own part, where no axis splits what is cut."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from tilewright.core.dtypes import of_mlir
from tilewright.dialects.coremesh import block_type
from tilewright.ir.generics import body, create, uses, walk
from tilewright.mlir import ir
from tilewright.targets.mesh.computations import KINDS
from tilewright.targets.mesh.control.loops import default_axes, kept_dims
from tilewright.targets.mesh.placement import Axes, Placement, laid_type, local

#: Bytes of a core that a tensor may take which a loop reads slice by slice; larger ones come from outside by slices.
MOST_BYTES = 8192


@dataclass(frozen=True, eq=False)
class _Cut:
    """Where a slice lies in a tensor.

    Attributes:
        offsets: numbers, or values of the host.
        kept: dimensions of the tensor that the slice has, too, in order.
        whole: dimensions of which the slice has all.
    """

    offsets: tuple[int | ir.Value, ...]
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    kept: tuple[int, ...]
    whole: frozenset[int]

    @property
    def numbers(self) -> list[ir.Value]:
        """Offsets that the host has."""
        return [one for one in self.offsets if isinstance(one, ir.Value)]


def window(op: ir.Operation, placement: Placement) -> ir.Value | None:
    """The result of a `tensor.extract_slice` or `tensor.insert_slice` on the grid; None where it stays outside."""
    is_insert = op.name == "tensor.insert_slice"
    large, small = (op.operands[1], op.operands[0]) if is_insert else (op.operands[0], op.results[0])
    cut = _cut(op, large.type, small.type, 1 + is_insert)
    if cut is None or not _comes(op, large, small if is_insert else large, placement):
        return None
    axes = _axes(large, cut, placement)
    if is_insert:
        return _inserted(small, large, cut, axes, placement)
    return _extracted(large, small.type, cut, axes, placement)


def forget_unread(function: ir.Operation) -> None:
    """Slices that are only written over need no tensor that they are cut from."""
    for op in walk(function, "tensor.extract_slice"):
        users = list(uses(op.results[0]))
        if users and all(_is_written_over(user, number) for user, number in users):
            if not ir.RankedTensorType(op.results[0].type).has_static_shape:
                continue
            with ir.InsertionPoint(op), op.location:
                empty = create("tensor.empty", [], op.results[0].type)
            for user, number in users:
                user.operands[number] = empty
            op.erase()


def _is_written_over(user: ir.Operation, number: int) -> bool:
    is_target = user.name == "linalg.generic" and number == len(user.operands) - 1 and len(user.results) == 1
    return is_target and not list(body(user).arguments[number].uses)


def _cut(op: ir.Operation, large: ir.Type, small: ir.Type, first: int) -> _Cut | None:
    lists = [list(ir.DenseI64ArrayAttr(op.attributes[f"static_{what}"])) for what in ("offsets", "sizes", "strides")]
    dynamic = ir.ShapedType.get_dynamic_size()
    kinds = [ir.RankedTensorType(kind) for kind in (large, small)]
    if not all(kind.has_static_shape for kind in kinds) or dynamic in lists[1] + lists[2]:
        return None
    if str(kinds[0].element_type) not in KINDS:
        return None
    values = iter(list(op.operands)[first:])
    offsets = tuple(next(values) if one == dynamic else one for one in lists[0])
    kept = kept_dims(lists[1], kinds[1].shape)
    ranges = zip(kinds[0].shape, offsets, lists[1], lists[2], strict=True)
    whole = {dim for dim, (size, start, count, by) in enumerate(ranges) if (start, count, by) == (0, size, 1)}
    return _Cut(offsets, tuple(lists[1]), tuple(lists[2]), kept, frozenset(whole))


def _comes(op: ir.Operation, large: ir.Value, read: ir.Value, placement: Placement) -> bool:
    """Whether a slice is cut on the grid: of what lies there, or of what loops around read bit by bit."""
    if placement.is_made(large) or placement.is_made(read):
        return True
    if not placement.depth or op.name == "tensor.insert_slice":
        return False
    home = large.owner if isinstance(large, ir.BlockArgument) else large.owner.operation.block
    kind = ir.RankedTensorType(large.type)
    count = prod(kind.shape) * of_mlir(str(kind.element_type)).itemsize
    return home != op.block and count <= MOST_BYTES * placement.side


def _axes(large: ir.Value, cut: _Cut, placement: Placement) -> Axes:
    """How the tensor that is cut lies: what the slice has only a part of is whole on each core."""
    shape = ir.RankedTensorType(large.type).shape
    if not placement.is_made(large):
        return default_axes(shape, set(range(len(shape))) - cut.whole)
    _, lies = placement.any(large)
    return tuple(axis if dim in cut.whole else "" for dim, axis in enumerate(lies))


def _extracted(large: ir.Value, small: ir.Type, cut: _Cut, axes: Axes, placement: Placement) -> ir.Value:
    source = placement.laid(large, axes)
    result = laid_type(small, tuple(axes[dim] for dim in cut.kept), placement.side)
    numbers = [placement.number(one) for one in cut.numbers]

    def compute(blocks: list[ir.Value]) -> ir.Value:
        places = [_index(one) for one in blocks[1:]]
        attributes = _attributes(cut, blocks[0]) | _segments([1, len(places), 0, 0])
        return create("tensor.extract_slice", [blocks[0], *places], block_type(result), attributes)

    return local([source, *numbers], result, compute)


def _inserted(small: ir.Value, large: ir.Value, cut: _Cut, axes: Axes, placement: Placement) -> ir.Value:
    target = placement.laid(large, axes)
    part = placement.laid(small, tuple(axes[dim] for dim in cut.kept))
    numbers = [placement.number(one) for one in cut.numbers]

    def compute(blocks: list[ir.Value]) -> ir.Value:
        places = [_index(one) for one in blocks[2:]]
        attributes = _attributes(cut, blocks[0]) | _segments([1, 1, len(places), 0, 0])
        return create("tensor.insert_slice", [blocks[1], blocks[0], *places], blocks[0].type, attributes)

    return local([target, part, *numbers], laid_type(large.type, axes, placement.side), compute)


def _index(block: ir.Value) -> ir.Value:
    """The number that a core was told."""
    index = ir.IndexType.get()
    zero = create("arith.constant", [], index, {"value": ir.IntegerAttr.get(index, 0)})
    short = create("tensor.extract", [block, zero], ir.RankedTensorType(block.type).element_type)
    return create("arith.index_cast", [short], index)


def _attributes(cut: _Cut, block: ir.Value) -> dict[str, ir.Attribute]:
    own = ir.RankedTensorType(block.type).shape
    dynamic = ir.ShapedType.get_dynamic_size()
    offsets = [dynamic if isinstance(one, ir.Value) else one for one in cut.offsets]
    sizes = [own[dim] if dim in cut.whole else size for dim, size in enumerate(cut.sizes)]
    lists = {"offsets": offsets, "sizes": sizes, "strides": list(cut.strides)}
    return {f"static_{name}": ir.DenseI64ArrayAttr.get(numbers) for name, numbers in lists.items()}


def _segments(counts: list[int]) -> dict[str, ir.Attribute]:
    return {"operandSegmentSizes": ir.DenseI32ArrayAttr.get(counts)}
