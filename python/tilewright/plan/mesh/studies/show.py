# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A sweep over machines as text, and as sections of a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.plan.mesh.studies.explore import AXES, Exploration, Point
from tilewright.report.document import document
from tilewright.report.html import Raw, details, join, quantity, seconds, section, table, tag
from tilewright.report.plot import Series, plot
from tilewright.report.style import GREY
from tilewright.sim.coremesh.profile.mesh_report import told
from tilewright.sim.coremesh.profile.sections import split_strip

#: Machines that do not run the model which a text lists.
_SHOWN = 4


def machines(count: int) -> str:
    """So many."""
    return f"{count} machine{'' if count == 1 else 's'}"


def conditions(found: Exploration) -> str:
    """What the numbers hold for, in one line."""
    machine = found.machine
    values = {"machine": machine.name, "preset": machine.preset, "clock": machine.clock, "sync": found.sync}
    return told(values | {"fabric_entries": None, "tier": "T1", "extrapolated": found.extrapolated})


def as_text(found: Exploration) -> str:
    """The front as a table, then what does not run and why."""
    rows = [_head(found), *(_cells(found, point) for point in found.front)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    failing = [point for point in found.points if point.problem]
    running = len(found.points) - len(failing)
    axes = "; ".join(f"{axis}: {AXES[axis]}" for axis in found.axes)
    told_ = [
        f"{found.workload.name}: {machines(len(found.points))}, of which {running} can run it; "
        f"{len(found.front)} on the front of {', '.join(found.axes)}",
        conditions(found),
        f"({axes})",
        "",
        *(lines if found.front else ["no machine runs it"]),
    ]
    told_ += [f"does not run on {point.variant}: {point.problem}" for point in failing[:_SHOWN]]
    if len(failing) > _SHOWN:
        told_.append(f"... and on {len(failing) - _SHOWN} more")
    return "\n".join(told_)


def _head(found: Exploration) -> tuple[str, ...]:
    others = [axis for axis in found.axes if axis in ("links", "area")]
    return ("grid", "KB/core", "B/link", "B/edge", "cycles", "time", "tokens/s", "streamed", *others)


def _cells(found: Exploration, point: Point) -> tuple[str, ...]:
    variant, spent = point.variant, point.costs["time"]
    others = [f"{point.costs[axis]:,.4g}" for axis in found.axes if axis in ("links", "area")]
    return (
        f"{variant.height}x{variant.width}",
        f"{variant.sram / 1024:g}",
        f"{variant.link:g}",
        f"{variant.offchip:g}",
        f"{point.cycles:,.0f}",
        seconds(spent),
        f"{found.workload.tokens / spent:,.4g}",
        quantity(point.streamed, "B"),
        *others,
    )


def sections(found: Exploration) -> list[Raw]:
    """The plot of the front, its table, and what does not run."""
    failing = [point for point in found.points if point.problem]
    axes = "; ".join(f"{axis}: {AXES[axis]}" for axis in found.axes)
    note = (
        f"{machines(len(found.points))}, of which {len(found.points) - len(failing)} can run the model; none of those "
        f"beats one of the {len(found.front)} on the front in one axis without losing in another. Axes: {axes}. "
        "What of weights and cache does not fit streams in through the edge beside the programs; the slower counts. "
        "The split is that of the programs."
    )
    rows = [(*_cells(found, point), split_strip(point.split)) for point in found.front]
    shown = _plot(found)
    parts = [section("Pareto front", *([shown] if shown else []), _table(found, rows), note=note)]
    if failing:
        lines = [(str(point.variant), point.problem) for point in failing]
        summary = join([tag("b", machines(len(failing))), tag("span", "each with the reason")])
        inside = tag("div", table(("machine", "why"), lines), cls="in")
        parts.append(section("What does not run", details(summary, inside)))
    return parts


def page(found: Exploration, more: Sequence[Raw] = ()) -> str:
    """The page of a sweep; ``more``: sections after its own."""
    title = f"{found.workload.name}: machines"
    head = tag("header", join([tag("h1", title), tag("p", conditions(found), cls="sub")]))
    return document(title, [head, *sections(found), *more])


def _table(found: Exploration, rows: Sequence[Sequence[Any]]) -> Raw:
    head = (*_head(found), "split")
    return table(head, rows, numeric=range(len(head) - 1))


def _plot(found: Exploration) -> Raw | None:
    """Time over the first other axis; the fronts of more axes are points, not a line."""
    other = next((axis for axis in found.axes if axis != "time"), "area")
    best = {id(point) for point in found.front}
    rest = [point for point in found.points if not point.problem and id(point) not in best]
    series = [_series(found, "dominated", rest, other, GREY, True)]
    if len(found.axes) == 2:
        series.append(_series(found, "front", found.front, other, "", False))
    else:
        widths = sorted({point.variant.link for point in found.front})
        groups = [[point for point in found.front if point.variant.link == width] for width in widths]
        series += [
            _series(found, f"front, {width:g} bytes per link", group, other, "", False)
            for width, group in zip(widths, groups, strict=True)
        ]
    values = [point[0] for one in series for point in one.points]
    return plot(series, f"{other}: {AXES[other]}", "seconds of a pass", log_x=min(values, default=0) > 0, log_y=True)


def _series(found: Exploration, name: str, points: Sequence[Point], other: str, color: str, faint: bool) -> Series:
    pairs = tuple((point.costs[other], point.costs["time"]) for point in points)
    tips = tuple(f"{point.variant}: {seconds(point.costs['time'])}" for point in points)
    return Series(name, pairs, color, line=len(found.axes) == 2 and not faint, tips=tips, faint=faint)
