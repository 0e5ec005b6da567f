# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The 119 operators of Roller's paper: compile time, correctness, measured and predicted time.

    tools/bench/run roller-paper [--case C0 ...] [--every N] [--json FILE]

One image of the batch of 128. Each is compiled without the cache, run, and compared with ONNX Runtime. Exit code 1
where one is wrong, or where the mean compile time is 0.5 s or more.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench import records
from bench.roller.operators import Operator, paper


def processor_seconds() -> float:
    """Processor time of this process and of the ended workers."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, kinds))


def check(operator: Operator) -> dict[str, Any]:
    """Compile, run and compare one operator."""
    import onnxruntime

    import tilewright as tw
    from tilewright.core import config

    model = operator.model().SerializeToString()
    with config.cache.override(False):
        wall, cpu = time.perf_counter(), processor_seconds()
        compiled = tw.compile(model, threads=1)
        wall, cpu = time.perf_counter() - wall, processor_seconds() - cpu
    rng = np.random.default_rng(1)
    inputs = [rng.standard_normal(s.shape, np.float32) for s in compiled.inputs]
    results = [np.zeros(s.shape, np.float32) for s in compiled.outputs]
    best = min(_timed(compiled, inputs, results) for _ in range(3))
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    expected = session.run(None, {s.name: a for s, a in zip(compiled.inputs, inputs, strict=True)})[0]
    error = float(np.abs(results[0] - expected).max() / max(float(np.abs(expected).max()), 1e-30))
    seconds = compiled._manifest.compile["seconds"]
    return {"name": operator.name, "compile": wall, "cpu": cpu, "plan": seconds["plan"], "run": best, "error": error}


def _timed(model: Any, inputs: list[np.ndarray], results: list[np.ndarray]) -> float:
    start = time.perf_counter()
    model(*inputs, out=results)
    return time.perf_counter() - start


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the operators that are asked for."""
    parser = argparse.ArgumentParser(
        prog="tools/bench/run roller-paper", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", action="append", default=[])
    parser.add_argument("--every", type=int, default=1, help="one in so many")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    rows = []
    for operator in paper()[:: options.every]:
        if not options.case or operator.name in options.case:
            rows.append(check(operator))
            print("{name:4} compile {compile:.2f} s, run {run:.4f} s, error {error:.1e}".format(**rows[-1]), flush=True)
    mean = {key: float(np.mean([row[key] for row in rows])) for key in ("compile", "cpu", "plan")}
    wrong = [row["name"] for row in rows if not row["error"] < 1e-4]
    print(f"{len(rows)} operators, mean {mean}, wrong {wrong}")
    if options.json:
        records.write(options.json, {"mean": mean, "rows": rows})
    return 1 if wrong or mean["compile"] >= 0.5 else 0


if __name__ == "__main__":
    sys.exit(main())
