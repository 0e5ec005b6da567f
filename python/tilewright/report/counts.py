# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The section about what one call costs after each phase, and after each pass that changed it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tilewright.report.html import Raw, bar, details, join, quantity, section, table, tag

_NOTE = (
    "What one call costs as the module stands after each phase. Launches: operations that compute; behind phase plan, "
    "fused groups; behind phase tile, launches of kernels. Steps: what a launch runs inside, one behind the other. "
    "Barriers: how often all blocks of a launch meet. Bytes: what each launch and each step touches, once."
)
_HEAD = ("after", "launches", "steps", "barriers", "read", "written", "")
_NUMERIC = (1, 2, 3, 4, 5)


def rows_of(report: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Phase, pass (empty: all of the phase) and counts, in order, of what a report knows."""
    for phase in report.get("phases", []):
        if phase.get("counts"):
            yield from ((phase["name"], name, counts) for name, counts in phase.get("changes", []))
            yield phase["name"], "", phase["counts"]


def as_text(report: Mapping[str, Any]) -> str:
    """The table as lines of text; empty where nothing was counted."""
    rows = [("after", *_HEAD[1:6])]
    rows += [
        (f"  {name.partition('{')[0]}" if name else phase, *_cells(counts)) for phase, name, counts in _known(report)
    ]
    if len(rows) == 1:
        return ""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join([row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    )


def as_json(model: Any) -> dict[str, Any]:
    """Plain values: the model, and for each phase its seconds, counts and the passes that changed them."""
    report = model.report_data()
    kept = ("name", "seconds", "counts", "changes")
    phases = [{key: phase[key] for key in kept if key in phase} for phase in report.get("phases", [])]
    return {"model": model._manifest.compile.get("model", ""), "target": model.target, "phases": phases}


def counts_section(report: Mapping[str, Any]) -> Raw | None:
    """Return the section, or None where nothing was counted."""
    known = list(_known(report))
    if not known:
        return None
    most = max(counts["read"] + counts["written"] for *_, counts in known) or 1
    rows = [_row(phase, name, counts, most) for phase, name, counts in known]
    single = any(name for _, name, _ in known)
    note = _NOTE + ("" if single else " `tilewright explain --each-pass` has a row for each pass that changes them.")
    if any(counts["open"] for *_, counts in known):
        note += " ≥: loops and sizes that only a run knows count as one."
    largest = [_largest(phase, counts) for phase, name, counts in known if not name and counts["largest"]]
    return section("Launches and bytes", table(_HEAD, rows, numeric=_NUMERIC), *largest, note=note)


def _known(report: Mapping[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Without phases that leave all as it was, but for the last one."""
    rows = list(rows_of(report))
    for i, (phase, name, counts) in enumerate(rows):
        if name or i == 0 or i + 1 == len(rows) or _cells(counts) != _cells(rows[i - 1][2]) or rows[i - 1][1]:
            yield phase, name, counts


def _cells(counts: Mapping[str, Any]) -> tuple[str, ...]:
    least = "≥ " if counts["open"] else ""
    meetings = counts.get("meetings")
    numbers = (f"{least}{counts['launches']}", f"{least}{counts['steps']}" if counts["steps"] else "–")
    moved = tuple(least + quantity(counts[name], "B") for name in ("read", "written"))
    return (*numbers, f"{least}{meetings}" if meetings else "–", *moved)


def _row(phase: str, name: str, counts: Mapping[str, Any], most: int) -> list[Any]:
    label = tag("small", name) if name else tag("b", phase)
    return [label, *_cells(counts), bar((counts["read"] + counts["written"]) / most)]


def _largest(phase: str, counts: Mapping[str, Any]) -> Raw:
    rows = [
        (tag("code", name), times, quantity(read, "B"), quantity(written, "B"))
        for name, times, read, written in counts["largest"]
    ]
    summary = join([tag("b", phase), tag("span", "what moves most, largest first")])
    inside = table(("", "times", "read", "written"), rows, numeric=(1, 2, 3))
    return details(summary, tag("div", inside, cls="in"))
