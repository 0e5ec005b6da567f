# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A whole page: its frame and its style sheet."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tilewright.core.errors import UserError
from tilewright.report.html import Raw, esc, join, tag
from tilewright.report.style import CSS


def check_page(path: str | Path) -> None:
    """Check that a name is one for a page; one without an ending may be anything.

    Raises:
        UserError: its ending says that it is something else.
    """
    if Path(path).suffix.lower() not in ("", ".html", ".htm"):
        raise UserError(f"{path}: the report is an HTML page; end its name in .html")


def document(title: str, parts: Iterable[Raw | None]) -> str:
    """Return a self-contained page of some parts; those that are None are left out."""
    body = tag("main", join(part for part in parts if part is not None))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{esc(title)}</title><style>{CSS}</style></head>\n"
        f"<body>{body.text}</body></html>\n"
    )


def cards(pairs: Iterable[tuple[str, str]]) -> Raw:
    """Return boxes of a value and what it is."""
    boxes = (tag("div", join([tag("b", value), tag("span", label)]), cls="card") for value, label in pairs)
    return tag("div", join(boxes), cls="cards")
