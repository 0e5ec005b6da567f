# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Who holds what: the fragments of matrices in the registers of a warp.

A warp's 32 lanes form 8 groups of 4 (``lane = 4 * group + member``). All fragments of mma.sync, wgmma, ldmatrix and
stmatrix are the same few permutations of (group, member, register, element in register) for every element width, as
PTX ISA 9.7.14.5 ("Matrix fragments") says for each shape one by one; so they are transpositions of one reshaped array.
Arrays begin with the number of warps W, so that one call serves every warp that executes the instruction.
"""

from __future__ import annotations

import numpy as np

_LANES = (8, 4)


def a_matrix(values: np.ndarray, rows: int) -> np.ndarray:
    """The left operand: fragment ``(W, 32, registers, elements)`` to ``(W, rows, K)``, rows 8 or 16.

    Registers alternate between the upper and lower eight rows, then advance along k (PTX ISA 9.7.14.5.6 to .9).
    """
    warps, _, registers, elements = values.shape
    halves = rows // 8
    parts = values.reshape(warps, *_LANES, registers // halves, halves, elements)
    return parts.transpose(0, 4, 1, 3, 2, 5).reshape(warps, rows, -1)


def b_matrix(values: np.ndarray) -> np.ndarray:
    """The right operand: fragment ``(W, 32, registers, elements)`` to ``(W, K, 8)``."""
    warps, _, registers, elements = values.shape
    parts = values.reshape(warps, *_LANES, registers, elements)
    return parts.transpose(0, 3, 2, 4, 1).reshape(warps, -1, 8)


def c_matrix(values: np.ndarray, rows: int) -> np.ndarray:
    """The accumulator: fragment ``(W, 32, n)`` to ``(W, rows, columns)``, rows 8 or 16.

    Also the accumulator of a wgmma, whose four warps hold 16 rows each (PTX ISA 9.7.15.5.1.1).
    """
    warps, _, count = values.shape
    halves = rows // 8
    parts = values.reshape(warps, *_LANES, count // (2 * halves), halves, 2)
    return parts.transpose(0, 4, 1, 3, 2, 5).reshape(warps, rows, -1)


def c_fragment(matrix: np.ndarray) -> np.ndarray:
    """The inverse of :func:`c_matrix`: ``(W, rows, columns)`` to ``(W, 32, rows * columns / 32)``."""
    warps, rows, columns = matrix.shape
    parts = matrix.reshape(warps, rows // 8, 8, columns // 8, 4, 2)
    return parts.transpose(0, 2, 4, 3, 1, 5).reshape(warps, 32, -1)


def matrix_registers(rows: np.ndarray, transposed: bool) -> np.ndarray:
    """ldmatrix: rows ``(W, n, 8, 8)`` of 16 bits to registers ``(W, 32, n)`` (PTX ISA 9.7.14.5.15).

    Lane 4 * r + c holds elements 2c and 2c + 1 of row r of each 8x8 matrix (of column r if transposed).
    """
    if transposed:
        rows = rows.swapaxes(-1, -2)
    warps, count = rows.shape[:2]
    packed = np.ascontiguousarray(rows).reshape(warps, count, 64).view(np.uint32)
    return packed.transpose(0, 2, 1)


def matrix_rows(registers: np.ndarray, transposed: bool) -> np.ndarray:
    """stmatrix: the inverse of :func:`matrix_registers`: ``(W, 32, n)`` to ``(W, n, 8, 8)`` of 16 bits."""
    warps, _, count = registers.shape
    packed = np.ascontiguousarray(registers.transpose(0, 2, 1))
    rows = packed.view(np.uint16).reshape(warps, count, 8, 8)
    return rows.swapaxes(-1, -2) if transposed else rows


def expand_sparse(values: np.ndarray, metadata: np.ndarray, selector: int, bits: int) -> np.ndarray:
    """The left operand of a sparse product: ``(W, 16, K/2)`` of non-zeros to ``(W, 16, K)``, zeros between.

    Args:
        values: the stored half of each row, in order.
        metadata: ``(W, 32)`` of uint32; two bits say where in its chunk of four each stored element belongs. For
            32-bit elements (1:2 sparse) an element counts as two of 16 bits.
        selector: which lanes of each group of four supply the metadata.
        bits: of an element: 8, 16 or 32.

    Source: PTX ISA 9.7.14.6 ("Sparse matrix storage", figures 112 to 129).
    """
    warps, rows, stored = values.shape
    split = 2 if bits == 32 else 1
    indices = metadata_indices(metadata, selector, stored * split, 16 if bits >= 16 else 8)
    if split == 2:  # 0b0100 = first, 0b1110 = second of two: the lower of the two indices halved
        where = np.arange(stored) * 2 + indices[..., 0::2] // 2
    else:
        where = np.arange(stored) // 2 * 4 + indices
    dense = np.zeros((warps, rows, 2 * stored), values.dtype)
    np.put_along_axis(dense, where, values, axis=2)
    return dense


def metadata_indices(metadata: np.ndarray, selector: int, stored: int, bits: int) -> np.ndarray:
    """Two-bit indices ``(W, 16, stored)`` from the metadata registers ``(W, 32)``.

    16-bit elements: a lane's lower half word is for row ``group``, its upper for row ``group + 8``, 8 stored elements
    each. 8-bit elements: a lane's word is for one row, ``group + 8 * (member & 1)``, 16 stored elements.
    """
    words = metadata.reshape(-1, 8, 4)
    members = stored // 8
    shifts = np.arange(16, dtype=np.uint32) * np.uint32(2)
    chosen = words[:, :, selector * members : (selector + 1) * members]
    codes = ((chosen[..., None] >> shifts) & np.uint32(3)).astype(np.int64)  # W, group, member, 16
    warps = len(words)
    if bits == 16:
        parts = codes.reshape(warps, 8, members, 2, 8)
        return parts.transpose(0, 3, 1, 2, 4).reshape(warps, 16, stored)
    parts = codes.reshape(warps, 8, members // 2, 2, 16)
    return parts.transpose(0, 3, 1, 2, 4).reshape(warps, 16, stored)
