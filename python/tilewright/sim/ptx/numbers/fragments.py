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
