# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From layer 1 to the llvm and nvvm dialects for an NVIDIA GPU: the phases, each a list of passes with its reason."""

from __future__ import annotations

from tilewright.devices import Device
from tilewright.passes.pipeline import PassSpec, Phase, Pipeline
from tilewright.pipelines import cuda_lower, cuda_plan
from tilewright.pipelines.cpu_lower import SCHEDULE as CPU_SCHEDULE

#: What the schedule of a CPU has for caches and for code that frees memory itself: a host program counts its buffers.
_NOT_HERE = frozenset(
    "tile-free-buffers buffer-deallocation-simplification bufferization-lower-deallocations tile-prefetch-epilogues "
    "tile-prefetch-rows sccp".split()
)

#: What kernels cannot take becomes loops over elements, and these become kernels of another kind.
_HOST = (
    PassSpec("convert-linalg-to-parallel-loops", "what the plan left on the host, as loops", on="func.func"),
    PassSpec("tile-outline-host-loops", "a host program reads no elements in loops: they run on the device"),
)


def _schedule() -> tuple[PassSpec, ...]:
    passes: list[PassSpec] = []
    for spec in CPU_SCHEDULE:
        if spec.name == "tile-copies-to-kernels":
            passes += _HOST  # copies in such loops are theirs
        if spec.name not in _NOT_HERE:
            passes.append(spec)
    return (
        *passes,
        *_HOST,  # copies with gaps, of sizes of the run
        PassSpec("scf-parallel-for-to-nested-fors", "one thread runs what is parallel in them", on="tile.kernel"),
        PassSpec("scf-parallel-for-to-nested-fors", "those that assert stay on the host, in order", on="func.func"),
        PassSpec("canonicalize", "what the loops left on the host"),
    )


SCHEDULE: tuple[PassSpec, ...] = _schedule()


def lower(arch: str, fast: bool = False) -> tuple[PassSpec, ...]:
    """The passes of phase `lower` for an architecture such as ``sm_90a``; `fast`: with approximations of functions."""
    detach = PassSpec(
        "tile-split-host-device", "it is a host program by now; kernels keep the grids it launches them with"
    )
    return (detach, *cuda_lower.lower(arch, fast=fast))


def pipeline(device: Device, fast: bool = False) -> Pipeline:
    """The phases for a GPU with the given description, which names the architecture that code is made for.

    Args:
        device: the description.
        fast: functions of f32 (exp, log, tanh, ...) are the special function unit's approximations as they are.

    Raises:
        UserError: the description is not that of an NVIDIA GPU.
    """
    return Pipeline(
        "cuda",
        [
            *cuda_plan.phases(device),
            Phase("schedule", SCHEDULE, summary="order, buffers and one arena for the host function"),
            Phase("lower", lower(device.cpu, fast), summary="tiles to registers of threads, kernels to nvvm"),
        ],
        summary="layer 1 to the llvm and nvvm dialects, for an NVIDIA GPU",
    )
