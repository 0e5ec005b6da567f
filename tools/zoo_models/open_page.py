# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page `OpenSizes.md`, from the newest `tools/bench/results/open-sizes-*.json`. Standard library only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from zoo_models.page import RESULTS

_ABOUT = """# One artifact for all sizes

Transformers, two layers deep and 384 wide, exported with open sizes. Each is compiled once, saved, loaded, and run with
sets of sizes drawn by a seed; the results are compared with ONNX Runtime without its optimizer (error relative to the
largest number of a result). *Compiled*: sets that needed a compilation of their own on the call path. Fewer than ten
sets: only small batches are open. Seconds of compiling were taken beside other work.

Times: the artifact for all sizes beside one compiled for the sizes at hand, medians of alternating calls on a machine
that does nothing else. *Ratio*: open over fixed; of whole calls, and of the kernels with products, attention among them
(the least of some profiles for each launch). [How to repeat it](README.md)."""


def page(folder: Path = RESULTS) -> str:
    """The whole page: errors of all sets of sizes, times of two of them, what failed."""
    files = sorted(folder.glob("open-sizes-*.json"))
    if not files:
        return f"{_ABOUT}\n\nNothing is measured yet.\n"
    run = json.loads(files[-1].read_text())
    rows = [row for row in run["rows"] if "failed" not in row]
    parts = [_ABOUT, f"Run of {run['date']} on {run['cpu']}, `{files[-1].name}`.", "## Sets of sizes"]
    parts.append("\n".join(_sets(rows)))
    cells = [(row["model"], cell) for row in rows for cell in row["times"]]
    parts += ["## Times", _summary([cell for _, cell in cells]), "\n".join(_times(cells))]
    failed = [f"- {row['model']}: {row['failed']}" for row in run["rows"] if "failed" in row]
    parts += ["## Failed\n\n" + "\n".join(failed)] if failed else []
    return "\n\n".join(parts) + "\n"


def ratio(cell: Mapping[str, Any], part: str = "") -> float:
    """Time with open sizes over that with fixed ones."""
    return cell[f"open{part}"] / cell[f"fixed{part}"]


def _sets(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = ["| model | sets | compiled | worst error | compile s, all sizes | compile s, one set |"]
    lines.append("|---|---|---|---|---|---|")
    for row in rows:
        general, *each = row["compile_s"]
        fixed = ", ".join(map(str, each))
        cells = (row["model"], row["sets"], row["compiled"], f"{row['error']:.0e}", general, fixed)
        lines.append(f"| {' | '.join(map(str, cells))} |")
    return lines


def _summary(cells: Sequence[Mapping[str, Any]]) -> str:
    """Medians and worst of the ratios."""
    if not cells:
        return "No times are taken yet."
    said = []
    for what, part in (("Products and attention", "_products"), ("Whole calls", "")):
        found = sorted(ratio(cell, part) for cell in cells if cell[f"fixed{part}"])
        if not found:
            continue
        within = sum(each <= 1.05 for each in found)
        said.append(
            f"{what}: median {median(found):.2f}, {within} of {len(found)} at most 1.05, worst {found[-1]:.2f}."
        )
    return "\n\n".join(said)


def _times(cells: Sequence[tuple[str, Mapping[str, Any]]]) -> list[str]:
    lines = [
        "| model | sizes | threads | open ms | fixed ms | ratio | ratio of products |",
        "|---|---|---|---|---|---|---|",
    ]
    for model, cell in cells:
        sizes = ", ".join(f"{name} {size}" for name, size in cell["sizes"].items())
        inside = f"{ratio(cell, '_products'):.2f}" if cell["fixed_products"] else ""
        ratios = f"{ratio(cell):.2f} | {inside}"
        lines.append(f"| {model} | {sizes} | {cell['threads']} | {cell['open']:g} | {cell['fixed']:g} | {ratios} |")
    return lines
