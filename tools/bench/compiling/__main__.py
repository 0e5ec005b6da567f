# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compile time and peak memory, each compilation in a fresh process without any cache.

    PYTHONPATH=tools:test:python python -m bench.compiling [MODEL ...] [--workers 1,2] [--top N] [--json FILE]
                                                           [--hold COMMAND] [--strict]

MODEL is a name of test/models, or GRAPH:NODES (`chain:2000`, `random_dag:500`; graphs.py). Without any: the models that
have a target, and both graphs at 500, 1000 and 2000 nodes. `--strict`: exit code 1 where a target is missed, or where
time per node at the largest size of a graph is more than 1.5 times that at the smallest.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from bench.compiling.graphs import GRAPHS
from bench.compiling.memory import PeakMemory

#: Largest accepted seconds on two cores, and bytes of all processes while a model is compiled.
TARGETS = {"bert_base": 12.0, "resnet50": 12.0}
MOST_BYTES = 3 << 30
_GROWTH = 1.5
_SIZES = (500, 1000, 2000)


def file_of(name: str, folder: Path) -> Path:
    """The model to compile, built before the clock starts."""
    graph, _, nodes = name.partition(":")
    if not nodes:
        import models

        return models.path(name)
    path = folder / f"{graph}-{nodes}.onnx"
    if not path.exists():
        path.write_bytes(GRAPHS[graph](int(nodes)).SerializeToString())
    return path


def measure(path: Path, workers: int, hold: Sequence[str] = ()) -> dict[str, Any]:
    """Compile in a process of its own: the times that it tells, and the peak memory of it and its workers."""
    command = [*hold, sys.executable, "-m", "bench.compiling.child", str(path)]
    environment = {**os.environ, "TILEWRIGHT_COMPILE_WORKERS": str(workers)}
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process,
        PeakMemory(process.pid) as memory,
    ):
        output, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"{path.name}: the compilation ended with code {process.returncode}")
    return {"workers": workers, "peak_bytes": memory.bytes, **json.loads(output)}


def lines(name: str, found: dict[str, Any], top: int) -> Iterator[str]:
    """A line for the whole, one for the phases, and the longest passes."""
    peak = found["peak_bytes"] / (1 << 30)
    yield (
        f"{name:18} {found['workers']} workers  {found['compile']:6.2f} s (import {found['import']:.2f} s, main process"
        f" {found['cpu']:.2f} s of CPU), peak {peak:.2f} GiB, {found['kernels']} kernels"
    )
    yield "    " + ", ".join(f"{phase} {seconds:.2f}" for phase, seconds in found["phases"].items())
    longest = sorted(found["passes"].items(), key=lambda item: -item[1])[:top]
    for entry, seconds in longest:
        yield f"    {seconds:7.3f} s  {entry}"


def misses(results: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    """What is slower or larger than accepted."""
    per_node: dict[str, dict[int, float]] = {}
    for name, runs in results.items():
        best = min(run["compile"] for run in runs)
        if best > TARGETS.get(name, float("inf")):
            yield f"{name}: {best:.1f} s, accepted are {TARGETS[name]:.0f}"
        peak = max(run["peak_bytes"] for run in runs)
        if peak > MOST_BYTES:
            yield f"{name}: {peak / (1 << 30):.2f} GiB, accepted are {MOST_BYTES >> 30}"
        graph, _, nodes = name.partition(":")
        if nodes:
            per_node.setdefault(graph, {})[int(nodes)] = best / int(nodes)
    for graph, times in per_node.items():
        growth = times[max(times)] / times[min(times)]
        if growth > _GROWTH:
            yield f"{graph}: {growth:.2f} times the seconds per node with {max(times)} nodes as with {min(times)}"


def main() -> int:
    """Measure, print, and judge."""
    parser = argparse.ArgumentParser(prog="bench.compiling", epilog=__doc__)
    parser.add_argument("models", nargs="*", help="names of test/models, or GRAPH:NODES")
    parser.add_argument("--workers", default="1,2", help="numbers of compile workers (default 1,2)")
    parser.add_argument("--top", type=int, default=6, help="passes to show (default 6)")
    parser.add_argument("--hold", default="", help="command that runs each compilation while other work waits")
    parser.add_argument("--json", type=Path, help="file for all times")
    parser.add_argument("--strict", action="store_true", help="exit code 1 where a target is missed")
    options = parser.parse_args()
    names = options.models or [*TARGETS, *(f"{graph}:{size}" for graph in GRAPHS for size in _SIZES)]
    results: dict[str, list[dict[str, Any]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            path = file_of(name, Path(folder))
            for workers in map(int, options.workers.split(",")):
                found = measure(path, workers, shlex.split(options.hold))
                results.setdefault(name, []).append(found)
                print("\n".join(lines(name, found, options.top)), flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    missed = list(misses(results))
    print("\n".join(missed) if missed else "all targets are met")
    return 1 if missed and options.strict else 0


if __name__ == "__main__":
    sys.exit(main())
