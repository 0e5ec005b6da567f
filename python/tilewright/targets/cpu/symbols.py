# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Symbols of a shared object: its entry, and what it expects from others (undefined ones of a 64-bit ELF file)."""

from __future__ import annotations

import struct
from collections.abc import Iterator

#: The function of the llvm dialect that a lowered module is run through.
ENTRY = "tw_main"

_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_DYNSYM = 11
_WEAK = 2


def undefined(code: bytes) -> list[str]:
    """Return the names that the dynamic linker must find elsewhere, weak ones left out.

    Args:
        code: the bytes of the shared object.
    """
    names = []
    for section in _sections(code):
        kind, offset, size, link = section[1], section[4], section[5], section[6]
        if kind != _DYNSYM:
            continue
        strings = list(_sections(code))[link]
        text = code[strings[4] : strings[4] + strings[5]]
        for name, info, _, where, _, _ in _SYMBOL.iter_unpack(code[offset : offset + size]):
            if where == 0 and name and info >> 4 != _WEAK:
                names.append(text[name : text.index(b"\0", name)].decode())
    return names


def _sections(code: bytes) -> Iterator[tuple[int, ...]]:
    header = _HEADER.unpack_from(code)
    start, size, count = header[6], header[11], header[12]
    for number in range(count):
        yield _SECTION.unpack_from(code, start + number * size)
