# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The table of a GPU's kernels: what the plan predicts of each, against the roofline of the device's description.

All of it stands in the artifact, so that a page can be written where no GPU is; measured times join it where one is.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from tilewright.report.html import Cell, Raw, join, quantity, seconds, section, table, tag
from tilewright.report.measure import Launch, Measurement
from tilewright.report.roofline import bound_by, floor_seconds
from tilewright.report.titles import title

_HEAD = (
    "kernel",
    "launches",
    "work",
    "bytes",
    "predicted",
    "measured",
    "tiles",
    "occupancy",
    "roofline",
    "of roofline",
    "lost",
)
_NUMERIC = (1, 2, 3, 4, 5, 7, 8, 9, 10)
_STRIP = "The strip: all launches in order, as wide as their times. "
_NOTE = (
    "Times and bytes are of all launches in one call. Bytes: to and from memory, and through L2. Predicted: by the "
    "model that chose the tiles, from the device's description alone, and what bounds it. Tiles: rows, columns and "
    "depth of a CTA's product, and the runner-up with its time. Occupancy: CTAs that a multiprocessor holds at a time. "
    "Roofline: the least time, products at the peak of their type or every tensor once at the bandwidth of memory. "
    "Lost: the time (measured, else predicted) less the roofline; what is furthest from its limit comes first. "
    "A kernel that holds loops is predicted as its steps, the barriers between them and one launch."
)


def predicted_on_gpu(kernel: Any) -> float | None:
    """Return the seconds that a plan for a GPU predicts for all launches of a kernel; None where it says nothing."""
    plan = kernel.details.get("plan", {})
    return plan["ns"] * 1e-9 * kernel.launches if "ns" in plan else None


def predicted_launches(model: Any, report: dict[str, Any]) -> list[Launch]:
    """The launches of a call in order, with predicted times; none where the report does not tell their order."""
    each = {kernel.name: (predicted_on_gpu(kernel) or 0.0) / max(kernel.launches, 1) for kernel in model.kernels}
    names = [group.get("kernel") or group["name"] for group in report.get("groups", [])]
    if Counter(names) != Counter({kernel.name: kernel.launches for kernel in model.kernels}):
        return []
    return [Launch(name, 0, each[name]) for name in names]


def gpu_section(
    model: Any, device: dict[str, Any], colors: dict[str, str], measured: Measurement | None, strip: Raw, code: Raw
) -> Raw:
    """Return the section.

    Args:
        model: the loaded model.
        device: the description that the plan was made for, as plain values.
        colors: of the kernels, by name.
        measured: times, if the model was run on a GPU.
        strip: all launches, in order.
        code: what follows the table.
    """
    times = measured.per_kernel() if measured else {}
    lines = [_Line(kernel, times.get(kernel.name), device) for kernel in model.kernels]
    lines.sort(key=lambda line: -(line.lost or 0.0))
    rows = [line.cells(colors[line.kernel.name]) for line in lines]
    shown = [i for i, name in enumerate(_HEAD) if measured or name != "measured"]  # an empty column tells nothing
    right = [place for place, i in enumerate(shown) if i in _NUMERIC]
    body = table([_HEAD[i] for i in shown], [[row[i] for i in shown] for row in rows], numeric=right)
    note = f"{_STRIP if strip.text else ''}{_NOTE} {_told(lines, measured)}"
    return section("Kernels", strip, body, code, note=note)


def _told(lines: list[_Line], measured: Measurement | None) -> str:
    known = [line.predicted for line in lines if line.predicted is not None]
    whole = seconds(sum(known)) if known else "nothing"
    if known and len(known) < len(lines):
        whole += f" (of {len(known)} kernels)"
    if measured is None:
        return f"Predicted in all: {whole}. Nothing was measured: times are a GPU's, or absent."
    spent = seconds(sum(line.spent or 0.0 for line in lines))
    return f"Predicted in all: {whole}; measured: {spent} (medians of {measured.runs} runs on random inputs)."


