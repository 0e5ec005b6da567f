# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A process of the suite: imports what it needs, waits for its work on standard input, does it, ends.

``python -m bench.gpu.far.worker FOLDER RESULTS``. The work is a line of JSON, see `Job`; what becomes of it are lines
in RESULTS: ``{"step": ..., "row": ...}`` before each step of a case, the last one with the step "done".
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch  # the import takes seconds: a spare process has done it when its work comes

from bench.gpu.far import child
from bench.gpu.far.machine import Emulator, Gpu
from bench.gpu.far.measure import FEW, MANY, Lost, Task, measure
from bench.gpu.far.row import Row
from bench.gpu.far.timing import Effort


def work(root: Path, results: Path, job: Mapping[str, Any]) -> None:
    """Do one job.

    Args:
        root: folder of the pack.
        results: receives lines of JSON.
        job: ``stage`` (machine, check, time), ``case`` (a name), ``emulate``, ``seed``, ``peers``, ``without``,
            ``effort``, ``many``, ``limits`` (of `Task`).

    Raises:
        Lost: the process has no usable CUDA context any more.
    """
    suite = json.loads((root / "suite.json").read_text())
    machine = Emulator(suite["arch"], job.get("seed")) if job.get("emulate") else Gpu()
    if job["stage"] == "machine":
        about: dict[str, Any] = {"machine": machine.describe(), "state": machine.state()}
        child.append(results, {"step": "limits", **about})
        limits = machine.limits() if job.get("measured", True) else {}
        child.append(results, {"step": "done", **about, "limits": limits})
        return
    case = next(case for case in suite["cases"] if case["name"] == job["case"])

    def report(step: str, row: Row) -> None:
        child.append(results, {"step": step, "row": row.as_json()})

    many = FEW if job["stage"] == "time" else job.get("many") or MANY  # its check was a job before
    task = Task(case, machine, job.get("limits") or {}, many=many, report=report)
    task.peers, task.without = job.get("peers"), job.get("without") or ()
    if job["stage"] == "time":
        task.effort = Effort(*job["effort"]) if job.get("effort") else Effort()
    report("done", measure(root, task))


def main(given: list[str]) -> int:
    """Returns 0, or `child.LOST`."""
    root, results = map(Path, given)
    text = sys.stdin.readline()
    if not text.strip():
        return 0  # a spare process that was not needed
    torch.set_num_threads(min(torch.get_num_threads(), 8))
    try:
        work(root, results, json.loads(text))
    except Lost:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(child.LOST)  # destructors would call the driver again
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
