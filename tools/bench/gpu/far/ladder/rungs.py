# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The rungs in their order: each needs nothing that the rungs before it have not proved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.gpu.far.ladder import programs
from bench.gpu.far.ladder.boxes import boxes
from bench.gpu.far.ladder.facts import driver, occupancy, registers
from bench.gpu.far.ladder.multiply import multiply
from bench.gpu.far.ladder.sanitizer import sanitizer
from bench.gpu.far.ladder.starting import launched, rings


@dataclass(frozen=True)
class Rung:
    """One rung.

    Attributes:
        name: on the command line, and of its programs in ladder.json.
        proves: what works when it passes.
        run: it, in a process of its own.
        seconds: that it may take on a GPU; on the emulator ten times as many.
        hint: where to look when it hangs or dies and no check explains it.
    """

    name: str
    proves: str
    run: programs.Rung
    seconds: float = 30
    hint: str = "the kernel of the check that began last; compute-sanitizer names the line"


_MATRIX = "the matrix descriptor in lib/Conversion/AsyncToGPU/WgmmaOperands.cpp (descriptorBits, offsetOf)"
_RING = "phases and byte counts of the ring's mbarriers: lib/Conversion/AsyncToGPU/Producer.cpp and Consumer.cpp"

RUNGS: tuple[Rung, ...] = (
    Rung("driver", "driver, GPU and memory answer", driver, hint="nvidia-smi; the driver itself"),
    Rung("registers", "kernels load, with the registers that ptxas gave them", registers, 60, "the driver's log"),
    Rung("occupancy", "every CTA and every cluster fits", occupancy, 60, "cuOccupancyMaxActiveClusters"),
    Rung("launches", "parameters, grids and stores (add, softmax, layer norm)", launched),
    Rung("mma_sync", "cp.async, ldmatrix and mma.sync", programs.rung("mma_sync")),
    Rung("boxes", "TMA: swizzles, edges, negative starts, steps, ranks 1 to 5", boxes, 60, "mbarrier and TMA's bytes"),
    Rung("wgmma_k128", "wgmma with K-major operands, swizzle of 128 bytes", multiply, hint=_MATRIX),
    Rung("wgmma_k64", "wgmma with K-major operands, swizzle of 64 bytes", multiply, hint=_MATRIX),
    Rung("wgmma_k32", "wgmma with K-major operands, swizzle of 32 bytes", multiply, hint=_MATRIX),
    Rung("wgmma_mn_b", "wgmma with B along n (MN-major)", multiply, hint=_MATRIX),
    Rung("wgmma_mn_a", "wgmma with A along m (MN-major)", multiply, hint=_MATRIX),
    Rung("wgmma_registers", "wgmma with A in registers", multiply, hint=_MATRIX),
    Rung("ring", "mbarriers of a ring: phases, counts, bytes", rings, hint=_RING),
    Rung("tile", "TMA, mbarriers, setmaxnreg and wgmma together, 1 to 128 steps", programs.rung("tile"), hint=_RING),
    Rung("persistent", "tile after tile, TMA stores", programs.rung("persistent"), hint=_RING),
    Rung("clusters", "multicast and barriers between CTAs", programs.rung("clusters"), hint=_RING),
    Rung("attention", "two products around a softmax", programs.rung("attention"), 60, _RING),
    Rung("semaphores", "CTAs that wait for each other, again and again", programs.semaphores, 60, "their counters"),
    Rung("fp8", "float8 sums do not lose bits as k grows", programs.fp8),
    Rung("sanitizer", "compute-sanitizer finds no race and no barrier misused", sanitizer, 300, "compute-sanitizer"),
)


def chosen(first: str | None, only: str | None) -> Sequence[Rung]:
    """The rungs from one on, or one alone.

    Raises:
        ValueError: there is none of that name.
    """
    names = [rung.name for rung in RUNGS]
    for name in (first, only):
        if name is not None and name not in names:
            raise ValueError(f"no rung {name}; there are {', '.join(names)}")
    if only is not None:
        return [RUNGS[names.index(only)]]
    return RUNGS[names.index(first) :] if first is not None else RUNGS
