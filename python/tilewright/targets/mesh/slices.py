# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of tensors on a grid, along dimensions that no axis splits: each core cuts and joins its own blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.dialects.coremesh import block_type
from tilewright.ir.generics import create, create_fill, create_generic, create_zero
from tilewright.mlir import ir
from tilewright.targets.mesh.attributes import number
from tilewright.targets.mesh.placement import axes_of, empty_block, laid_type, local


def extracted(value: ir.Value, at: Mapping[int, int], side: int) -> ir.Value:
    """The part of a value on a grid at an index along each of some dimensions, which it no longer has."""
    kind, axes = ir.RankedTensorType(value.type), axes_of(value)
    kept = [dim for dim in range(kind.rank) if dim not in at]
    shape = ir.RankedTensorType.get([kind.shape[dim] for dim in kept], kind.element_type)
    result = laid_type(shape, tuple(axes[dim] for dim in kept), side)
    return local([value], result, lambda blocks: sliced(blocks[0], at))


def sliced(value: ir.Value, at: Mapping[int, int]) -> ir.Value:
    """The part of a tensor at an index along each of some dimensions, which it no longer has."""
    kind = ir.RankedTensorType(value.type)
    result = [size for dim, size in enumerate(kind.shape) if dim not in at]
    return _slice(value, result, {dim: (index, 1) for dim, index in at.items()})


def cut_blocks(value: ir.Value, spans: Mapping[int, tuple[int, int]], side: int) -> ir.Value:
    """The same elements of each block of a value on a grid: where they begin and how many, by dimension."""
    kind, axes = ir.RankedTensorType(value.type), axes_of(value)
    cores = [side if axis else 1 for axis in axes]
    shape = [cores[dim] * spans[dim][1] if dim in spans else size for dim, size in enumerate(kind.shape)]
    result = laid_type(ir.RankedTensorType.get(shape, kind.element_type), axes, side)
    block = list(ir.RankedTensorType(block_type(result)).shape)
    return local([value], result, lambda blocks: _slice(blocks[0], block, spans))


