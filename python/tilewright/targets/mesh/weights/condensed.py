# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with weights that cores hold condensed: each multiplies by its block, partial sums are added along lines.

The other operand lies as that of a MeshGEMV does, its summed dimension along one axis, but with all of its rows: the
result lies along the other axis. What stands for the weight never moves.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.dialects.coremesh import block_type
from tilewright.ir.generics import create, create_fill, create_generic, create_number, maps
from tilewright.ir.views import create_joined, create_split
from tilewright.mlir import ir
from tilewright.targets.mesh.computations import Product, dims, loop_sizes
from tilewright.targets.mesh.elementwise import lies, repeated, yielded
from tilewright.targets.mesh.placement import Placement, empty_block, laid_type, local
from tilewright.targets.mesh.products import operand, whole
from tilewright.targets.mesh.reductions import allreduced
from tilewright.targets.mesh.weights.sparse import Weight, condensed, constant, packed, short_codes

#: Makes the partial sums of a core, [m, n] or [n], of its block of the other operand and of what stands for the weight.
Multiply = Callable[[ir.Value, list[ir.Value]], ir.Value]


@dataclass(frozen=True, eq=False)
class _Stored:
    """What stands for a weight on the grid."""

    parts: tuple[ir.Value, ...]
    multiply: Multiply


def condensed_product(
    op: ir.Operation, found: Product, weight: Weight, loops: Sequence[str], placement: Placement
) -> ir.Value:
    """The result of a generic that multiplies by a weight, on the grid.

    Args:
        loops: the axis along each.
    """
    out, sizes, summed = [loop for loop in dims(maps(op)[-1]) if loop is not None], loop_sizes(op), found.summed
    batch = [loop for loop in out if loop in found.batch]
    order = [summed] if weight.rows is None else [weight.rows, summed]
    left = operand(op, 1 - weight.number, order, {summed: loops[summed]}, placement)
    element = ir.RankedTensorType(op.results[0].type).element_type
    store = (_sparse if weight.how == "sparse" else _coded)(op, weight, summed, loops, placement, element)
    inner = [loop for loop in out if loop not in batch]
    partial = ir.RankedTensorType.get([placement.side, *(sizes[loop] for loop in inner)], element)
    kind = laid_type(partial, (loops[summed], *(loops[loop] for loop in inner)), placement.side)
    turned = weight.rows is not None and inner.index(weight.rows) == 1
    kept: dict[object, ir.Value] = {}
    made = []
    for indices in itertools.product(*(range(sizes[loop]) for loop in batch)):
        value = left.part(dict(zip(batch, indices, strict=True)), {}, kept, placement)
        sums = local([value, *store.parts], kind, lambda blocks: _partial(blocks, store, block_type(kind), turned))
        made.append(allreduced(sums, 0, "add", placement))
    return whole(op, found, made, batch, loops, placement)


def _partial(blocks: list[ir.Value], store: _Stored, kind: ir.Type, turned: bool) -> ir.Value:
    """The partial sums of a core, with a dimension for the axis; of one row as of a vector."""
    x, shape = blocks[0], ir.RankedTensorType(kind).shape
    rank = ir.RankedTensorType(x.type).rank
    if rank == 2 and ir.RankedTensorType(x.type).shape[0] == 1:
        x = create_joined(x, [[0, 1]])
    sums = store.multiply(x, blocks[1:])
    if turned and ir.RankedTensorType(sums.type).rank == 2:
        sums = _turned(sums)
    if ir.RankedTensorType(sums.type).rank == 1:
        return create_split(sums, [[*range(len(shape))]], shape)
    return create_split(sums, [[0, 1], [2]], shape)


def _turned(value: ir.Value) -> ir.Value:
    kind = ir.RankedTensorType(value.type)
    reads = ir.AffineMap.get_permutation([1, 0])
    empty = create("tensor.empty", [], ir.RankedTensorType.get(kind.shape[::-1], kind.element_type))
    same = ir.AffineMap.get_identity(2)
    return create_generic([(value, reads)], empty, same, [False, False], lambda elements: elements[0])


def _sparse(
    op: ir.Operation, weight: Weight, summed: int, loops: Sequence[str], placement: Placement, element: ir.Type
) -> _Stored:
    """Numbers that are not 0, and the rows in the block where they stand."""
    assert weight.values is not None
    axes = (loops[summed], loops[weight.columns])
    parts = tuple(placement.laid(constant(one), axes) for one in condensed(weight.values, placement.side))

    def multiply(x: ir.Value, held: list[ir.Value]) -> ir.Value:
        numbers, rows = held
        index = ir.IntegerType.get_signless(32)
        kind, same = ir.RankedTensorType(rows.type), ir.AffineMap.get_identity(2)
        place = create("tensor.empty", [], ir.RankedTensorType.get(kind.shape, index))

        def widened(elements: list[ir.Value]) -> ir.Value:
            return elements[0] if elements[0].type == index else create("arith.extsi", elements[:1], index)

        at = create_generic([(rows, same)], place, same, [False, False], widened)
        return _gathered(x, numbers, at, element)

    return _Stored(parts, multiply)


def _gathered(x: ir.Value, numbers: ir.Value, at: ir.Value, element: ir.Type) -> ir.Value:
    """Sums over r of x[..., at[r, n]] * numbers[r, n]."""
    kind = ir.RankedTensorType(x.type)
    (most, n), rows = ir.RankedTensorType(numbers.type).shape, kind.shape[:-1]
    rank, index = len(rows) + 2, ir.IndexType.get()
    each = [ir.AffineExpr.get_dim(loop) for loop in range(rank)]
    read = ir.AffineMap.get(rank, 0, each[-2:])
    written = ir.AffineMap.get(rank, 0, [*each[:-2], each[-1]])
    start = _zeros([*rows, n], element)
    assert most > 0

    def multiply(elements: list[ir.Value]) -> ir.Value:
        number, row, total = elements
        place = create("arith.index_cast", [row], index)
        i64 = ir.IntegerType.get_signless(64)
        outer = [create("linalg.index", [], index, {"dim": ir.IntegerAttr.get(i64, loop)}) for loop in range(len(rows))]
        read_x = create("tensor.extract", [x, *outer, place], kind.element_type)
        return _multiply_add(read_x, number, total)

    return create_generic([(numbers, read), (at, read)], start, written, [False] * len(rows) + [True, False], multiply)


