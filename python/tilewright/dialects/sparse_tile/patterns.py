# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sparsity patterns: which elements of a tensor are kept, and how they are held.

Each pattern packs an array into parts and unpacks them again; that is what `sparse_tile.pack` and `unpack` mean. The
parts are described with the attributes in `dialects/SparseTile/SparseTilePatterns.td`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.core.errors import UserError

Parts = tuple[np.ndarray, ...]


def _check(holds: bool, text: str) -> None:
    if not holds:
        raise UserError(text)


@dataclass(frozen=True)
class Dense:
    """Every element may differ from zero; held as it is."""

    kind = "dense"

    def pack(self, array: np.ndarray) -> Parts:
        """Return the array itself."""
        return (array,)

    def unpack(self, parts: Sequence[np.ndarray], shape: Sequence[int]) -> np.ndarray:
        """Return the array. UserError where its shape is another one."""
        (array,) = parts
        _check(array.shape == tuple(shape), f"a dense part of shape {array.shape} for a tensor of shape {tuple(shape)}")
        return array


@dataclass(frozen=True)
class Dynamic(Dense):
    """Zeros come in blocks of `unit` elements, known at run time; held as it is."""

    unit: tuple[int, ...] = ()
    kind = "dynamic"


@dataclass(frozen=True)
class Mask:
    """Any elements of a matrix: compressed rows (data, indices, indptr), as `scipy.sparse.csr_array` has them."""

    kind = "mask"

    def pack(self, array: np.ndarray) -> Parts:
        """Keep what differs from zero; NaN does.

        Args:
            array: [rows, columns].

        Returns:
            data [kept], indices [kept] int32, ascending within a row, indptr [rows + 1] int32.
        """
        rows, columns = np.nonzero(array != 0)
        return array[rows, columns], columns.astype(np.int32), _starts(rows, array.shape[0])

    def unpack(self, parts: Sequence[np.ndarray], shape: Sequence[int]) -> np.ndarray:
        """Return the matrix [rows, columns]. UserError where indices are no positions in ascending order."""
        data, indices, indptr = parts
        _check(data.ndim == 1, f"data must have one dimension, not shape {data.shape}")
        rows = checked_rows(data, indices, indptr, shape[0], shape[1])
        result = np.zeros(shape, data.dtype)
        result[rows, indices] = data
        return result


