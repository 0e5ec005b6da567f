# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Compile time and peak memory, each compilation in a fresh process without any cache.

    tools/bench/run compiling [MODEL ...] [--targets cpu,cuda:sm_90a] [--workers 1,2] [--top N] [--json FILE]
                              [--hold COMMAND] [--strict]

MODEL is a name of test/models, GRAPH:NODES (`chain:2000`, `random_dag:500`; graphs.py), or a program on nested lists
(`dilated_lstm_d6_b32`; programs.py); `lists` stands for all of these. Without any: the models that have a target, and
both graphs at 500, 1000 and 2000 nodes. `--strict`: exit code 1 where a target is missed, or where time per node at the
largest size of a graph is more than 1.5 times that at the smallest, or time grows faster than the depth of a program.
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

from bench import machine, records
from bench.compiling import programs
from bench.compiling.graphs import GRAPHS
from bench.compiling.memory import PeakMemory

#: Largest accepted seconds on two cores, and bytes of all processes while a model is compiled.
TARGETS = {"bert_base": 12.0, "resnet50": 12.0, **dict.fromkeys(programs.CASES, 5.0)}
MODELS = ("bert_base", "resnet50")
MOST_BYTES = 3 << 30
_GROWTH = 1.5
_SIZES = (500, 1000, 2000)


def file_of(name: str, folder: Path) -> Path:
    """The model to compile, built before the clock starts."""
    if name in programs.CASES:
        return programs.path_of(name)
    graph, _, nodes = name.partition(":")
    if not nodes:
        import models

        return models.path(name)
    path = folder / f"{graph}-{nodes}.onnx"
    if not path.exists():
        path.write_bytes(GRAPHS[graph](int(nodes)).SerializeToString())
    return path


def measure(
    path: Path,
    workers: int,
    hold: Sequence[str] = (),
    target: str = "cpu",
    program: str = "",
    bytecode: Path | None = None,
) -> dict[str, Any]:
    """Compile in a process of its own: the times that it tells, and the peak memory of it and its workers.

    Bytecode of Python's modules is kept in a folder, as an installed package has it; None: as the environment says.
    """
    asked = ["--target", target, "--program", program]
    command = [*hold, sys.executable, "-m", "bench.compiling.child", str(path), *asked]
    environment = {**os.environ, "TILEWRIGHT_COMPILE_WORKERS": str(workers), "TILEWRIGHT_CACHE": "0"}
    if bytecode is not None:
        environment["PYTHONPYCACHEPREFIX"] = str(bytecode)
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, env=environment, text=True) as process,
        PeakMemory(process.pid) as memory,
    ):
        output, _ = process.communicate()
    if process.returncode:
        raise SystemExit(f"{path.name}: the compilation ended with code {process.returncode}")
    return {"target": target, "workers": workers, "peak_bytes": memory.bytes, **json.loads(output)}


def lines(name: str, found: dict[str, Any], top: int) -> Iterator[str]:
    """A line for the whole, one for the phases, and the longest passes."""
    peak = found["peak_bytes"] / (1 << 30)
    yield (
        f"{name:24} {found['target']:12} {found['workers']} workers  {found['compile']:6.2f} s (import"
        f" {found['import']:.2f} s; CPU: main process {found['cpu']:.2f} s, workers {found['workers_cpu']:.2f} s),"
        f" peak {peak:.2f} GiB, {found['kernels']} kernels"
    )
    yield "    " + ", ".join(f"{phase} {seconds:.2f}" for phase, seconds in found["phases"].items())
    longest = sorted(found["passes"].items(), key=lambda item: -item[1])[:top]
    for entry, seconds in longest:
        yield f"    {seconds:7.3f} s  {entry}"


def misses(results: dict[str, list[dict[str, Any]]]) -> Iterator[str]:
    """What is slower or larger than accepted."""
    for target in sorted({run["target"] for runs in results.values() for run in runs}):
        of = {name: [run for run in runs if run["target"] == target] for name, runs in results.items()}
        of = {name: runs for name, runs in of.items() if runs}
        best = {name: min(run["compile"] for run in runs) for name, runs in of.items()}
        peaks = {name: max(run["peak_bytes"] for run in runs) for name, runs in of.items()}
        found = [*_slow(best), *_large(peaks), *_growing(best), *_deep(best)]
        yield from (f"{line} ({target})" for line in found)