class _Line:
    """A kernel's figures, of all launches in one call."""

    def __init__(self, kernel: Any, spent: float | None, device: dict[str, Any]) -> None:
        info, count = kernel.details, kernel.launches
        self.kernel, self.spent = kernel, spent
        self.plan: dict[str, Any] = info.get("plan", {})
        self.predicted = predicted_on_gpu(kernel)
        self.work = self.plan.get("operations", info.get("flops", 0)) * count
        self.bytes = self.plan.get("memory_bytes", info.get("bytes", 0)) * count
        if "roofline_ns" in self.plan:
            self.floor: float | None = self.plan["roofline_ns"] * 1e-9 * count
            self.bound = str(self.plan.get("bound", ""))
        else:  # a kernel by hand: by the operations and operands that its text shows
            least = (
                floor_seconds(info.get("flops", 0), info.get("bytes", 0), device, 1, info.get("element", "f32"))
                if info.get("bytes")
                else None
            )
            self.floor = None if least is None else least * count
            self.bound = (
                bound_by(info.get("flops", 0), info.get("bytes", 0), device, info.get("element", "f32"))
                if least is not None
                else ""
            )

    @property
    def time(self) -> float | None:
        """Measured, or else predicted."""
        return self.spent if self.spent is not None else self.predicted

    @property
    def lost(self) -> float | None:
        """Time above the roofline."""
        return None if self.time is None or self.floor is None else max(self.time - self.floor, 0.0)

    def cells(self, color: str) -> list[Cell]:
        """The row."""
        tasks = "" if self.kernel.tasks is None else f"{self.kernel.tasks} tasks"
        l2 = self.plan.get("l2_bytes", 0) * self.kernel.launches
        rate = quantity(self.work / self.time, "FLOP/s") if self.time and self.work else ""
        return [
            title(self.kernel, color),
            join([self.kernel.launches, tag("small", tasks)]),
            join([quantity(self.work, "FLOP") if self.work else "–", tag("small", rate)]),
            join(
                [
                    quantity(self.bytes, "B") if self.bytes else "–",
                    tag("small", f"L2 {quantity(l2, 'B')}" if l2 else ""),
                ]
            ),
            join([seconds(self.predicted), tag("small", self.bound)]),
            seconds(self.spent),
            self._tiles(),
            self._occupancy(),
            seconds(self.floor),
            f"{self.floor / self.time:.0%}" if self.floor is not None and self.time else "–",
            seconds(self.lost),
        ]

    def _tiles(self) -> Raw:
        plan, other, cluster = self.plan, "", ""
        if "runner_up" in plan:
            more = self._more("runner_up_ns")  # a block of attention is chosen by the peak that it reaches, not by time
            other = f"next of {plan.get('candidates', '?')} candidates: {plan['runner_up']}{more}"
        if "other_cluster" in plan:
            cluster = f"as a cluster of {plan['other_cluster']}{self._more('other_cluster_ns')}"
        shape = tag("code", plan["shape"]) if "shape" in plan else "–"
        return join([shape, tag("small", other), tag("small", cluster)])

    def _more(self, name: str) -> str:
        """How much longer another choice would take, where the plan says so, behind its name."""
        other, own = self.plan.get(name), self.plan.get("ns")
        if not (other and own):
            return ""
        return f", {other / own - 1:+.0%}" if round(other / own - 1, 2) else ", as fast"

    def _occupancy(self) -> Raw:
        info = self.kernel.details
        count = self.plan.get("occupancy")
        held = "–" if count is None else f"{count} CTA{'s' * (count != 1)}"
        registers = f"{info['registers']} registers" if info.get("registers") else ""
        spilled = f"spills {quantity(info['spilled_bytes'], 'B')}" if info.get("spilled_bytes") else ""
        return join([held, tag("small", registers), tag("small", spilled)])
