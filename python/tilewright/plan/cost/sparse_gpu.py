# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with pruned weights on a GPU: which families are asked for a pattern, and the dense product's time.

The families predict their own times, from the law of dense products (`gemm_time.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tilewright.devices.device import Device
from tilewright.dialects.sparse_tile.patterns import NM, Block, Pattern
from tilewright.plan.cost.gemm import Problem
from tilewright.plan.cost.gemm_time import choose
from tilewright.plan.model.gpu import Gpu

if TYPE_CHECKING:
    from tilewright.plan.cost.sparse import Sizes

#: Rows and columns of a block, at least: a tile of a matrix unit.
_LEAST_EDGE = 16


def kernels_for(pattern: Pattern, sizes: Sizes) -> tuple[str, ...]:
    """Families of kernels that are asked whether they take a region of such a pattern."""
    if isinstance(pattern, NM) and (pattern.n, pattern.m) == (2, 4) and sizes.bytes == 2 and not pattern.unit:
        return ("gpu_mma_sp", "gpu_nm")
    if isinstance(pattern, NM):
        return ("gpu_nm",)
    return ("gpu_blocks",) if isinstance(pattern, Block) and min(pattern.shape) >= _LEAST_EDGE else ()


def dense_seconds(sizes: Sizes, device: Device) -> float:
    """The predicted seconds of the dense product; without bound where no tile fits."""
    kind = "f32" if sizes.bytes == 4 else "f16"
    choice = choose(Problem(sizes.m, sizes.n, sizes.k, 1, 1, kind, 4), Gpu.of(device))
    return float("inf") if choice is None else choice.prediction.seconds
