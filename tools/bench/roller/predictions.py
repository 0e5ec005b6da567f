# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Predicted against measured time of tile candidates: rank correlation, and how good the first choice is.

    tools/bench/run roller [--case NAME] [--candidates 12] [--seconds 1.5] [--hold CMD] [--json FILE]
    tools/bench/run roller compile | measure    one half of it

`compile` makes a model per candidate of each operator: the first of the ranking, the planner's own, and others spread
over the ranking up to four times the best prediction. `measure` times the kernels in turns. Exit
code 1 where a first choice is more than 10 % behind the best, or a rank correlation below 0.8 over a factor of 2.
"""

from __future__ import annotations

import argparse
import json
import mmap
import re
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bench import records
from bench.hold import Hold
from bench.roller.operators import judged

_FOLDER = Path("build/roller")
_HUGE = 1 << 21
#: The targets: the first choice's time, and the rank correlation over measured times that span so much.
_BEHIND, _RANKED, _JUDGED = 1.1, 0.8, 2.0
#: Slowest candidate's predicted time relative to the best one's: measured times should span a factor of 2.
_SPAN = 4.0
#: Runs of a candidate in a row, and how many before them bring the caches into the state that follows from it.
_TURNS, _SETTLE = 5, 2


def spearman(first: list[float], second: list[float]) -> float:
    """Rank correlation, with mean ranks for ties."""
    a, b = (_ranks(np.asarray(values, float)) for values in (first, second))
    a, b = a - a.mean(), b - b.mean()
    scale = float(np.sqrt((a * a).sum() * (b * b).sum()))
    return float((a * b).sum() / scale) if scale else 1.0


def _ranks(values: np.ndarray) -> np.ndarray:
    return np.array([(values < v).sum() + ((values == v).sum() - 1) / 2 for v in values])


def _plan(model: bytes) -> tuple[str, list[dict[str, Any]]]:
    """The kernel with most candidates, and all of them, in order of the ranking."""
    import tilewright as tw
    from tilewright.plan.cost import decide

    heard: list[tuple[str, list[dict[str, Any]]]] = []
    original = decide.Decider.decide

    def listen(self, kernel, root, members, own, **context):
        chosen = original(self, kernel, root, members, own, **context)
        if context["free"] and root.rank:
            expression = decide.nest_expression(root, members, context["packed"], self.device)
            ranked = decide.rank(expression, own, self.device, True)
            heard.append((kernel, [_entry(r, r.schedule == own, r.schedule == chosen) for r in ranked]))
        return chosen

    decide.Decider.decide = listen
    try:
        tw.compile(model, stop_after="plan")
    finally:
        decide.Decider.decide = original
    return max(heard, key=lambda item: item[1][0]["predicted"])


def _entry(ranked: Any, own: bool, taken: bool) -> dict[str, Any]:
    from tilewright.plan.cost.decide import rtile_text

    return {
        "rtile": rtile_text(ranked.schedule),
        "own": own,
        "taken": taken,
        "predicted": ranked.one.seconds,
        "rank": ranked.rank,
        "bound": ranked.one.bound,
    }


def compile_candidates(names: list[str], count: int) -> None:
    """Make a model per candidate below `build/roller`."""
    import tilewright as tw
    from tilewright import devices
    from tilewright.pipelines import cpu, with_target

    for operator in judged():
        if names and operator.name not in names:
            continue
        model = operator.model().SerializeToString()
        kernel, ranked = _plan(model)
        folder = _FOLDER / operator.name
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.glob("*.tw"):
            old.unlink()
        chosen = _spread(ranked, count)
        for number in chosen:
            pipeline = with_target(cpu.PIPELINE, devices.get("cpu"), choices=(f"{kernel}:{number}",))
            tw.compile(model, pipeline=pipeline, threads=1).save(folder / f"{number}.tw")
        entries = {str(number): {**ranked[number], "number": number} for number in chosen}
        (folder / "candidates.json").write_text(json.dumps({"kernel": kernel, "candidates": entries}, indent=1))
        print(f"{operator.name}: {kernel}, {len(chosen)} of {len(ranked)} candidates", flush=True)


def _spread(ranked: list[dict[str, Any]], count: int) -> list[int]:
    """Numbers of the first, the planner's own and choice, and others evenly over predicted times up to a limit."""
    best = ranked[0]["rank"]
    within = [i for i, r in enumerate(ranked) if r["rank"] <= _SPAN * best]
    chosen = {0, 1 if len(ranked) > 1 else 0, *(i for i, r in enumerate(ranked) if r["own"] or r["taken"])}
    for step in range(count):
        wanted = best * _SPAN ** (step / max(count - 1, 1))
        chosen.add(min(within, key=lambda i: (abs(ranked[i]["rank"] - wanted), i)))
    by_number = np.linspace(0, len(within) - 1, count)
    for number in by_number:
        if len(chosen) >= count:
            break
        chosen.add(within[int(number)])
    return sorted(chosen)


