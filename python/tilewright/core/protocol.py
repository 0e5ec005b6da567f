# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How the compiler talks to its worker processes: length-prefixed messages on pipes."""

from __future__ import annotations

import json
import struct
from typing import Any, BinaryIO

_LENGTHS = struct.Struct("<IQ")


def send(stream: BinaryIO, header: dict[str, Any], payload: bytes = b"") -> None:
    """Write one message: a JSON header and bytes."""
    text = json.dumps(header).encode()
    stream.write(_LENGTHS.pack(len(text), len(payload)) + text)
    stream.write(payload)
    stream.flush()


def receive(stream: Any) -> tuple[dict[str, Any], bytes] | None:
    """Read one message; None where the stream ended (also within a message)."""
    lengths = _read(stream, _LENGTHS.size)
    if lengths is None:
        return None
    header_size, payload_size = _LENGTHS.unpack(lengths)
    header, payload = _read(stream, header_size), _read(stream, payload_size)
    if header is None or payload is None:
        return None
    return json.loads(header), payload


def _read(stream: Any, size: int) -> bytes | None:
    """Read exactly `size` bytes; an unbuffered stream gives them in pieces."""
    parts = bytearray()
    while len(parts) < size:
        part = stream.read(size - len(parts))
        if not part:
            return None
        parts += part
    return bytes(parts)
