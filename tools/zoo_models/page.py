# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The page `tools/zoo_models/Results.md`, from the newest `tools/bench/results/zoo-*.json`. Standard library only."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parents[1] / "bench" / "results"
PAGE = Path(__file__).resolve().parent / "Results.md"
_ABOUT = """# Models as people bring them

Each model is exported by its framework, compiled, saved, loaded, run, and compared with what ONNX Runtime computes
from the file without its optimizer (with the framework's own result where that runtime refuses the file). Models are
small: what is shown is that they compile and are right. `fixed`: sizes given to the compiler. `open`: batch, length and
the like as open as the exporter leaves them, one artifact for three sets of sizes. GPU targets run on the emulator.
`tools/zoo` repeats it ([how](README.md)).

In the tables: **ok** right from one artifact; **each** right, but compiled for each set of sizes; **-** no size of the
file is open; **refused**, **wrong**, **crash**, **time-out**: the reason stands below the tables; empty: not run."""
_MARKS = {"ok": "ok", "fixed only": "-"}


def page(folder: Path = RESULTS) -> str:
    """The whole page: how many of each family are right, each model, the reasons."""
    files = sorted(folder.glob("zoo-*.json"))
    if not files:
        return f"{_ABOUT}\n\nNothing is measured yet.\n"
    run = json.loads(files[-1].read_text())
    rows = run["rows"]
    columns = sorted({name for row in rows for name in row["cells"]}, key=_order)
    parts = [_ABOUT, f"Run of {run['date']} on {run['cpu']}, `{files[-1].name}`.", "## Families"]
    parts.append("\n".join(_families(rows, columns)))
    for family in sorted({_family(row) for row in rows}):
        some = [row for row in rows if _family(row) == family]
        parts.append(f"## {family}\n\n" + "\n".join(_models(some, columns)))
    parts.append("## Reasons\n\n" + ("\n".join(_reasons(rows, columns)) or "None fails."))
    return "\n\n".join(parts) + "\n"


def mark(cell: dict[str, Any] | None) -> str:
    """What stands in the table for a cell."""
    if cell is None:
        return ""
    if cell["status"] == "ok" and "each_size" in cell:
        return "each"
    return _MARKS.get(cell["status"], f"**{cell['status']}**")


def _order(column: str) -> tuple[bool, str, bool]:
    target, form = column.split()
    return target != "cpu", target, form != "fixed"


def _family(row: dict[str, Any]) -> str:
    return row["model"].split("/")[0]


def _families(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> list[str]:
    """How many are right of those that were run, by family and column; and how many files and models there are."""
    lines = [f"| family | models | files | {' | '.join(columns)} |", "|---|---|---|" + "---|" * len(columns)]
    groups = {family: [r for r in rows if _family(r) == family] for family in sorted({_family(r) for r in rows})}
    for name, some in {**groups, "all": list(rows)}.items():
        exported = [row for row in some if "not_exported" not in row]
        models = {row["model"].split("/")[1].split(".")[0] for row in exported}
        cells = []
        for column in columns:
            marks = [mark(row["cells"][column]) for row in exported if column in row["cells"]]
            run = [m for m in marks if m != "-"]
            each = f", {run.count('each')} each" if "each" in run else ""
            cells.append(f"{run.count('ok')} of {len(run)}{each}")
        lines.append(f"| {name} | {len(models)} | {len(exported)} | {' | '.join(cells)} |")
    return lines


def _models(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> list[str]:
    lines = [f"| model | worst error | {' | '.join(columns)} |", "|---|---|" + "---|" * len(columns)]
    for row in rows:
        if "not_exported" in row:
            continue
        name = row["model"].split("/", 1)[1]
        errors = [cell["error"] for cell in row["cells"].values() if "error" in cell]
        worst = f"{max(errors):.0e}" if errors else ""
        lines.append(f"| {name} | {worst} | {' | '.join(mark(row['cells'].get(column)) for column in columns)} |")
    return lines


def _reasons(rows: Sequence[dict[str, Any]], columns: Sequence[str]) -> list[str]:
    """One line for each different reason of a model, with the columns that it stands for."""
    lines = []
    for row in rows:
        if "not_exported" in row:
            lines += _wrapped(f"- {row['model']}: not exported: {row['not_exported']}")
            continue
        found: dict[str, list[str]] = {}
        for column in columns:
            cell = row["cells"].get(column, {})
            if reason := cell.get("reason") or cell.get("each_size"):
                if cell["status"] != "fixed only":
                    found.setdefault(reason, []).append(column)
        for reason, where in found.items():
            lines += _wrapped(f"- {row['model']} ({', '.join(where)}): {reason}")
    return lines


def _wrapped(text: str) -> list[str]:
    import textwrap

    clean = text.replace("|", "\\|").replace("<", "&lt;")
    return textwrap.wrap(clean, 118, subsequent_indent="  ", break_on_hyphens=False)
