# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What other schedules would gain, by the plan's law: what the rationale of plan/gpu says of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.gpu.schedules import cooperative, ping_pong, stream_k, whole
from tilewright import devices
from tilewright.plan.cost.gemm import Problem
from tilewright.plan.cost.gemm_shapes import shapes, tiles
from tilewright.plan.cost.gemm_time import choose, predict
from tilewright.plan.model.gpu import Gpu

H200, A100 = (Gpu.of(devices.get(name)) for name in ("nvidia-h200", "nvidia-a100"))


def linear(rows: int, lanes: int, depth: int) -> Problem:
    """A product of f16 whose results TMA stores."""
    return Problem(rows, lanes, depth, 1, 1, "f16", 2, stores=True, neighbours=True, may_stream_k=True)


@pytest.mark.parametrize("gpu", [H200, A100], ids=["h200", "a100"])
def test_even_work_is_a_bound(gpu: Gpu) -> None:
    """Cut tiles never take longer, and as long where the waves are full."""
    problem = linear(1024, 3072, 1024)
    for shape in shapes(whole(problem), gpu):
        plain, even = predict(problem, shape, gpu), predict(problem, shape, gpu, even=True)
        assert even.seconds <= plain.seconds * 1.0001, shape
        if tiles(problem, shape) % (gpu.units * plain.occupancy) == 0:
            assert even.seconds == pytest.approx(plain.seconds), shape


def test_stream_k_gains_where_the_last_wave_is_poor() -> None:
    """A layer of 7 B with 128 tokens; not a square whose waves are nearly full."""
    poor, full = (choose(linear(*sizes), H200) for sizes in ((128, 12288, 4096), (4096, 4096, 4096)))
    assert poor is not None and poor.shape.stream_k == H200.units * poor.prediction.occupancy
    assert poor.whole is not None and not poor.whole.stream_k and poor.whole_seconds > 1.1 * poor.prediction.seconds
    assert full is not None and not full.shape.stream_k and full.whole is None
    assert poor.prediction.seconds == stream_k(linear(128, 12288, 4096), H200)


def test_nothing_is_dealt_where_a_kernel_could_not_do_it() -> None:
    """Open sizes, sums that begin elsewhere, residuals, a step or two for each CTA."""
    problem = linear(512, 768, 3072)
    assert stream_k(whole(problem), H200) is None
    assert stream_k(replace(problem, adds=2), H200) is None
    assert stream_k(linear(512, 768, 128), H200) is None


def test_ping_pong_gains_where_sums_are_short() -> None:
    """Ends of tiles weigh little in deep sums, and smaller tiles read more."""
    short, deep = linear(4096, 1152, 384), linear(4096, 4096, 4096)
    ends, ping = cooperative(short, H200), ping_pong(short, H200)
    assert ping is not None and 1.05 * ping < ends
    ends, ping = cooperative(deep, H200), ping_pong(deep, H200)
    assert ping is not None and ends < 1.05 * ping
    assert ping_pong(short, A100) is None
