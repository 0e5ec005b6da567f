# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts of tensors on a grid, along dimensions that no axis splits: each core cuts and joins its own blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilewright.dialects.coremesh import block_type
from tilewright.ir.generics import create
from tilewright.mlir import ir
from tilewright.targets.mesh.attributes import number
from tilewright.targets.mesh.placement import axes_of, laid_type, local


def extracted(value: ir.Value, at: Mapping[int, int], side: int) -> ir.Value:
    """The part at an index along each of some dimensions, which it no longer has."""
    kind = ir.RankedTensorType(value.type)
    kept = [dim for dim in range(kind.rank) if dim not in at]
    axes = axes_of(value)
    shape = ir.RankedTensorType.get([kind.shape[dim] for dim in kept], kind.element_type)
    result = laid_type(shape, tuple(axes[dim] for dim in kept), side)
    block = ir.RankedTensorType(block_type(value.type))
    numbers = ir.DenseI64ArrayAttr.get
    attributes = {
        "static_offsets": numbers([at.get(dim, 0) for dim in range(kind.rank)]),
        "static_sizes": numbers([1 if dim in at else size for dim, size in enumerate(block.shape)]),
        "static_strides": numbers([1] * kind.rank),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
    }
    return local([value], result, lambda blocks: create("tensor.extract_slice", blocks, block_type(result), attributes))


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
            wide = [_joined(wide[at : at + count], dim) for at in range(0, len(wide), count)]
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


def _joined(parts: Sequence[ir.Value], dim: int) -> ir.Value:
    if len(parts) == 1:
        return parts[0]
    kind = ir.RankedTensorType(parts[0].type)
    shape = list(kind.shape)
    shape[dim] = sum(ir.RankedTensorType(part.type).shape[dim] for part in parts)
    return create("tensor.concat", list(parts), ir.RankedTensorType.get(shape, kind.element_type), {"dim": number(dim)})
