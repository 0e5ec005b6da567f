# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparse left operands of matrix units: metadata say where the kept half of the elements belongs.

Source: PTX ISA 9.7.14.6 ("Sparse matrix storage", figures 112 to 129) for mma.sp, 9.7.15.6 for wgmma, each of whose
warps has the metadata of its sixteen rows as one of mma.sp has. Arrays begin with the number of warps W.
"""

from __future__ import annotations

import numpy as np


class UndefinedMetadata(ValueError):
    """Metadata for which an instruction has no defined result.

    Attributes:
        warp: of which warp, counted from 0.
    """

    def __init__(self, message: str, warp: int) -> None:
        super().__init__(message)
        self.warp = warp


def expand_sparse(
    values: np.ndarray, metadata: np.ndarray, selector: int, bits: int, ordered: bool = False
) -> np.ndarray:
    """The left operand of a sparse product: ``(W, 16, K/2)`` of non-zeros to ``(W, 16, K)``, zeros between.

    Args:
        values: the stored half of each row, in order.
        metadata: ``(W, 32)`` of uint32; two bits say where in its chunk of four each stored element belongs. For
            32-bit elements (1:2 sparse) an element counts as two of 16 bits.
        selector: which lanes of each group of four supply the metadata.
        bits: of an element: 8, 16 or 32.
        ordered: whether the instruction says that positions ascend (``::ordered_metadata``).

    Raises:
        UndefinedMetadata: two elements of a chunk have one position, positions do not ascend where they must, or a
            32-bit element is split.
    """
    warps, rows, stored = values.shape
    split = 2 if bits == 32 else 1
    indices = metadata_indices(metadata, selector, stored * split, 16 if bits >= 16 else 8)
    _check(indices[..., 0::2], indices[..., 1::2], bits, ordered)
    if split == 2:  # 0b0100 = first, 0b1110 = second of two: the lower of the two indices halved
        where = np.arange(stored) * 2 + indices[..., 0::2] // 2
    else:
        where = np.arange(stored) // 2 * 4 + indices
    dense = np.zeros((warps, rows, 2 * stored), values.dtype)
    np.put_along_axis(dense, where, values, axis=2)
    return dense


def _check(first: np.ndarray, second: np.ndarray, bits: int, ordered: bool) -> None:
    """Positions of the two elements of each chunk ``(W, 16, chunks)``."""
    if bits == 32:
        wrong, why = (first % 2 != 0) | (second != first + 1), "is neither the first nor the second of two elements"
    elif ordered:
        wrong, why = first >= second, "has two equal positions, or a smaller one behind a larger one"
    else:
        wrong, why = first == second, "has two equal positions"
    if not wrong.any():
        return
    warp, row, chunk = (int(where[0]) for where in np.nonzero(wrong))
    code = int(first[warp, row, chunk]) | int(second[warp, row, chunk]) << 2
    raise UndefinedMetadata(f"metadata 0b{code:04b} of row {row}, chunk {chunk} {why}", warp)


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
