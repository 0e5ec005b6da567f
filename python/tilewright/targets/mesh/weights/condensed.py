# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with weights that cores hold condensed, in two ways.

Where they stand (`condensed`): each core multiplies by its block, and partial sums are added along lines. The other
operand lies as that of a MeshGEMV does, its summed dimension along one axis, but with all of its rows: the result lies
along the other axis. What stands for the weight never moves.

Going round (`condensed_meshgemm`): both operands are split along both axes, and what stands for the weight goes round
columns as the elements would, in fewer bytes; each core multiplies by it as it is.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from tilewright.dialects.coremesh import block_type
from tilewright.ir.generics import create, create_fill, create_generic, create_number, maps
from tilewright.ir.views import create_joined, create_split
from tilewright.mlir import ir
from tilewright.targets.mesh.computations import Product, dims, loop_sizes
from tilewright.targets.mesh.placement import Placement, laid_type, local
from tilewright.targets.mesh.products import operand, whole
from tilewright.targets.mesh.reductions import allreduced
from tilewright.targets.mesh.weights.sparse import Weight
from tilewright.targets.mesh.weights.stored import Stored, stored

#: What `coremesh.algorithm` says: where weights stand, and going round.
STANDING, ROUND = "condensed", "condensed_meshgemm"


def condensed_product(
    op: ir.Operation, found: Product, weight: Weight, loops: Sequence[str], placement: Placement
) -> ir.Value:
    """The result of a generic that multiplies by a weight where this stands, on the grid.

    Args:
        loops: the axis along each.
    """
    order = [found.summed] if weight.rows is None else [weight.rows, found.summed]
    left = operand(op, 1 - weight.number, order, {found.summed: loops[found.summed]}, placement)
    inner, batch = _loops(op, found)
    along = {loop: loops[loop] for loop in (found.summed, weight.columns)}
    store = stored(op, weight, found.summed, along, placement.side)
    parts = store.place(placement)
    element = ir.RankedTensorType(op.results[0].type).element_type
    sizes = loop_sizes(op)
    partial = ir.RankedTensorType.get([placement.side, *(sizes[loop] for loop in inner)], element)
    kind = laid_type(partial, (loops[found.summed], *(loops[loop] for loop in inner)), placement.side)
    turned = weight.rows is not None and inner.index(weight.rows) == 1
    kept: dict[object, ir.Value] = {}
    made = []
    for indices in itertools.product(*(range(sizes[loop]) for loop in batch)):
        value = left.part(dict(zip(batch, indices, strict=True)), {}, kept, placement)
        sums = local([value, *parts], kind, lambda blocks: _partial(blocks, store, block_type(kind), turned))
        made.append(allreduced(sums, 0, "add", placement))
    return whole(op, found, made, batch, loops, placement)


def condensed_meshgemm(
    op: ir.Operation, found: Product, weight: Weight, loops: Sequence[str], placement: Placement
) -> ir.Value:
    """The result of a generic that multiplies by a weight that goes round, on the grid; rows along y."""
    assert weight.rows is not None
    axes = {weight.rows: "y", found.summed: "x"}
    left = operand(op, 1 - weight.number, [weight.rows, found.summed], axes, placement)
    store = going_round(op, found, weight, placement.side)
    parts = store.place(placement)
    inner, batch = _loops(op, found)
    turned = inner.index(weight.rows) == 1
    kind = result_kind(op, weight, placement.side)
    kept: dict[object, ir.Value] = {}
    made = []
    for indices in itertools.product(*(range(loop_sizes(op)[loop]) for loop in batch)):
        value = left.part(dict(zip(batch, indices, strict=True)), {}, kept, placement)
        one = block_gemm(value, parts, kind, store)
        made.append(_turned_over(one, placement) if turned else one)
    return whole(op, found, made, batch, loops, placement)


def going_round(op: ir.Operation, found: Product, weight: Weight, side: int) -> Stored:
    """What stands for a weight that goes round columns, aligned by the host."""
    return stored(op, weight, found.summed, {found.summed: "y skew", weight.columns: "x"}, side)


def result_kind(op: ir.Operation, weight: Weight, side: int) -> ir.RankedTensorType:
    """The type of a product [rows, columns] of the batch, with its layout."""
    assert weight.rows is not None
    shape = [loop_sizes(op)[loop] for loop in (weight.rows, weight.columns)]
    element = ir.RankedTensorType(op.results[0].type).element_type
    return laid_type(ir.RankedTensorType.get(shape, element), ("y", "x"), side)


def block_gemm(left: ir.Value, parts: Sequence[ir.Value], kind: ir.RankedTensorType, store: Stored) -> ir.Value:
    """A `coremesh.block_gemm` at the current insertion point."""
    op = ir.Operation.create("coremesh.block_gemm", results=[kind], operands=[left, *parts], regions=1)
    types = [value.type for value in (left, *parts)]
    block = ir.Block.create_at_start(op.regions[0], [*map(block_type, types), block_type(kind)])
    x, *held, total = list(block.arguments)
    with ir.InsertionPoint(block):
        ir.Operation.create("coremesh.yield", operands=[store.multiply(x, held, total)])
    return op.result


def _loops(op: ir.Operation, found: Product) -> tuple[list[int], list[int]]:
    """Loops of the result: those of one product, and those of the batch."""
    out = [loop for loop in dims(maps(op)[-1]) if loop is not None]
    return [loop for loop in out if loop not in found.batch], [loop for loop in out if loop in found.batch]


def _partial(blocks: list[ir.Value], store: Stored, kind: ir.Type, turned: bool) -> ir.Value:
    """The partial sums of a core, with a dimension for the axis; of one row as of a vector."""
    x, shape = blocks[0], ir.RankedTensorType(kind).shape
    rank = ir.RankedTensorType(x.type).rank
    if rank == 2 and ir.RankedTensorType(x.type).shape[0] == 1:
        x = create_joined(x, [[0, 1]])
    rows = list(ir.RankedTensorType(x.type).shape)[:-1]
    columns = shape[1] if turned else shape[-1]
    sums = store.multiply(x, blocks[1:], _zeros([*rows, columns], ir.RankedTensorType(kind).element_type))
    if turned and ir.RankedTensorType(sums.type).rank == 2:
        sums = _turned(sums)
    if ir.RankedTensorType(sums.type).rank == 1:
        return create_split(sums, [[*range(len(shape))]], shape)
    return create_split(sums, [[0, 1], [2]], shape)


def _turned_over(value: ir.Value, placement: Placement) -> ir.Value:
    """A matrix on the grid transposed, block by block."""
    kind = ir.RankedTensorType(value.type)
    plain = ir.RankedTensorType.get(kind.shape[::-1], kind.element_type)
    return local([value], laid_type(plain, ("x", "y"), placement.side), lambda blocks: _turned(blocks[0]))


def _turned(value: ir.Value) -> ir.Value:
    kind = ir.RankedTensorType(value.type)
    reads = ir.AffineMap.get_permutation([1, 0])
    empty = create("tensor.empty", [], ir.RankedTensorType.get(kind.shape[::-1], kind.element_type))
    same = ir.AffineMap.get_identity(2)
    return create_generic([(value, reads)], empty, same, [False, False], lambda elements: elements[0])


def _zeros(shape: Sequence[int], element: ir.Type) -> ir.Value:
    empty = create("tensor.empty", [], ir.RankedTensorType.get(list(shape), element))
    return create_fill(create_number(0.0, element), empty)
