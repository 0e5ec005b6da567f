# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a host spends on launches, loops and branches that a kernel could run, and what kernels lose there."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.devices.rates import usual_rate
from tilewright.ir.constants import trip_count
from tilewright.ir.structure import EXPECTED
from tilewright.ir.target_info import find_device
from tilewright.mlir import ir


@dataclass(frozen=True)
class Loss:
    """Why launches had better have blocks of their own, and the seconds that they lose without."""

    reason: str
    seconds: float


@dataclass(frozen=True)
class Limits:
    """What a kernel that runs others may cost.

    Attributes:
        longest: seconds of a launch up to which nobody asks how many blocks it would rather have.
        launch: seconds of one.
        barrier: seconds in which all blocks meet, which is what stands for a launch in a kernel.
        wait: seconds in which the host waits for a number of the device, which has nothing to do meanwhile.
    """

    longest: float
    launch: float
    barrier: float
    wait: float

    @staticmethod
    def of(op: ir.Operation) -> Limits:
        """Those of the GPU that an operation is for."""
        names = ("loop.longest", "launch", "grid.barrier", "host.read")
        return Limits(*(rate_of_gpu(op, name) for name in names))

    def host_seconds(self, op: ir.Operation) -> float:
        """What an operation takes longer if the host runs it: launches instead of meetings, and numbers that it reads.

        Args:
            op: a launch, a loop, a branch, a read; anything else takes nothing.
        """
        if op.name == "tile.launch":
            return self.launch - self.barrier
        if op.name == "memref.load":
            return self.wait
        inside = (self.host_seconds(inner.operation) for r in op.regions for b in r.blocks for inner in b.operations)
        return expected_trips(op) * sum(inside)


def rate_of_gpu(op: ir.Operation, name: str) -> float:
    """A rate of the GPU that an operation is for; of a usual one where none is named."""
    device = find_device(op)
    return usual_rate("gpu", name) if device is None else device.rate(name)


def times(op: ir.Operation, outer: ir.Operation) -> int:
    """How often an operation is run in a run of an outer one; branches are taken always."""
    count = 1
    while op != outer:
        parent = op.parent
        assert parent is not None
        op = parent.operation
        count *= expected_trips(op)
    return count


def expected_trips(op: ir.Operation) -> int:
    """How often the regions of an operation are run: once but for loops, of which a run may tell the number."""
    if op.name == "scf.while":
        return EXPECTED
    trips = trip_count(op) if op.name == "scf.for" else 1
    return EXPECTED if trips is None else trips
