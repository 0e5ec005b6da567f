# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All modules, one process each, in a file of results; and the page of it, by the standard library only."""

from __future__ import annotations

import datetime
import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from bench import records

ROOT = Path(__file__).resolve().parents[3]
RESULTS = ROOT / "tools/bench/results"
_ABOUT = """# Modules under torch.compile

Each module runs with `torch.compile(module, backend="tilewright")` and without, in three sizes: dimensions marked as
dynamic are open, and what the first size compiles runs the others. `graphs`: several where Python code between them
cannot be traced. `builds`: models compiled after each size. `error`: the largest difference of the three, relative to
the largest number of a result (at least to 1). `tools/zoo torch` repeats it ([how](../README.md))."""


def run(python: Path, wanted: Sequence[str], file: Path, limit: float, again: bool) -> int:
    """Run the modules that match in an environment with PyTorch; rows that the file has are kept.

    Returns:
        How many are not right.

    Raises:
        FileNotFoundError: the environment is not there.
    """
    from zoo_models.running.campaign import cpu

    if not python.exists():
        raise FileNotFoundError(f"{python} is not there: tools/zoo setup makes it, or give --env torch=FOLDER")
    known = json.loads(file.read_text())["rows"] if file.exists() else []
    rows = {row["module"]: row for row in known}
    for name in _names(python, wanted):
        if name in rows and rows[name]["status"] == "ok" and not again:
            continue
        rows[name] = _row(python, name, limit)
        print(f"{name}: {rows[name]['status']}", flush=True)
        text = {"date": datetime.date.today().isoformat(), "cpu": cpu(), "rows": list(rows.values())}
        records.write(file, text)
    return sum(row["status"] != "ok" for row in rows.values())


def _environment(cache: str) -> dict[str, str]:
    paths = os.pathsep.join([str(ROOT / "python"), str(ROOT / "tools")])
    return {**os.environ, "PYTHONPATH": paths, "TILEWRIGHT_CACHE_DIR": cache}


def _names(python: Path, wanted: Sequence[str]) -> list[str]:
    program = "from zoo_models.torch_modules.cases import CASES; print(*CASES)"
    done = subprocess.run([python, "-c", program], env=_environment(""), capture_output=True, text=True, check=True)
    return [name for name in done.stdout.split() if not wanted or any(fnmatch(name, pattern) for pattern in wanted)]


def _row(python: Path, name: str, limit: float) -> dict[str, Any]:
    command = [python, "-W", "ignore", "-m", "zoo_models.torch_modules.one", name]
    with tempfile.TemporaryDirectory() as cache:
        try:
            done = subprocess.run(command, env=_environment(cache), capture_output=True, text=True, timeout=limit)
        except subprocess.TimeoutExpired:
            return {"module": name, "status": f"time-out: not done after {limit:.0f} s"}
    lines = done.stdout.splitlines()
    if done.returncode or not lines:
        told = [line for line in done.stderr.splitlines() if line.strip()] or [f"exit status {done.returncode}"]
        return {"module": name, "status": f"failed: {told[-1][:200]}"}
    return json.loads(lines[-1])


def page(folder: Path = RESULTS) -> str:
    """The page of the newest file of results."""
    files = sorted(folder.glob("torch-modules-*.json"))
    if not files:
        return f"{_ABOUT}\n\nNothing is measured yet.\n"
    found = json.loads(files[-1].read_text())
    rows = found["rows"]
    good = sum(row["status"] == "ok" for row in rows)
    head = f"Run of {found['date']} on {found['cpu']}, `{files[-1].name}`: {good} of {len(rows)} are right."
    table = [
        "| module | graphs | sizes of the input | builds | error | |",
        "|---|---|---|---|---|---|",
        *map(_line, rows),
    ]
    return "\n\n".join([_ABOUT, head, "\n".join(table)]) + "\n"


def _line(row: dict[str, Any]) -> str:
    if "builds" not in row:
        return f"| {row['module']} | | | | | {row['status']} |"
    sizes = ", ".join("x".join(map(str, size)) for size in row["sizes"])
    builds = ", ".join(map(str, row["builds"]))
    cells = (row["module"], row["graphs"], sizes, builds, f"{row['error']:.1e}", row["status"])
    return "| " + " | ".join(map(str, cells)) + " |"
