# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shapes of products fit the machine, and predicted times behave as times do."""

from __future__ import annotations

import itertools

import pytest

from tilewright import devices
from tilewright.plan.gpu.machine import Gpu
from tilewright.plan.gpu.predict import choose, peak, predict, raster
from tilewright.plan.gpu.shapes import Problem, shapes
from tilewright.plan.gpu.tasks import live_part

GPUS = {name: Gpu.of(devices.get(name)) for name in ("nvidia-a100", "nvidia-h100", "nvidia-h200", "nvidia-sm80")}
PROBLEMS = [
    Problem(rows, lanes, depth, 1, 1, kind, 4, streams)
    for rows, lanes, depth in [(4096, 4096, 4096), (7, 5, 3), (128, 384, 1536), (3136, 64, 576), (2, 50000, 768)]
    for kind, streams in itertools.product(["f32", "f16", "bf16", "i8", "f64"], [True, False])
]


@pytest.mark.parametrize("gpu", GPUS.values(), ids=GPUS)
def test_shapes_fit(gpu: Gpu) -> None:
    for problem in PROBLEMS:
        found = list(shapes(problem, gpu))
        assert found, problem
        for shape in found:
            assert shape.shared(problem) <= gpu.shared, shape
            assert all(size & (size - 1) == 0 for size in (shape.rows, shape.lanes, shape.depth, shape.warps)), shape
            assert gpu.occupancy(shape.threads, shape.shared(problem), min(shape.registers(problem), 255)) >= 1, shape
            assert gpu.hopper or not shape.wgmma
            if shape.wgmma:
                assert shape.rows % 64 == 0 and shape.warps % 4 == 0 and problem.streams
                assert shape.rows * shape.lanes // (32 * shape.warps) <= 128, "accumulators of a thread"


@pytest.mark.parametrize("gpu", GPUS.values(), ids=GPUS)
def test_no_time_below_the_roofline(gpu: Gpu) -> None:
    for problem in PROBLEMS:
        for shape in shapes(problem, gpu):
            found = predict(problem, shape, gpu)
            assert found.seconds > problem.operations / (peak(problem, gpu) * gpu.units)
            assert found.seconds > found.memory_bytes / gpu.device.level("memory").bandwidth
            assert found.memory_bytes <= found.l2_bytes


def test_more_work_takes_longer() -> None:
    times = []
    for size in (512, 1024, 2048, 4096, 8192):
        choice = choose(Problem(size, size, size, 1, 1, "bf16", 2), GPUS["nvidia-h200"])
        assert choice is not None and choice.candidates > 10 and choice.runner_up_seconds >= choice.prediction.seconds
        times.append(choice.prediction.seconds)
    assert times == sorted(times)


def test_large_products_take_two_warpgroups_and_come_near_the_peak() -> None:
    gpu, problem = GPUS["nvidia-h200"], Problem(8192, 8192, 8192, 1, 1, "bf16", 2)
    choice = choose(problem, gpu)
    assert choice is not None
    assert choice.shape.wgmma and {choice.shape.rows, choice.shape.lanes} == {128, 256}
    assert problem.operations / choice.prediction.seconds > 0.7 * peak(problem, gpu) * gpu.units


def test_a_faster_memory_helps_what_memory_bounds() -> None:
    problem = Problem(64, 16384, 16384, 1, 1, "f16", 2)
    slow, fast = (choose(problem, GPUS[name]) for name in ("nvidia-h100", "nvidia-h200"))
    assert slow is not None and fast is not None and slow.prediction.bound == "memory"
    assert fast.prediction.seconds < slow.prediction.seconds


def test_bands_only_where_several_waves_share_rows() -> None:
    gpu = GPUS["nvidia-h100"]
    large, small = (Problem(size, size, size, 1, 1, "bf16", 2) for size in (8192, 512))
    shape = next(s for s in shapes(large, gpu) if (s.rows, s.lanes) == (128, 256))
    assert raster(large, shape, gpu.units) > 1
    assert raster(small, shape, gpu.units) == 1


def test_what_a_causal_mask_leaves() -> None:
    # four tasks of 64 rows, blocks of 64 steps: the first sees one block, the last four
    assert live_part([0, 64, 0, 0, 0, 64, 64], 4, 256) == pytest.approx((1 + 2 + 3 + 4) / 16)
