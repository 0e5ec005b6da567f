# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What passes ask a device: one number or list each; None where the description does not say.

These are the facts that options of passes take from the module's device, see :func:`tilewright.passes.device_option`.
"""

from __future__ import annotations

from tilewright.devices.device import Device, Level
from tilewright.devices.nvidia import capability
from tilewright.devices.x86 import dot_products, matrix_units

#: The level that holds the tiles of a task.
_TASK_LEVEL = {"cpu": "l2", "gpu": "shared"}


def f32_lanes(device: Device) -> int:
    """Return how many numbers of f32 a vector register holds."""
    return device.lanes(32)


def registers(device: Device) -> int:
    """Return how many vector registers a program can name."""
    return device.units.registers


def unit_count(device: Device) -> int:
    """Return how many execution units there are."""
    return device.units.count


def dots(device: Device) -> tuple[str, ...]:
    """Return the element types whose products in groups an instruction adds."""
    return dot_products(device.features)


def matrix(device: Device) -> tuple[str, ...]:
    """Return the element types that a matrix unit of a CPU multiplies."""
    return matrix_units(device.features)


def multiplied(device: Device) -> tuple[str, ...]:
    """Return the element types that a CPU has instructions to multiply, sorted."""
    return tuple(sorted({*dots(device), *matrix(device)}))


def multiplies_bytes(device: Device) -> bool:
    """Return whether bytes are multiplied as bytes."""
    return is_gpu(device) or "i8" in multiplied(device)


def is_gpu(device: Device) -> bool:
    """Return whether it is a GPU, whose tasks are blocks of threads."""
    return device.kind == "gpu"


def multiplies_float8(device: Device) -> bool:
    """Return whether matrix units multiply float8: compute capability 9.0 on."""
    return is_gpu(device) and capability(device) >= 90


# Levels of memory -----------------------------------------------------------------------------------------------------


def task_level(device: Device) -> Level:
    """Return the level that holds the tiles of a task: L2 of a core, shared memory of a multiprocessor.

    Raises:
        UserError: the description lacks it.
    """
    return device.level(_TASK_LEVEL.get(device.kind, "l2"))


def task_bytes(device: Device) -> int:
    """Return the bytes of the level that holds the tiles of a task."""
    return task_level(device).bytes


def task_rate(device: Device) -> float | None:
    """Return the bytes per nanosecond that a unit moves to and from that level."""
    return _rate(task_level(device))


def last_bytes(device: Device) -> int:
    """Return the bytes of the largest cache."""
    return _last(device).bytes


def last_rate(device: Device) -> float | None:
    """Return the bytes per nanosecond that a unit moves to and from the largest cache."""
    return _rate(_last(device), shared=is_gpu(device))


def memory_rate(device: Device) -> float | None:
    """Return the bytes per nanosecond that a unit moves to and from memory."""
    memory = device.level("memory") if is_gpu(device) else device.memory
    return _rate(memory, shared=is_gpu(device))


def l1_bytes(device: Device) -> int | None:
    """Return the bytes of the cache before L2."""
    level = _nearest(device)
    return None if level is None else level.bytes


def l1_ways(device: Device) -> int | None:
    """Return how many lines may lie in each set of that cache."""
    return None if _nearest(device) is None else device.limit("l1_ways", 8)


def _nearest(device: Device) -> Level | None:
    first = next(level for level in device.levels if level.kind == "cache")
    return None if first.name == _TASK_LEVEL["cpu"] else first


def _last(device: Device) -> Level:
    return device.level("l2") if is_gpu(device) else [level for level in device.levels if level.kind == "cache"][-1]


def _rate(level: Level, shared: bool = False) -> float | None:
    """`shared`: the description has the rate of all units together."""
    if not level.bandwidth:
        return None
    return level.bandwidth / level.shared_by / 1e9 if shared else level.bandwidth / 1e9


# Rates of arithmetic --------------------------------------------------------------------------------------------------


def f32_rate(device: Device) -> float | None:
    """Return the multiply-adds of vectors of f32 per nanosecond of a unit."""
    return dict(device.units.peak).get("f32", 0.0) / (2e9 * device.lanes(32)) or None


def f32_peak(device: Device) -> float | None:
    """Return the multiply-adds of f32 per nanosecond of a unit."""
    return dict(device.units.peak).get("f32", 0.0) / 2e9 or None


# Tasks of a GPU -------------------------------------------------------------------------------------------------------


def block_steps(device: Device) -> int | None:
    """Return the steps of a block, where reductions of a task run in one loop."""
    return 64 if is_gpu(device) else None


def even_tasks(device: Device) -> int | None:
    """Return how many tasks share the machine evenly."""
    return device.units.count // 2 if is_gpu(device) else None


def large_product(device: Device) -> int | None:
    """Return the multiply-adds of a product in a task with others that takes longer than the launch that it saves."""
    if not is_gpu(device):
        return None
    peak = dict(device.units.peak).get("f16", device.units.peak_of("f32"))
    return int(peak * device.units.count * device.rate("launch") * device.rate("shared_task.reached") / 2)
