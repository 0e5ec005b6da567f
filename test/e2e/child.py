# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Jobs for a fresh process: `child.py run|compile|load ARGUMENTS`; the last line of output is a JSON report."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from onnx_suite.isolation import isolate, leaked

if TYPE_CHECKING:
    from tilewright.core.workers import Job


def memory() -> int:
    """Resident bytes of this process, mapped files included."""
    line = next(s for s in Path("/proc/self/status").read_text().splitlines() if s.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


def modules() -> int:
    """How many modules of ours this process has imported."""
    return sum(name.split(".")[0] == "tilewright" for name in sys.modules)


def run(artifact: str, inputs: str, outputs: str, threads: str) -> dict[str, object]:
    """Load and run a saved artifact with the compiler blocked; report memory, and how many modules of ours it took."""
    isolate()
    import numpy as np

    import tilewright as tw

    arrays = dict(np.load(inputs))
    before = memory()
    model = tw.load(artifact, threads=int(threads))
    for _ in range(3):
        results = model(*arrays.values())
    held = memory() - before
    np.savez(outputs, *results)
    return {"held": held, "modules": modules(), "leaked": leaked(), **model.held_bytes}


def compile_model(model: str, threads: str) -> dict[str, object]:
    """Compile a model file; report how many kernels went to LLVM, and how many of our modules it took."""
    import tilewright as tw
    from tilewright.core.workers import WorkerPool

    jobs: list[str] = []
    compile_jobs = WorkerPool.compile

    def count(pool: WorkerPool, units: Sequence[Job]) -> list[bytes]:
        jobs.extend(unit.name for unit in units)
        return compile_jobs(pool, units)

    WorkerPool.compile = count  # type: ignore[method-assign]
    tw.compile(model, target="cpu", threads=int(threads))
    return {"jobs": jobs, "modules": modules()}


JOBS = {"run": run, "compile": compile_model}

if __name__ == "__main__":
    print(json.dumps(JOBS[sys.argv[1]](*sys.argv[2:])))
