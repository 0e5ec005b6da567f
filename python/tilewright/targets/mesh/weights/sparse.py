# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Weights that the cores hold in fewer bytes than their elements have: pruned ones without zeros, codes of formats.

Each core keeps its block. Of a pruned one, for each column, the numbers that are not 0 and their rows in the block, as
many as the fullest column of all blocks has: N:M weights fill that, others are padded (ELLPACK, Kincaid et al. 1989).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

import numpy as np

from tilewright.core.dtypes import of_mlir
from tilewright.ir.generics import create, maker, maps, walk
from tilewright.mlir import ir
from tilewright.plan.sparse.constants import array_of, has_zeros
from tilewright.plan.sparse.encoded import is_constant
from tilewright.plan.sparse.forms.making import contraction
from tilewright.targets.mesh.attributes import Fixed
from tilewright.targets.mesh.computations import Elementwise, Product, computation, dims

#: The part of the elements that may be left for zeros to be worth an index each.
MOST_LEFT = 0.75


@dataclass(frozen=True, eq=False)
class Weight:
    """The weight of a product, as it could be held.

    Attributes:
        how: ``sparse``: without zeros; ``coded``: as what an elementwise generic makes it of.
        number: of the product's operand.
        columns: its loop that the result has; ``rows``: that of the other operand, None for a vector.
        values: of ``sparse``, the matrix [summed, columns].
        made: of ``coded``, the generic.
    """

    how: Literal["sparse", "coded"]
    number: int
    columns: int
    rows: int | None
    values: np.ndarray | None = None
    made: ir.Operation | None = None


def open_products(function: ir.Operation) -> None:
    """Let products of encoded operands be those of what they hold: how the cores hold it is chosen for any weight."""
    for op in walk(function, "sparse_tile.matmul"):
        operands = list(op.operands)
        with ir.InsertionPoint(op), op.location:
            a, b = map(_opened, operands[:2])
            if a is None or b is None:
                continue
            op.results[0].replace_all_uses_with(contraction(a, b, operands[2]))
        op.erase()


def _opened(value: ir.Value) -> ir.Value | None:
    """What an encoded tensor holds; None where a run packs it."""
    kind = ir.RankedTensorType(value.type)
    if kind.encoding is None:
        return value
    if not is_constant(value):
        return None
    return create("sparse_tile.unpack", [value], ir.RankedTensorType.get(kind.shape, kind.element_type))


def weight_of(op: ir.Operation, found: Product, fixed: Fixed) -> Weight | None:
    """What a product's weight may be held as; None where it has none, or where its elements are as good."""
    for number, columns, rows in ((found.right, found.columns, found.rows), (found.left, found.rows, found.columns)):
        value = op.operands[number]
        order = dims(maps(op)[number])
        if columns is None or not fixed(value) or fixed(op.operands[1 - number]) or len(order) != 2:
            continue
        made = maker(value)
        if made is not None and _is_coded(made):
            return Weight("coded", number, columns, rows, made=made)
        array = array_of(value) if has_zeros(value) else None
        if array is not None and array.ndim == 2:
            matrix = array if order[0] == found.summed else array.T
            return Weight("sparse", number, columns, rows, values=np.asarray(matrix))
    return None


def _is_coded(made: ir.Operation) -> bool:
    """Whether a weight has more bytes than what it is made of, element by element."""
    if made.name != "linalg.generic" or not isinstance(computation(made, codes=True), Elementwise):
        return False
    return sum(_bytes(value) for value in list(made.operands)[:-1]) < _bytes(made.results[0])


def _bytes(value: ir.Value) -> float:
    kind = ir.RankedTensorType(value.type)
    bits = 4 if str(kind.element_type) == "i4" else of_mlir(str(kind.element_type)).itemsize * 8
    return prod(kind.shape) * bits / 8


