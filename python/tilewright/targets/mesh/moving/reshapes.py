# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reshapes: tensors move so that what is joined or taken apart lies in one core, which then does so alone.

Of dimensions that become one, or one that becomes several, the first large one lies along an axis, in blocks that hold
all of the others: heads stay whole where columns are taken apart into heads.
"""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.dialects.coremesh import block_type
from tilewright.ir.generics import create
from tilewright.mlir import ir
from tilewright.targets.mesh.placement import Axes, Placement, laid_type, local


def reshaped(op: ir.Operation, placement: Placement) -> ir.Value | None:
    """The result of a `tensor.expand_shape` or `tensor.collapse_shape` on the grid; None where its operand is not."""
    value = op.operands[0]
    if not placement.is_made(value):
        return None
    axes = reshaped_axes(op, placement.any(value)[1], placement.side)
    if axes is None:
        return None
    before, after = axes
    result = laid_type(op.results[0].type, after, placement.side)

    def compute(blocks: list[ir.Value]) -> ir.Value:
        block = ir.RankedTensorType(block_type(result))
        attributes: dict[str, ir.Attribute] = {"reassociation": op.attributes["reassociation"]}
        if op.name == "tensor.expand_shape":
            attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(list(block.shape))
        return create(op.name, blocks, block, attributes)

    return local([placement.laid(value, before)], result, compute)


def reshaped_axes(op: ir.Operation, lies: Axes, side: int) -> tuple[Axes, Axes] | None:
    """How the operand of a reshape has to lie, and how the result lies then; None of open sizes.

    Args:
        lies: how the operand does.
    """
    is_expansion = op.name == "tensor.expand_shape"
    wide = ir.RankedTensorType((op.results[0] if is_expansion else op.operands[0]).type)
    if not wide.has_static_shape or 0 in wide.shape:
        return None
    groups = [[ir.IntegerAttr(dim).value for dim in ir.ArrayAttr(group)] for group in op.attributes["reassociation"]]
    joined: list[str] = []
    apart = [""] * wide.rank
    for number, group in enumerate(groups):
        axis = lies[number] if is_expansion else next((lies[dim] for dim in group if lies[dim]), "")
        axis = axis.partition(" ")[0]
        first = next((dim for dim in group if wide.shape[dim] > 1), group[0])
        apart[first] = axis
        joined.append(_blocks(axis, [wide.shape[dim] for dim in group if dim >= first], side))
    if not groups:
        joined = []
    return (tuple(joined), tuple(apart)) if is_expansion else (tuple(apart), tuple(joined))


def _blocks(axis: str, shape: Sequence[int], side: int) -> str:
    """An axis in blocks that hold whole rows of all dimensions but the first."""
    inner = 1
    for size in shape[1:]:
        inner *= size
    block = -(-shape[0] // side) * inner
    return f"{axis} block {block}" if axis and block != -(-shape[0] * inner // side) else axis
