# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Plots: points and lines over two axes, as inline SVG in the colors of the page."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.core.errors import InternalError
from tilewright.report.html import Raw
from tilewright.report.style import PALETTE

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 720, 380, 74, 18, 16, 52
#: Where a decade of an axis may be marked.
_MARKS = ((1,), (1, 2, 5), tuple(range(1, 10)))


@dataclass(frozen=True)
class Series:
    """What belongs together in a plot.

    Attributes:
        points: (x, y) pairs.
        color: by default the next of the palette.
        line: whether points are joined, in their order.
        tips: what each point says when it is pointed at; empty: its two numbers.
        faint: stands back behind the others.
    """

    name: str
    points: tuple[tuple[float, float], ...]
    color: str = ""
    line: bool = True
    tips: tuple[str, ...] = ()
    faint: bool = False


class _Axis:
    """An axis whose numbers lie on ``length`` pixels."""

    def __init__(self, values: Sequence[float], log: bool, length: float) -> None:
        if log and min(values) <= 0:
            raise InternalError(f"a logarithmic axis has no place for {min(values)}")
        self.log, self.length = log, length
        low, high = self._scaled(min(values)), self._scaled(max(values))
        room = (high - low) * 0.04 or (0.1 if log else abs(high) * 0.1 or 1.0)
        self.low, self.high = low - room, high + room
        if not log and min(values) >= 0:
            self.low = 0.0

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self.log else value

    def at(self, value: float) -> float:
        return (self._scaled(value) - self.low) / (self.high - self.low) * self.length

    def ticks(self) -> list[float]:
        if self.log:
            decades = range(math.floor(self.low), math.ceil(self.high) + 1)
            choices = ([mark * 10.0**decade for decade in decades for mark in marks] for marks in _MARKS)
            inside = [[tick for tick in ticks if self.low <= math.log10(tick) <= self.high] for ticks in choices]
            return next((ticks for ticks in inside if len(ticks) >= 3), inside[-1])
        step = 10.0 ** math.floor(math.log10(self.high - self.low))
        step = next(step * part for part in (0.2, 0.5, 1.0, 2.0) if (self.high - self.low) / (step * part) <= 8)
        return [step * number for number in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]


def plot(
    series: Sequence[Series], x_label: str, y_label: str, *, log_x: bool = False, log_y: bool = False
) -> Raw | None:
    """Return the plot; None where there is no point."""
    points = [point for one in series for point in one.points]
    if not points:
        return None
    x = _Axis([point[0] for point in points], log_x, _WIDTH - _LEFT - _RIGHT)
    y = _Axis([point[1] for point in points], log_y, _HEIGHT - _TOP - _BOTTOM)
    shown = [_series(one, x, y, one.color or PALETTE[number % len(PALETTE)]) for number, one in enumerate(series)]
    below = _HEIGHT - 12
    labels = (
        f'<text class="t" x="{(_LEFT + _WIDTH - _RIGHT) / 2:.0f}" y="{below}" text-anchor="middle">'
        f"{html.escape(x_label)}</text>"
        f'<text class="t" transform="translate(14 {_HEIGHT / 2:.0f}) rotate(-90)" text-anchor="middle">'
        f"{html.escape(y_label)}</text>"
    )
    svg = (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}" role="img" '
        f'aria-label="{html.escape(y_label)} over {html.escape(x_label)}">{_grid(x, y)}{labels}{"".join(shown)}</svg>'
    )
    return Raw(f'<div class="plot">{svg}{_legend(series)}</div>')


def short(value: float) -> str:
    """Return a number as a tick says it: 1500000 as 1.5M."""
    for unit, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= scale * 0.9999:
            return f"{value / scale:.3g}{unit}"
    if value == 0 or abs(value) >= 0.1:
        return f"{value:.3g}"
    for unit, scale in (("m", 1e-3), ("µ", 1e-6), ("n", 1e-9)):
        if abs(value) >= scale * 0.9999:
            return f"{value / scale:.3g}{unit}"
    return f"{value:.3g}"


def _grid(x: _Axis, y: _Axis) -> str:
    base = _HEIGHT - _BOTTOM
    parts = []
    for tick in x.ticks():
        at = _LEFT + x.at(tick)
        parts.append(f'<path class="g" d="M{at:.1f} {_TOP}V{base}"/>')
        parts.append(f'<text x="{at:.1f}" y="{base + 16}" text-anchor="middle">{short(tick)}</text>')
    for tick in y.ticks():
        at = base - y.at(tick)
        parts.append(f'<path class="g" d="M{_LEFT} {at:.1f}H{_WIDTH - _RIGHT}"/>')
        parts.append(f'<text x="{_LEFT - 7}" y="{at + 4:.1f}" text-anchor="end">{short(tick)}</text>')
    return "".join(parts)


def _series(one: Series, x: _Axis, y: _Axis, color: str) -> str:
    places = [(_LEFT + x.at(px), _HEIGHT - _BOTTOM - y.at(py)) for px, py in one.points]
    faint = ' opacity=".35"' if one.faint else ""
    line = ""
    if one.line and len(places) > 1:
        path = "L".join(f"{px:.1f} {py:.1f}" for px, py in places)
        line = f'<path class="l" d="M{path}" style="stroke:{color}"/>'
    tips = one.tips or tuple(f"{one.name}: {short(px)}, {short(py)}" for px, py in one.points)
    dots = "".join(
        f'<circle cx="{px:.1f}" cy="{py:.1f}" r="{2.5 if one.faint else 4}" fill="{color}">'
        f"<title>{html.escape(tip)}</title></circle>"
        for (px, py), tip in zip(places, tips, strict=True)
    )
    return f"<g{faint}>{line}{dots}</g>"


def _legend(series: Sequence[Series]) -> str:
    return "".join(
        f'<span><i class="dot" style="background:{one.color or PALETTE[number % len(PALETTE)]}"></i>'
        f"{html.escape(one.name)}</span>"
        for number, one in enumerate(series)
        if one.points
    )
