# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""All models for all targets: one process each with a time limit, one row for each model in a file of results."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from bench import records

FORMS = ("fixed", "open")


def models(root: Path, wanted: Sequence[str]) -> list[str]:
    """The exported models that match, as family/name."""
    names = sorted(f"{f.parent.parent.name}/{f.parent.name}" for f in root.glob("*/*/meta.json"))
    whole = [pattern if "/" in pattern else f"{pattern}/*" for pattern in wanted]
    return [name for name in names if not whole or any(fnmatch(name, pattern) for pattern in whole)]


def check_forms(forms: Sequence[str]) -> None:
    """Check the names of forms.

    Raises:
        ValueError: there is none of this name.
    """
    for form in forms:
        if form not in FORMS:
            raise ValueError(f"--forms {form}: there are {', '.join(FORMS)}")


def judge(folder: Path, target: str, form: str, limit: float) -> dict[str, Any]:
    """The cell of one model, one target and one form."""
    command = [sys.executable, "-m", "zoo_models.running.one", str(folder), target, form]
    tools = str(Path(__file__).resolve().parents[2])
    paths = os.pathsep.join([tools, *filter(None, [os.environ.get("PYTHONPATH")])])
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": paths},
    )
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return {"status": "time-out", "reason": f"not done after {limit:.0f} s"}
    lines = [line for line in out.splitlines() if line.startswith("{")]
    if process.returncode or not lines:
        last = (err.strip().splitlines() or ["no output"])[-1]
        return {"status": "crash", "reason": f"exit status {process.returncode}: {last[:300]}"}
    return json.loads(lines[-1])


def load(path: Path) -> dict[str, dict[str, Any]]:
    """The rows of a file of results, by model."""
    if not path.exists():
        return {}
    return {row["model"]: row for row in json.loads(path.read_text())["rows"]}


def save(path: Path, rows: dict[str, dict[str, Any]], about: dict[str, Any]) -> None:
    """Write all rows, as the benchmarks store theirs."""
    records.write(path, {"zoo": True, **about, "rows": [rows[name] for name in sorted(rows)]})


def run(root: Path, names: Sequence[str], targets: Sequence[str], forms: Sequence[str], options: Any) -> int:
    """Judge each model for each target and form that has no cell yet; how many cells are not right."""
    rows = load(options.json)
    about = {"date": options.date, "cpu": cpu()}
    work = []
    for target in targets:
        for name in names:
            facts = json.loads((root / name / "meta.json").read_text())
            row = rows.setdefault(name, {"model": name, "cells": {}})
            row |= {key: facts[key] for key in ("exporter", "reference", "exporter_wrong", "bytes") if facts.get(key)}
            if "failed" in facts:
                row["not_exported"] = facts["failed"]
                continue
            row.pop("not_exported", None)
            cells = row["cells"]
            work += [(name, target, form) for form in forms if options.again or f"{target} {form}" not in cells]

    def one(item: tuple[str, str, str]) -> None:
        name, target, form = item
        cell = judge(root / name, target, form, options.timeout)
        rows[name]["cells"][f"{target} {form}"] = cell
        save(options.json, dict(rows), about)
        print(f"{name} {target} {form}: {cell}", flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(one, work))
    save(options.json, rows, about)
    return sum(cell["status"] not in ("ok", "fixed only") for row in rows.values() for cell in row["cells"].values())


def cpu() -> str:
    """The name of this CPU."""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return "unknown"
