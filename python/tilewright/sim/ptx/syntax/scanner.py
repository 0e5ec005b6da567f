# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading PTX text: a cursor, lists of operands, literals."""

from __future__ import annotations

import bisect
import re
import struct

from tilewright.core.errors import UserError

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_FLOAT32 = re.compile(r"0[fF]([0-9a-fA-F]{8})$")
_FLOAT64 = re.compile(r"0[dD]([0-9a-fA-F]{16})$")
_INTEGER = re.compile(r"([+-]?)\s*(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)U?$")
_DECIMAL = re.compile(r"[+-]?\d+\.\d*(?:[eE][+-]?\d+)?$")


class Scanner:
    """A cursor over PTX text without its comments."""

    def __init__(self, text: str) -> None:
        self.text = _COMMENT.sub(lambda found: re.sub(r"[^\n]", " ", found.group()), text)
        self.position = 0
        self._newlines = [found.start() for found in re.finditer("\n", self.text)]

    def line(self, position: int | None = None) -> int:
        """The line, from 1, of a position (default: the cursor)."""
        return bisect.bisect_left(self._newlines, self.position if position is None else position) + 1

    def skip(self) -> bool:
        """Move over white space; whether text is left."""
        found = re.compile(r"\s*").match(self.text, self.position)
        self.position = found.end() if found else self.position
        return self.position < len(self.text)

    def peek(self) -> str:
        """The character at the cursor, or "" at the end."""
        return self.text[self.position : self.position + 1]

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Match at the cursor and move over it."""
        found = pattern.match(self.text, self.position)
        if found:
            self.position = found.end()
        return found

    def until(self, stop: str) -> str:
        """The text up to a character, which is moved over."""
        end = self.text.find(stop, self.position)
        if end < 0:
            raise self.error(f"the text ends where a '{stop}' is expected")
        found = self.text[self.position : end]
        self.position = end + 1
        return found

    def block(self, opening: str = "{", closing: str = "}") -> str:
        """The text between a bracket at the cursor and its partner."""
        depth, start = 0, self.position
        for at in range(start, len(self.text)):
            depth += (self.text[at] == opening) - (self.text[at] == closing)
            if depth == 0:
                self.position = at + 1
                return self.text[start + 1 : at]
        raise self.error(f"'{opening}' is never closed")

    def error(self, message: str, position: int | None = None) -> UserError:
        """An error at a place of the text."""
        line = self.line(position)
        return UserError(
            f"PTX line {line}: {message}", ir=self.text.splitlines()[line - 1].strip() if self.text else None
        )


def split(text: str) -> list[str]:
    """Split at commas that are in no bracket."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        if char in "[{(":
            depth += 1
        elif char in "]})":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def integer(text: str) -> int | None:
    """The value of an integer literal, or None."""
    found = _INTEGER.match(text)
    if not found:
        return None
    digits = found.group(2)
    if len(digits) > 1 and digits[0] == "0" and digits.isdigit():
        value = int(digits, 8)
    else:
        value = int(digits, 0)
    return -value if found.group(1) == "-" else value


def literal(text: str) -> tuple[int, str] | None:
    """(value or bits, kind) of a literal, or None."""
    value = integer(text)
    if value is not None:
        return value, "int"
    found = _FLOAT32.match(text)
    if found:
        return int(found.group(1), 16), "f32"
    found = _FLOAT64.match(text)
    if found:
        return int(found.group(1), 16), "f64"
    if _DECIMAL.match(text):
        return struct.unpack("<Q", struct.pack("<d", float(text)))[0], "f64"
    return None
