# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Predicted against measured time of tile candidates: rank correlation, and how good the first choice is.

    PYTHONPATH=tools python -m bench.roller.predictions compile [--case NAME] [--candidates 12]
    PYTHONPATH=tools python -m bench.roller.predictions measure [--seconds 12] [--json FILE]

`compile` makes a model per candidate of each operator: the first of the ranking, the planner's own, and others spread
over the ranking up to twice the best prediction. `measure` times the kernels in turns.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from pathlib import Path
from typing import Any

import numpy as np

from bench.roller.operators import judged

_FOLDER = Path("build/roller")


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
    from tilewright.plan.roller import decide

    heard: list[tuple[str, list[dict[str, Any]]]] = []
    original = decide.Decider.decide

    def listen(self, kernel, root, members, own, *, free, packed, task, keep):
        chosen = original(self, kernel, root, members, own, free=free, packed=packed, task=task, keep=keep)
        if free and root.rank:
            ranked = decide.rank(decide.nest_expression(root, members, packed, self.device), own, self.device, True)
            heard.append((kernel, [_entry(r, r.schedule == own) for r in ranked]))
        return chosen

    decide.Decider.decide = listen
    try:
        tw.compile(model, stop_after="plan")
    finally:
        decide.Decider.decide = original
    return max(heard, key=lambda item: item[1][0]["predicted"])


def _entry(ranked: Any, own: bool) -> dict[str, Any]:
    from tilewright.plan.roller.decide import rtile_text

    return {
        "rtile": rtile_text(ranked.schedule),
        "own": own,
        "predicted": ranked.one.seconds,
        "rank": ranked.rank,
        "bound": ranked.one.bound,
    }


def compile_candidates(names: list[str], count: int) -> None:
    """Make a model per candidate below `build/roller`."""
    import tilewright as tw
    from tilewright import devices
    from tilewright.pipelines import cpu

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
            pipeline = cpu.pipeline(devices.get("cpu"), (f"{kernel}:{number}",))
            tw.compile(model, pipeline=pipeline, threads=1).save(folder / f"{number}.tw")
        entries = {str(number): {**ranked[number], "number": number} for number in chosen}
        (folder / "candidates.json").write_text(json.dumps({"kernel": kernel, "candidates": entries}, indent=1))
        print(f"{operator.name}: {kernel}, {len(chosen)} of {len(ranked)} candidates", flush=True)


def _spread(ranked: list[dict[str, Any]], count: int) -> list[int]:
    """Numbers of the first, the planner's own, and others evenly over predicted times up to twice the best."""
    best = ranked[0]["rank"]
    within = [i for i, r in enumerate(ranked) if r["rank"] <= 2.5 * best]
    chosen = {0, 1 if len(ranked) > 1 else 0, next(i for i, r in enumerate(ranked) if r["own"])}
    for step in range(count):
        wanted = best * (1 + 1.5 * step / max(count - 1, 1))
        chosen.add(min(within, key=lambda i: (abs(ranked[i]["rank"] - wanted), i)))
    by_number = np.linspace(0, len(within) - 1, count)
    for number in by_number:
        if len(chosen) >= count:
            break
        chosen.add(within[int(number)])
    return sorted(chosen)


def measure(names: list[str], seconds: float) -> list[dict[str, Any]]:
    """Time the candidates in turns and compare."""
    rows = []
    for folder in sorted(_FOLDER.iterdir()):
        if (folder / "candidates.json").is_file() and (not names or folder.name in names):
            rows.append(_measure(folder, seconds))
            print(_line(rows[-1]), flush=True)
    return rows


def _measure(folder: Path, seconds: float) -> dict[str, Any]:
    import tilewright as tw

    found = json.loads((folder / "candidates.json").read_text())
    kernel, candidates = found["kernel"], found["candidates"]
    models = {number: tw.load(folder / f"{number}.tw", threads=1) for number in candidates}
    first = next(iter(models.values()))
    rng = np.random.default_rng(0)
    inputs = [_aligned(rng.standard_normal(s.shape, np.float32)) for s in first.inputs]
    results = [_aligned(np.zeros(s.shape, np.float32)) for s in first.outputs]
    times: dict[str, list[int]] = {number: [] for number in models}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for number, model in models.items():
            for turn in range(4):
                spent = sum(ns for name, _, ns in model.profile(*inputs, out=results) if _same(name, kernel))
                if turn:
                    times[number].append(spent)
    for number, entry in candidates.items():
        entry["measured"] = float(np.percentile(times[number], 25)) * 1e-9
    return {"case": folder.name, "kernel": kernel, **_judge(list(candidates.values())), "candidates": candidates}


def _same(name: str, kernel: str) -> bool:
    return re.sub(r"_\d+$", "", name) == kernel or name == kernel


def _aligned(array: np.ndarray) -> np.ndarray:
    raw = np.empty(array.size + 16, np.float32)
    start = -raw.ctypes.data % 64 // 4
    view = raw[start : start + array.size].reshape(array.shape)
    view[...] = array
    return view


def _judge(entries: list[dict[str, Any]]) -> dict[str, float]:
    measured = [e["measured"] for e in entries]
    best = min(measured)
    first = min(entries, key=lambda e: e["number"])
    own = next(e for e in entries if e["own"])
    return {
        "spearman": spearman([e["predicted"] for e in entries], measured),
        "first": first["measured"] / best,
        "own": own["measured"] / best,
        "span": max(measured) / best,
        "error": first["predicted"] / first["measured"],
    }


def _line(row: dict[str, Any]) -> str:
    numbers = "  ".join(f"{name} {row[name]:.2f}" for name in ("spearman", "first", "own", "span", "error"))
    return f"{row['case']:24} {numbers}"


def main() -> None:
    """Run a command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["compile", "measure"])
    parser.add_argument("--case", action="append", default=[])
    parser.add_argument("--candidates", type=int, default=12)
    parser.add_argument("--seconds", type=float, default=1.5, help="per case")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    if options.command == "compile":
        compile_candidates(options.case, options.candidates)
        return
    rows = measure(options.case, options.seconds)
    if options.json:
        options.json.write_text(json.dumps({"when": time.strftime("%Y-%m-%d"), "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
