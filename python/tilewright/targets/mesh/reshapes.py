# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reshapes that move nothing between cores: dimensions of size 1, and those that no axis splits."""

from __future__ import annotations

from tilewright.dialects.coremesh import block_type
from tilewright.ir.generics import create
from tilewright.mlir import ir
from tilewright.targets.mesh.placement import Axes, Placement, laid_type, local


def reshaped(op: ir.Operation, placement: Placement) -> ir.Value | None:
    """The result of a `tensor.expand_shape` or `tensor.collapse_shape` on the grid.

    None where its operand is not there, or where elements would have to move.
    """
    value = op.operands[0]
    if not placement.is_made(value):
        return None
    source, lie = placement.any(value)
    groups = [[ir.IntegerAttr(dim).value for dim in ir.ArrayAttr(group)] for group in op.attributes["reassociation"]]
    is_expansion = op.name == "tensor.expand_shape"
    wide = ir.RankedTensorType(op.results[0].type if is_expansion else value.type)
    axes = _expanded(lie, groups, wide) if is_expansion else _collapsed(lie, groups, wide)
    if axes is None or not wide.has_static_shape:
        return None
    result = laid_type(op.results[0].type, axes, placement.side)

    def compute(blocks: list[ir.Value]) -> ir.Value:
        block = ir.RankedTensorType(block_type(result))
        attributes: dict[str, ir.Attribute] = {"reassociation": op.attributes["reassociation"]}
        if is_expansion:
            attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(list(block.shape))
        return create(op.name, blocks, block, attributes)

    return local([source], result, compute)


def _expanded(lie: Axes, groups: list[list[int]], wide: ir.RankedTensorType) -> Axes | None:
    if len(groups) != len(lie):
        return None  # of a single number
    axes = [""] * wide.rank
    for axis, group in zip(lie, groups, strict=True):
        large = [dim for dim in group if wide.shape[dim] > 1]
        if axis and len(large) > 1:
            return None
        if axis:
            axes[large[0] if large else group[0]] = axis
    return tuple(axes)


def _collapsed(lie: Axes, groups: list[list[int]], wide: ir.RankedTensorType) -> Axes | None:
    axes = []
    for group in groups:
        split = [dim for dim in group if lie[dim]]
        large = [dim for dim in group if wide.shape[dim] > 1]
        if len(split) > 1 or (split and large not in (split, [])):
            return None
        axes.append(lie[split[0]] if split else "")
    return tuple(axes) if groups or not any(lie) else None
