# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The fused groups as a picture: a box per launch with the operators that meet in it, edges where tensors pass."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.report.html import Raw, seconds
from tilewright.report.style import GREY

_MOST_GROUPS = 400
_MOST_LINES = 9
_CHARACTER = 6.7  # width of one at 11 px
_LINE, _GAP_X, _GAP_Y, _PAD = 15, 22, 34, 8


@dataclass
class _Box:
    """One group, placed."""

    lines: list[tuple[int, str]]  # depth and text
    title: str
    color: str
    tip: str
    sources: list[int]
    layer: int = 0
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> float:
        texts = [len(self.title) + 2, *(len(text) + 2 * depth for depth, text in self.lines)]
        return max(texts) * _CHARACTER + 2 * _PAD

    @property
    def height(self) -> float:
        return (len(self.lines) + 1) * _LINE + 2 * _PAD

    @property
    def middle(self) -> float:
        return self.x + self.width / 2


def picture(groups: Sequence[dict[str, Any]], colors: dict[str, str], times: dict[str, float]) -> Raw | None:
    """Return the picture as inline SVG; None where groups do not say what they read, or are too many to look at."""
    if not 0 < len(groups) <= _MOST_GROUPS or any("from" not in group for group in groups):
        return None
    boxes = [_box(group, colors, times) for group in groups]
    width, height = _place(boxes)
    edges = "".join(_edge(boxes[source], box) for box in boxes for source in box.sources)
    shapes = "".join(map(_shape, boxes))
    return Raw(
        f'<div class="picture"><svg viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" '
        f'role="img" aria-label="fused groups">{edges}{shapes}</svg></div>'
    )


def _box(group: dict[str, Any], colors: dict[str, str], times: dict[str, float]) -> _Box:
    kernel = group.get("kernel") or group["name"]
    lines = [(op.get("depth", 0), _label(op)) for op in group["ops"]]
    lines = [line for i, line in enumerate(lines) if i == 0 or line != lines[i - 1]]  # an operator of several nests
    if len(lines) > _MOST_LINES:
        lines = [*lines[: _MOST_LINES - 1], (0, f"… {len(lines) - _MOST_LINES + 1} more")]
    tip = f"{kernel}: {seconds(times[kernel])} in all launches" if kernel in times else kernel
    return _Box(lines, kernel, colors.get(kernel, GREY), tip, group["from"])


def _label(op: dict[str, Any]) -> str:
    """An operator by its place in the model; a group by its level."""
    if op["op"] == "tile.group":
        return f"in {op['decisions'].partition('level = ')[2].partition(';')[0]}:"
    return op["location"].rpartition("/")[2] or op["op"]


def _place(boxes: list[_Box]) -> tuple[float, float]:
    """Put each box one layer below the last that it reads, near the middle of what it reads; return the whole size."""
    layers: dict[int, list[_Box]] = {}
    for box in boxes:  # groups come in order: sources have their layers
        box.layer = 1 + max((boxes[source].layer for source in box.sources), default=-1)
        layers.setdefault(box.layer, []).append(box)
    y, widest = float(_PAD), 0.0
    for number in sorted(layers):
        layer = sorted(layers[number], key=lambda box: _wish(box, boxes))
        x = float(_PAD)
        for box in layer:
            box.x, box.y = max(x, _wish(box, boxes) - box.width / 2), y
            x = box.x + box.width + _GAP_X
        widest = max(widest, x)
        y += max(box.height for box in layer) + _GAP_Y
    return widest, y


def _wish(box: _Box, boxes: Sequence[_Box]) -> float:
    above = [boxes[source].middle for source in box.sources if boxes[source].layer == box.layer - 1]
    return sum(above) / len(above) if above else 0.0


def _edge(source: _Box, target: _Box) -> str:
    x0, y0, x1, y1 = source.middle, source.y + source.height, target.middle, target.y
    bend = max((y1 - y0) / 2, _GAP_Y / 2)
    if target.layer > source.layer + 1:  # around the boxes between
        side = max(source.x + source.width, target.x + target.width) + _GAP_X
        curve = f"C{side:.0f} {y0 + 30:.0f} {side:.0f} {y1 - 30:.0f} {x1:.0f} {y1:.0f}"
        return f'<path class="far" d="M{x0:.0f} {y0:.0f}{curve}"/>'
    return f'<path d="M{x0:.0f} {y0:.0f}C{x0:.0f} {y0 + bend:.0f} {x1:.0f} {y1 - bend:.0f} {x1:.0f} {y1:.0f}"/>'


def _shape(box: _Box) -> str:
    rows = "".join(
        f'<text x="{box.x + _PAD + 2 * depth * _CHARACTER:.0f}" y="{box.y + _PAD + (i + 2) * _LINE - 4:.0f}"'
        f"{_dim(text)}>{html.escape(text)}</text>"
        for i, (depth, text) in enumerate(box.lines)
    )
    title = f'<text class="t" x="{box.x + _PAD:.0f}" y="{box.y + _PAD + _LINE - 4:.0f}">{html.escape(box.title)}</text>'
    frame = (
        f'<rect x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{box.height:.0f}" rx="6" '
        f'style="stroke:{box.color}"/>'
    )
    return f"<g><title>{html.escape(box.tip)}</title>{frame}{title}{rows}</g>"


def _dim(text: str) -> str:
    return ' class="d"' if text.startswith(("in ", "…")) else ""
