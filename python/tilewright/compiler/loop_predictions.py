# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the plan predicts of kernels that launch others: the sum of their steps, one launch, and where blocks meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.compiler.run_counts import Counts, Piece
from tilewright.devices import Device
from tilewright.ir.units import symbol_of
from tilewright.mlir import ir
from tilewright.plan.cost.decide import prediction_of

_SUMS = ("memory_bytes", "l2_bytes", "operations", "roofline_ns")


def plans_of(module: ir.Module) -> dict[str, dict[str, Any]]:
    """What planning for a GPU predicts of each kernel, by its symbol."""
    kernels = {symbol_of(op): op for op in module.body.operations if op.operation.name == "tile.kernel"}
    plans = {name: prediction_of(op) for name, op in kernels.items()}
    return {name: plan for name, plan in plans.items() if "roofline_ns" in plan}


def held_plans(
    found: Counts, plans: Mapping[str, Mapping[str, Any]], meetings: Mapping[str, int], device: Device
) -> dict[str, dict[str, Any]]:
    """A prediction for each kernel that launches others, in the fields of `tile.prediction`.

    Steps cost what their launches would, less the launch. Nothing is said where the trips of a loop are not known: the
    sum would be too small, nobody knows by how much.

    Args:
        found: what a call runs, in phase `schedule`.
        plans: of single kernels.
        meetings: of all blocks, in one launch of each kernel.
        device: that the plan is made for.
    """
    if found.open:
        return {}
    held: dict[str, dict[str, Any]] = {}
    for holder in (piece for piece in found.pieces if piece.holds and piece.times):
        steps = [piece for piece in found.pieces if piece.within == holder.name]
        held[holder.name] = _sum(holder, steps, plans, meetings.get(holder.name, 0), device)
    return held


def plan_of(piece: Piece, plans: Mapping[str, Mapping[str, Any]], device: Device) -> Mapping[str, Any]:
    """The prediction of a kernel; what is not planned, copies, moves its bytes at the bandwidth of memory."""
    if piece.name in plans:
        return plans[piece.name]
    moved = piece.read + piece.written
    moving, launch = (round(s * 1e9) for s in (moved / device.memory.bandwidth, device.rate("launch")))
    return {"ns": launch + moving, "launch_ns": launch, "memory_bytes": moved, "roofline_ns": moving}


def _sum(
    holder: Piece, steps: Sequence[Piece], plans: Mapping[str, Mapping[str, Any]], meetings: int, device: Device
) -> dict[str, Any]:
    def total(name: str) -> int:
        return sum(int(plan_of(step, plans, device).get(name, 0)) * step.times for step in steps) // holder.times

    parts = {
        "steps": total("ns") - total("launch_ns"),
        "barriers": round(meetings * device.rate("grid.barrier") * 1e9),
        "launch": round(device.rate("launch") * 1e9),
    }
    return {
        "ns": sum(parts.values()),
        "bound": max(parts, key=lambda name: parts[name]),
        **{f"{name}_ns": spent for name, spent in parts.items()},
        **{name: total(name) for name in _SUMS},
    }
