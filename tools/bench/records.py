# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Result files: JSON whose lines are filled, so that a run of fifty rows has hundreds of lines and not thousands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path

WIDTH = 120
_FOLDERS = re.compile(r"(?<![^\s=:,'\"])/(?:[^\s/'\"]+/)+")


def text_of(record: object) -> str:
    """JSON text of a record, with as much of a list or an object on a line as fits into 120 columns."""
    return "\n".join(_lines(record, 0, "")) + "\n"


def write(path: Path, record: object) -> None:
    """Write a record to a file."""
    path.write_text(text_of(record))


def without_folders(words: Iterable[str]) -> list[str]:
    """Words of a command whose absolute paths are names: which folders a machine has is nothing to publish."""
    return [_FOLDERS.sub("", word) for word in words]


def _lines(value: object, depth: int, key: str) -> list[str]:
    """The lines of a value behind its key: one where it fits, else a line per nested value, scalars filled."""
    whole = " " * depth + key + json.dumps(value)
    if len(whole) < WIDTH or not isinstance(value, (dict, list)) or not value:
        return [whole]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    named = isinstance(value, dict)
    parts = [(json.dumps(k) + ": ", v) for k, v in value.items()] if named else [("", v) for v in value]
    lines = [" " * depth + key + opening]
    line = ""
    for number, (name, part) in enumerate(parts):
        comma = "," if number + 1 < len(parts) else ""
        inner = _lines(part, depth + 1, name)
        inner[-1] += comma
        if len(inner) == 1 and len(line) + len(inner[0].strip()) + 1 <= WIDTH and line:
            line += " " + inner[0].strip()
            continue
        lines += [line] if line else []
        line = inner[0] if len(inner) == 1 else ""
        lines += inner if len(inner) > 1 else []
    return [*lines, *([line] if line else []), " " * depth + closing]
