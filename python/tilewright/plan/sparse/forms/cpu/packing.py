# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights as kernels read them: lists of kept elements, made by operations that run where the weights are known."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from tilewright.dialects.sparse_tile.patterns import NM, Mask
from tilewright.dialects.sparse_tile.tesa import Region, Tesa
from tilewright.ir.generics import create, create_copy, create_transposed, create_zero
from tilewright.mlir import ir
from tilewright.mlir.dialects.sparse_tile import part_types
from tilewright.passes.weights import create_table
from tilewright.plan.sparse.encoded import pack_of
from tilewright.plan.sparse.forms.cpu.pairs import Pairs
from tilewright.plan.sparse.forms.form import Product
from tilewright.plan.sparse.forms.indices import number, over, plus, rest, times
from tilewright.plan.sparse.forms.tables import read_or, table, word_of

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class Lists:
    """Kept elements, list after list; a list is a row of the sparse matrix [rows, depth] within a block of its depth.

    Lists of the first block come first, in the order of the rows.

    Attributes:
        values: [kept], widened to the type of sums.
        positions: [kept / unroll], words of that many positions in the block, the first one in the lowest bits.
        starts: [lists + 1] i32, where each list begins; None where all have `count` elements.
    """

    values: ir.Value
    positions: ir.Value
    starts: ir.Value | None


def known_source(product: Product) -> np.ndarray | None:
    """The elements of the encoded operand, where the pass is given weights; None where they are not known."""
    from tilewright.plan.sparse.constants import packed_array

    return packed_array(product.encoded)


def plain_parts(product: Product) -> tuple[ir.Value, ...]:
    """What holds the encoded operand, its numbers as floats."""
    (region,) = product.tesa.regions
    if region.format is None:
        return product.parts
    value = product.encoded
    kind = ir.RankedTensorType(value.type)
    floats = Tesa((Region(region.pattern),)).type(kind.shape, kind.element_type)
    plain = create("sparse_tile.dequantize", [value], floats)
    return tuple(ir.Operation.create("sparse_tile.parts", results=part_types(floats), operands=[plain]).results)


def mask_lists(product: Product, element: ir.Type, block: int) -> Lists:
    """Lists of an unstructured operand: one for each row and block of the depth, positions of 32 bits.

    The operand is packed again, its rows cut in blocks, which runs where the weights are known; so does all else, but
    for parts that a run brings, which are taken as they are: lists over the whole depth.

    Args:
        product: with one region, a mask.
        element: the type of sums.
        block: terms of a list.
    """
    source, packed_by = known_source(product), pack_of(product.encoded)
    if source is None or packed_by is None:
        return Lists(*product.parts)
    matrix = packed_by.operands[0]
    if not product.left:
        matrix = create_transposed(matrix, [1, 0])
    if block < product.k:
        matrix = _in_blocks(matrix, block)
    kind = ir.RankedTensorType(matrix.type)
    encoded = Tesa((Region(Mask()),)).type(list(kind.shape), kind.element_type)
    packed, kept = create("sparse_tile.pack", [matrix], encoded), int((source != 0).sum())
    kinds = [ir.RankedTensorType(kind) for kind in part_types(encoded)]
    sized = [ir.RankedTensorType.get([kept if n < 0 else n for n in kind.shape], kind.element_type) for kind in kinds]
    values, positions, starts = ir.Operation.create("sparse_tile.parts", results=sized, operands=[packed]).results
    kind = ir.RankedTensorType.get([kept], element)
    if values.type != kind:
        values = create_copy(values, create("tensor.empty", [], kind), "arith.extf")
    return Lists(values, positions, starts)


