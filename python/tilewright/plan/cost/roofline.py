# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What predictions of GPUs are made of: bytes over a bandwidth, operations over a peak, waves of tasks, launches.

The roofline (Williams, Waterman and Patterson, CACM 2009) with the parts of the data sheets' rates that kernels reach,
which are rates of the device.
"""

from __future__ import annotations

from math import ceil

from tilewright.devices import Device


def transfer(device: Device, level: str, size: float) -> float:
    """Seconds in which all units together move so many bytes to and from a shared level (``l2``, ``memory``).

    The data sheet's bandwidth counts in the part that kernels reach, and never above what a copy was measured to
    sustain, where the device's description says that.
    """
    reached = device.level(level).bandwidth * device.rate(f"{level}.reached")
    return size / min(reached, device.rate(f"sustained.{level}", "sustained"))


def sustained(device: Device, kind: str) -> float:
    """Operations per second that a multiprocessor keeps up in products of a type: power bounds them, not units."""
    return device.rate(f"sustained.{kind}", "sustained") / device.units.count


def launched(device: Device, trips: float) -> float:
    """Seconds of a launch, and of so many latencies of memory that nothing hides."""
    return trips * device.level("memory").latency + device.rate("launch")


def copied(device: Device, size: float) -> float:
    """Seconds of a kernel that reads and writes so many bytes in all, and computes nothing to speak of."""
    return transfer(device, "memory", size) + launched(device, 2) + device.rate("task")


def pays(device: Device, then: float, now: float, error: str = "prediction_error") -> bool:
    """Whether a change saves more seconds than the two predictions may be wrong by."""
    return then < now * (1 - device.rate(error))


def idle(tasks: int, slots: int, units: int) -> float:
    """How much longer tasks take than if they kept all units busy (wave quantization).

    Args:
        tasks: of the kernel.
        slots: tasks that all units together hold.
        units: that there are.
    """
    return ceil(tasks / slots) * slots / tasks if tasks > slots else max(units / tasks, 1.0)


def drawn(device: Device, factor: float) -> float:
    """How much longer bytes take to come where some units are idle: the others draw a few times their share."""
    return min(factor, device.rate("draw"))
