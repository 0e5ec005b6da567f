# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Roller's rules and rTiles against the numbers that its paper, its code and Welder's paper give."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright import devices
from tilewright.plan.cost.construct import reuse_score, scale_up, unit_tiles
from tilewright.plan.cost.expression import Expression, Operand, elementwise, fused_axes, matmul, reduce
from tilewright.plan.cost.rtile import RTile, data_tile, padding_waste, runs
from tilewright.plan.cost.rules import (
    Machine,
    bank_free,
    bank_padding,
    fits_core,
    fits_registers,
    hides_latency,
    machine_of,
    next_aligned,
    set_conflicts,
    sub_tiles,
    transaction_step,
)

V100 = machine_of(devices.get("nvidia-v100"))
ZEN5 = machine_of(devices.get("cpu:amd-zen5"))
AVX2 = machine_of(devices.get("cpu:host-generic-avx2"))


def whole_transactions(tile: RTile, transaction: int) -> bool:
    """Rule 2: whether the innermost dimension of each data tile is a multiple of the transaction, or complete."""
    for operand in tile.expression.operands:
        sizes = data_tile(operand, tile.shape)
        if sizes[-1] < operand.shape[-1] and sizes[-1] * operand.bytes % transaction:
            return False
    return True


def admissible(task: RTile, unit: RTile, machine: Machine) -> bool:
    """Whether all of Roller's rules hold for both tiles (rule 4 aside, which is a matter of degree)."""
    if any(s % u and s != e for s, u, e in zip(task.shape, unit.shape, task.expression.extents, strict=True)):
        return False
    if not (fits_registers(unit, machine) and hides_latency(unit, machine) and bank_free(unit, machine)):
        return False
    filled = sub_tiles(task, unit) % machine.bundle == 0 and fits_core(task, unit, machine)
    return filled and whole_transactions(task, machine.transaction)


# The rTile -----------------------------------------------------------------------------------------------------------


def test_a_dilated_window_touches_no_lines_between() -> None:
    image = Operand((69, 69, 256), (((0, 1), (2, 18)), ((1, 1), (3, 18)), ((4, 1),)))
    assert data_tile(image, (1, 33, 3, 3, 256)) == (3, 69, 256)
    assert data_tile(image, (33, 1, 1, 3, 8)) == (33, 3, 8)


@pytest.mark.parametrize(("rows", "mebibytes"), [(4, 840), (16, 264)])
def test_traffic_of_the_worked_example_of_welder(rows: int, mebibytes: int) -> None:
    tile = RTile(matmul(98304, 128, 64), (rows, 128, 64))
    assert tile.traffic() == mebibytes << 20


def test_what_follows_from_a_tile() -> None:
    tile = RTile(matmul(64, 96, 128), (16, 32, 128))
    assert tile.input_tiles == ((16, 128), (128, 32))
    assert tile.output_tiles == ((16, 32),)
    assert tile.footprint == 4 * (16 * 128 + 128 * 32 + 16 * 32)
    assert replace(tile, padding=(0, 4)).footprint == tile.footprint + 4 * 128 * 4
    assert (tile.grid, tile.steps, tile.flops) == (12, 1, 2 * 16 * 32 * 128)
    assert tile.waste == (0, 0, 0)


def test_traffic_counts_whole_transactions() -> None:
    tile = RTile(elementwise((64, 100)), (4, 10))
    assert tile.load(1) == 4 * 40
    assert tile.load(64) == 4 * 64  # four runs of 40 bytes
    assert RTile(elementwise((64, 100)), (4, 100)).load(64) == 1600  # one run
    assert runs((4, 100), (64, 100)) == (1, 400)