def condensed(matrix: np.ndarray, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of a matrix that are not 0, and where in its block each stands.

    Args:
        matrix: [k, n]; blocks of ceil(k / side) rows.
        side: cores along each side of the grid.

    Returns:
        Numbers [side * most, n], those of block i from row i * most on, and their rows in the block, of the shortest
        integers; padded by zeros at row 0.
    """
    blocks, most = _blocks(matrix, side), most_left(matrix, side)
    order = np.argsort(blocks == 0, axis=1, kind="stable")[:, :most]
    numbers = np.take_along_axis(blocks, order, axis=1)
    order = np.where(numbers == 0, 0, order).astype(_places(matrix, side))
    return numbers.reshape(side * most, -1), order.reshape(side * most, -1)


def condensed_kinds(matrix: np.ndarray, side: int) -> tuple[ir.RankedTensorType, ir.RankedTensorType]:
    """The types of what `condensed` returns."""
    shape = [side * most_left(matrix, side), matrix.shape[1]]
    return tuple(ir.RankedTensorType.get(shape, _element(kind)) for kind in (matrix.dtype, _places(matrix, side)))


def most_left(matrix: np.ndarray, side: int) -> int:
    """How many numbers that are not 0 the fullest column of all blocks has; one at least."""
    return max(1, int(np.count_nonzero(_blocks(matrix, side), axis=1).max()))


def _blocks(matrix: np.ndarray, side: int) -> np.ndarray:
    k, n = matrix.shape
    rows = -(-k // side)
    blocks = np.zeros((side * rows, n), matrix.dtype)
    blocks[:k] = matrix
    return blocks.reshape(side, rows, n)


def _places(matrix: np.ndarray, side: int) -> np.dtype:
    """The shortest integers that count the rows of a block."""
    rows = -(-len(matrix) // side)
    return np.dtype(np.int8 if rows <= 128 else np.int16 if rows <= 32768 else np.int32)


def short_codes(value: ir.Value) -> np.ndarray | None:
    """Codes of at most 8 bits that 4 bits can hold, with a sign or without; None for others."""
    kind = ir.RankedTensorType(value.type).element_type
    if not isinstance(kind, ir.IntegerType) or kind.width > 8:
        return None
    codes = array_of(value)
    if codes is None or codes.dtype == np.bool_:
        return None
    codes = codes.astype(np.int16)
    low, high = int(codes.min()), int(codes.max())
    return codes.astype(np.int8) if (-8 <= low and high <= 7) or (low >= 0 and high <= 15) else None


def packed(codes: np.ndarray, dim: int, side: int) -> np.ndarray:
    """Two codes of 4 bits in each byte.

    Args:
        codes: of 4 bits each, as int8.
        dim: along which blocks of ceil(size / side) lie: a byte holds those at i and at half a block from there.

    Returns:
        Bytes, of side * ceil(block / 2) along `dim`.
    """
    moved = np.moveaxis(codes, dim, 0)
    rows = -(-len(moved) // side)
    half = -(-rows // 2)
    blocks = np.zeros((side * rows, *moved.shape[1:]), np.int8)
    blocks[: len(moved)] = moved
    blocks = blocks.reshape(side, rows, *moved.shape[1:])
    pairs = np.zeros((side, 2 * half, *moved.shape[1:]), np.int8)
    pairs[:, :rows] = blocks
    made = (pairs[:, :half] & 15) | (pairs[:, half:] << 4)
    return np.moveaxis(made.reshape(side * half, *moved.shape[1:]), 0, dim)


def constant(array: np.ndarray) -> ir.Value:
    """A tensor of known elements, at the current insertion point."""
    plain = np.ascontiguousarray(array)
    if array.dtype.name == "bfloat16":
        plain = plain.view(np.uint16)
    shape = ir.RankedTensorType.get(list(array.shape), _element(array.dtype))
    return create("arith.constant", [], shape, {"value": ir.DenseElementsAttr.get(plain, type=shape)})


def _element(dtype: np.dtype) -> ir.Type:
    kind = {"bfloat16": ir.BF16Type, "float16": ir.F16Type, "float32": ir.F32Type}.get(dtype.name)
    return ir.IntegerType.get_signless(dtype.itemsize * 8) if kind is None else kind.get()
