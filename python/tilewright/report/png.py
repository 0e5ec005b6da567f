# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pictures of pixels inside the page."""

from __future__ import annotations

import base64
import struct
import zlib

from tilewright.report.html import Raw, esc


def image(width: int, height: int, rows: bytes, label: str) -> Raw:
    """Return an element that holds a picture.

    Args:
        rows: 8 bits for red, green, blue and opacity of each pixel; a 0 (no filter) before each row.
        label: what it shows, for who cannot see it.
    """
    data = base64.b64encode(png(width, height, rows)).decode()
    return Raw(f'<img src="data:image/png;base64,{data}" alt="{esc(label)}" title="{esc(label)}">')


def png(width: int, height: int, rows: bytes) -> bytes:
    """Return the bytes of a picture; `rows` as in `image`."""
    header = struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0)
    body = _chunk(b"IHDR", header) + _chunk(b"IDAT", zlib.compress(rows, 9)) + _chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def _chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