def test_windows_overlap() -> None:
    from tilewright.plan.cost.expression import Operand

    image = Operand((1, 58, 58), (((2, 1),), ((0, 1), (3, 1)), ((1, 1), (4, 1))))
    out = Operand((56, 56), (((0, 1),), ((1, 1),)))
    conv = Expression((56, 56, 1, 3, 3), frozenset({2, 3, 4}), (image,), (out,), macs=1, work=0.0)
    assert RTile(conv, (8, 8, 1, 3, 3)).input_tiles == ((1, 10, 10),)


# Rule 1: execution unit ---------------------------------------------------------------------------------------------


def test_threads_are_whole_bundles_of_warps() -> None:
    product = matmul(4096, 4096, 4096)
    unit = RTile(product, (8, 4, 1))
    block = RTile(product, (128, 64, 32))
    assert sub_tiles(block, unit) == 256
    assert fits_core(block, unit, V100)
    assert not fits_core(RTile(product, (256, 128, 8)), unit, V100)  # 1024 threads
    threads = [sub_tiles(task, unit) for task in scale_up(unit, V100)]
    assert threads and all(count % 128 == 0 and count <= 512 for count in threads)


def test_accumulators_fill_registers_and_hide_the_latency_of_the_pipes() -> None:
    product = matmul(1024, 1024, 1024)
    assert hides_latency(RTile(product, (8, 32, 1)), ZEN5)
    assert not hides_latency(RTile(product, (2, 32, 1)), ZEN5)  # 4 accumulators for 2 pipes of latency 4
    assert fits_registers(RTile(product, (14, 32, 1)), ZEN5)
    assert not fits_registers(RTile(product, (15, 32, 1)), ZEN5)
    assert fits_registers(RTile(product, (6, 16, 1)), AVX2)
    assert not fits_registers(RTile(product, (7, 16, 1)), AVX2)
    assert hides_latency(RTile(matmul(1, 64, 1024), (1, 64, 1)), ZEN5)  # no more points than that


# Rule 2: transactions -----------------------------------------------------------------------------------------------


def test_inner_dimensions_are_whole_transactions() -> None:
    product = matmul(4096, 4096, 4096)
    assert transaction_step(product, 1, 32) == 8  # 32 bytes of f32
    assert transaction_step(product, 2, 32) == 8
    assert transaction_step(product, 0, 32) == 1
    assert transaction_step(product, 1, ZEN5.transaction) == 16  # a cache line
    assert transaction_step(product, 1, 4096) == 1024  # a page
    assert whole_transactions(RTile(product, (128, 64, 32)), 32)
    assert not whole_transactions(RTile(product, (128, 60, 32)), 32)
    assert whole_transactions(RTile(matmul(8, 30, 4), (8, 30, 4)), 32)  # whole axes


# Rule 3: banks ------------------------------------------------------------------------------------------------------


def test_bank_padding() -> None:
    assert bank_padding(64, 4, 32, 1) == 4
    assert bank_padding(68, 4, 32, 1) == 0
    assert bank_padding(64, 3, 32, 2) == 4  # banks of two words
    for stride in range(1, 200):
        assert (stride + bank_padding(stride, 4, 32)) % 32 == 4


def test_cache_sets_are_banks() -> None:
    level = ZEN5.device.level("l1")  # 48 KB: 64 sets of 12 ways
    assert set_conflicts(12, 4096, level, 12) == 1
    assert set_conflicts(16, 4096, level, 12) > 1
    assert set_conflicts(16, 4096 + 64, level, 12) < 1
    assert bank_free(RTile(matmul(1024, 1024, 1024), (8, 32, 1)), ZEN5)
    assert not bank_free(RTile(matmul(1024, 1024, 1024), (12, 32, 1)), ZEN5)  # all ways of one set
    assert bank_free(RTile(matmul(1024, 1024, 1040), (16, 16, 1)), ZEN5)


# Rule 4: tensor shape -----------------------------------------------------------------------------------------------


def test_padding_waste() -> None:
    assert padding_waste(561, 32) == pytest.approx(0.027, abs=5e-4)
    assert padding_waste(17, 16) == pytest.approx(0.88, abs=5e-3)
    assert padding_waste(64, 16) == 0


