# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The performance model: traffic by reuse distance, ragged tiles, and rankings that are known to hold."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

import pytest

from tilewright import devices
from tilewright.plan.cost.cache_traffic import Prefetcher, fetched, loops_of, run_bytes
from tilewright.plan.cost.choose import rank
from tilewright.plan.cost.cost import Model, Schedule, tile_loops
from tilewright.plan.cost.expression import elementwise, matmul, reduce

ZEN5 = devices.get("cpu:amd-zen5")
XEON = devices.get("cpu:intel-granite-rapids")
PREFETCHER = Prefetcher.of(XEON)


def test_loops_of_a_tiled_nest() -> None:
    loops = loops_of((128, 64, 256), [(64, 64, 256), (8, 32, 1)], (1, 0, 2))
    assert [(loop.dim, loop.trips) for loop in loops] == [(0, 2), (1, 2), (0, 8), (2, 256)]
    assert loops[-1].inside == (8, 32, 1) and loops[0].inside == (64, 64, 256)


def test_what_fits_is_fetched_once() -> None:
    product = matmul(256, 256, 256)  # 256 KB each
    loops = loops_of(product.extents, [(256, 256, 256), (8, 32, 1)], (1, 0, 2))
    whole, row_of_b = 256 << 10, 256 * 256 * 4
    assert fetched(product, loops, [800 << 10], 64) == [(0, 0, 0)]
    # A cache that holds a panel of B (32 KB) and rows of A: A comes once per panel, B and C once.
    assert fetched(product, loops, [48 << 10], 64) == [(8 * whole, row_of_b, whole)]
    # With rows outside, A stays and B comes once per 8 rows.
    other = loops_of(product.extents, [(256, 256, 256), (8, 32, 1)], (0, 1, 2))
    assert fetched(product, other, [48 << 10], 64) == [(whole, 32 * whole, whole)]


def test_runs_end_where_the_address_jumps() -> None:
    shape = elementwise((512, 1024))
    operand = shape.inputs[0]
    assert (
        run_bytes(operand, shape.extents, loops_of(shape.extents, [(16, 1024), (1, 64)], (0, 1)), (1, 64), PREFETCHER)
        == 512 * 1024 * 4
    )
    assert (
        run_bytes(operand, shape.extents, loops_of(shape.extents, [(512, 96), (1, 48)], (0, 1)), (1, 48), PREFETCHER)
        == 96 * 4
    )


def test_ragged_tiles_cost_their_own_shape() -> None:
    model = Model(XEON)
    even = model.compute_cycles(matmul(196, 64, 512, True), Schedule((196, 64, 512), (14, 32, 1), (1, 0, 2)))
    ragged = model.compute_cycles(matmul(197, 64, 512, True), Schedule((197, 64, 512), (14, 32, 1), (1, 0, 2)))
    assert 1 < ragged / even < 1.06  # a tile of one row more, bound by the latency


@pytest.mark.parametrize("device", [ZEN5, XEON], ids=["zen5", "xeon"])
def test_few_accumulators_wait(device) -> None:
    model = Model(device)
    product = matmul(1024, 1024, 1024, True)

    def seconds(rows: int, width: int) -> float:
        return model.predict(product, Schedule((64, 256, 1024), (rows, width, 1), (1, 0, 2))).seconds

    assert seconds(1, 16) > 3 * seconds(8, 32)
    assert seconds(2, 32) > 1.5 * seconds(8, 32)


@pytest.mark.parametrize("device", [ZEN5, XEON], ids=["zen5", "xeon"])
def test_the_first_product_tile_is_near_the_peak(device) -> None:
    product = matmul(512, 512, 512, True)
    best = rank(product, Schedule((512, 32, 512), (8, 32, 1), (1, 0, 2)), device)[0]
    assert best.one.seconds < 1.4 * product.flops / device.units.peak_of("f32")
    assert best.one.bound == "compute"
    assert best.schedule.task[2] == 512  # a task covers its reduction


def test_two_cores_share_the_work() -> None:
    product = matmul(512, 512, 512, True)
    best = rank(product, Schedule((512, 512, 512), (8, 32, 1), (1, 0, 2)), XEON)[0]
    assert best.all.seconds < 0.6 * best.one.seconds


