# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page `tools/bench/edited/Results.md`, from the newest `tools/bench/results/edited-*.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "results"
_ABOUT = """# IR edited by hand, at every border between phases

An MLP with a softmax (two products, 64 x 256 x 512 and 64 x 512 x 256) is compiled with `dump_ir=`; the IR behind one
phase is edited, and compiled from there with `start_from=`. Kernels and bytes of code: before, after. Time: of the
edited model over the plain one; on the CPU medians of alternating calls with one thread, on the GPU instructions of
warps that the emulator counts (no clock), on the mesh simulated cycles. Error: the largest difference of the results.
`cd tools; PYTHONPATH=. python -m bench.edited` repeats it; the edits: [edits.py](edits.py)."""
_HEAD = "| target | phase | edit | kernels | bytes of code | time | error |\n|---|---|---|---|---|---|---|"


def page(folder: Path = RESULTS) -> str:
    """The whole page."""
    files = sorted(folder.glob("edited-*.json"))
    if not files:
        return f"{_ABOUT}\n\nNothing is measured yet.\n"
    run = json.loads(files[-1].read_text())
    rows = run["rows"]
    lines = [_line(row) for row in rows]
    refused = [
        f"- {row['target']}, {row['phase']}, {row['edit']}: {row['refused']}" for row in rows if "refused" in row
    ]
    parts = [_ABOUT, f"Run of {run['date']} on {run['cpu']}, `{files[-1].name}`.", "\n".join([_HEAD, *lines])]
    if refused:
        parts.append("Refused, as no code can do it:\n\n" + "\n".join(refused))
    return "\n\n".join(parts) + "\n"


def _line(row: dict[str, Any]) -> str:
    cells = [row["target"], row["phase"], row["edit"]]
    if "refused" in row:
        return f"| {' | '.join(cells)} | refused | | | |"
    code = " → ".join(map(str, row["code_bytes"])) if row["code_changed"] else "the same code"
    kernels = " → ".join(map(str, row["kernels"]))
    return f"| {' | '.join(cells)} | {kernels} | {code} | {row['time']:.3f} | {row['error']:.0e} |"
