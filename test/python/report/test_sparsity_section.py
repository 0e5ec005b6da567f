# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The section about pruned weights: decisions, runners-up, and pictures whose cells are those of the weight."""

from __future__ import annotations

import base64
import re
import struct
import zlib
from typing import Any

import numpy as np
import pytest

from tilewright.dialects.sparse_tile.patterns import Block, Mask
from tilewright.plan.sparse.cover import Lattice, split, spread
from tilewright.plan.sparse.decision import Sparsity
from tilewright.plan.sparse.telling import told
from tilewright.report.sparsity import gain, sparsity_section
from tilewright.report.style import GREY, PALETTE


def live(rows: int = 70, columns: int = 130) -> np.ndarray:
    """A block, and an element far from it."""
    found = spread(np.array([[0, 1, 0], [0, 0, 0]], bool), (32, 32), (64, 96))
    found = np.pad(found, [(0, rows - 64), (0, columns - 96)])
    found[-1, -1] = True
    return found


def entry(cover: bool = True) -> dict[str, Any]:
    """What a plan tells of it."""
    lattice = Lattice(live())
    chosen = Sparsity(
        (Block((32, 32)), Mask()) if cover else (),
        ("blocks", "rows_in_lanes") if cover else (),
        ns=1000,
        dense_ns=2500,
        runner_up=(Mask(),),
        runner_up_ns=1500,
        reason="block 32x32, in 2 regions" if cover else "it reads windows <of> an image",
    )
    pieces = split(lattice, chosen.cover, (512, 0)) if cover else ()
    return told("/layer.0/<MatMul>", 128, lattice, chosen, pieces)


def pixels(text: str) -> np.ndarray:
    """Red, green, blue and opacity of the first picture: [rows, columns, 4]."""
    data = base64.b64decode(re.findall(r"data:image/png;base64,([^\"]+)", text)[0])
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, chunks = 8, {}
    while at < len(data):
        (size,) = struct.unpack(">I", data[at : at + 4])
        kind, content = data[at + 4 : at + 8], data[at + 8 : at + 8 + size]
        assert zlib.crc32(kind + content) == struct.unpack(">I", data[at + 8 + size : at + 12 + size])[0]
        chunks[kind] = content
        at += 12 + size
    width, height, *rest = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert rest == [8, 6, 0, 0, 0]
    rows = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(height, 1 + 4 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 4)


@pytest.fixture(autouse=True)
def _context() -> Any:
    from tilewright.mlir import ir

    with ir.Context(), ir.Location.unknown():
        yield


def test_a_picture_has_the_regions_in_their_colors() -> None:
    """70 rows are 35 cells, 130 columns 44; the one element of the remainder is not lost."""
    section = sparsity_section({"sparsity": [entry()]})
    assert section is not None
    shown = pixels(section.text)
    assert shown.shape == (35, 44, 4)
    colors = [tuple(bytes.fromhex(color[1:])) for color in PALETTE[:2]]
    assert tuple(shown[5, 15, :3]) == colors[0] and shown[5, 15, 3] == 255
    assert tuple(shown[-1, -1, :3]) == colors[1] and 0 < shown[-1, -1, 3] < 255
    assert not shown[20:34, :40, 3].any()


def test_what_is_told() -> None:
    text = sparsity_section({"sparsity": [entry()]}).text  # type: ignore[union-attr]
    for expected in ("70×130, 128 rows", "11.3%", "2.50×", "block&lt;[32, 32]&gt;", "rows_in_lanes", "1.5 µs"):
        assert expected in text
    assert "/layer.0/&lt;MatMul&gt;" in text and "<MatMul>" not in text


def test_what_is_left_dense() -> None:
    one = entry(cover=False)
    text = sparsity_section({"sparsity": [one]}).text  # type: ignore[union-attr]
    assert "windows &lt;of&gt; an image" in text and gain(one) == ""
    assert tuple(pixels(text)[5, 15, :3]) == tuple(bytes.fromhex(GREY[1:]))


def test_many_weights_are_behind_a_click() -> None:
    text = sparsity_section({"sparsity": [entry()] * 9}).text  # type: ignore[union-attr]
    assert text.count("<figure>") == 9 and "3 more pictures" in text
    assert sparsity_section({}) is None
