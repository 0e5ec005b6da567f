# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files with a line of JSON for each test that was run: its state, and what part of its model a target computes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def write(file: Path, results: Sequence[dict[str, Any]]) -> None:
    """Write a line for each result, sorted by name; lines of tests that were not run stay."""
    rows = {row["test"]: row for row in _read(file)}
    for result in results:
        name = result["key"].partition("/")[2]
        rows[name] = {"test": name, "state": result["state"], **result.get("shares", {})}
    lines = [json.dumps(rows[name], separators=(",", ":")) for name in sorted(rows)]
    file.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


def summary(file: Path) -> str:
    """How many models of a file are computed as programs alone, in part, and outside."""
    counted = [row for row in _read(file) if row["state"] == "passed" and "programs" in row]
    alone = sum(row["programs"] > 0 and not row["outside"] for row in counted)
    parts = sum(row["programs"] > 0 and row["outside"] > 0 for row in counted)
    outside = sum(not row["programs"] and row["outside"] > 0 for row in counted)
    rest = len(counted) - alone - parts - outside
    return (
        f"of {len(counted)} recorded that pass, {alone} are computed as programs alone, {parts} in part, "
        f"{outside} outside; of {rest} nothing is computed"
    )


def _read(file: Path) -> list[dict[str, Any]]:
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
