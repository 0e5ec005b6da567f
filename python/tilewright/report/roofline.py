# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How fast a kernel could be: the device's peak and bandwidths against the kernel's work."""

from __future__ import annotations

from typing import Any


def floor_seconds(flops: float, traffic: float, device: dict[str, Any], threads: int) -> float | None:
    """Return the least time for one launch, or None where the device's rates are not known.

    Args:
        flops: floating-point operations (f32).
        traffic: bytes of all operands, each moved once from the level that can hold them together.
        device: a device description as plain values.
        threads: threads that share the work.
    """
    units = device.get("units", {})
    peak = units.get("peak", {}).get("f32", 0.0)
    workers = max(1, min(threads, units.get("count", 1)))
    bandwidth = _bandwidth(traffic, device.get("levels", []))
    if not peak or not bandwidth:
        return None
    return max(flops / (peak * workers), traffic / (bandwidth * workers))


def bound_by(flops: float, traffic: float, device: dict[str, Any]) -> str:
    """Return ``compute`` or ``memory``, whichever sets the floor; "" where rates are not known."""
    peak = device.get("units", {}).get("peak", {}).get("f32", 0.0)
    bandwidth = _bandwidth(traffic, device.get("levels", []))
    if not peak or not bandwidth:
        return ""
    return "compute" if flops / peak >= traffic / bandwidth else "memory"


def _bandwidth(traffic: float, levels: list[dict[str, Any]]) -> float:
    fits = [level for level in levels if level["kind"] != "register" and level["bytes"] >= traffic]
    candidates = fits or levels[-1:]
    return candidates[0]["bandwidth"] if candidates else 0.0
