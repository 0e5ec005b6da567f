# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Roller's rules and rTiles against the numbers that its paper, its code and Welder's paper give."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tilewright import devices
from tilewright.plan.cost.construct import Program, admissible, construct, reuse_score, scale_out
from tilewright.plan.cost.expression import Expression, Operand, elementwise, fuse_axes, matmul, reduce
from tilewright.plan.cost.rtile import RTile, data_tile, padding_waste, runs
from tilewright.plan.cost.rules import (
    bank_free,
    bank_padding,
    fills_units,
    fits_registers,
    hides_latency,
    machine_of,
    next_aligned,
    set_conflicts,
    sub_tiles,
    transaction_step,
    whole_transactions,
    within,
)

V100 = machine_of(devices.get("nvidia-v100"))
ZEN5 = machine_of(devices.get("cpu:amd-zen5"))
AVX2 = machine_of(devices.get("cpu:host-generic-avx2"))


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
    assert fills_units(block, unit, V100)
    assert not fills_units(RTile(product, (96, 32, 32)), unit, V100)  # 96 threads
    assert not fills_units(RTile(product, (256, 128, 32)), unit, V100)  # 1024 threads


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
    assert within(561, 32, 0.2) and not within(17, 16, 0.2)


def test_axes_are_fused() -> None:
    fused, groups = fuse_axes(elementwise((17, 11, 3)))
    assert fused.extents == (561,) and groups == ((0, 1, 2),)
    fused, groups = fuse_axes(reduce((8, 4, 6, 5), (2, 3)))
    assert fused.extents == (32, 30) and fused.reductions == {1}
    product = matmul(8, 8, 8)
    assert fuse_axes(product)[0] is product


# All of them --------------------------------------------------------------------------------------------------------


def test_next_aligned() -> None:
    product = matmul(1024, 96, 1024)
    tile = RTile(product, (1, 1, 1))
    assert next_aligned(tile, 1, ZEN5) == 16
    assert next_aligned(tile.with_size(1, 16), 1, ZEN5, epsilon=0.0) == 32
    assert next_aligned(tile.with_size(1, 48), 1, ZEN5, epsilon=0.0) == 96  # 64 and 80 leave ragged tiles
    assert next_aligned(tile.with_size(1, 48), 1, ZEN5, epsilon=0.4) == 64
    assert next_aligned(tile.with_size(1, 96), 1, ZEN5) is None
    base = RTile(product, (8, 32, 1))
    assert next_aligned(base, 0, ZEN5, base) == 16


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
    assert admissible(Program(unit, RTile(product, (128, 64, 32))), V100)
    assert not admissible(Program(unit, RTile(product, (128, 64, 12))), V100)  # no whole transactions of A
    assert not admissible(Program(unit, RTile(product, (128, 64, 128))), V100)  # 98 KB of shared memory
    assert not admissible(Program(unit, RTile(product, (124, 64, 32))), V100)


@pytest.mark.parametrize("machine", [V100, ZEN5, AVX2], ids=["v100", "zen5", "avx2"])
@pytest.mark.parametrize("sizes", [(4096, 4096, 4096), (1024, 768, 512), (128, 1000, 2048)])
def test_constructed_programs_obey_all_rules(machine, sizes: tuple[int, int, int]) -> None:
    programs = construct(matmul(*sizes), machine)
    assert programs
    for program in programs:
        assert program.core.shape[0] >= program.unit.shape[0]
        assert fits_registers(program.unit, machine)
        if program.grid >= 2 * machine.device.units.count:
            assert admissible(program, machine)


def test_small_operators_shrink_until_every_core_has_a_tile() -> None:
    product = matmul(128, 256, 2048)
    machine = replace(ZEN5, device=replace(ZEN5.device, units=replace(ZEN5.device.units, count=16)))
    program = Program(RTile(product, (8, 32, 1)), RTile(product, (128, 256, 2048)))
    assert program.grid == 1
    shrunk = scale_out(program, machine)
    assert shrunk.grid >= 16
    assert shrunk.core.shape[2] == 2048  # reductions stay in one core
    assert not any(s % u for s, u in zip(shrunk.core.shape, (8, 32, 1), strict=True))
    assert scale_out(program, replace(machine, device=replace(ZEN5.device))).grid >= 2
