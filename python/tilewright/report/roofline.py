# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How fast a kernel could be: the device's peak and bandwidths against the kernel's work."""

from __future__ import annotations

from typing import Any


def is_gpu(device: dict[str, Any]) -> bool:
    """Whether a description is a GPU's: its levels beyond a multiprocessor serve all of them together."""
    return device.get("kind") == "gpu"


def _peak(device: dict[str, Any], element: str) -> float:
    """Operations per second of one unit; of a GPU, with the matrix units' rate for a type that they have."""
    peaks = device.get("units", {}).get("peak", {})
    name = {"u8": "i8", "ui8": "i8"}.get(element, element)
    return peaks.get(name if is_gpu(device) else "f32") or peaks.get("f32", 0.0)


def floor_seconds(
    flops: float, traffic: float, device: dict[str, Any], threads: int, element: str = "f32"
) -> float | None:
    """Return the least time for one launch, or None where the device's rates are not known.

    Args:
        flops: floating-point operations (f32).
        traffic: bytes of all operands, each moved once from the level that can hold them together.
        device: a device description as plain values.
        threads: threads that share the work; all of a GPU does.
        element: type of the products, where the kernel multiplies on a GPU's matrix units.
    """
    units = device.get("units", {})
    peak = _peak(device, element)
    workers = max(1, min(threads, units.get("count", 1)))
    bandwidth = _bandwidth(traffic, device.get("levels", []))
    if not peak or not bandwidth:
        return None
    if is_gpu(device):
        return max(flops / (peak * units["count"]), traffic / device["levels"][-1]["bandwidth"])
    return max(flops / (peak * workers), traffic / (bandwidth * workers))


def predicted_seconds(details: dict[str, Any], device: dict[str, Any], threads: int) -> float | None:
    """Return the time that one launch should take, or None where nothing is known of it.

    What planning left of its cost model is taken (for one core, or for all); for kernels without a plan it is the
    largest of the time at the peak rate and the times that each level needs for the bytes that tiles move there.

    Args:
        details: what the manifest says of the kernel: `predicted`, `flops`, `moved`.
        device: a device description as plain values.
        threads: threads that share the work.
    """
    plan = details.get("plan") or details.get("predicted", {})
    if plan.get("ns"):
        whole = plan.get("all_cores_ns", plan["ns"])  # of a GPU, the prediction is for all of it
        return (plan["ns"] if threads == 1 else whole) * 1e-9
    if is_gpu(device):
        return None  # rates of its levels are of different parts of it: the plan knows, or no one
    units = device.get("units", {})
    peak, workers = units.get("peak", {}).get("f32", 0.0), max(1, min(threads, units.get("count", 1)))
    rates = {level["name"]: level["bandwidth"] for level in device.get("levels", [])}
    moved = {name: count for name, count in details.get("moved", {}).items() if rates.get(name)}
    if not peak or not moved:
        return None
    operands = details.get("bytes", 0)
    held = {name: _holds(name, operands, device) for name in moved}
    parts = [count / rates[name] for name, count in moved.items() if not held[name]]
    return max(details.get("flops", 0) / peak, *parts, 0.0) / workers


def _holds(name: str, traffic: float, device: dict[str, Any]) -> bool:
    """Whether a nearer level can hold all operands: then a repeated run gets nothing from this one."""
    for level in device.get("levels", []):
        if level["name"] == name:
            return False
        if level["kind"] != "register" and level["bytes"] >= traffic:
            return True
    return False


def bound_by(flops: float, traffic: float, device: dict[str, Any], element: str = "f32") -> str:
    """Return ``compute`` or ``memory``, whichever sets the floor; "" where rates are not known."""
    peak = _peak(device, element)
    bandwidth = _bandwidth(traffic, device.get("levels", []))
    if not peak or not bandwidth:
        return ""
    if is_gpu(device):
        peak, bandwidth = peak * device["units"]["count"], device["levels"][-1]["bandwidth"]
    return "compute" if flops / peak >= traffic / bandwidth else "memory"


def _bandwidth(traffic: float, levels: list[dict[str, Any]]) -> float:
    fits = [level for level in levels if level["kind"] != "register" and level["bytes"] >= traffic]
    candidates = fits or levels[-1:]
    return candidates[0]["bandwidth"] if candidates else 0.0
