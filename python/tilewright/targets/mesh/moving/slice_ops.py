# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Slices of a model: tensors move so that sliced dimensions are whole in each core, which then cuts alone."""

from __future__ import annotations

from tilewright.dialects.coremesh import block_type
from tilewright.ir.diagnostics import remark
from tilewright.ir.generics import create, create_fill, maker
from tilewright.mlir import ir
from tilewright.targets.mesh.placement import Axes, Placement, empty_block, laid_type, local

SLICES = ("tensor.extract_slice", "tensor.insert_slice")
_OPEN = -(2**63)


def part(op: ir.Operation, placement: Placement) -> ir.Value | None:
    """The result of a slice that is cut out or put in, on the grid; None where its operands are not there."""
    if not any(placement.is_made(value) for value in list(op.operands)[:2]):
        return None
    made = next(value for value in op.operands if placement.is_made(value))
    axes = sliced_axes(op, placement.any(made)[1], made == op.operands[0])
    if axes is None:
        return None
    small, whole = axes
    inner, outer = _kinds(op)
    if not placement.fits(laid_type(inner, small, placement.side), laid_type(outer, whole, placement.side)):
        remark(op, "cut outside of the grid: no core holds all of the dimensions of which it takes a part")
        return None
    return _cut(op, placement, small, whole) if op.name == SLICES[0] else _put(op, placement, small, whole)


def sliced_axes(op: ir.Operation, lies: Axes, first: bool) -> tuple[Axes, Axes] | None:
    """How the small tensor of a slice has to lie, and the whole one; None of open places, or places of numbers.

    Args:
        lies: how one of the operands does.
        first: that is the first operand.
    """
    inner, outer = _kinds(op)
    kept = _kept(op)
    if kept is None:
        return None
    is_whole = first == (op.name == SLICES[0])
    known = dict(enumerate(lies)) if is_whole else {dim: lies[at] for at, dim in enumerate(kept)}
    large = [dim in kept and inner.shape[kept.index(dim)] == size for dim, size in enumerate(outer.shape)]
    whole = tuple(known.get(dim, "").partition(" ")[0] if large[dim] else "" for dim in range(outer.rank))
    return tuple(whole[dim] for dim in kept), whole


def has_known_offsets(op: ir.Operation) -> bool:
    """Whether the text of a slice says where the part lies."""
    return _OPEN not in list(ir.DenseI64ArrayAttr(op.attributes["static_offsets"]))


def _kinds(op: ir.Operation) -> tuple[ir.RankedTensorType, ir.RankedTensorType]:
    """The types of the small tensor and of the whole one."""
    values = (op.results[0], op.operands[0]) if op.name == SLICES[0] else (op.operands[0], op.operands[1])
    return ir.RankedTensorType(values[0].type), ir.RankedTensorType(values[1].type)


def _kept(op: ir.Operation) -> list[int] | None:
    """Dimensions of the whole tensor that the small one has."""
    inner, outer = _kinds(op)
    numbers = [list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in ("offsets", "sizes", "strides")]
    if any(_OPEN in own for own in numbers) or not (inner.has_static_shape and outer.has_static_shape):
        return None
    if 0 in outer.shape or 0 in inner.shape:
        return None
    kept: list[int] = []
    for size in inner.shape:  # leading ones are dropped before others of their size, as the op's verifier does
        start = kept[-1] + 1 if kept else 0
        left = inner.rank - len(kept)
        found = [dim for dim in range(start, outer.rank - left + 1) if numbers[1][dim] == size]
        between = next((dim for dim in found if all(numbers[1][d] == 1 for d in range(start, dim))), None)
        if between is None:
            return None
        kept.append(between)
    return kept


def _cut(op: ir.Operation, placement: Placement, small: Axes, whole: Axes) -> ir.Value:
    result = laid_type(op.results[0].type, small, placement.side)
    source = placement.laid(op.operands[0], whole)
    shape = ir.RankedTensorType(block_type(source.type)).shape
    attributes = _own(op, list(shape), whole)
    return local([source], result, lambda blocks: create(op.name, blocks, block_type(result), attributes))


def _put(op: ir.Operation, placement: Placement, small: Axes, whole: Axes) -> ir.Value:
    result = laid_type(op.results[0].type, whole, placement.side)
    source, target = placement.laid(op.operands[0], small), op.operands[1]
    block = ir.RankedTensorType(block_type(result))
    attributes = _own(op, list(block.shape), whole)
    made = maker(target)
    known = made is not None and made.name in ("tensor.empty", "linalg.fill") and placement.fixed(target)
    inputs = [source] if known else [source, placement.laid(target, whole)]

    def compute(blocks: list[ir.Value]) -> ir.Value:
        place = blocks[1] if not known else _like(made, result)
        return create(op.name, [blocks[0], place], block, attributes)

    return local(inputs, result, compute)


def _like(made: ir.Operation | None, result: ir.RankedTensorType) -> ir.Value:
    """What an op that fills a tensor, or leaves it empty, makes of a core's block."""
    assert made is not None
    empty = empty_block(result)
    if made.name == "tensor.empty":
        return empty
    number = maker(made.operands[0])
    assert number is not None
    scalar = create("arith.constant", [], made.operands[0].type, {"value": number.attributes["value"]})
    return create_fill(scalar, empty)


def _own(op: ir.Operation, block: list[int], whole: Axes) -> dict[str, ir.Attribute]:
    """The places of a slice in a core's block: all of the dimensions that an axis splits."""
    names = ("static_offsets", "static_sizes", "static_strides", "operandSegmentSizes")
    attributes = {name: op.attributes[name] for name in names}
    sizes = list(ir.DenseI64ArrayAttr(op.attributes["static_sizes"]))
    own = [block[dim] if whole[dim] else size for dim, size in enumerate(sizes)]
    attributes["static_sizes"] = ir.DenseI64ArrayAttr.get(own)
    return attributes