@dataclass(frozen=True)
class Block:
    """Some blocks of a matrix: (data, indices, indptr), as `scipy.sparse.bsr_array` has them.

    Attributes:
        shape: rows and columns of a block. Blocks at the border are filled with zeros.
    """

    shape: tuple[int, int]
    kind = "block"

    def pack(self, array: np.ndarray) -> Parts:
        """Keep the blocks that hold an element other than zero.

        Returns:
            data [kept, *self.shape], indices [kept] int32, ascending within a row of blocks, indptr int32.
        """
        blocks = in_units(array, self.shape).transpose(0, 2, 1, 3)
        rows, columns = np.nonzero((blocks != 0).any(axis=(2, 3)))
        return blocks[rows, columns], columns.astype(np.int32), _starts(rows, blocks.shape[0])

    def unpack(self, parts: Sequence[np.ndarray], shape: Sequence[int]) -> np.ndarray:
        """Return the matrix [rows, columns]. UserError where indices are no positions in ascending order."""
        data, indices, indptr = parts
        grid = tuple(-(-size // step) for size, step in zip(shape, self.shape, strict=True))
        _check(
            data.ndim == 3 and data.shape[1:] == tuple(self.shape),
            f"blocks of shape {data.shape[1:]}, the pattern says {tuple(self.shape)}",
        )
        rows = checked_rows(data, indices, indptr, *grid)
        blocks = np.zeros((*grid, *self.shape), data.dtype)
        blocks[rows, indices] = data
        return out_of_units(blocks.transpose(0, 2, 1, 3), shape)


@dataclass(frozen=True)
class NM:
    """`n` of `m` neighbours along an axis (nmSPARSE, MLSys 2023, section 3).

    Attributes:
        n: units kept of each window.
        m: units of a window.
        axis: along which windows lie.
        unit: elements that are kept or not as one, a number per dimension; () is one element.
    """

    n: int
    m: int
    axis: int
    unit: tuple[int, ...] = ()
    kind = "nm"

    def pack(self, array: np.ndarray) -> Parts:
        """Keep what differs from zero, and zeros up to `n` units of each window.

        Returns:
            values: as the array, whole units, along the axis `n` units for each window.
            positions: a number below `m` per unit, ascending within a window; int8, int16 where `m` is above 128.

        Raises:
            UserError: a window has more than `n` units other than zero; says where.
        """
        units = self._windows(array)  # [windows, m, other units..., elements of a unit...]
        live = (units != 0).any(axis=tuple(range(2 + array.ndim - 1, units.ndim)))
        full = np.argwhere(live.sum(axis=1) > self.n)
        if len(full):
            window = full[0]
            count = int(live[(window[0], slice(None), *window[1:])].sum())
            raise UserError(
                f"{self.n}:{self.m} along axis {self.axis}: window {int(window[0])} at {window[1:].tolist()} has "
                f"{count} units other than zero ({len(full)} windows have too many); prune them first"
            )
        positions = self._positions(live)
        values = np.take_along_axis(units, positions.reshape(*positions.shape, *[1] * (units.ndim - live.ndim)), axis=1)
        small = np.int16 if self.m > 128 else np.int8
        return self._merged(values), self._flat(positions).astype(small)

    def _positions(self, live: np.ndarray) -> np.ndarray:
        """Of windows [windows, m, ...] with at most `n` live units, the live ones and the first others up to `n`."""
        spare = ~live
        wanted = self.n - live.sum(axis=1, keepdims=True)
        kept = live | (spare & (spare.cumsum(axis=1, dtype=np.int32) <= wanted))
        last = np.ascontiguousarray(np.moveaxis(kept, 1, -1))
        found = np.flatnonzero(last) % self.m
        return np.moveaxis(found.reshape(*last.shape[:-1], self.n), -1, 1)

    def unpack(self, parts: Sequence[np.ndarray], shape: Sequence[int]) -> np.ndarray:
        """Return the tensor of `shape`. UserError where positions are out of range or not ascending."""
        values, positions = parts
        _check_numbers(positions, "positions", len(shape))
        step = self._step(len(shape))
        windows = -(-shape[self.axis] // (self.m * step[self.axis]))
        counts = [-(-size // u) for size, u in zip(shape, step, strict=True)]
        counts[self.axis] = windows * self.n
        expected = tuple(count * u for count, u in zip(counts, step, strict=True))
        _check(
            values.shape == expected and positions.shape == tuple(counts),
            f"values of shape {values.shape} and positions of shape {positions.shape}, for {tuple(shape)} the pattern "
            f"has {expected} and {tuple(counts)}",
        )
        held = self._grouped(in_units(values, step), self.n)
        at = _split_front(np.moveaxis(positions, self.axis, 0), self.n).astype(np.int64)
        self._check_positions(at)
        units = np.zeros((windows, self.m, *held.shape[2:]), values.dtype)
        np.put_along_axis(units, at.reshape(*at.shape, *[1] * (held.ndim - at.ndim)), held, axis=1)
        return self._merged(units)[tuple(slice(size) for size in shape)]

    def _step(self, rank: int) -> tuple[int, ...]:
        return tuple(self.unit) or (1,) * rank

    def _windows(self, array: np.ndarray) -> np.ndarray:
        """[windows, m, other dimensions in units..., elements of a unit per dimension...]."""
        step = self._step(array.ndim)
        missing = -array.shape[self.axis] % (self.m * step[self.axis])
        padding = [(0, missing if dim == self.axis else 0) for dim in range(array.ndim)]
        return self._grouped(in_units(np.pad(array, padding), step), self.m)

    def _grouped(self, units: np.ndarray, size: int) -> np.ndarray:
        """[count 0, unit 0, count 1, unit 1, ...] with windows of `size` units along the axis in front."""
        rank = units.ndim // 2
        apart = np.moveaxis(units, range(1, units.ndim, 2), range(rank, units.ndim))
        return _split_front(np.moveaxis(apart, self.axis, 0), size)

    def _merged(self, units: np.ndarray) -> np.ndarray:
        """The inverse of :meth:`_windows`, padding apart."""
        rank = (units.ndim - 1) // 2
        front = units.reshape(units.shape[0] * units.shape[1], *units.shape[2:])
        front = np.moveaxis(front, 0, self.axis)
        front = np.moveaxis(front, range(rank, 2 * rank), range(1, 2 * rank, 2))
        return front.reshape([front.shape[2 * d] * front.shape[2 * d + 1] for d in range(rank)])

    def _flat(self, positions: np.ndarray) -> np.ndarray:
        """Positions [windows, n, ...] as [..., windows * n, ...] with the axis at its place."""
        flat = positions.reshape(positions.shape[0] * positions.shape[1], *positions.shape[2:])
        return np.moveaxis(flat, 0, self.axis)

    def _check_positions(self, at: np.ndarray) -> None:
        if not at.size:
            return
        _check(
            at.min() >= 0 and at.max() < self.m,
            f"positions {at.min()} to {at.max()} in windows of {self.m}: each must be at least 0 and below {self.m}",
        )
        falls = np.argwhere(np.diff(at, axis=1) <= 0)
        if len(falls):
            raise UserError(f"positions of window {falls[0][0]} do not ascend: one occurs twice, or is out of order")


Pattern = Dense | Dynamic | Mask | Block | NM


def in_units(array: np.ndarray, unit: Sequence[int]) -> np.ndarray:
    """Cut each dimension in units: [count 0, unit 0, count 1, unit 1, ...], filled with zeros at the border."""
    padded = np.pad(array, [(0, -size % step) for size, step in zip(array.shape, unit, strict=True)])
    cut = [part for size, step in zip(padded.shape, unit, strict=True) for part in (size // step, step)]
    return padded.reshape(cut)


def out_of_units(units: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Return what :func:`in_units` was given, of `shape`."""
    whole = units.reshape([units.shape[2 * d] * units.shape[2 * d + 1] for d in range(len(shape))])
    return np.ascontiguousarray(whole[tuple(slice(size) for size in shape)])


def checked_rows(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Row of each entry of compressed rows.

    Raises:
        UserError: the arrays do not fit each other, a column is out of range, occurs twice or out of order.
    """
    _check_numbers(indices, "indices", 1)
    _check_numbers(indptr, "indptr", 1)
    _check(data.ndim > 0, "data must have an entry for each kept element or block, not be one number")
    _check(
        indptr.shape == (rows + 1,) and indptr[0] == 0 and indptr[-1] == len(data) == len(indices),
        f"indptr must have {rows + 1} entries from 0 to the {len(data)} kept, and as many indices ({len(indices)})",
    )
    counts = np.diff(indptr.astype(np.int64))  # differences of small integers wrap around
    _check(bool((counts >= 0).all()), "indptr must not fall")
    row = np.repeat(np.arange(rows), counts)
    wrong = np.flatnonzero((indices < 0) | (indices >= columns))
    if len(wrong):
        raise UserError(f"row {row[wrong[0]]} has an entry in column {indices[wrong[0]]} of {columns}")
    place = row * columns + indices.astype(np.int64)
    falls = np.flatnonzero(np.diff(place) <= 0)
    if len(falls):
        raise UserError(f"columns of row {row[falls[0]]} do not ascend: one occurs twice, or is out of order")
    return row


def _check_numbers(part: np.ndarray, name: str, rank: int) -> None:
    _check(
        part.dtype.kind in "iu" and part.ndim == rank,
        f"{name} must be integers of {rank} dimensions, not {part.dtype} of shape {part.shape}",
    )


def _starts(rows: np.ndarray, count: int) -> np.ndarray:
    """Where each row starts, of the row of each entry."""
    return np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=count))]).astype(np.int32)


def _split_front(array: np.ndarray, size: int) -> np.ndarray:
    """[count * size, ...] as [count, size, ...]."""
    return array.reshape(array.shape[0] // size, size, *array.shape[1:])
