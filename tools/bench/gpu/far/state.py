# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Clocks, power and temperature of a GPU: figures of two runs are compared only where these are alike.

Sources: NVML (``nvml.h``, the functions below exist since driver 450), else ``nvidia-smi``.
"""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Callable, Sequence
from ctypes import byref, c_uint, c_ulonglong, c_void_p
from typing import Any

_SM, _MEMORY, _GPU_TEMPERATURE = 1, 2, 0
#: nvmlClocksEventReason*, by bit.
REASONS = {
    0x1: "idle",
    0x2: "application clocks",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "software thermal",
    0x40: "hardware thermal",
    0x80: "power brake",
    0x100: "display clocks",
}
_QUERY = ("clocks.sm", "clocks.mem", "power.draw", "power.limit", "temperature.gpu", "clocks_throttle_reasons.active")
_NAMES = ("sm_mhz", "memory_mhz", "power_w", "power_limit_w", "temperature_c", "throttle")


def state(uuid: str | None, library: str = "libnvidia-ml.so.1", program: str = "nvidia-smi") -> dict[str, Any]:
    """What the GPU is doing now.

    Args:
        uuid: of the GPU: ``GPU-...``; None: the first one.
        library: NVML.
        program: that is asked where there is no NVML.

    Returns:
        ``source`` (nvml, nvidia-smi, not available), ``sm_mhz``, ``memory_mhz``, ``power_w``, ``power_limit_w``,
        ``temperature_c`` and ``throttle``, a list of words of `REASONS`. What a GPU does not tell is None.
    """
    empty: dict[str, Any] = dict.fromkeys(_NAMES)
    for source, found in (("nvml", lambda: _nvml(uuid, library)), ("nvidia-smi", lambda: _smi(uuid, program))):
        values = found()
        if values is not None:
            return {"source": source, **empty, **values}
    return {"source": "not available", **empty}


def reasons(bits: int) -> list[str]:
    """The reasons of a bit mask in words; unknown bits as a number."""
    rest = bits & ~sum(REASONS)
    return [name for bit, name in REASONS.items() if bits & bit] + ([hex(rest)] if rest else [])


def _nvml(uuid: str | None, library: str) -> dict[str, Any] | None:
    try:
        nvml = ctypes.CDLL(library)
        if nvml.nvmlInit_v2():
            return None
    except (OSError, AttributeError):
        return None
    try:
        handle = c_void_p()
        if uuid is None:
            missing = nvml.nvmlDeviceGetHandleByIndex_v2(c_uint(0), byref(handle))
        else:
            missing = nvml.nvmlDeviceGetHandleByUUID(uuid.encode(), byref(handle))
        return None if missing else _read(nvml, handle)
    except AttributeError:  # an NVML without one of the functions
        return None
    finally:
        nvml.nvmlShutdown()


def _read(nvml: Any, handle: c_void_p) -> dict[str, Any]:
    def number(function: Callable[..., int], *arguments: Any, kind: Any = c_uint) -> int | None:
        value = kind()
        return None if function(handle, *arguments, byref(value)) else value.value

    def watts(milliwatts: int | None) -> float | None:
        return None if milliwatts is None else milliwatts / 1e3

    bits = number(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, kind=c_ulonglong)
    return {
        "sm_mhz": number(nvml.nvmlDeviceGetClockInfo, c_uint(_SM)),
        "memory_mhz": number(nvml.nvmlDeviceGetClockInfo, c_uint(_MEMORY)),
        "power_w": watts(number(nvml.nvmlDeviceGetPowerUsage)),
        "power_limit_w": watts(number(nvml.nvmlDeviceGetEnforcedPowerLimit)),
        "temperature_c": number(nvml.nvmlDeviceGetTemperature, c_uint(_GPU_TEMPERATURE)),
        "throttle": None if bits is None else reasons(bits),
    }


def _smi(uuid: str | None, program: str) -> dict[str, Any] | None:
    command = [program, f"--query-gpu={','.join(_QUERY)}", "--format=csv,noheader,nounits"]
    command += ["-i", uuid] if uuid else []
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    cells = [cell.strip() for cell in done.stdout.splitlines()[0].split(",")] if done.stdout.strip() else []
    if done.returncode or len(cells) != len(_QUERY):
        return None
    return {name: _cell(name, cell) for name, cell in zip(_NAMES, cells, strict=True)}


def _cell(name: str, cell: str) -> float | Sequence[str] | None:
    try:
        return reasons(int(cell, 16)) if name == "throttle" else float(cell)
    except ValueError:  # "[N/A]"
        return None
