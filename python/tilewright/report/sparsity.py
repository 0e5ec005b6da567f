# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The section about pruned weights: what was decided for each, the runner-up, and a picture of pattern and cover."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from tilewright.report.html import Cell, Raw, details, join, seconds, section, table, tag
from tilewright.report.png import image
from tilewright.report.style import GREY, PALETTE

#: Pictures that are shown without a click.
_SHOWN = 6
#: The faintest cell that has an element, of 255.
_FAINT = 70


def sparsity_section(report: dict[str, Any]) -> Raw | None:
    """Return the section; None where no weight has zeros that a reduction reads."""
    weights = report.get("sparsity", [])
    if not weights:
        return None
    used = sum(bool(entry["cover"]) for entry in weights)
    note = (
        f"{len(weights)} products and other sums read weights with zeros; {used} of them leave zeros out. A cover's "
        "regions are multiplied by a family of kernels each, and add up. Times are predicted, for one core of a CPU or "
        "for a GPU. In a picture, the sum runs down and columns of the weight run across; a cell's color is the "
        "stronger the more of its elements are not zero, and that of the region that has most of them."
    )
    rows = [_row(entry) for entry in weights]
    head = ("product", "weight", "pattern", "density", "decision", "predicted", "dense", "gain", "runner-up")
    figures = [_figure(entry) for entry in weights]
    more = figures[_SHOWN:]
    hidden = (
        [details(tag("b", f"{len(more)} more picture{'s' * (len(more) > 1)}"), tag("div", _grid(more), cls="in"))]
        if more
        else []
    )
    return section(
        "Pruned weights", _grid(figures[:_SHOWN]), *hidden, table(head, rows, numeric=(3, 5, 6, 7)), note=note
    )


def _grid(figures: Sequence[Raw]) -> Raw:
    return tag("div", join(figures), cls="sparse")


def _row(entry: dict[str, Any]) -> Sequence[Cell]:
    return (
        entry["location"] or "(unnamed)",
        _shape(entry),
        entry["pattern"],
        f"{entry['density']:.1%}",
        join([tag("code", _cover(entry)), tag("small", entry["reason"] if not entry["cover"] else _kernels(entry))]),
        seconds(entry["ns"] * 1e-9) if entry["cover"] and entry["ns"] else "–",
        seconds(entry["dense_ns"] * 1e-9) if entry["dense_ns"] else "–",
        gain(entry),
        _runner_up(entry),
    )


def gain(entry: dict[str, Any]) -> str:
    """How many times faster than the dense product is predicted; empty where it is left dense, or not known."""
    if not entry["cover"] or not entry["ns"] or not entry["dense_ns"]:
        return ""
    return f"{entry['dense_ns'] / entry['ns']:.2f}×"


def _shape(entry: dict[str, Any]) -> str:
    size = "×".join(str(n) for n in entry["shape"])
    return f"{size}, {entry['rows']} rows" if entry["rows"] else size


def _cover(entry: dict[str, Any]) -> str:
    return " + ".join(entry["cover"]) or "dense"


def _kernels(entry: dict[str, Any]) -> str:
    return ", ".join(entry["kernels"])


def _runner_up(entry: dict[str, Any]) -> Cell:
    if entry["runner_up"] is None:
        return ""
    return join([tag("code", entry["runner_up"]), tag("small", seconds(entry["runner_up_ns"] * 1e-9))])


def _figure(entry: dict[str, Any]) -> Raw:
    """The picture with its legend."""
    names = entry["cover"] or ["dense"]
    counts = entry["kept"] or [round(entry["density"] * entry["shape"][0] * entry["shape"][1])]
    kernels = entry["kernels"] or [""] * len(names)
    total = max(sum(counts), 1)
    lines = [
        tag(
            "li",
            join(
                [
                    Raw(f'<span class="dot" style="background:{_color(entry, at)}"></span>'),
                    tag("code", name),
                    tag("small", f"{count / total:.0%} of what is not zero{f', {kernel}' if kernel else ''}"),
                ]
            ),
        )
        for at, (name, count, kernel) in enumerate(zip(names, counts, kernels, strict=True))
    ]
    title = entry["location"].rpartition("/")[2] or entry["location"] or "(unnamed)"
    told = f"{_shape(entry)}, {entry['pattern']}, {entry['density']:.1%}"
    faster = f"{gain(entry)} faster, predicted" if gain(entry) else entry["reason"]
    text = [tag("b", title), tag("small", told), tag("ul", join(lines)), tag("small", faster)]
    return tag("figure", join([_image(entry), tag("figcaption", join(text))]))


def _color(entry: dict[str, Any], region: int) -> str:
    return PALETTE[region % len(PALETTE)] if entry["cover"] else GREY


def _image(entry: dict[str, Any]) -> Raw:
    """The map as a picture: colors of regions, the more opaque the denser, so that it is right on any background."""
    cells = entry["map"]
    rows, columns = cells["rows"], cells["columns"]
    density, region = (base64.b64decode(cells[name]) for name in ("density", "region"))
    colors = [bytes.fromhex(_color(entry, at)[1:]) for at in range(max(len(entry["cover"]), 1))]
    pixels = bytearray()
    for row in range(rows):
        pixels.append(0)  # no filter
        for at in range(row * columns, (row + 1) * columns):
            opaque = _FAINT + density[at] * (255 - _FAINT) // 255 if density[at] else 0
            pixels += colors[region[at]] + bytes([opaque])
        label = f"zeros of {entry['location']}: {entry['pattern']}, {_cover(entry)}"
    return image(columns, rows, bytes(pixels), label)