def test_axes_are_fused() -> None:
    assert fused_axes(elementwise((17, 11, 3))) == ((0, 1, 2),)
    assert fused_axes(reduce((8, 4, 6, 5), (2, 3))) == ((0, 1), (2, 3))
    assert fused_axes(matmul(8, 8, 8)) == ((0,), (1,), (2,))


def test_fused_axes_grow_as_one() -> None:
    """Of 17 x 11 x 3 the innermost loop that is not whole grows, until the tile is one run of 561 elements."""
    unit = RTile(elementwise((17, 11, 3)), (1, 1, 3))
    sizes = [task.shape for task in scale_up(unit, ZEN5)]
    assert sizes[-1] == (17, 11, 3)
    assert all(shape[0] == 1 or shape[1] == 11 for shape in sizes)


# All of them --------------------------------------------------------------------------------------------------------


def test_next_aligned() -> None:
    product = matmul(1024, 96, 1024)
    unit = RTile(product, (8, 16, 1))
    assert next_aligned(unit, 0, ZEN5, unit) == 16
    assert next_aligned(unit, 1, ZEN5, unit) == 32
    assert next_aligned(unit.with_size(1, 32), 1, ZEN5, unit) == 48  # two even parts rather than 64 and 32
    assert next_aligned(unit.with_size(1, 96), 1, ZEN5, unit) is None
    narrow = RTile(product, (6, 8, 1))
    assert next_aligned(narrow, 1, AVX2, narrow) == 16  # whole cache lines of 64 bytes
    odd = RTile(matmul(17, 561, 64), (8, 16, 1))
    assert padding_waste(561, next_aligned(odd.with_size(1, 16), 1, ZEN5, odd)) < 0.03


def test_reuse_score_is_traffic_saved_per_byte() -> None:
    tile = RTile(matmul(1024, 1024, 1024), (8, 32, 1024))
    larger = tile.with_size(0, 16)
    expected = (tile.traffic() - larger.traffic()) / (larger.footprint - tile.footprint)
    assert reuse_score(tile, 0, 16) == expected > 0
    square = RTile(elementwise((64, 64)), (4, 16))
    assert reuse_score(square, 0, 8) == reuse_score(square, 1, 32) == 0


def test_the_papers_tile_is_admissible_on_a_v100() -> None:
    product = matmul(4096, 4096, 4096)
    unit = RTile(product, (8, 4, 1))
    assert admissible(RTile(product, (128, 64, 32)), unit, V100)
    assert not admissible(RTile(product, (128, 64, 12)), unit, V100)  # no whole transactions of A
    assert not admissible(RTile(product, (128, 64, 128)), unit, V100)  # 98 KB of shared memory
    assert not admissible(RTile(product, (124, 64, 32)), unit, V100)


@pytest.mark.parametrize("machine", [V100, ZEN5, AVX2], ids=["v100", "zen5", "avx2"])
@pytest.mark.parametrize("sizes", [(4096, 4096, 4096), (1024, 768, 512), (128, 1000, 2048)])
def test_constructed_tiles_obey_all_rules(machine: Machine, sizes: tuple[int, int, int]) -> None:
    product = matmul(*sizes)
    units = [RTile(product, shape) for shape in unit_tiles(product, (8, max(machine.lanes, 4), 1), machine)]
    tasks = [(task, unit) for unit in units for task in scale_up(unit, machine)]
    assert len(tasks) > 10
    assert all(admissible(task, unit, machine) for task, unit in tasks)


def test_the_v100_gets_a_tile_like_the_papers() -> None:
    """From the paper's unit tile: its task, twice as wide, is the last one that 512 threads and shared memory take."""
    tasks = list(scale_up(RTile(matmul(4096, 4096, 4096), (8, 4, 1)), V100))
    assert tasks[-1].shape == (128, 128, 32) and tasks[-1].input_footprint <= 48 << 10
