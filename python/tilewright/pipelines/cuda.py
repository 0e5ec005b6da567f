# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""From layer 1 to the llvm and nvvm dialects for an NVIDIA GPU: the phases, each a list of passes with its reason.

They are the same for every architecture and all options: passes read the device and the options on the module
(`ir/target_info.py`); those for Hopper (TMA, wgmma, clusters) do nothing on another device.
"""

from __future__ import annotations

from tilewright.passes.pipeline import PassSpec, Phase, Pipeline
from tilewright.pipelines import cuda_lower, cuda_plan
from tilewright.pipelines.cpu_lower import COPIES, FOLD_CLONES, OVERLAP, PLACES, TASK_LOOPS, TO_BUFFERS

#: What kernels cannot take becomes loops over elements, and these become kernels of another kind.
_HOST = (
    PassSpec("convert-linalg-to-parallel-loops", "what the plan left on the host, as loops", on="func.func"),
    PassSpec("tile-outline-host-loops", "a host program reads no elements in loops: they run on the device"),
)

_NUMBERS = (
    PassSpec("tile-find-host-work", "loops left to the host: what it could do beside reading a number"),
    PassSpec("tile-plan-host-work", "small launches that it does itself, instead of waiting for each"),
    PassSpec("tile-inline-host-work", "single numbers, which a host program has"),
    PassSpec("canonicalize", "numbers that follow from constants"),
    PassSpec("cse", "numbers that are read twice", on="func.func"),
)

SCHEDULE: tuple[PassSpec, ...] = (
    *TO_BUFFERS,
    PassSpec("tile-plan-teams", "chains that need nothing of each other: blocks, and memory, of their own"),
    *PLACES,  # a host program counts its buffers: none is freed by code
    PassSpec("canonicalize", "views and loops that the places of buffers made trivial"),
    FOLD_CLONES,
    *_HOST,  # copies in such loops are theirs
    *COPIES,
    OVERLAP,
    *_HOST,  # copies with gaps, of sizes of the run
    PassSpec("scf-parallel-for-to-nested-fors", "one thread runs what is parallel in them", on="tile.kernel"),
    PassSpec("scf-parallel-for-to-nested-fors", "those that assert stay on the host, in order", on="func.func"),
    PassSpec("canonicalize", "what the loops left on the host"),
    *TASK_LOOPS,
    PassSpec("tile-plan-loops", "loops and branches that the device runs itself; what is launched there is short"),
    PassSpec("tile-form-loops", "one kernel of each, which launches what the host did"),
    PassSpec("canonicalize", "views that only this kernel needs"),
    *_NUMBERS,
)

LOWER: tuple[PassSpec, ...] = (
    PassSpec("tile-share-kernels", "what was planned by length is code of any length; assemblers see it once"),
    PassSpec("tile-split-host-device", "it is a host program by now; kernels keep the grids it launches them with"),
    *cuda_lower.LOWER,
)

PIPELINE = Pipeline(
    "cuda",
    [
        *cuda_plan.PHASES,
        Phase("schedule", [cuda_plan.TARGET, *SCHEDULE], summary="order, buffers and one arena for the host function"),
        Phase("lower", [cuda_plan.TARGET, *LOWER], summary="tiles to registers of threads, kernels to nvvm"),
    ],
    summary="layer 1 to the llvm and nvvm dialects, for an NVIDIA GPU",
)