def test_small_operators_are_scaled_out() -> None:
    """Roller, section 3.3: where cores are many, tasks are smaller; reductions stay in one core."""
    product = matmul(128, 256, 2048, True)
    many = replace(XEON, units=replace(XEON.units, count=16))
    best = rank(product, Schedule((128, 256, 2048), (8, 32, 1), (1, 0, 2)), many)[0].schedule
    assert best.task[2] == 2048
    assert ceil(128 / best.task[0]) * ceil(256 / best.task[1]) >= 16


def test_windows_get_lanes_along_the_results() -> None:
    """Sums of 3 x 3 windows: three lanes of a window lose against the many results side by side."""
    from tilewright.plan.cost.expression import Expression, Operand

    image = Operand((8, 44, 44), (((0, 1),), ((1, 1), (3, 1)), ((2, 1), (4, 1))))
    out = Operand((8, 42, 42), (((0, 1),), ((1, 1),), ((2, 1),)))
    pool = Expression((8, 42, 42, 3, 3), frozenset({3, 4}), (image,), (out,))
    own = Schedule((1, 42, 42, 3, 3), (1, 1, 1, 1, 3), (0, 1, 2, 3, 4))
    best = rank(pool, own, XEON)[0]
    assert best.schedule.register[2] > 1 and best.schedule.register[4] == 1


def test_a_dimension_is_walked_by_one_loop_of_a_tile() -> None:
    """Windows that lie 10 apart: lanes along a window, or neighbouring windows, not both in one dimension."""
    from tilewright.plan.cost.expression import Expression, Operand

    image = Operand((1011, 1031), (((0, 10), (2, 10)), ((1, 10), (3, 10))))
    window, out = Operand((60, 80), (((2, 1),), ((3, 1),))), Operand((43, 25), (((0, 1),), ((1, 1),)))
    pool = Expression((43, 25, 60, 80), frozenset({2, 3}), (image, window), (out,))
    own = Schedule((1, 25, 60, 80), (1, 8, 1, 1), (0, 1, 2, 3))
    for ranked in rank(pool, own, devices.get("cpu:host-generic-avx2"), wide=True):
        register = ranked.schedule.register
        assert min(register[0], register[2]) == min(register[1], register[3]) == 1


def test_ranking_is_the_same_every_time() -> None:
    own = Schedule((1, 1024), (1, 128), (0, 1))
    first = rank(reduce((4096, 1024), (1,)), own, XEON)
    rank.cache_clear()
    assert [r.schedule for r in rank(reduce((4096, 1024), (1,)), own, XEON)] == [r.schedule for r in first]
    assert own in [r.schedule for r in first]


def test_lanes_lie_side_by_side_in_the_result() -> None:
    product = matmul(64, 64, 64)
    transposed = replace(product, outputs=(replace(product.outputs[0], index=(((1, 1),), ((0, 1),))),))
    assert tile_loops(product, (8, 32, 1)) == ((0,), 1)
    assert tile_loops(transposed, (32, 8, 1)) == ((1,), 0)
    assert tile_loops(product, (1, 32, 1)) == ((), 1)
    assert tile_loops(product, (1, 1, 1)) == ((), None)


def test_small_gaps_end_no_run() -> None:
    image = elementwise((64, 60, 60))  # lines of 240 bytes
    strip = loops_of(image.extents, [(64, 60, 60), (1, 1, 16)], (0, 2, 1))
    assert run_bytes(image.inputs[0], image.extents, strip, (1, 1, 16), PREFETCHER) > 64 * 60 * 60
    matrix = elementwise((64, 4096))
    strip = loops_of(matrix.extents, [(64, 4096), (1, 16)], (1, 0))
    assert run_bytes(matrix.inputs[0], matrix.extents, strip, (1, 16), PREFETCHER) == 64


def test_copies_of_transposed_panels_cost_more() -> None:
    model = Model(XEON)
    along, across = matmul(64, 64, 64), matmul(64, 64, 64)
    turned = replace(across.inputs[1], index=(((1, 1),), ((2, 1),)))
    across = replace(across, inputs=(across.inputs[0], turned))
    schedule = Schedule((64, 64, 64), (8, 32, 1), (1, 0, 2), copied=1)
    costs = [
        model.compute_cycles(e, schedule) - model.compute_cycles(e, replace(schedule, copied=None))
        for e in (along, across)
    ]
    assert 2 * costs[0] < costs[1]