def cut_whole(value: ir.Value, dim: int, span: tuple[int, int], side: int) -> ir.Value:
    """What `cut_blocks` is, of a tensor outside of the grid, along one dimension; zeros are behind its end.

    Args:
        side: cores among which the dimension is split.
    """
    kind = ir.RankedTensorType(value.type)
    shape, block = list(kind.shape), -(-kind.shape[dim] // side)
    whole = [side * block if at == dim else size for at, size in enumerate(shape)]
    if whole != shape:
        zeros = create_fill(create_zero(kind.element_type), _empty(whole, kind))
        value = inserted(value, zeros, {})
    groups = [[at] if at < dim else [dim, dim + 1] if at == dim else [at + 1] for at in range(kind.rank)]
    value = expanded(value, [*shape[:dim], side, block, *shape[dim + 1 :]], groups)
    start, count = span
    value = _slice(value, [*shape[:dim], side, count, *shape[dim + 1 :]], {dim + 1: (start, count)})
    result = ir.RankedTensorType.get([*shape[:dim], side * count, *shape[dim + 1 :]], kind.element_type)
    reassociation = ir.ArrayAttr.get([ir.ArrayAttr.get(list(map(number, group))) for group in groups])
    return create("tensor.collapse_shape", [value], result, {"reassociation": reassociation})


def inserted(part: ir.Value, whole: ir.Value, at: Mapping[int, int]) -> ir.Value:
    """A tensor with a part of it replaced, which begins at these indices, by dimension."""
    kind = ir.RankedTensorType(part.type)
    attributes = places([at.get(dim, 0) for dim in range(kind.rank)], list(kind.shape), [1, 1, 0, 0, 0])
    return create("tensor.insert_slice", [part, whole], whole.type, attributes)


def joined(parts: Sequence[ir.Value], result: ir.RankedTensorType, dim: int) -> ir.Value:
    """Values on a grid whose blocks become one along a dimension."""
    return local(list(parts), result, lambda blocks: concatenated(blocks, dim))


def added(left: ir.Value, right: ir.Value) -> ir.Value:
    """The sum of two values that lie alike on a grid."""
    kind = ir.RankedTensorType(left.type)
    same = ir.AffineMap.get_identity(kind.rank)

    def compute(blocks: list[ir.Value]) -> ir.Value:
        pairs = [(block, same) for block in blocks]
        return create_generic(pairs, empty_block(kind), same, [False] * kind.rank, _sum)

    return local([left, right], kind, compute)


def _sum(elements: list[ir.Value]) -> ir.Value:
    kind = elements[0].type
    return create("arith.addf" if isinstance(kind, ir.FloatType) else "arith.addi", elements[:2], kind)


def _slice(value: ir.Value, result: Sequence[int], spans: Mapping[int, tuple[int, int]]) -> ir.Value:
    """A slice of a tensor, as a tensor of this shape."""
    kind = ir.RankedTensorType(value.type)
    offsets = [spans[dim][0] if dim in spans else 0 for dim in range(kind.rank)]
    sizes = [spans[dim][1] if dim in spans else size for dim, size in enumerate(kind.shape)]
    made = ir.RankedTensorType.get(list(result), kind.element_type)
    return create("tensor.extract_slice", [value], made, places(offsets, sizes, [1, 0, 0, 0]))


def places(
    offsets: Sequence[int], sizes: Sequence[int], segments: Sequence[int], steps: Sequence[int] | None = None
) -> dict[str, ir.Attribute]:
    """Attributes of an op on slices; steps of 1 where none are given."""
    numbers = ir.DenseI64ArrayAttr.get
    return {
        "static_offsets": numbers(list(offsets)),
        "static_sizes": numbers(list(sizes)),
        "static_strides": numbers(steps or [1] * len(offsets)),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get(list(segments)),
    }


def _empty(shape: Sequence[int], like: ir.RankedTensorType) -> ir.Value:
    return create("tensor.empty", [], ir.RankedTensorType.get(list(shape), like.element_type))


def stacked(parts: Sequence[ir.Value], result: ir.RankedTensorType, dims: Sequence[int]) -> ir.Value:
    """Parts joined along new dimensions.

    Args:
        parts: one for each index of the new dimensions, the last of which runs fastest.
        dims: of the result.
    """
    block = ir.RankedTensorType(block_type(result))

    def compute(blocks: list[ir.Value]) -> ir.Value:
        wide = [_with_units(one, block, dims) for one in blocks]
        for dim in reversed(dims):
            count = block.shape[dim]
            wide = [concatenated(wide[at : at + count], dim) for at in range(0, len(wide), count)]
        (made,) = wide
        return made

    return local(parts, result, compute)


def _with_units(part: ir.Value, block: ir.RankedTensorType, dims: Sequence[int]) -> ir.Value:
    """A part with a dimension of size 1 for each that is new."""
    shape = [1 if dim in dims else size for dim, size in enumerate(block.shape)]
    groups: list[list[int]] = [[]]
    for dim in range(block.rank):
        groups[-1].append(dim)
        if dim not in dims:
            groups.append([])
    trailing = groups.pop()
    groups[-1] += trailing
    return expanded(part, shape, groups)


def expanded(value: ir.Value, shape: Sequence[int], groups: Sequence[Sequence[int]]) -> ir.Value:
    """A tensor of known size with more dimensions, at the current insertion point."""
    attributes = {
        "reassociation": ir.ArrayAttr.get([ir.ArrayAttr.get(list(map(number, group))) for group in groups]),
        "static_output_shape": ir.DenseI64ArrayAttr.get(list(shape)),
    }
    kind = ir.RankedTensorType.get(list(shape), ir.RankedTensorType(value.type).element_type)
    return create("tensor.expand_shape", [value], kind, attributes)


def concatenated(parts: Sequence[ir.Value], dim: int) -> ir.Value:
    """Blocks of a core as one along a dimension."""
    if len(parts) == 1:
        return parts[0]
    kind = ir.RankedTensorType(parts[0].type)
    shape = list(kind.shape)
    shape[dim] = sum(ir.RankedTensorType(part.type).shape[dim] for part in parts)
    return create("tensor.concat", list(parts), ir.RankedTensorType.get(shape, kind.element_type), {"dim": number(dim)})
