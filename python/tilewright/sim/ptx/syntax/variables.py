# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Variables, of a module or of a body: their sizes, and what they hold at first."""

from __future__ import annotations

import re

from tilewright.sim.ptx.syntax import types
from tilewright.sim.ptx.syntax.scanner import Scanner, literal, split
from tilewright.sim.ptx.syntax.tree import Variable

_VARIABLE = re.compile(
    r"\.(shared|global|const|local)\s+((?:\.attribute\s*\([^)]*\)\s*)?)(?:\.align\s+(\d+)\s+)?\.(\w+)\s+([\w$]+)\s*"
    r"(\[\s*\d*\s*\])?\s*(?:=\s*(.*))?$",
    re.S,
)


def variable_of(scan: Scanner, text: str) -> Variable:
    """Read a declaration such as `.shared .align 16 .b8 name[64]` (without the semicolon)."""
    found = _VARIABLE.match(" ".join(text.split()))
    if not found or found.group(4) not in types.NUMPY:
        raise scan.error(f"variable '{' '.join(text.split())}' cannot be read", scan.position - 1)
    space, _, align, type_name, name, extent, value = found.groups()
    element = types.size(type_name)
    count = 1 if extent is None else int(extent.strip("[] ") or 0)
    data, references = _initial(scan, value, type_name, element * count)
    return Variable(name, space, element * count, int(align or element), data, references)


def _initial(scan: Scanner, value: str | None, type_name: str, size: int) -> tuple[bytes | None, tuple]:
    if value is None:
        return None, ()
    out, references = bytearray(), []
    width = types.size(type_name)
    for item in split(value.strip().strip("{}")):
        number = literal(item)
        if number is None:
            found = re.match(r"(?:generic\()?([\w$]+)\)?(?:\s*\+\s*(\d+))?$", item)
            if not found:
                raise scan.error(f"initial value '{item}' cannot be read", scan.position - 1)
            references.append((len(out), found.group(1), int(found.group(2) or 0)))
            number = (0, "int")
        out += (number[0] & ((1 << (8 * width)) - 1)).to_bytes(width, "little")
    return bytes(out) + bytes(size - len(out)), tuple(references)
