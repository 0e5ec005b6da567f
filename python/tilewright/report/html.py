# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small pieces of HTML."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Raw:
    """Text that is HTML already."""

    text: str


Cell = str | int | float | Raw | None


def esc(value: Cell) -> str:
    """Return a value as HTML text."""
    if isinstance(value, Raw):
        return value.text
    return "" if value is None else html.escape(str(value))


def tag(name: str, content: Cell = "", **attributes: str) -> Raw:
    """Return an element; attribute ``cls`` stands for class."""
    names = {"cls": "class"}
    text = "".join(f' {names.get(key, key)}="{html.escape(value)}"' for key, value in attributes.items() if value)
    return Raw(f"<{name}{text}>{esc(content)}</{name}>")


def join(parts: Iterable[Cell]) -> Raw:
    """Return the parts one after the other."""
    return Raw("".join(esc(part) for part in parts))


def table(head: Sequence[str], rows: Iterable[Sequence[Cell]], numeric: Iterable[int] = ()) -> Raw:
    """Return a table; columns in `numeric` are aligned to the right."""
    right = set(numeric)
    heads = join(tag("th", text, cls="n" if i in right else "") for i, text in enumerate(head))
    lines = (join(tag("td", cell, cls="n" if i in right else "") for i, cell in enumerate(row)) for row in rows)
    body = join(tag("tr", line) for line in lines)
    return tag("div", tag("table", join([tag("thead", tag("tr", heads)), tag("tbody", body)])), cls="scroll")


def section(title: str, *content: Cell, note: str = "") -> Raw:
    """Return a titled section."""
    intro = tag("p", note, cls="note") if note else ""
    return tag("section", join([tag("h2", title), intro, *content]))


def details(summary: Cell, content: Cell) -> Raw:
    """Return a block that opens on a click."""
    return tag("details", join([tag("summary", summary), content]))


def bar(share: float, color: str = "") -> Raw:
    """Return a horizontal bar, `share` of the cell wide (0 to 1)."""
    width = max(0.0, min(1.0, share)) * 100
    style = f"width:{width:.1f}%" + (f";background:{color}" if color else "")
    return Raw(f'<div class="bar"><i style="{style}"></i></div>')


def seconds(value: float | None) -> str:
    """Return a duration with a fitting unit."""
    if value is None:
        return "–"
    for unit, scale in (("s", 1.0), ("ms", 1e-3)):
        if value >= scale:
            return f"{value / scale:.3g} {unit}" if value < 100 * scale else f"{value / scale:.0f} {unit}"
    return f"{value * 1e6:.3g} µs" if value >= 1e-7 else "< 0.1 µs"


def quantity(value: float, unit: str) -> str:
    """Return a count of bytes or operations with a decimal prefix."""
    for prefix, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= scale:
            return f"{value / scale:.3g} {prefix}{unit}"
    return f"{value:.0f} {unit}"
