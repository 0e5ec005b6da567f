# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The results of a suite: a file of JSON lines, which is the truth, and the summary that is made from it.

Lines (FILE.jsonl)::

    {"kind": "start", "pack": ..., "date": ..., "command": ..., "machine": ..., "limits": ..., "state": ...}
    {"kind": "case", "case": NAME, "stage": "check" | "time", "outcome": ..., "step": ..., "seconds": ..., "row": ...}
    {"kind": "end", "date": ..., "machine": ..., "limits": ..., "state": ...}

Each run of the command (a slice) has a start, its cases and an end, unless it was killed. The last line of a case and
stage counts. The summary (FILE.json): rationale/gpu_suite.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.gpu.far import child
from bench.gpu.far.row import Row

VERSION = 2


class Lines:
    """The file of lines beside a summary.

    Args:
        summary: the summary's file; the lines' ends in ``.jsonl``.

    Raises:
        ValueError: the summary's name ends in ``.jsonl`` itself.
    """

    def __init__(self, summary: Path) -> None:
        if summary.suffix == ".jsonl":
            raise ValueError(f"{summary}: name the summary, FILE.json; its lines go to FILE.jsonl")
        self.summary, self.file = summary, summary.with_suffix(".jsonl")
        self.known = child.read(self.file)

    def check(self, pack: Mapping[str, Any]) -> None:
        """Raise ValueError where the lines are of another pack."""
        packs = [line["pack"] for line in self.known if line.get("kind") == "start"]
        if packs and packs[-1] != pack:
            raise ValueError(f"{self.file} has results of another pack: name another file, or start it anew (--again)")

    def clear(self) -> None:
        """Forget all lines: the file is kept under another name."""
        if self.file.exists():
            self.file.replace(self.file.with_suffix(".jsonl.old"))
        self.known = []

    def add(self, kind: str, **values: Any) -> None:
        """Append a line."""
        line = {"kind": kind, **values}
        child.append(self.file, line)
        self.known.append(line)

    def row(self, case: str, stage: str) -> Row | None:
        """What is known of a case after a stage."""
        found = [k for k in self.known if k.get("kind") == "case" and (k["case"], k["stage"]) == (case, stage)]
        return Row.of(found[-1]["row"]) if found else None

    def rows(self, cases: Sequence[Mapping[str, Any]], timed: bool) -> list[Row]:
        """A row for each case: of its last stage, with what only the check tells.

        Args:
            cases: entries of suite.json.
            timed: whether rows without times are incomplete.
        """
        return [self._whole(case, timed) for case in cases]

    def _whole(self, case: Mapping[str, Any], timed: bool) -> Row:
        check, time = self.row(case["name"], "check"), self.row(case["name"], "time")
        if time is None:
            row = check or Row.new(case)
            if row.status == "ok" and (timed or check is None):
                row.status, row.message = "out of time", "not timed yet" if check else "not run yet"
            return row
        if check is not None and check.runs > time.runs:
            time.runs, time.repeatable = check.runs, check.repeatable and time.repeatable is not False
        return time

    def write_summary(self, cases: Sequence[Mapping[str, Any]], timed: bool) -> None:
        """Write the summary: whole, or not at all."""
        starts = [line for line in self.known if line.get("kind") == "start"]
        ends = [line for line in self.known if line.get("kind") == "end"]
        first = starts[-1] if starts else {}
        machine = first.get("machine") or {}
        summary = {
            "version": VERSION,
            "pack": first.get("pack"),
            "device": machine.get("gpu"),
            "driver": machine.get("driver"),
            "date": first.get("date"),
            "command": first.get("command"),
            "clocks": {"start": first.get("state"), "end": ends[-1].get("state") if ends else None},
            "machine": machine,
            "limits": first.get("limits") or {},
            "limits_end": ends[-1].get("limits") if ends else None,
            "slices": [{"date": line.get("date"), "command": line.get("command")} for line in starts],
            "rows": [row.as_json() for row in self.rows(cases, timed)],
        }
        child.replace(self.summary, summary)
