# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long a recurrence through a scan takes, row by row and along diagonals.

A domain of rows times columns depends on itself at (1, 0) and (0, 1). Row by row there are rows * columns steps of one
point; what needs no state is computed for a whole row before. Along diagonals there are rows + columns - 1 steps of
`rows` points (FractalTensor, SOSP 2024, section 4: the wavefront of a stacked LSTM). A step takes the longer of its
multiply-adds and the bytes of its weights, from the nearest memory that holds what all steps read, and its launches.

Diagonals compute `rows` points at each step, also outside of the domain: nearly twice as many as there are where it is
square. Bands of rows, each along its own diagonals, compute fewer, but read the weights that rows share more often.

Loops that are no rows of one recurrence, but layers or directions, run in turn or as one. As one, a GPU has a barrier
for all of their steps, which need nothing of each other; a CPU has launches for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.devices.device import Device

_LAUNCHES = 2
"""Kernels of a step: products, and what follows them."""


@dataclass(frozen=True)
class Work:
    """What a point of the domain takes, for all lists around it.

    Attributes:
        recurrent: multiply-adds that need a state of the scan.
        projected: multiply-adds that need none, but the row before.
        weights: bytes of the operands of recurrent products that no point changes, of one row.
        all_weights: the same of all products of a step along diagonals: those that are recurrent or projected.
        own_weights: of all_weights, those that each row has for itself.
        free: multiply-adds that need nothing of other points: they are computed before, whatever the order.
        own_free_weights: bytes that each row has for itself of the operands of these.
    """

    recurrent: int
    projected: int
    weights: int
    all_weights: int
    own_weights: int = 0
    free: int = 0
    own_free_weights: int = 0

    def weights_of(self, rows: int) -> int:
        """Bytes that a step of so many rows reads."""
        return self.all_weights + (rows - 1) * self.own_weights


def row_by_row(work: Work, rows: int, columns: int, device: Device) -> float:
    """Seconds, with the products that need no state in front of each row."""
    step = _step(work.recurrent, work.weights, device)
    before = (work.projected + work.free) * columns / _multiply_adds(device)
    return rows * (columns * step + before + _launch(device))


def along_diagonals(work: Work, rows: int, columns: int, device: Device, band: int | None = None) -> float:
    """Seconds; points outside of the domain are computed, too.

    Args:
        work: what a point takes.
        rows: of the domain.
        columns: of the domain.
        device: whose.
        band: rows that go along diagonals together, one band behind the other; all rows if not given.
    """
    count, rest = divmod(rows, band or rows)
    steps = count * _diagonals(work, band or rows, columns, device)
    steps += _diagonals(work, rest, columns, device) if rest else 0.0
    return steps + work.free * rows * columns / _multiply_adds(device)


def best_band(work: Work, rows: int, columns: int, device: Device) -> int:
    """How many rows to run along diagonals together: what is fastest; of equal ones, the most.

    All where rows have weights of their own: a step of a band would read no less for each of its points. Of as many
    bands, the most equal ones are fastest: what a band takes grows ever faster with its rows.
    """
    if work.own_weights:
        return rows
    equal = sorted({-(-rows // count) for count in range(1, rows + 1)}, reverse=True)
    return min(equal, key=lambda band: along_diagonals(work, rows, columns, device, band))


def _diagonals(work: Work, rows: int, columns: int, device: Device) -> float:
    step = _step(rows * (work.recurrent + work.projected), work.weights_of(rows), device)
    return (rows + columns - 1) * step


def in_turn(works: Sequence[Work], trips: int, device: Device) -> float:
    """Seconds of loops one behind the other, each behind the product of all that it needs of the loops before it.

    Args:
        works: what an iteration of each loop takes.
        trips: iterations of each.
        device: whose.
    """
    steps = sum(_compute(work.recurrent, work.weights, device) + _meeting(device) for work in works)
    projected = sum(
        work.projected * trips / _multiply_adds(device) + _launch(device) for work in works if work.projected
    )
    return trips * steps + projected


def as_one(works: Sequence[Work], trips: int, device: Device) -> float:
    """Seconds of one loop that has a step of each in an iteration.

    Args:
        works: what an iteration of each loop takes.
        trips: iterations, with those in which some loops have not begun or have ended.
        device: whose.
    """
    multiply_adds = sum(work.recurrent + work.projected for work in works)
    meetings = 1 if device.kind == "gpu" else len(works)
    step = _compute(multiply_adds, sum(work.all_weights for work in works), device)
    return trips * (step + meetings * _meeting(device))


def _meeting(device: Device) -> float:
    """What separates dependent steps of a loop: a barrier of the kernel that a GPU runs it in, or a launch."""
    return device.rate("grid.barrier") if device.kind == "gpu" else device.rate("launch")


def _step(multiply_adds: int, weights: int, device: Device) -> float:
    return _compute(multiply_adds, weights, device) + _launch(device)


def _compute(multiply_adds: int, weights: int, device: Device) -> float:
    return max(multiply_adds / _multiply_adds(device), weights / _bandwidth(device, weights))


def _launch(device: Device) -> float:
    return _LAUNCHES * device.rate("launch")


def _multiply_adds(device: Device) -> float:
    """Per second, of one core or all of a GPU."""
    units = device.units.count if device.kind == "gpu" else 1
    return device.units.peak_of("f32") / 2 * units


def _bandwidth(device: Device, size: int) -> float:
    """Bytes per second of the nearest cache behind the first that holds so many, or of the memory."""
    caches = [level for level in device.levels if level.kind == "cache"]
    level = next((c for c in caches[1:] if size <= c.bytes * device.rate("cache_share")), device.memory)
    units = device.units.count if device.kind == "gpu" and level.bandwidth else 1
    return (level.bandwidth or device.rate("bandwidth")) * units
