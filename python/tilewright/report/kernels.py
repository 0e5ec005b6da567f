# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The section about kernels: a strip of all launches, and a table with times against the roofline."""

from __future__ import annotations

import re
from typing import Any

from tilewright.report import ir_text
from tilewright.report.html import Raw, bar, details, join, quantity, seconds, section, table, tag
from tilewright.report.measure import Measurement
from tilewright.report.roofline import bound_by, floor_seconds
from tilewright.report.style import GREY, PALETTE

_HEAD = ("kernel", "launches", "tasks", "scratch", "work", "operands", "floor", "measured", "", "efficiency")
_NOTE = (
    "Work and operands are of all launches in one call: float operations of the loop nests, and bytes of all operands. "
    "Floor: the least time for that work by the device's description, from its peak or from the bandwidth of the level "
    "that holds the operands. Efficiency: floor over measured."
)


def kernel_section(model: Any, report: dict[str, Any], measured: Measurement | None) -> Raw | None:
    """Return the section, or None for a model without kernels."""
    if not model.kernels:
        return None
    times = measured.per_kernel() if measured else {}
    ordered = sorted(model.kernels, key=lambda kernel: -times.get(kernel.name, 0.0))
    colors = {kernel.name: PALETTE[i] if i < len(PALETTE) else GREY for i, kernel in enumerate(ordered)}
    total = sum(times.values())
    device = report.get("device", {})
    rows = [_row(kernel, times.get(kernel.name), total, colors, device, model.threads) for kernel in ordered]
    strip = _strip(measured, colors) if measured else None
    texts = report.get("kernel_text", {})
    code = [_text(kernel.name, texts[kernel.name], colors[kernel.name]) for kernel in ordered if kernel.name in texts]
    body = table(_HEAD, rows, numeric=(1, 2, 3, 4, 5, 6, 7, 9))
    return section("Kernels", *(part for part in (strip, body) if part), _folded(code), note=_told(measured, total))


def _folded(code: list[Raw]) -> Raw:
    summary = join([tag("b", "code"), tag("span", "each kernel as tile IR, after phase tile")])
    return details(summary, tag("div", join(code), cls="in")) if code else Raw("")


def _text(name: str, text: str, color: str) -> Raw:
    """Return the kernel as it stands after phase `tile`, behind a click."""
    lines = tag("span", f"{text.count(chr(10)) + 1} lines of tile IR")
    summary = join([_dot(color), tag("b", name), lines])
    return details(summary, tag("div", tag("pre", ir_text.highlight(text)), cls="in"))


def _dot(color: str) -> Raw:
    return Raw(f'<span class="dot" style="background:{color}"></span>')


def _told(measured: Measurement | None, total: float) -> str:
    if measured is None:
        return _NOTE + " The model was not run for this page."
    return (
        f"{_NOTE} Measured: medians of {measured.runs} runs on random inputs, {measured.threads} thread(s); "
        f"{seconds(total)} in all kernels."
    )


def _row(
    kernel: Any, spent: float | None, total: float, colors: dict[str, str], device: dict[str, Any], threads: int
) -> list[Any]:
    info = kernel.details
    flops, traffic = info.get("flops", 0) * kernel.launches, info.get("bytes", 0) * kernel.launches
    least = floor_seconds(info.get("flops", 0), info.get("bytes", 0), device, threads) if traffic else None
    floor = least * kernel.launches if least is not None else None
    limit = bound_by(flops, traffic, device) if traffic else ""
    return [
        _title(kernel, colors[kernel.name]),
        kernel.launches,
        kernel.tasks if kernel.tasks is not None else "–",
        quantity(kernel.scratch_bytes, "B"),
        quantity(flops, "FLOP") if flops else "–",
        quantity(traffic, "B") if traffic else "–",
        join([seconds(floor), tag("small", limit)]),
        seconds(spent),
        bar(spent / total, colors[kernel.name]) if spent and total else "",
        f"{floor / spent:.0%}" if floor and spent else "–",
    ]


def _title(kernel: Any, color: str) -> Raw:
    info = kernel.details
    shapes = " · ".join(re.sub(r"^\w+<([^,>]*).*$", r"\1", shape) for shape in info.get("shapes", []))
    places = info.get("locations", [])
    where = ", ".join(places[:2]) + (f", … ({len(places)} places)" if len(places) > 2 else "")
    return join([_dot(color), tag("code", kernel.name), tag("small", where), tag("small", shapes)])


def _strip(measured: Measurement, colors: dict[str, str]) -> Raw:
    """Return one block per launch, in order, as wide as its time."""
    blocks = []
    for launch in measured.launches:
        color = colors.get(launch.kernel, GREY)
        style = f"flex:{launch.seconds * 1e6:.2f};background:{color}"
        blocks.append(tag("i", "", style=style, title=f"{launch.kernel}: {seconds(launch.seconds)}"))
    return tag("div", join(blocks), cls="strip")
