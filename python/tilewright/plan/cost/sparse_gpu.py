# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How long a product with a pruned weight takes on a GPU, by the families of kernels in `plan/sparse/forms`.

A dense product's own prediction says what its arithmetic and its bytes take. Sparse matrix units halve the arithmetic
of 2:4; vector units multiply what is kept of other patterns, at a part of their peak; blocks are dense tiles.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright.devices.device import Device
from tilewright.dialects.sparse_tile.patterns import NM, Block, Mask, Pattern
from tilewright.plan.cost.gemm import Problem
from tilewright.plan.cost.gemm_time import choose
from tilewright.plan.cost.roofline import launched, transfer
from tilewright.plan.model.gpu import Gpu

if TYPE_CHECKING:
    from tilewright.plan.cost.sparse import Region, Sizes


def kernels_for(pattern: Pattern, sizes: Sizes) -> tuple[str, ...]:
    """Families of kernels that a region of such a pattern is costed for."""
    if isinstance(pattern, NM) and (pattern.n, pattern.m) == (2, 4) and sizes.bytes == 2 and not pattern.unit:
        return ("gpu_mma_sp", "gpu_nm")
    if isinstance(pattern, NM):
        return ("gpu_nm",)
    return () if isinstance(pattern, Mask) else ("gpu_blocks",)


def dense_seconds(sizes: Sizes, device: Device) -> float:
    """The predicted seconds of the dense product; without bound where no tile fits."""
    kind = "f32" if sizes.bytes == 4 else "f16"
    choice = choose(Problem(sizes.m, sizes.n, sizes.k, 1, 1, kind, 4), Gpu.of(device))
    return float("inf") if choice is None else choice.prediction.seconds


def sparse_seconds(sizes: Sizes, regions: Sequence[Region], device: Device) -> float:
    """The predicted seconds of all regions, one launch each."""
    return sum(_region_seconds(sizes, region, device) for region in regions)


def _region_seconds(sizes: Sizes, region: Region, device: Device) -> float:
    pattern = region.pattern
    unit = pattern.shape if isinstance(pattern, Block) else getattr(pattern, "unit", ()) or (1, 1)
    elements = region.units * unit[0] * unit[1]
    moved = elements * (sizes.bytes + 1) + sizes.m * (sizes.k * sizes.bytes + 8 * sizes.n)
    units = device.units
    if region.kernel == "gpu_nm" or sizes.bytes == 4:
        rate = units.peak_of("f32") * device.rate("vector.reached")
    else:
        rate = units.peak_of("f16") * device.rate("mma.reached")
    twice = 2.0 if region.kernel == "gpu_mma_sp" else 1.0
    filled = elements * (2 if region.kernel == "gpu_mma_sp" else 1)
    compute = 2 * sizes.m * filled / (rate * twice * units.count)
    return max(compute, transfer(device, "memory", moved)) + launched(device, 0)
