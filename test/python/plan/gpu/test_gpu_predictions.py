# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Shapes of products fit the machine, and predicted times behave as times do."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from tilewright import devices
from tilewright.plan.cost.gemm import Problem
from tilewright.plan.cost.gemm_shapes import shapes, tiles
from tilewright.plan.cost.gemm_time import choose, peak, predict, raster
from tilewright.plan.cost.kernel import live_part
from tilewright.plan.model.gpu import Gpu

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


def test_promotion_takes_registers_and_adds() -> None:
    """Twice the accumulators leave tiles half as large; what the vector units add is a part of the time."""
    gpu = GPUS["nvidia-h200"]
    fast = Problem(8192, 8192, 8192, 1, 1, "f8E4M3FN", 2, stores=True, neighbours=True)
    exact = replace(fast, promotion=128)
    most = {
        p.promotion: max(s.rows * s.lanes // (32 * s.warps) for s in shapes(p, gpu) if s.wgmma) for p in (fast, exact)
    }
    assert most == {0: 128, 128: 64}
    for shape in (s for s in shapes(exact, gpu) if s.wgmma):
        assert shape.sums(exact) == 2 * shape.sums(fast) and shape.registers(exact) > shape.registers(fast)
        parts = predict(exact, shape, gpu).parts
        adds = 8192**3 / 128 / gpu.units / (gpu.device.units.peak_of("f32") / 2)
        assert parts["promote"] >= adds
        alone = predict(fast, shape, gpu).parts
        assert (parts["compute"] > alone["compute"]) == (shape.warps == 4 and predict(exact, shape, gpu).occupancy == 1)
    taken = choose(exact, gpu)
    assert taken is not None and taken.prediction.seconds < 1.3 * choose(fast, gpu).prediction.seconds
    assert (taken.shape.rows, taken.shape.lanes, taken.shape.promotions(exact)) == (128, 128, 64)
    assert taken.shape.promotions(replace(exact, promotion=512)) == 16
    assert taken.shape.promotions(replace(exact, depth=128)) == 0, "one step is promoted by nothing"


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


def test_clusters_where_l2_binds() -> None:
    gpu = GPUS["nvidia-h100"]  # of an H200 it is known that power binds
    sides = {"rows": 4096, "lanes": 4096, "depth": 4096, "outer": 1, "batch": 1, "kind": "bf16", "out_bytes": 2}
    alone, beside = (choose(Problem(**sides, stores=True, neighbours=near), gpu) for near in (False, True))
    assert alone is not None and beside is not None
    assert alone.prediction.bound == "l2" and not alone.shape.clustered and alone.other is None
    assert beside.shape.cluster == (2, 1), "lanes are more bytes than rows"
    assert beside.other == alone.shape and beside.other_prediction == alone.prediction
    assert beside.prediction.l2_bytes < 0.75 * alone.prediction.l2_bytes
    assert beside.prediction.memory_bytes == alone.prediction.memory_bytes
    assert beside.prediction.seconds < 0.95 * alone.prediction.seconds


def test_clusters_are_whole() -> None:
    for rows, lanes in ((384, 4096), (4096, 768), (384, 768), (300, 300)):
        problem = Problem(rows, lanes, 1024, 1, 1, "bf16", 2, neighbours=True)
        for shape in shapes(problem, GPUS["nvidia-h100"]):
            down, across = shape.cluster
            assert -(-rows // shape.rows) % down == 0 and -(-lanes // shape.lanes) % across == 0
    assert not any(shape.clustered for shape in shapes(problem, GPUS["nvidia-a100"]))


def test_clusters_where_a_run_counts_the_rows() -> None:
    """The grid is rounded up along open rows, at the cost of a CTA with nothing to do."""
    problem = Problem(384, 768, 1024, 1, 1, "bf16", 2, neighbours=True, open_rows=(True,))
    found = [shape for shape in shapes(problem, GPUS["nvidia-h100"]) if shape.cluster == (2, 1)]
    assert {128, 64} == {shape.rows for shape in found}
    assert [tiles(problem, s) for s in found if (s.rows, s.lanes) == (128, 256)][:1] == [12], (
        "three rows of tiles are four"
    )
    closed = [shape for shape in shapes(replace(problem, open_rows=()), GPUS["nvidia-h100"]) if shape.clustered]
    assert not any(shape.cluster == (2, 1) and shape.rows == 128 for shape in closed)


def test_clusters_of_convolutions() -> None:
    """Along any loop of rows with an even number of tiles; places in steps are no box that can be cut."""
    image = Problem(28 * 28, 256, 64, 9, 1, "f16", 2, places=(28, 28), overlap=8.0, neighbours=True)
    clusters = {shape.cluster for shape in shapes(image, GPUS["nvidia-h100"])}
    assert {(1, 1), (2, 1), (1, 2)} == clusters
    strided = {shape.cluster for shape in shapes(replace(image, strided=True), GPUS["nvidia-h100"])}
    assert {(1, 1), (2, 1)} == strided


def test_residuals_go_on_only_where_they_are_fetched() -> None:
    sides = {"rows": 8192, "lanes": 4096, "depth": 1024, "outer": 1, "batch": 1, "kind": "bf16", "out_bytes": 2}
    problem = Problem(**sides, stores=True, adds=2, fetches=True)
    found = list(shapes(problem, GPUS["nvidia-h200"]))
    assert any(shape.persistent for shape in found) and all(s.fetched for s in found if s.persistent)
    assert all(shape.shared(problem) <= GPUS["nvidia-h200"].shared for shape in found)
    fetched, plain = (choose(replace(problem, fetches=can), GPUS["nvidia-h200"]) for can in (True, False))
    assert fetched is not None and plain is not None
    assert fetched.shape.fetched and fetched.shape.persistent and not plain.shape.persistent
    assert fetched.prediction.seconds < plain.prediction.seconds


def test_one_tile_needs_no_cluster() -> None:
    choice = choose(Problem(128, 512, 512, 1, 1, "bf16", 2, neighbours=True), GPUS["nvidia-h200"])
    assert choice is not None and not choice.shape.clustered, "barriers cost more than bytes of L2"


def test_what_a_causal_mask_leaves() -> None:
    # four tasks of 64 rows, blocks of 64 steps: the first sees one block, the last four
    assert live_part([0, 64, 0, 0, 0, 64, 64], 4, 256) == pytest.approx((1 + 2 + 3 + 4) / 16)


LARGE = Problem(8192, 8192, 8192, 1, 1, "f16", 2)
FEW = Problem(64, 16384, 16384, 1, 1, "f16", 2)


@pytest.mark.parametrize(
    ("gpu", "rate", "problem"),
    [
        ("nvidia-h100", "wgmma.reached", LARGE),
        ("nvidia-a100", "mma.reached", LARGE),
        ("nvidia-h100", "mma.reached.hopper", replace(LARGE, streams=False)),
        ("nvidia-a100", "vector.reached", replace(LARGE, kind="f32")),
        ("nvidia-a100", "busy_warps", Problem(16, 16, 65536, 1, 1, "f64", 4, False)),
        ("nvidia-a100", "memory.reached", FEW),
        ("nvidia-a100", "l2.reached", replace(LARGE, depth=64)),
        ("nvidia-a100", "launch", Problem(16, 16, 16, 1, 1, "f16", 2)),
    ],
)
def test_a_description_says_how_fast_its_machine_is(gpu: str, rate: str, problem: Problem) -> None:
    """Rates of a kind are what a device has that says nothing; its own number changes what is predicted."""
    device = devices.get(gpu)
    own = replace(device, rates=(*device.rates, (rate, device.rate(rate) / 2)))
    usual, other = choose(problem, Gpu.of(device)), choose(problem, Gpu.of(own))
    assert usual is not None and other is not None
    assert usual.prediction.seconds != other.prediction.seconds
