# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Roller's alignment rules (section 3.2), derived from a device description, for CPUs and GPUs alike.

| rule | GPU | CPU |
|---|---|---|
| 1 execution unit | threads: a multiple of warp x partitions | lanes fill vectors; accumulators cover FMA latency |
| 2 transaction | inner dimensions are whole transactions | inner dimensions are whole cache lines |
| 3 bank | rows start in different banks of shared memory | rows start in different sets of the L1 cache |
| 4 tensor shape | axes are cut evenly: least padding | axes are cut evenly: least ragged |
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, gcd, lcm, prod

from tilewright.devices.device import Device, Level
from tilewright.plan.cost.expression import Expression, Operand
from tilewright.plan.cost.rtile import RTile, data_tile
from tilewright.plan.model.tiles import even

_ELEMENT = 4  # bytes that lanes and transactions are counted in: f32


def bank_padding(stride: int, width: int, banks: int, per_bank: int = 1) -> int:
    """Elements to add to rows of `stride` so that neighbours of `width` elements fall in different banks (rule 3).

    >>> bank_padding(64, 4, 32)
    4
    """
    factor = banks * per_bank
    offset = ceil(width / per_bank) * per_bank
    return (factor + offset - stride % factor) % factor


def set_conflicts(rows: int, stride_bytes: int, level: Level, ways: int) -> float:
    """How often the sets of a cache are oversubscribed by the first lines of `rows` rows; at most 1 is no conflict.

    Rows at a stride of a large power of two share few sets: rule 3 for a cache, whose banks are its sets.
    """
    sets = max(level.bytes // (level.transaction * ways), 1)
    if stride_bytes < level.transaction:
        return 0.0
    step = gcd(max(stride_bytes // level.transaction, 1), sets) if stride_bytes % level.transaction == 0 else 1
    reached = min(rows, sets // step)
    return rows / (reached * ways)


@dataclass(frozen=True)
class Machine:
    """What the rules need of a device.

    Attributes:
        device: the description.
        unit: name of the level that holds accumulators; `core`: level that one task's tile is sized for.
        lanes: f32 elements of a vector register; 1 on a GPU, whose unit is a thread.
        bundle: sub-tiles (threads) of a task must be a multiple of it; 1 on a CPU.
        most: at most that many sub-tiles per task; 0: no limit.
        chains: independent vector accumulators that hide the latency of a multiply-add.
    """

    device: Device
    unit: str
    core: str
    lanes: int
    bundle: int
    most: int
    chains: int

    @property
    def registers(self) -> int:
        """Registers of a unit."""
        return self.device.units.registers

    @property
    def gpu(self) -> bool:
        """Whether sub-tiles run as threads side by side."""
        return self.device.kind == "gpu"

    @property
    def transaction(self) -> int:
        """Bytes that memory moves at once."""
        return self.device.memory.transaction


def machine_of(device: Device) -> Machine:
    """The numbers of the rules for a CPU or GPU."""
    if device.kind == "gpu":
        bundle = device.limit("warp", 32) * device.limit("partitions", 4)
        return Machine(device, "register", "shared", 1, bundle, device.limit("max_threads", 512), 1)
    return Machine(device, "register", "l2", device.lanes(8 * _ELEMENT), 1, 0, device.chains)


# Rule 2 ---------------------------------------------------------------------------------------------------------------


def transaction_step(expression: Expression, loop: int, transaction: int) -> int:
    """Size that a loop must be a multiple of so that inner dimensions are whole transactions (or the whole axis)."""
    step = 1
    for operand in expression.operands:
        if operand.index and operand.index[-1] == ((loop, 1),) and not operand.fixed:
            step = lcm(step, max(transaction // operand.bytes, 1))
    return min(step, expression.extents[loop])


# Rule 1 ---------------------------------------------------------------------------------------------------------------


def sub_tiles(tile: RTile, unit: RTile) -> int:
    """Parallel sub-tiles of a tile: threads of a block where the unit tile is a thread's."""
    return prod(ceil(tile.shape[d] / unit.shape[d]) for d in tile.expression.parallel)


def accumulators(tile: RTile, machine: Machine) -> int:
    """Vector registers (registers of a thread on a GPU) that the outputs of a unit tile fill."""
    total = 0
    for sizes in tile.output_tiles:
        lanes = sizes[-1] if sizes else 1
        total += prod(sizes[:-1]) * ceil(lanes / machine.lanes)
    return total


def fits_registers(tile: RTile, machine: Machine) -> bool:
    """Whether accumulators and one step of the inputs fit the registers of a unit.

    A CPU broadcasts elements of the narrow input from memory, which takes one register; the other input's vectors stay.
    """
    held = accumulators(tile, machine)
    if machine.gpu:
        return held + sum(prod(sizes) for sizes in tile.input_tiles) <= machine.registers
    vectors = [ceil(sizes[-1] / machine.lanes) if sizes else 1 for sizes in tile.output_tiles]
    return held + max(vectors, default=0) + 1 <= machine.registers


def hides_latency(tile: RTile, machine: Machine) -> bool:
    """Rule 1 for a CPU's register tile: enough accumulators for the pipes, as far as the loops have points."""
    expression = tile.expression
    if machine.gpu or not expression.macs:
        return True
    available = prod(expression.extents[d] for d in expression.parallel) // machine.lanes
    return accumulators(tile, machine) >= min(machine.chains, max(available, 1))


# Rule 3 ---------------------------------------------------------------------------------------------------------------


def padding_of(tile: RTile, unit: RTile, machine: Machine) -> tuple[int, ...]:
    """Storage padding of each input's data tile in the shared memory of a GPU."""
    limit = machine.device.limit
    banks, per_bank = limit("banks", 32), max(limit("bank_bytes", _ELEMENT) // _ELEMENT, 1)
    paddings = []
    for operand, sizes in zip(tile.expression.inputs, tile.input_tiles, strict=True):
        inner = operand.index[-1] if operand.index else None
        width = max((unit.shape[d] for d, _ in inner or ()), default=1)
        paddings.append(bank_padding(sizes[-1], width, banks, per_bank) if len(sizes) > 1 else 0)
    return tuple(paddings)


def fits_core(tile: RTile, unit: RTile, machine: Machine) -> bool:
    """Whether the core's own memory holds a task's inputs, rows padded against conflicts, and a block its threads.

    Outputs stay in registers. What a cache holds of a task follows from reuse (`cache_traffic.py`), whatever its size.
    """
    if not machine.gpu:
        return True
    if machine.most and sub_tiles(tile, unit) > machine.most:
        return False
    padded = replace(tile, padding=padding_of(tile, unit, machine))
    return padded.input_footprint <= machine.device.level(machine.core).bytes


def bank_free(tile: RTile, machine: Machine) -> bool:
    """Rule 3 for a CPU: the rows that a register tile walks side by side stay resident in the L1 cache."""
    if machine.gpu:
        return True
    level, ways = machine.device.level("l1"), machine.device.limit("l1_ways", 8)
    most = machine.device.rate("set_share")
    for operand in tile.expression.inputs:
        if operand.fixed:
            continue
        for rows, stride in _strided(operand, tile):
            if set_conflicts(rows, stride * operand.bytes, level, ways) > most:
                return False
    return True


def _strided(operand: Operand, tile: RTile) -> Iterator[tuple[int, int]]:
    """Rows side by side in a tile and the elements between them."""
    sizes = data_tile(operand, tile.shape)
    stride = 1
    for size, extent in zip(reversed(sizes), reversed(operand.shape), strict=True):
        if size > 1 and stride > 1:
            yield size, stride
        stride *= extent


# Rule 4, and all of them ----------------------------------------------------------------------------------------------


def step_of(unit: RTile, loop: int, machine: Machine) -> int:
    """What sizes of a task along a loop are multiples of: unit tiles and transactions; the whole axis at most."""
    step = lcm(unit.shape[loop], transaction_step(unit.expression, loop, machine.transaction))
    return min(step, unit.expression.extents[loop])


def doubled(tile: RTile, loop: int, machine: Machine, unit: RTile) -> int | None:
    """The size along a loop that is twice the tile's, in whole unit tiles and transactions; None where it is whole."""
    extent, size, step = tile.expression.extents[loop], tile.shape[loop], step_of(unit, loop, machine)
    larger = min(ceil(2 * size / step) * step, extent)
    return larger if larger > size else None


def next_aligned(tile: RTile, loop: int, machine: Machine, unit: RTile) -> int | None:
    """The size along a loop that follows; None where it is whole.

    Rule 4: of the aligned sizes that cut the axis into as many parts as the doubled one, that with the least padding.
    """
    size = doubled(tile, loop, machine, unit)
    if size is None:
        return None
    return max(even(tile.expression.extents[loop], size, step_of(unit, loop, machine)), tile.shape[loop] + 1)
