# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The time of attention on a GPU: of softmax chains in parts of their long loop, and the peak that warpgroups reach."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from tilewright.plan.cost.roofline import drawn, idle, launched, transfer
from tilewright.plan.model.gpu import Gpu
from tilewright.plan.model.tiles import FEW_TASKS

#: Tasks that a multiprocessor runs at once: each has a ring of keys and values.
_HELD = 2
#: Waves from which on the last one, which is not full, takes no time to speak of.
_MANY_WAVES = 4
#: Latencies of memory of a wave: what a task reads first, what follows from it, and the store.
_TRIPS = 3


@dataclass(frozen=True)
class Chain:
    """What a softmax chain computes and moves.

    Attributes:
        read: bytes that come from memory.
        written: bytes of the results of a part.
        operations: of products, rows padded to those of an instruction.
        kind: element type of the products.
        tasks: that the chain is as a whole.
        pieces: tasks of the fewest rows that there may be.
    """

    read: int
    written: int
    operations: float
    kind: str
    tasks: int
    pieces: int

    def times(self, factor: float) -> Chain:
        """That of so many times the steps."""
        return replace(self, read=round(self.read * factor), operations=self.operations * factor)


def split_kv_seconds(chain: Chain, parts: int, gpu: Gpu) -> float:
    """Predicted seconds of a chain in some parts (1: as a whole), and of the kernel that combines them.

    The longest of memory and arithmetic, as of any kernel; where there are few tasks, products and softmax are kernels
    of their own.
    """
    device, tasks = gpu.device, chain.tasks * parts
    factor = idle(tasks, gpu.units, gpu.units) if tasks < _MANY_WAVES * gpu.units else 1.0
    kernel = max(
        transfer(device, "memory", chain.read + chain.written * parts) * drawn(device, factor),
        chain.operations * factor / gpu.units / chain_reached(gpu) / device.units.peak_of(chain.kind),
    )
    kernel += launched(device, _TRIPS * ceil(tasks / (_HELD * gpu.units)))
    again = launched(device, _TRIPS)
    kernel += 2 * again if chain.pieces * parts < FEW_TASKS else 0.0
    if parts == 1:
        return kernel
    return kernel + transfer(device, "l2", chain.written * (parts + 1)) + parts * device.rate("part") + again


def chain_reached(gpu: Gpu) -> float:
    """Part of the peak that mma.sync reaches among other work: operands and results pass through registers."""
    return gpu.device.rate("mma.chain.hopper" if gpu.hopper else "mma.chain")


def warpgroups_reached(gpu: Gpu, operations: float, staggered: bool, alone: bool) -> float:
    """Part of the peak that warpgroups reach whose blocks of keys have so many operations.

    Args:
        gpu: the machine.
        operations: of a block's products for all warpgroups of a CTA.
        staggered: whether scores of the next block are computed beside functions of this one.
        alone: whether there is one warpgroup only, whose units idle while it computes functions.
    """
    device = gpu.device
    clocks = operations / device.units.peak_of("f16") * device.units.frequency
    part = device.rate("wgmma.chain.staggered" if staggered else "wgmma.chain")
    reached = clocks / (clocks / part + device.rate("wgmma.block"))
    return reached * (device.rate("wgmma.alone") if alone and not staggered else 1.0)