def measure(names: list[str], seconds: float, hold: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Time the candidates in turns and compare; `hold` is a command that keeps other work away (`bench/hold.py`)."""
    rows = []
    for folder in sorted(_FOLDER.iterdir()):
        if (folder / "candidates.json").is_file() and (not names or folder.name in names):
            rows.append(_measure(folder, seconds, hold))
            print(_line(rows[-1]), flush=True)
    return rows


def _measure(folder: Path, seconds: float, hold: Sequence[str]) -> dict[str, Any]:
    import tilewright as tw

    found = json.loads((folder / "candidates.json").read_text())
    kernel, candidates = found["kernel"], found["candidates"]
    models = {number: tw.load(folder / f"{number}.tw", threads=1) for number in candidates}
    first = next(iter(models.values()))
    rng = np.random.default_rng(0)
    inputs = [_aligned(rng.standard_normal(s.shape, np.float32)) for s in first.inputs]
    results = [_aligned(np.zeros(s.shape, np.float32)) for s in first.outputs]
    times: dict[str, list[int]] = {number: [] for number in models}
    with Hold(hold):
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            for number, model in models.items():
                for turn in range(_SETTLE + _TURNS):
                    spent = sum(ns for name, _, ns in model.profile(*inputs, out=results) if _same(name, kernel))
                    if turn >= _SETTLE:
                        times[number].append(spent)
    for number, entry in candidates.items():
        entry["measured"] = float(np.percentile(times[number], 25)) * 1e-9
    return {"case": folder.name, "kernel": kernel, **_judge(list(candidates.values())), "candidates": candidates}


def _same(name: str, kernel: str) -> bool:
    return re.sub(r"_\d+$", "", name) == kernel or name == kernel


def _aligned(array: np.ndarray) -> np.ndarray:
    """A copy in huge pages: in small ones it depends on where they lie how much of it a cache holds."""
    memory = mmap.mmap(-1, (array.nbytes // _HUGE + 2) * _HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory.madvise(mmap.MADV_HUGEPAGE)
    raw = np.frombuffer(memory, np.float32)
    start = -raw.ctypes.data % _HUGE // 4
    view = raw[start : start + array.size].reshape(array.shape)
    view[...] = array
    return view


def _judge(entries: list[dict[str, Any]]) -> dict[str, float]:
    measured = [e["measured"] for e in entries]
    best = min(measured)
    first = min(entries, key=lambda e: e["number"])
    own, taken = (next((e for e in entries if e[name]), first) for name in ("own", "taken"))
    return {
        "spearman": spearman([e["predicted"] for e in entries], measured),
        "first": first["measured"] / best,
        "own": own["measured"] / best,
        "taken": taken["measured"] / best,
        "span": max(measured) / best,
        "error": first["predicted"] / first["measured"],
    }


def _line(row: dict[str, Any]) -> str:
    numbers = "  ".join(f"{name} {row[name]:.2f}" for name in ("spearman", "first", "taken", "own", "span", "error"))
    return f"{row['case']:24} {numbers}"


def _missed(row: dict[str, Any]) -> bool:
    return row["first"] > _BEHIND or (row["span"] >= _JUDGED and row["spearman"] < _RANKED)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command."""
    parser = argparse.ArgumentParser(
        prog="tools/bench/run roller", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("command", choices=["all", "compile", "measure"], nargs="?", default="all")
    parser.add_argument("--case", action="append", default=[])
    parser.add_argument("--candidates", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=1.5, help="per case")
    parser.add_argument("--hold", type=shlex.split, default=[], help="command that keeps other work away")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    if options.command != "measure":
        compile_candidates(options.case, options.candidates)
    if options.command == "compile":
        return 0
    rows = measure(options.case, options.seconds, options.hold)
    missed = [row["case"] for row in rows if _missed(row)]
    print(f"{len(rows)} operators, missed by {missed}")
    if options.json:
        records.write(options.json, {"when": time.strftime("%Y-%m-%d"), "rows": rows})
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
