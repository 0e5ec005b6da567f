# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Sections of the report: what cycles go to, maps of links and memory, routes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from tilewright.report.heat_map import heat_map, heat_maps
from tilewright.report.html import Raw, details, join, quantity, seconds, section, table, tag
from tilewright.report.style import GREY, PALETTE
from tilewright.sim.coremesh.profile.program_profile import DIRECTIONS, ProgramProfile
from tilewright.sim.coremesh.timing.result import Split

#: Programs whose maps are shown without a click.
_OPEN = 2
COLORS = {"compute": PALETTE[2], "communication": PALETTE[0], "overhead": PALETTE[1], "idle": GREY}
_MEMORY, _ENDS = PALETTE[4], PALETTE[6]


def cycles_section(profiles: Sequence[ProgramProfile]) -> Raw:
    """The split of the cycles of each program, along its critical path."""
    note = (
        "Programs in the order in which they run, one after the other. The split is of the critical path, the way of "
        "waits and messages that ends last: kernels; messages on the move; fixed costs of rounds and collectives; "
        "idle: waiting for links, receivers or places in the fabric that others hold. Link use: the share of the time "
        "in which the busiest link moves data."
    )
    legend = join(
        join([Raw(f'<span class="dot" style="background:{color}"></span>'), name, " "])
        for name, color in COLORS.items()
    )
    head = ("program", "times", "cycles", "share", *COLORS, "link use", "split")
    rows = [_cycles_row(one, sum(other.timing.cycles * other.times for other in profiles)) for one in profiles]
    return section("Cycles", tag("p", legend, cls="note"), table(head, rows, numeric=range(1, 9)), note=note)


def _cycles_row(one: ProgramProfile, total: float) -> list[Raw | str]:
    timing = one.timing
    spent = timing.cycles * one.times
    parts = dataclasses.asdict(timing.split)
    height, width = timing.ends.shape
    grid = f"{height} × {width} cores{', extrapolated' if timing.extrapolated else ''}"
    return [
        join([tag("code", one.program), " ", one.where, tag("small", grid)]),
        str(one.times),
        join([f"{timing.cycles:,.0f}", tag("small", seconds(timing.seconds))]),
        f"{spent / total:.1%}" if total else "–",
        *(f"{value:,.0f}" for value in parts.values()),
        f"{one.link_use:.1%}",
        split_strip(timing.split),
    ]


def split_strip(split: Split) -> Raw:
    """A strip of the parts, as wide as their shares."""
    parts = dataclasses.asdict(split)
    total = sum(parts.values()) or 1.0
    cells = "".join(
        f'<i style="width:{value / total:.2%};background:{COLORS[name]}" title="{name}: {value / total:.1%}"></i>'
        for name, value in parts.items()
        if value
    )
    return Raw(f'<div class="split">{cells}</div>')


def maps_section(profiles: Sequence[ProgramProfile]) -> Raw:
    """Heat maps of links, memory and ends of each program."""
    note = (
        "One cell per core, row 0 above. Links: bytes that leave a core in one run, all four directions in one scale; "
        "memory: what a core holds at its fullest, of what its code leaves; ends: when a core is done."
    )
    shown = [join([tag("p", tag("b", _name(one))), _maps(one)]) for one in profiles[:_OPEN]]
    more = [
        details(join([tag("b", _name(one)), tag("span", _busiest(one))]), tag("div", _maps(one), cls="in"))
        for one in profiles[_OPEN:]
    ]
    return section("Links and memory", *shown, *more, note=note)


def _name(one: ProgramProfile) -> str:
    return f"{one.program} {one.where}".rstrip()


def _maps(one: ProgramProfile) -> Raw:
    loads, plmr = one.timing.loads, one.plmr
    most = int(loads.max(initial=0))
    figures = [
        heat_map(load, f"links {name}", f"at most {quantity(int(load.max(initial=0)), 'B')}", most)
        for name, load in zip(DIRECTIONS, loads, strict=True)
    ]
    held = f"{_range(one.memory)} of {plmr.capacity:,} bytes"
    figures.append(heat_map(one.memory, "memory", held, plmr.capacity, _MEMORY))
    figures.append(heat_map(one.timing.ends, "ends", f"{_range(one.timing.ends)} cycles", color=_ENDS))
    return join([heat_maps(figures), tag("p", _busiest(one), cls="note")])


def _range(values: np.ndarray) -> str:
    low, high = values.min(), values.max()
    return f"{high:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"


def _busiest(one: ProgramProfile) -> str:
    load, (y, x), direction = one.busiest
    if not load:
        return "Nothing crosses a link."
    return (
        f"Busiest link: {quantity(load, 'B')} {direction} from (y={y}, x={x}), {one.link_use:.1%} of the time; "
        f"{quantity(one.timing.byte_hops, 'B')} × hops in all."
    )


def plmr_section(profiles: Sequence[ProgramProfile]) -> Raw:
    """What programs take of the machine: parallelism, latency, memory, routes."""
    note = (
        "The PLMR report (WaferLLM, OSDI 2025, section 3). Longest hop: links of the longest path. Stages: software "
        "stages that a number passes on the longest chain of relays. Paths: flows that pass one router, at most."
    )
    head = ("program", "busy cores", "longest hop", "stages", "paths x, y", "colors", "memory", "deadlock")
    rows = [_plmr_row(one) for one in profiles]
    each = [
        details(join([tag("b", _name(one)), tag("span", "all routes, classes of cores and buffers")]), _text(one))
        for one in profiles
    ]
    return section("Routes and memory (PLMR)", table(head, rows, numeric=range(1, 7)), *each, note=note)


def _plmr_row(one: ProgramProfile) -> list[Raw | str]:
    plmr = one.plmr
    colors = f"{plmr.colors} of {plmr.usable_colors}" if plmr.usable_colors else "no colors"
    share = f"{plmr.classes[0].peak / plmr.capacity:.1%}"
    verdict = join([plmr.deadlock.kind, tag("small", plmr.deadlock.why)])
    paths = f"{plmr.paths[0]}, {plmr.paths[1]}"
    warned = tag("small", f"{len(plmr.warnings)} warnings" if plmr.warnings else "")
    name = join([tag("code", one.program), " ", one.where, warned])
    busy = f"{plmr.busy:,} of {plmr.cores:,}"
    return [name, busy, str(one.longest_hop), str(one.stages), paths, colors, share, verdict]


def _text(one: ProgramProfile) -> Raw:
    return tag("div", tag("pre", str(one.plmr)), cls="in")
