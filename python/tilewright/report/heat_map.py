# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Maps of a grid: one cell per place, the stronger the more; strong and faint look right on any background."""

from __future__ import annotations

import numpy as np

from tilewright.report.html import Raw, join, tag
from tilewright.report.png import image
from tilewright.report.style import PALETTE

#: Cells of a picture's side, at most.
MOST_CELLS = 250
#: The faintest cell that is not 0, of 255.
_FAINT = 40


def shrink(values: np.ndarray, most: int = MOST_CELLS) -> tuple[np.ndarray, int]:
    """Return a map of at most ``most`` cells a side, and how many places a side stand in one cell: their largest.

    Args:
        values: [height, width].
    """
    step = max(-(-max(values.shape) // most), 1)
    if step == 1:
        return values, 1
    rows, columns = (-(-size // step) * step for size in values.shape)
    padded = np.pad(values, ((0, rows - values.shape[0]), (0, columns - values.shape[1])), mode="edge")
    return padded.reshape(rows // step, step, columns // step, step).max(axis=(1, 3)), step


def heat_map(values: np.ndarray, title: str, told: str, most: float | None = None, color: str = PALETTE[0]) -> Raw:
    """Return a figure of a map.

    Args:
        values: [height, width], none below 0.
        told: what the numbers are, under the title.
        most: what has the full color; by default the largest value.
    """
    cells, step = shrink(np.asarray(values))
    limit = float(cells.max(initial=0) if most is None else most) or 1.0
    opaque = np.where(cells > 0, _FAINT + np.minimum(cells / limit, 1.0) * (255 - _FAINT), 0).astype(np.uint8)
    height, width = cells.shape
    pixels = np.zeros((height, 1 + 4 * width), np.uint8)
    pixels[:, 1:].reshape(height, width, 4)[:, :, :3] = list(bytes.fromhex(color[1:]))
    pixels[:, 1:].reshape(height, width, 4)[:, :, 3] = opaque
    more = f"; a cell shows the largest of {step} × {step}" if step > 1 else ""
    text = [tag("b", title), tag("small", told + more)]
    shown = image(width, height, pixels.tobytes(), f"{title}: {told}")
    return tag("figure", join([shown, tag("figcaption", join(text))]))


def heat_maps(figures: list[Raw]) -> Raw:
    """Return figures side by side."""
    return tag("div", join(figures), cls="maps")
