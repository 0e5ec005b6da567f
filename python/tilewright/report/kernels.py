# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The section about kernels: a strip of all launches, and a table with times against the roofline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.report import ir_text
from tilewright.report.gpu_kernels import gpu_section, predicted_launches, predicted_on_gpu
from tilewright.report.html import Raw, bar, details, join, quantity, seconds, section, table, tag
from tilewright.report.measure import Launch, Measurement
from tilewright.report.roofline import bound_by, floor_seconds, is_gpu, predicted_seconds
from tilewright.report.style import GREY, PALETTE
from tilewright.report.titles import dot, title

_HEAD = ("kernel", "launches", "work", "bytes", "predicted", "measured", "", "floor", "of roofline", "lost")
_NUMERIC = (1, 2, 3, 4, 5, 7, 8, 9)
_NOTE = (
    "Numbers are of all launches in one call. Work: float operations of the loop nests. Bytes: of all operands, and "
    "what the tiles move at each level. Predicted: by the cost model that chose the tiles. Floor (the roofline): the "
    "least time by the device's description, from its peak or from the bandwidth of the level that holds the operands. "
    "Lost: measured less floor; the kernels that are furthest from their limit come first."
)


def kernel_section(model: Any, report: dict[str, Any], measured: Measurement | None) -> Raw | None:
    """Return the section, or None for a model without kernels."""
    if not model.kernels:
        return None
    device = report.get("device", {})
    colors = kernel_colors(model, measured)
    if is_gpu(device):
        strip = _strip(measured.launches if measured else predicted_launches(model, report), colors)
        return gpu_section(model, device, colors, measured, strip, _folded(_texts(model.kernels, report, colors)))
    times = measured.per_kernel() if measured else {}
    total = sum(times.values())
    limits = [_Limits(kernel, times.get(kernel.name), device, model.threads) for kernel in model.kernels]
    limits.sort(key=lambda limit: -(limit.lost or 0.0))
    ordered = [limit.kernel for limit in limits]
    rows = [_row(limit, total, colors) for limit in limits]
    strip = _strip(measured.launches, colors) if measured else Raw("")
    code = _texts(ordered, report, colors)
    body = table(_HEAD, rows, numeric=_NUMERIC)
    return section("Kernels", strip, body, _folded(code), note=_told(measured, total))


def _texts(kernels: Sequence[Any], report: dict[str, Any], colors: dict[str, str]) -> list[Raw]:
    texts = report.get("kernel_text", {})
    return [_text(kernel.name, texts[kernel.name], colors[kernel.name]) for kernel in kernels if kernel.name in texts]


def _folded(code: list[Raw]) -> Raw:
    summary = join([tag("b", "code"), tag("span", "each kernel as tile IR, after phase tile")])
    return details(summary, tag("div", join(code), cls="in")) if code else Raw("")


def _text(name: str, text: str, color: str) -> Raw:
    """Return the kernel as it stands after phase `tile`, behind a click."""
    lines = tag("span", f"{text.count(chr(10)) + 1} lines of tile IR")
    summary = join([dot(color), tag("b", name), lines])
    return details(summary, tag("div", tag("pre", ir_text.highlight(text)), cls="in"))


def _told(measured: Measurement | None, total: float) -> str:
    if measured is None:
        return _NOTE + " The model was not run for this page."
    return (
        f"{_NOTE} Measured: medians of {measured.runs} runs on random inputs, {measured.threads} thread(s); "
        f"{seconds(total)} in all kernels."
    )


class _Limits:
    """A kernel's times, of all launches in one call: measured, least, predicted."""

    def __init__(self, kernel: Any, spent: float | None, device: dict[str, Any], threads: int) -> None:
        info = kernel.details
        self.kernel = kernel
        self.spent = spent
        self.flops, self.bytes = info.get("flops", 0) * kernel.launches, info.get("bytes", 0) * kernel.launches
        self.bound = bound_by(self.flops, self.bytes, device) if self.bytes else ""
        self.floor = self._all(floor_seconds(info.get("flops", 0), info.get("bytes", 0), device, threads))
        self.predicted = self._all(predicted_seconds(info, device, threads))
        if not self.bytes:
            self.floor = None

    def _all(self, seconds_of_one: float | None) -> float | None:
        return None if seconds_of_one is None else seconds_of_one * self.kernel.launches

    @property
    def lost(self) -> float | None:
        """Time above the floor."""
        return max(self.spent - self.floor, 0.0) if self.spent is not None and self.floor is not None else None


def kernel_colors(model: Any, measured: Measurement | None) -> dict[str, str]:
    """A color for each kernel, those with most time first (a GPU's predicted one, if need be); the rest is grey."""
    times = measured.per_kernel() if measured else {k.name: predicted_on_gpu(k) or 0.0 for k in model.kernels}
    ordered = sorted(model.kernels, key=lambda kernel: -times.get(kernel.name, 0.0))
    return {kernel.name: PALETTE[i] if i < len(PALETTE) else GREY for i, kernel in enumerate(ordered)}


def _row(limits: _Limits, total: float, colors: dict[str, str]) -> list[Any]:
    kernel, spent, floor = limits.kernel, limits.spent, limits.floor
    tasks = "" if kernel.tasks is None else f"{kernel.tasks} tasks"
    return [
        title(kernel, colors[kernel.name]),
        join([kernel.launches, tag("small", tasks)]),
        quantity(limits.flops, "FLOP") if limits.flops else "–",
        join([quantity(limits.bytes, "B") if limits.bytes else "–", *_moved(kernel)]),
        seconds(limits.predicted),
        seconds(spent),
        bar(spent / total, colors[kernel.name]) if spent and total else "",
        join([seconds(floor), tag("small", limits.bound)]),
        f"{floor / spent:.0%}" if floor and spent else "–",
        seconds(limits.lost),
    ]


def _moved(kernel: Any) -> list[Raw]:
    """Bytes at each level, and scratch memory."""
    moved = kernel.details.get("moved", {})
    parts = [f"{name} {quantity(count * kernel.launches, 'B')}" for name, count in moved.items()]
    parts += [f"scratch {quantity(kernel.scratch_bytes, 'B')}"] if kernel.scratch_bytes else []
    return [tag("small", " · ".join(parts[i : i + 2])) for i in range(0, len(parts), 2)]


def _strip(launches: Sequence[Launch], colors: dict[str, str]) -> Raw:
    """Return one block per launch, in order, as wide as its time; nothing for none."""
    blocks = []
    for launch in launches:
        color = colors.get(launch.kernel, GREY)
        style = f"flex:{launch.seconds * 1e6:.2f};background:{color}"
        blocks.append(tag("i", "", style=style, title=f"{launch.kernel}: {seconds(launch.seconds)}"))
    return tag("div", join(blocks), cls="strip") if blocks else Raw("")