def _coded(
    op: ir.Operation, weight: Weight, summed: int, loops: Sequence[str], placement: Placement, element: ir.Type
) -> _Stored:
    """What an elementwise generic makes the weight of, which each core does again for its block."""
    made = weight.made
    assert made is not None
    read = dims(maps(op)[weight.number])
    along = {dim: loops[loop] for dim, loop in enumerate(read) if loop is not None}
    inner = [along[dims(maps(made)[-1]).index(loop)] for loop in range(maps(made)[-1].n_dims)]
    parts: list[ir.Value] = []
    halves: list[tuple[int, bool] | None] = []
    for value, map_ in zip(list(made.operands)[:-1], maps(made), strict=False):
        axes = lies(map_, inner)
        split = next((dim for dim, axis in enumerate(axes) if axis), None)
        codes = None if split is None else short_codes(value)
        if codes is None or split is None:
            halves.append(None)
            parts.append(placement.laid(value, axes))
        else:
            halves.append((split, bool((codes < 0).any())))
            parts.append(placement.laid(constant(packed(codes, split, placement.side)), axes))
    result = laid_type(made.results[0].type, tuple(along[dim] for dim in range(len(read))), placement.side)
    operands = zip(made.operands, maps(made), strict=True)
    shapes = [block_type(laid_type(v.type, lies(m, inner), placement.side)) for v, m in operands]

    def multiply(x: ir.Value, held: list[ir.Value]) -> ir.Value:
        tiles = [
            one if half is None else _unpacked(one, *half, ir.RankedTensorType(shape))
            for one, half, shape in zip(held, halves, shapes, strict=False)
        ]
        pairs = list(zip(tiles, maps(made), strict=False))
        same = maps(made)[-1]
        block = create_generic(
            pairs,
            empty_block(result),
            same,
            [False] * same.n_dims,
            lambda given: repeated(made, given, yielded(made)),
        )
        return _dense(x, block, read.index(summed), element)

    return _Stored(tuple(parts), multiply)


def _unpacked(block: ir.Value, dim: int, signed: bool, kind: ir.RankedTensorType) -> ir.Value:
    """Codes of 4 bits of bytes that hold two, along a dimension."""
    i8, element = ir.IntegerType.get_signless(8), kind.element_type
    rank, shape = kind.rank, list(ir.RankedTensorType(block.type).shape)
    same = ir.AffineMap.get_identity(rank)

    def half(is_high: bool) -> ir.Value:
        def code(elements: list[ir.Value]) -> ir.Value:
            four = create_number(4, i8)
            value = elements[0] if is_high else create("arith.shli", [elements[0], four], i8)
            value = create("arith.shrsi" if signed else "arith.shrui", [value, four], i8)
            return value if element == i8 else create("arith.trunci", [value], element)

        empty = create("tensor.empty", [], ir.RankedTensorType.get(shape, element))
        return create_generic([(block, same)], empty, same, [False] * rank, code)

    both = list(shape)
    both[dim] *= 2
    i64 = ir.IntegerType.get_signless(64)
    joined = create(
        "tensor.concat",
        [half(False), half(True)],
        ir.RankedTensorType.get(both, element),
        {"dim": ir.IntegerAttr.get(i64, dim)},
    )
    if both == list(kind.shape):
        return joined
    lists = {"offsets": [0] * rank, "sizes": list(kind.shape), "strides": [1] * rank}
    attributes = {f"static_{name}": ir.DenseI64ArrayAttr.get(numbers) for name, numbers in lists.items()}
    attributes["operandSegmentSizes"] = ir.DenseI32ArrayAttr.get([1, 0, 0, 0])
    return create("tensor.extract_slice", [joined], kind, attributes)


def _dense(x: ir.Value, block: ir.Value, summed: int, element: ir.Type) -> ir.Value:
    """Sums over k of x[..., k] * block[k, n], or block[n, k]."""
    rows, shape = ir.RankedTensorType(x.type).shape[:-1], ir.RankedTensorType(block.type).shape
    rank = len(rows) + 2
    each = [ir.AffineExpr.get_dim(loop) for loop in range(rank)]
    k, n = each[-1], each[-2]
    of_x = ir.AffineMap.get(rank, 0, [*each[:-2], k])
    of_block = ir.AffineMap.get(rank, 0, [k, n] if summed == 0 else [n, k])
    written = ir.AffineMap.get(rank, 0, [*each[:-2], n])
    start = _zeros([*rows, shape[1 - summed]], element)
    reduces = [False] * (rank - 1) + [True]
    return create_generic([(x, of_x), (block, of_block)], start, written, reduces, lambda e: _multiply_add(*e))


def _multiply_add(one: ir.Value, other: ir.Value, total: ir.Value) -> ir.Value:
    wide = [v if v.type == total.type else create("arith.extf", [v], total.type) for v in (one, other)]
    return create("arith.addf", [total, create("arith.mulf", wide, total.type)], total.type)


def _zeros(shape: Sequence[int], element: ir.Type) -> ir.Value:
    empty = create("tensor.empty", [], ir.RankedTensorType.get(list(shape), element))
    return create_fill(create_number(0.0, element), empty)