def _slow(best: dict[str, float]) -> Iterator[str]:
    for name, seconds in best.items():
        if seconds > TARGETS.get(name, float("inf")):
            yield f"{name}: {seconds:.1f} s, accepted are {TARGETS[name]:.0f}"


def _large(peaks: dict[str, int]) -> Iterator[str]:
    for name, peak in peaks.items():
        if peak > MOST_BYTES:
            yield f"{name}: {peak / (1 << 30):.2f} GiB, accepted are {MOST_BYTES >> 30}"


def _growing(best: dict[str, float]) -> Iterator[str]:
    """Graphs whose time per node grows with their size."""
    per_node: dict[str, dict[int, float]] = {}
    for name, seconds in best.items():
        graph, _, nodes = name.partition(":")
        if nodes:
            per_node.setdefault(graph, {})[int(nodes)] = seconds / int(nodes)
    for graph, times in per_node.items():
        growth = times[max(times)] / times[min(times)]
        if growth > _GROWTH:
            yield f"{graph}: {growth:.2f} times the seconds per node with {max(times)} nodes as with {min(times)}"


def _deep(best: dict[str, float]) -> Iterator[str]:
    """Programs whose time grows faster than their depth."""
    for shallow, deep, ratio in programs.GROWTH:
        if shallow in best and deep in best and best[deep] > ratio * best[shallow]:
            yield f"{deep}: {best[deep] / best[shallow]:.2f} times the seconds of {shallow}, which is 1/{ratio} as deep"


def names_of(asked: Sequence[str]) -> list[str]:
    """What a command line asks for."""
    if not asked:
        return [*MODELS, *(f"{graph}:{size}" for graph in GRAPHS for size in _SIZES)]
    return [name for one in asked for name in (programs.CASES if one == "lists" else [one])]


def _measure_all(options: argparse.Namespace, command: str) -> dict[str, list[dict[str, Any]]]:
    """Print a line for each compilation; the record is written after each."""
    results: dict[str, list[dict[str, Any]]] = {}
    about = machine.describe()
    plan = [(name, target) for name in names_of(options.models) for target in options.targets.split(",")]
    with tempfile.TemporaryDirectory() as folder:
        bytecode, warm = Path(folder) / "bytecode", set()
        for name, target in plan:
            path = file_of(name, Path(folder))
            program = programs.CASES[name].program if name in programs.CASES else ""
            asked = (shlex.split(options.hold), target, program, bytecode)
            if (target, bool(program)) not in warm:
                measure(path, 1, *asked)  # writes the bytecode of what such a compilation imports
                warm.add((target, bool(program)))
            for workers in map(int, options.workers.split(",")):
                found = measure(path, workers, *asked)
                results.setdefault(name, []).append(found)
                print("\n".join(lines(name, found, options.top)), flush=True)
                if options.json:
                    records.write(options.json, {"command": command, "machine": about, "results": results})
    return results


def main(argv: Sequence[str]) -> int:
    """Measure, print, and judge."""
    parser = argparse.ArgumentParser(prog="tools/bench/run compiling", epilog=__doc__)
    parser.add_argument("models", nargs="*", help="names of test/models, GRAPH:NODES, programs on lists, or `lists`")
    parser.add_argument("--targets", default="cpu", help="what is compiled for, as cpu,cuda:sm_90a (default cpu)")
    parser.add_argument("--workers", default="1,2", help="numbers of compile workers (default 1,2)")
    parser.add_argument("--top", type=int, default=6, help="passes to show (default 6)")
    parser.add_argument("--hold", default="", help="command that runs each compilation while other work waits")
    parser.add_argument("--json", type=Path, help="file for all times")
    parser.add_argument("--strict", action="store_true", help="exit code 1 where a target is missed")
    options = parser.parse_args(argv)
    shown = (Path(text).name if text.endswith(".json") else text for text in argv)
    results = _measure_all(options, shlex.join(["tools/bench/run", "compiling", *shown]))
    missed = list(misses(results))
    print("\n".join(missed) if missed else "all targets are met")
    return 1 if missed and options.strict else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
