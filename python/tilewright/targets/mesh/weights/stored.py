# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What stands for a condensed weight on the grid, and how a core multiplies by its blocks of that."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tilewright.dialects.coremesh import block_type
from tilewright.ir.generics import create, create_generic, create_number, maps
from tilewright.mlir import ir
from tilewright.targets.mesh.computations import dims
from tilewright.targets.mesh.elementwise import lies, repeated, yielded
from tilewright.targets.mesh.placement import Axes, Placement, empty_block, laid_type
from tilewright.targets.mesh.weights.sparse import Weight, condensed, condensed_kinds, constant, packed, short_codes

#: Adds to sums of a core, [m, n] or [n], what its blocks make: of the other operand, and of what stands for the weight.
Multiply = Callable[[ir.Value, list[ir.Value], ir.Value], ir.Value]

_FLOATS = ("arith.mulf", "arith.addf", "arith.extf")
_INTEGERS = ("arith.muli", "arith.addi", "arith.extsi")


@dataclass(frozen=True, eq=False)
class Stored:
    """What stands for a weight on the grid.

    Attributes:
        kinds: types of its tensors, with layouts.
        place: brings them there.
    """

    kinds: tuple[ir.RankedTensorType, ...]
    place: Callable[[Placement], list[ir.Value]]
    multiply: Multiply


def stored(op: ir.Operation, weight: Weight, summed: int, along: Mapping[int, str], side: int) -> Stored:
    """What stands for the weight of a product.

    Args:
        along: the axis along its columns and the summed loop, by loop.
        side: cores along each side of the grid.
    """
    return (_sparse if weight.how == "sparse" else _coded)(op, weight, summed, along, side)


def _sparse(op: ir.Operation, weight: Weight, summed: int, along: Mapping[int, str], side: int) -> Stored:
    """Numbers that are not 0, and the rows in the block where they stand."""
    matrix = weight.values
    assert matrix is not None
    axes = (along[summed], along[weight.columns])
    kinds = tuple(laid_type(kind, axes, side) for kind in condensed_kinds(matrix, side))

    def place(placement: Placement) -> list[ir.Value]:
        return [placement.laid(constant(one), axes) for one in condensed(matrix, side)]

    def multiply(x: ir.Value, held: list[ir.Value], total: ir.Value) -> ir.Value:
        numbers, rows = held
        return _gathered(x, numbers, rows, total)

    return Stored(kinds, place, multiply)


def _gathered(x: ir.Value, numbers: ir.Value, at: ir.Value, total: ir.Value) -> ir.Value:
    """Sums over r of x[..., at[r, n]] * numbers[r, n], added to others."""
    kind = ir.RankedTensorType(x.type)
    rows = kind.shape[:-1]
    rank, index = len(rows) + 2, ir.IndexType.get()
    each = [ir.AffineExpr.get_dim(loop) for loop in range(rank)]
    read = ir.AffineMap.get(rank, 0, each[-2:])
    written = ir.AffineMap.get(rank, 0, [*each[:-2], each[-1]])

    def multiply(elements: list[ir.Value]) -> ir.Value:
        number, row, sums = elements
        place = create("arith.index_cast", [row], index)
        i64 = ir.IntegerType.get_signless(64)
        outer = [create("linalg.index", [], index, {"dim": ir.IntegerAttr.get(i64, loop)}) for loop in range(len(rows))]
        read_x = create("tensor.extract", [x, *outer, place], kind.element_type)
        return _multiply_add(read_x, number, sums)

    return create_generic([(numbers, read), (at, read)], total, written, [False] * len(rows) + [True, False], multiply)


def _coded(op: ir.Operation, weight: Weight, summed: int, along: Mapping[int, str], side: int) -> Stored:
    """What an elementwise generic makes the weight of, which each core does again for its block."""
    made = weight.made
    assert made is not None
    read, reads = dims(maps(op)[weight.number]), maps(made)
    of_dim = [along[loop] for loop in read if loop is not None]
    inner = [of_dim[dims(reads[-1]).index(loop)] for loop in range(reads[-1].n_dims)]
    inputs = list(made.operands)[:-1]
    held = [_held(value, lies(map_, inner), side) for value, map_ in zip(inputs, reads, strict=False)]
    result = laid_type(made.results[0].type, tuple(of_dim), side)
    shapes = [block_type(laid_type(v.type, lies(m, inner), side)) for v, m in zip(inputs, reads, strict=False)]

    def multiply(x: ir.Value, given: list[ir.Value], total: ir.Value) -> ir.Value:
        tiles = [
            one if how.half is None else _unpacked(one, *how.half, ir.RankedTensorType(shape))
            for one, how, shape in zip(given, held, shapes, strict=True)
        ]
        same = reads[-1]
        block = create_generic(
            list(zip(tiles, reads, strict=False)),
            empty_block(result),
            same,
            [False] * same.n_dims,
            lambda elements: repeated(made, elements, yielded(made)),
        )
        return _dense(x, block, read.index(summed), total)

    def place(placement: Placement) -> list[ir.Value]:
        return [one.place(placement) for one in held]

    return Stored(tuple(one.kind for one in held), place, multiply)


@dataclass(frozen=True, eq=False)
class _Held:
    """An input of what makes a weight.

    Attributes:
        half: two codes of 4 bits are in a byte, along this dimension; whether they have a sign. None: elements.
    """

    kind: ir.RankedTensorType
    place: Callable[[Placement], ir.Value]
    half: tuple[int, bool] | None = None


def _held(value: ir.Value, axes: Axes, side: int) -> _Held:
    split = next((dim for dim, axis in enumerate(axes) if axis), None)
    codes = None if split is None else short_codes(value)
    if codes is None or split is None:
        return _Held(laid_type(value.type, axes, side), lambda placement: placement.laid(value, axes))
    shape = list(ir.RankedTensorType(value.type).shape)
    block = -(-shape[split] // side)
    shape[split] = side * ((block + 1) // 2)
    kind = laid_type(ir.RankedTensorType.get(shape, ir.IntegerType.get_signless(8)), axes, side)

    def place(placement: Placement) -> ir.Value:
        return placement.laid(constant(packed(codes, split, side)), axes)

    return _Held(kind, place, (split, bool((codes < 0).any())))


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


def _dense(x: ir.Value, block: ir.Value, summed: int, total: ir.Value) -> ir.Value:
    """Sums over k of x[..., k] * block[k, n], or block[n, k], added to others."""
    rank = ir.RankedTensorType(x.type).rank + 1
    each = [ir.AffineExpr.get_dim(loop) for loop in range(rank)]
    k, n = each[-1], each[-2]
    of_x = ir.AffineMap.get(rank, 0, [*each[:-2], k])
    of_block = ir.AffineMap.get(rank, 0, [k, n] if summed == 0 else [n, k])
    written = ir.AffineMap.get(rank, 0, [*each[:-2], n])
    reduces = [False] * (rank - 1) + [True]
    return create_generic([(x, of_x), (block, of_block)], total, written, reduces, lambda e: _multiply_add(*e))


def _multiply_add(one: ir.Value, other: ir.Value, total: ir.Value) -> ir.Value:
    floating = isinstance(total.type, ir.FloatType)
    multiply, add, wider = _FLOATS if floating else _INTEGERS
    wide = [v if v.type == total.type else create(wider, [v], total.type) for v in (one, other)]
    return create(add, [total, create(multiply, wide, total.type)], total.type)