def _in_blocks(matrix: ir.Value, block: int) -> ir.Value:
    """[rows, depth] as [blocks * rows, block], all rows of the first block first, zeros behind the depth."""
    kind = ir.RankedTensorType(matrix.type)
    rows, depth = kind.shape
    zero = create_zero(kind.element_type)

    def read(block_: ir.Value, row: ir.Value, place: ir.Value) -> ir.Value:
        return read_or(matrix, [row, plus(times(block_, block), place)], zero)

    cut = table([-(-depth // block), rows, block], kind.element_type, read)
    return _flat(cut, [[0, 1], [2]])


def nm_lists(product: Product, element: ir.Type, block: int, unroll: int, bits: int) -> Lists:
    """Lists of an element-wise N:M operand: of each row and block `block * n / m` elements.

    Windows that the last block lacks are filled with zeros at positions behind the depth.

    Args:
        product: with one region, whose units are single elements.
        element: the type of sums.
        block: a multiple of the window.
        unroll: positions of a word; divides the elements of a list.
        bits: of a position.
    """
    pattern = product.tesa.regions[0].pattern
    assert isinstance(pattern, NM)
    values, positions = plain_parts(product)
    rows = ir.RankedTensorType(values.type).shape[0 if product.left else 1]
    blocks, count = -(-product.k // block), block // pattern.m * pattern.n

    def value(block_: ir.Value, row: ir.Value, place: ir.Value) -> ir.Value:
        return _widened(_part(product, values, row, plus(times(block_, count), place)), element)

    word = ir.IntegerType.get_signless(bits * unroll)

    def position(block_: ir.Value, row: ir.Value, place: ir.Value) -> ir.Value:
        own = []
        for u in range(unroll):
            inside = plus(times(place, unroll), u)
            in_window = _part(product, positions, row, plus(times(block_, count), inside))
            window = times(over(inside, pattern.n), pattern.m)
            own.append(plus(window, create("arith.index_castui", [in_window], window.type)))
        return word_of(own, bits, word)

    return Lists(
        _flat(table([blocks, rows, count], element, value)),
        _flat(table([blocks, rows, count // unroll], word, position)),
        None,
    )


def paired_lists(product: Product, element: ir.Type, width: int, pairs: Pairs) -> list[ir.Value]:
    """Lists of an element-wise N:M operand by pairs of rows, as :class:`PairsKernel` reads them.

    Values [blocks, pairs, count, 2] of both rows side by side. Positions of 16 bits [blocks, pairs, places]: of what
    both rows have in common once for both, then of both side by side. Rows of pairs [blocks, pairs, 2] i32. How much
    they have in common [blocks, pairs] i32. All of them flat.

    Args:
        product: with one region, whose units are single elements.
        element: the type of sums.
        width: what positions are multiplied by: elements of a row of the dense operand; below 2^16 for all in a block.
        pairs: of its rows.
    """
    pattern = product.tesa.regions[0].pattern
    assert isinstance(pattern, NM)
    values, positions = plain_parts(product)
    blocks, half, count, _ = pairs.places.shape
    order, places, shared = (create_table(one) for one in (pairs.order, pairs.places, pairs.shared))
    i16, i32 = (ir.IntegerType.get_signless(bits) for bits in (16, 32))

    def row_of(block: ir.Value, pair: ir.Value, side: ir.Value) -> ir.Value:
        return create("tensor.extract", [order, block, pair, side], i32)

    def shared_of(block: ir.Value, pair: ir.Value) -> ir.Value:
        return create("tensor.extract", [shared, block, pair], i32)

    def place_of(block: ir.Value, pair: ir.Value, at: ir.Value, side: ir.Value) -> tuple[ir.Value, ir.Value]:
        place = create("tensor.extract", [places, block, pair, at, side], i16)
        found = (row_of(block, pair, side), place)
        row, place = (create("arith.index_cast", [one], ir.IndexType.get()) for one in found)
        return row, place

    def value(block: ir.Value, pair: ir.Value, at: ir.Value, side: ir.Value) -> ir.Value:
        row, place = place_of(block, pair, at, side)
        return _widened(_part(product, values, row, plus(times(block, count), place)), element)

    def position(block: ir.Value, pair: ir.Value, at: ir.Value) -> ir.Value:
        common = create("arith.index_cast", [shared_of(block, pair)], ir.IndexType.get())
        beyond = create("arith.subi", [create("arith.maxui", [at, common], at.type), common], at.type)
        inside = create("arith.minui", [plus(over(beyond, 2), common), number(count - 1)], at.type)
        row, place = place_of(block, pair, create("arith.minui", [inside, at], at.type), rest(beyond, 2))
        in_window = _part(product, positions, row, plus(times(block, count), place))
        window = times(over(place, pattern.n), pattern.m)
        found = plus(window, create("arith.index_castui", [in_window], window.type))
        return create("arith.index_castui", [times(found, width)], i16)

    return [
        _flat(table([blocks, half, count, 2], element, value)),
        _flat(table([blocks, half, 2 * count - pairs.least], i16, position)),
        _flat(table([blocks, half, 2], i32, row_of)),
        _flat(table([blocks, half], i32, shared_of)),
    ]


def nm_across_lanes(product: Product, groups: int, lanes: int, kept: int, words: int) -> tuple[ir.Value, ir.Value]:
    """Values [groups, kept, lanes] and positions of an element-wise N:M operand, which is known.

    Rows that the last lanes and groups lack are zeros.

    Args:
        product: with one region, whose units are single elements.
        groups: how many registers of rows, at least rows / lanes.
        lanes: rows side by side.
        kept: elements of a row, zeros at position 0 behind those that there are.
        words: positions of a word of 32 bits [groups, kept / words, lanes], the first one in the lowest two
            bits; 0: each as it is held [groups, kept, lanes].
    """
    values, positions = plain_parts(product)

    def read(source: ir.Value, group: ir.Value, place: ir.Value, lane: ir.Value) -> ir.Value:
        return _part(product, source, plus(times(group, lanes), lane), place)

    def arranged(source: ir.Value) -> ir.Value:
        element = ir.RankedTensorType(source.type).element_type
        return table([groups, kept, lanes], element, functools.partial(read, source))

    if not words:
        return arranged(values), arranged(positions)
    word = ir.IntegerType.get_signless(32)

    def packed(group: ir.Value, place: ir.Value, lane: ir.Value) -> ir.Value:
        return word_of([read(positions, group, plus(times(place, words), u), lane) for u in range(words)], 2, word)

    return arranged(values), table([groups, kept // words, lanes], word, packed)


def _part(product: Product, source: ir.Value, row: ir.Value, place: ir.Value) -> ir.Value:
    """An element of values or positions by row of the sparse matrix and place in the row, zero behind their ends."""
    places = [row, place] if product.left else [place, row]
    return read_or(source, places, create_zero(ir.RankedTensorType(source.type).element_type))


def _flat(value: ir.Value, groups: Sequence[Sequence[int]] | None = None) -> ir.Value:
    """The tensor with these groups of dimensions as one each; by default all of them."""
    kind = ir.RankedTensorType(value.type)
    groups = groups or [range(kind.rank)]
    i64 = ir.IntegerType.get_signless(64)
    kept = ir.ArrayAttr.get([ir.ArrayAttr.get([ir.IntegerAttr.get(i64, d) for d in group]) for group in groups])
    flat = ir.RankedTensorType.get([prod(kind.shape[d] for d in group) for group in groups], kind.element_type)
    return create("tensor.collapse_shape", [value], flat, {"reassociation": kept})


def _widened(value: ir.Value, element: ir.Type) -> ir.Value:
    return value if value.type == element else create("arith.extf", [value], element)
