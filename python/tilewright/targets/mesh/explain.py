# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a model for a mesh says of itself, as text and as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tilewright.mlir import ir
from tilewright.report.document import document
from tilewright.report.html import section, tag
from tilewright.runtime.manifest import Manifest
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.profile import mesh_report
from tilewright.sim.coremesh_ir.read import programs, read_program

_COLUMNS = ("cycles", "compute", "communication", "overhead", "idle", "memory", "colors")

_NOTE = (
    "Memory here is that of a core with all that lives across programs, as weights do; the maps above show each "
    "program by itself. Cycles here count the edge of the grid too."
)


def explain(manifest: Manifest, report: Mapping[str, Any]) -> str:
    """A table of the steps of a call, what they depend on, and the remarks of the compiler.

    Args:
        manifest: of a model for a mesh.
        report: what the compiler left.
    """
    told = manifest.compile["mesh"]
    steps = [kernel.details for kernel in manifest.kernels]
    lines = [
        f"{manifest.compile['model']} on mesh:{told['machine']}: {told['cycles']['calibrated']:,.0f} cycles simulated "
        f"a call, {told['cycles']['calibrated'] / told['clock'] * 1e6:,.1f} us at {told['clock'] / 1e9:g} GHz",
        f"tier {told['tier']}, preset calibrated, sync {told['sync']}; with preset ideal "
        f"{told['cycles']['ideal']:,.0f} cycles",
        _edge(told, sum(step["hidden"] for step in steps)),
        "",
        *_table(steps),
        "",
        *_open_loops(steps),
        *_outside(told["outside"]),
        *_remarks(report.get("remarks", [])),
    ]
    return "\n".join(lines) + "\n"


def page(text: str, module: ir.Module, manifest: Manifest) -> str:
    """The text, and what the programs cost: cycles, maps of links and memory, routes.

    Args:
        text: of `explain`.
        module: the programs.
        manifest: of the model.
    """
    title, told = manifest.compile["model"], manifest.compile["mesh"]
    said = section("What was compiled", tag("pre", text), note=_NOTE)
    found = [read_program(op) for op in programs(module)]
    if not found:
        return document(title, [tag("header", tag("h1", title)), said])
    steps = [kernel.details for kernel in manifest.kernels if kernel.details["height"]]
    known = steps if len(steps) == len(found) else []
    times, where = [step["times"] for step in known], [step["where"] for step in known]
    device = manifest.target.partition(":")[2]
    report = mesh_report(found, machine(device, "calibrated"), times=times, where=where, sync=told["sync"], title=title)
    return report.html([said])


def _edge(told: Mapping[str, Any], hidden: float) -> str:
    if not told["edge"]:
        return "what lies behind the edge of the grid is not described: distribute and assemble count as 0 cycles"
    ahead = f", and {hidden:,.0f} cycles more while programs run" if hidden else ""
    return f"distribute, stream and assemble pass the edge of the grid at {told['edge']:g} bytes a cycle{ahead}"


def _table(steps: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [["step", "grid", "times", *_COLUMNS, "tensors", "node"]]
    for step in steps:
        grid = f"{step['height']}x{step['width']}" if step["height"] else ""
        numbers = [f"{step[name]:,.0f}" for name in _COLUMNS]
        times = f"{step['times']}{'' if step['is_known'] else '?'}"
        rows.append([step["name"], grid, times, *numbers, step["sizes"], step["where"]])
    totals = [f"{sum(step[name] for step in steps):,.0f}" for name in _COLUMNS[:5]]
    most = [f"{max((step[name] for step in steps), default=0):,.0f}" for name in _COLUMNS[5:]]
    rows.append(["all", "", "", *totals, *most, "", ""])
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    return ["  ".join(_cell(text, at, widths[at]) for at, text in enumerate(row)).rstrip() for row in rows]


def _cell(text: str, at: int, width: int) -> str:
    return text.rjust(width) if 2 <= at < 3 + len(_COLUMNS) else text.ljust(width)


def _open_loops(steps: Sequence[Mapping[str, Any]]) -> list[str]:
    if all(step["is_known"] for step in steps):
        return []
    return ["steps with ? stand in loops or branches of which a run decides: counted once"]


def _outside(names: Sequence[str]) -> list[str]:
    if not names:
        return ["all of the model's arithmetic is done on the grid"]
    return [f"outside of the grid, in no time: {', '.join(names)}"]


def _remarks(remarks: Sequence[Mapping[str, str]]) -> list[str]:
    texts = dict.fromkeys(f"  {one['location']}: {one['message']}" for one in remarks if one["severity"] == "remark")
    return ["remarks:", *texts] if texts else []
