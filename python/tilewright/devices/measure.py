# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Measure this machine once, in seconds, for the performance model: ``tilewright devices --measure``.

Plans follow from the result, so it is rounded to two digits and kept in the cache folder under the identity of the CPU;
without it plans follow from the description's own numbers and are the same on every machine of a kind.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from tilewright.devices import microbenchmarks as micro
from tilewright.devices.device import Device

#: (module, pipeline) -> the model
Compiled = Callable[[str, str], Any]

_ROUNDS, _SECONDS = 5, 0.2
_APPLY = "builtin.module(tile-apply-layouts,tile-form-groups,tile-groups-to-kernels,canonicalize,cse)"
_TASKS = 512
_SMALL_TASK = 16
_SQUARE = 240  # whole vectors whose rows do not share a few sets of a cache


def measure(device: Device, compiled: Compiled) -> Device:
    """Return the description with measured peaks, bandwidths and rates. Takes some seconds.

    Args:
        device: the description of this machine.
        compiled: runs passes on a module, both as text, and compiles the result for one thread.
    """
    times = _times(device, compiled)
    cycles = {name: seconds * device.units.frequency for name, seconds in times.items()}
    return with_numbers(device, numbers_of(device, times, cycles))


def numbers_of(device: Device, times: Mapping[str, float], cycles: Mapping[str, float]) -> dict[str, float]:
    """Return the figures of a device file from the kernels' times."""
    lanes, steps = device.lanes(32), micro.product_steps()
    numbers: dict[str, float] = {}
    units = {t: t[0] * t[1] * steps / times[f"fma_{t[0]}x{t[1]}"] for t in micro.register_tiles(device.units.registers)}
    latency, pipes = device.limit("fma_latency", 4), device.limit("fma_pipes", 2)
    numbers["hz"] = latency * max(units[rows, 1] / rows for rows in (1, 2, 3, 4))  # a step per latency
    # Some processors take two cycles for the widest vectors: the peak is what the best tile reaches.
    numbers["peak.f32"] = max(units.values()) * 2 * lanes
    clock = numbers["hz"] / device.units.frequency
    for (rows, vectors), speed in units.items():
        bound = min(pipes, rows * vectors / latency)
        numbers[f"fma.{rows}x{vectors}"] = min(speed / numbers["hz"] / bound, 1.0)
    plain = cycles["function_"]
    for function in micro.FUNCTIONS:
        extra = cycles["function_" + function.replace(".", "_")] - plain
        numbers[f"slots.{function}"] = max(2 * clock * extra / micro.function_vectors(lanes), 1.0)
    steady = 32 * 16 * 16 / pipes / numbers["fma.8x2"] / clock
    numbers["start"] = max((cycles["start"] - cycles["launch"] - steady) * clock / 32, 1.0)
    numbers["latency"] = max(cycles["chain"] * clock / micro.function_vectors(lanes), 1.0)
    numbers["pack"] = cycles["pack"] * clock / (_SQUARE * _SQUARE / lanes)
    numbers["launch"] = times["launch"]
    numbers["task"] = max((times["tasks"] - times["one_task"]) / _TASKS, 1e-9)
    for level, elements, repeats in _working_sets(device):
        read = max(times[f"read_{level}"] - times["launch"], 1e-9) / (elements * repeats)
        copy = max(times[f"copy_{level}"] - times["launch"], 1e-9) / elements
        numbers[f"read.{level}"] = 4 / read
        numbers[f"{level}.store"] = min(max(copy / read - 1, 0.3), 3.0)
    return {name: float(f"{value:.1e}") for name, value in numbers.items()}


def with_numbers(device: Device, numbers: Mapping[str, float]) -> Device:
    """Return the description with measured numbers in it."""
    frequency = numbers.get("hz", device.units.frequency)
    peak = dict(device.units.peak)
    scale = numbers.get("peak.f32", peak.get("f32", 1.0)) / peak.get("f32", 1.0)
    peaks = tuple((name, float(f"{value * scale:.2e}")) for name, value in device.units.peak)
    units = dataclasses.replace(device.units, frequency=frequency, peak=peaks)
    levels = tuple(
        dataclasses.replace(level, bandwidth=numbers.get(f"read.{level.name}", level.bandwidth))
        for level in device.levels
    )
    apart = ("peak.", "hz", "read.")
    rates = {name: value for name, value in numbers.items() if not name.startswith(apart)}
    return dataclasses.replace(
        device, levels=levels, units=units, rates=tuple(sorted(rates.items())), source="measured"
    )


def _working_sets(device: Device) -> list[tuple[str, int, int]]:
    """Level, elements that a read of it touches, and how often."""
    found, below = [], 0
    for level in device.levels:
        if level.kind == "register":
            continue
        size = level.bytes // 2 if level.kind == "cache" else min(8 * below, 1 << 28, level.bytes // 16)
        if level.kind == "cache" and below:
            size = min(4 * below, size // 2)  # so that a copy fits as well
        size = min(size, 1 << 28)
        found.append((level.name, size // 4 // 4096 * 4096, max(1, (1 << 22) // size)))
        below = level.bytes
    return found


def _modules(device: Device) -> Iterator[str]:
    """Yield the texts of the modules: one for the core, one per level so that it stays warm."""
    lanes = device.lanes(32)
    kernels = micro.Kernels()
    micro.products(kernels, micro.register_tiles(device.units.registers), lanes)
    micro.start(kernels, lanes)
    micro.functions(kernels, lanes)
    micro.chain(kernels, lanes)
    micro.transposes(kernels, _SQUARE, lanes)
    micro.copies(kernels, "launch", _SMALL_TASK, _SMALL_TASK, min(_SMALL_TASK, 4 * lanes))
    micro.copies(kernels, "tasks", _TASKS * _SMALL_TASK, _SMALL_TASK, min(_SMALL_TASK, 4 * lanes))
    whole = _TASKS * _SMALL_TASK
    micro.copies(kernels, "one_task", whole, whole, min(_SMALL_TASK, 4 * lanes))
    yield kernels.text()
    for level, elements, repeats in _working_sets(device):
        kernels = micro.Kernels()
        micro.reads(kernels, level, elements, repeats, lanes)
        yield kernels.text()
        kernels = micro.Kernels()
        micro.copies(kernels, f"copy_{level}", elements, elements, 8 * lanes)
        yield kernels.text()


def _times(device: Device, compiled: Compiled) -> dict[str, float]:
    """Return the best time of each kernel, in seconds."""
    times: dict[str, float] = {}
    for text in _modules(device):
        _time(compiled(text, _APPLY), times)
    return times


def _aligned(shape: tuple[int, ...]) -> np.ndarray:
    """Return ones that start at a page."""
    size = math.prod(shape)
    raw = np.ones(size + 1024, np.float32)
    start = -raw.ctypes.data % 4096 // 4
    return raw[start : start + size].reshape(shape)


def _time(model: Any, times: dict[str, float]) -> None:
    inputs, results = ([_aligned(slot.shape) for slot in slots] for slots in (model.inputs, model.outputs))
    end = time.perf_counter() + _SECONDS
    rounds = 0
    while rounds < _ROUNDS or (rounds < 50 * _ROUNDS and time.perf_counter() < end):
        rounds += 1
        for name, _, nanoseconds in model.profile(*inputs, out=results):
            times[name] = min(times.get(name, 1e9), nanoseconds * 1e-9)
