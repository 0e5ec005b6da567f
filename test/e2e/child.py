# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Jobs for a fresh process: `child.py run|compile|load ARGUMENTS`; the last line of output is a JSON report."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from onnx_suite.isolation import isolate, leaked


def memory() -> int:
    """Resident bytes of this process, mapped files included."""
    line = next(s for s in Path("/proc/self/status").read_text().splitlines() if s.startswith("VmRSS"))
    return int(line.split()[1]) * 1024


def run(artifact: str, inputs: str, outputs: str, threads: str) -> dict[str, object]:
    """Load and run a saved artifact with the compiler blocked; report resident memory and the time to load."""
    isolate()
    import numpy as np

    import tilewright as tw

    arrays = dict(np.load(inputs))
    before, start = memory(), time.perf_counter()
    model = tw.load(artifact, threads=int(threads))
    seconds = time.perf_counter() - start
    for _ in range(3):
        results = model(*arrays.values())
    held = memory() - before
    np.savez(outputs, *results)
    return {"held": held, "seconds": seconds, "leaked": leaked(), **model.held_bytes}


def compile_model(model: str, threads: str) -> dict[str, object]:
    """Compile a model file; report the seconds of the import and of the compilation."""
    start = time.perf_counter()
    import tilewright as tw

    middle = time.perf_counter()
    tw.compile(model, target="cpu", threads=int(threads))
    return {"import": middle - start, "compile": time.perf_counter() - middle}


JOBS = {"run": run, "compile": compile_model}

if __name__ == "__main__":
    print(json.dumps(JOBS[sys.argv[1]](*sys.argv[2:])))
