# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions: each core combines what it has, then lines of cores combine among each other."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.core.dtypes import of_mlir
from tilewright.ir.generics import body, create, create_fill, create_generic, create_number, maker, maps
from tilewright.mlir import ir
from tilewright.mlir.dialects import coremesh as ops
from tilewright.sim.coremesh.combinations import Combine, identity, is_float, op_of
from tilewright.targets.mesh.attributes import number
from tilewright.targets.mesh.computations import Reduction, dims, loop_sizes
from tilewright.targets.mesh.elementwise import computed, lies
from tilewright.targets.mesh.placement import Axes, Placement, axes_of, empty_block, laid_type, local


def reduction(op: ir.Operation, found: Reduction, loops: Sequence[str], placement: Placement) -> ir.Value:
    """The result of a generic that reduces, on the grid."""
    if found.plain:
        order = list(range(len(loops)))
        value = placement.laid(op.operands[0], lies(maps(op)[0], loops))
    else:
        order, value = _points(op, found, loops, placement)
    value, order = _combined_by_cores(value, order, found, loops, placement)
    for loop in [loop for loop in reversed(order) if loop in found.loops]:
        value = allreduced(value, order.index(loop), found.how, placement)
        order.remove(loop)
    return value


def _points(
    op: ir.Operation, found: Reduction, loops: Sequence[str], placement: Placement
) -> tuple[list[int], ir.Value]:
    """What is combined, as a tensor: the result's dimensions, then those that reduce."""
    kept = [loop for loop in dims(maps(op)[-1]) if loop is not None]
    order = [*kept, *found.loops]
    written = ir.AffineMap.get(len(loops), 0, [ir.AffineExpr.get_dim(loop) for loop in order])
    operations = body(op).operations
    last = maker(operations[len(operations) - 1].operands[0])
    assert last is not None
    own = body(op).arguments[len(op.operands) - 1]
    (value,) = (one for one in last.operands if one != own)
    sizes = loop_sizes(op)
    kind = ir.RankedTensorType.get([sizes[loop] for loop in order], value.type)
    return order, computed(op, loops, placement, written, value, kind)


def _combined_by_cores(
    value: ir.Value, order: list[int], found: Reduction, loops: Sequence[str], placement: Placement
) -> tuple[ir.Value, list[int]]:
    """Dimensions that no axis splits, combined by each core."""
    whole = [loop for loop in found.loops if not loops[loop]]
    if not whole:
        return value, order
    kept = [loop for loop in order if loop not in whole]
    kind, place = ir.RankedTensorType(value.type), {loop: at for at, loop in enumerate(order)}
    shape = [kind.shape[place[loop]] for loop in kept]
    result = ir.RankedTensorType.get(shape, kind.element_type)
    result = laid_type(result, tuple(loops[loop] for loop in kept), placement.side)
    written = ir.AffineMap.get(len(order), 0, [ir.AffineExpr.get_dim(place[loop]) for loop in kept])
    same, dtype = ir.AffineMap.get_identity(len(order)), of_mlir(str(kind.element_type))

    def combine(elements: list[ir.Value]) -> ir.Value:
        return create(op_of(found.how, is_float(dtype)), elements[::-1], elements[0].type)

    def compute(blocks: list[ir.Value]) -> ir.Value:
        start = create_fill(create_number(identity(found.how, dtype), kind.element_type), empty_block(result))
        return create_generic([(blocks[0], same)], start, written, [loop in whole for loop in order], combine)

    return local([value], result, compute), kept


def allreduced(value: ir.Value, dim: int, how: Combine, placement: Placement) -> ir.Value:
    """One dimension less, along the axis that splits it."""
    kind, axes = ir.RankedTensorType(value.type), _without(axes_of(value), dim)
    shape = [size for at, size in enumerate(kind.shape) if at != dim]
    result = laid_type(ir.RankedTensorType.get(shape, kind.element_type), axes, placement.side)
    i32 = ir.IntegerType.get_signless(32)
    attributes = {
        "combine": ir.IntegerAttr.get(i32, int(ops.Combine[how])),
        "dim": number(dim),
        "algorithm": ir.IntegerAttr.get(i32, int(ops.Algorithm.chain)),
    }
    return create("coremesh.allreduce", [value], result, attributes)


def _without(axes: Axes, dim: int) -> Axes:
    return axes[:dim] + axes[dim + 1 :]
