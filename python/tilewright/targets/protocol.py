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


def receive(stream: BinaryIO) -> tuple[dict[str, Any], bytes] | None:
    """Read one message; None where the stream ended (also within a message)."""
    lengths = stream.read(_LENGTHS.size)
    if len(lengths) < _LENGTHS.size:
        return None
    header_size, payload_size = _LENGTHS.unpack(lengths)
    header, payload = stream.read(header_size), stream.read(payload_size)
    if len(header) < header_size or len(payload) < payload_size:
        return None
    return json.loads(header), payload
