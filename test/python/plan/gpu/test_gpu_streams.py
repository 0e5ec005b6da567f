# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sums that read one tensor once: their tiles fill the machine, and their predicted times say why."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest

from tilewright import devices
from tilewright.plan.cost.gemm import Problem
from tilewright.plan.cost.gemm_time import choose
from tilewright.plan.cost.gemv import Gemv, Operand, gemv_seconds, predict_gemv, rank_gemv, tiles_of
from tilewright.plan.model.gpu import Gpu

GPUS = {name: Gpu.of(devices.get(name)) for name in ("nvidia-a100", "nvidia-h100", "nvidia-h200", "nvidia-sm80")}
#: Lanes and depth of what a decoding step multiplies: GPT-2, Llama 7B, a vocabulary.
DECODING = [(3072, 768), (4096, 4096), (11008, 4096), (4096, 11008), (32000, 4096)]


def product(lanes: int, depth: int, width: int, along_depth: bool) -> Gemv:
    """One row times weights [depth, lanes], or [lanes, depth]."""
    matrix, row = Operand(frozenset({0, 1}), width), Operand(frozenset({1}), width)
    outside = lanes * depth * width + depth * width + lanes * 4
    lane, other = (1, 0) if along_depth else (0, 1)
    return Gemv((lanes, depth), frozenset({1}), lane, other, matrix, (row,), outside, lanes * 4, 2, 4)


PRODUCTS = [
    product(*size, width, order) for size, width, order in itertools.product(DECODING, (1, 2, 4), (False, True))
]


@pytest.mark.parametrize("gpu", GPUS.values(), ids=GPUS)
def test_tiles_fit(gpu: Gpu) -> None:
    """All sizes are powers of two, rows are a load of a thread at least, and sums stay in registers."""
    for gemv in PRODUCTS:
        found = list(tiles_of(gemv, gpu))
        assert found
        for tile, warps in found:
            assert all(size & (size - 1) == 0 for size in tile.values())
            assert tile[gemv.lane] * gemv.large.width >= 8
            assert tile[0] * tile[1] // (32 * warps) <= 64


@pytest.mark.parametrize("gpu", GPUS.values(), ids=GPUS)
def test_no_time_below_the_roofline(gpu: Gpu) -> None:
    for gemv in PRODUCTS:
        for tile, warps in tiles_of(gemv, gpu):
            found = predict_gemv(gemv, tile, warps, gpu)
            assert found.seconds > gemv.outside / gpu.device.level("memory").bandwidth
            assert found.l2_bytes >= gemv.outside


@pytest.mark.parametrize("order", [False, True], ids=["rows of lanes", "rows of depth"])
@pytest.mark.parametrize("width", [2, 4])
def test_decoding_fills_the_machine(width: int, order: bool) -> None:
    """There are CTAs for nearly all multiprocessors, and bytes under way for the bandwidth times the latency."""
    gpu = GPUS["nvidia-h200"]
    memory = gpu.device.level("memory")
    for lanes, depth in DECODING[1:]:
        gemv = product(lanes, depth, width, order)
        best = rank_gemv(gemv, gpu)[0].prediction
        assert best.tasks >= 0.9 * gpu.units
        assert max(best.parts.values()) <= 1.1 * best.parts["memory"], (lanes, depth, best)
        assert best.under_way * gpu.units >= 0.9 * memory.bandwidth * memory.latency
        overhead = 2 * memory.latency + gpu.device.rate("task") + gpu.device.rate("launch")
        assert gemv.outside / memory.bandwidth > 0.82 * (best.seconds - overhead)


def test_bytes_take_less_time_than_halves() -> None:
    """Not half: 64 sums of a thread are 64 bytes under way, and the prediction says that latency binds."""
    gpu = GPUS["nvidia-h200"]
    one, two = (rank_gemv(product(4096, 4096, width, False), gpu)[0].prediction for width in (1, 2))
    assert one.bound == "latency" and one.parts["memory"] < one.parts["latency"] < two.seconds
    large, larger = (rank_gemv(product(32000, 4096, width, False), gpu)[0].prediction for width in (1, 2))
    assert large.seconds < 0.65 * larger.seconds


def test_few_bytes_under_way_are_what_binds() -> None:
    """The same CTAs with a warp each wait for memory: the prediction names it."""
    gpu, gemv = GPUS["nvidia-h200"], product(4096, 4096, 2, False)
    few, many = (predict_gemv(gemv, tile, warps, gpu) for tile, warps in [({0: 32, 1: 8}, 1), ({0: 32, 1: 256}, 8)])
    assert few.tasks == many.tasks and few.bound == "latency" and few.under_way * 32 == many.under_way
    assert few.seconds > 5 * many.seconds


def test_half_of_the_multiprocessors_move_half() -> None:
    gpu, gemv = GPUS["nvidia-h200"], product(4096, 16384, 2, False)
    whole, half = (predict_gemv(gemv, {0: lanes, 1: 512}, 8, gpu) for lanes in (32, 64))
    assert whole.tasks == 128 and half.tasks == 64
    assert half.parts["memory"] == pytest.approx(2 * whole.parts["memory"])


def test_parts_of_a_vector() -> None:
    """A vector's sum is one CTA's; its parts are those of all."""
    gpu = GPUS["nvidia-h200"]
    vector = Gemv((1 << 20,), frozenset({0}), 0, None, Operand(frozenset({0}), 4), (), 1 << 22, 4, 1, 4)
    whole, parts = gemv_seconds(vector, gpu), gemv_seconds(vector.cut(0, 128), gpu)
    assert whole is not None and parts is not None and whole > 10 * parts


def test_both_loops_of_a_picture_are_one_tile() -> None:
    """The mean of each channel [256, 56, 56]: rows of a picture one by one would each wait for memory."""
    gpu, points = GPUS["nvidia-h200"], Operand(frozenset({0, 1, 2}), 4)
    rows = Gemv((256, 56, 56), frozenset({1, 2}), 2, 0, points, (), 4 * 256 * 56 * 56, 1024, 1, 4)
    pictures = replace(rows, further=1)
    best, slow = (rank_gemv(gemv, gpu)[0] for gemv in (pictures, rows))
    assert best.tile == {2: 64, 1: 64} and best.prediction.seconds < 0.25 * slow.prediction.seconds
    assert best.text(pictures).startswith("64 lanes x 64 rows")


@pytest.mark.parametrize("rows", [2, 8, 16, 32])
@pytest.mark.parametrize("lanes", [4096, 11008, 32000])
def test_few_rows_stream_their_weights(rows: int, lanes: int) -> None:
    """Matrix units pad them to 16 rows; rings keep as many bytes under way as memory needs."""
    gpu = GPUS["nvidia-h200"]
    choice = choose(Problem(rows, lanes, 4096, 1, 1, "bf16", 2), gpu)
    assert choice is not None and choice.shape.stages > 1
    memory = gpu.device.level("memory")
    fixed = memory.latency + gpu.device.rate("launch")
    assert lanes * 4096 * 2 / memory.bandwidth > 0.7 * (choice.prediction.seconds - fixed), choice
