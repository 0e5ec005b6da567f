# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Open sizes against fixed ones: one artifact for all sizes, beside one compiled for each of two sets of sizes.

Two steps, so that the machine can be quiet while times are taken:
python -m zoo_models.running.open_times prepare ARTIFACTS FOLDER... compiles, and runs ten sets of sizes;
python -m zoo_models.running.open_times measure RESULTS ARTIFACTS... takes times and adds the rows to a file of results.
"""

from __future__ import annotations

import datetime
import json
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from bench import records
from zoo_models.comparing import Arrays, difference, first_line
from zoo_models.running.campaign import cpu
from zoo_models.running.one import calls
from zoo_models.running.open_sizes import array_like, open_sizes

Row = dict[str, Any]
#: What the names of sizes are in the two calls that are timed: one of few rows, one of many.
TIMED: tuple[Mapping[str, int], ...] = (
    {"batch": 1, "sequence": 16, "past": 112, "target": 8, "samples": 4000},
    {"batch": 4, "sequence": 64, "past": 64, "target": 32, "samples": 8000},
)
#: Seconds that the calls of one set of sizes take, and the least number of calls.
_SECONDS, _LEAST = 0.8, 7


def sizes_for(names: Sequence[str], wanted: Mapping[str, int]) -> dict[str, int]:
    """The sizes of a timed call; ``total`` is a past and what is new.

    Raises:
        ValueError: a name is none of those that are timed.
    """
    known = dict(wanted) | {"total": wanted["past"] + wanted["sequence"]}
    unknown = sorted(set(names) - set(known))
    if unknown:
        raise ValueError(f"no size to time is given for {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    return {name: known[name] for name in sorted(set(names))}


def prepare(folder: Path, place: Path, sets: int = 10) -> Row:
    """Compile one model for all sizes and for two sets of sizes; run `sets` sets from the one artifact.

    Args:
        folder: of an exported model (`open_sizes` says what is in it).
        place: folder that gets `row.json`, `general.tw`, `fixed-K.tw`.
        sets: sets of sizes that are compared with ONNX Runtime.

    Returns:
        A row without times: `model`, `sets`, `error`, `compiled`, `compile_s` (of all sizes, of each set).
    """
    import tilewright as tw

    place.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    general = tw.compile(folder / "model.onnx", sizes="general")
    seconds = [time.perf_counter() - start]
    general.save(place / "general.tw")
    found = open_sizes(folder, "cpu", sets)
    names = [n for shape in general.dims.values() for n in shape if isinstance(n, str)]
    timed = []
    for number, wanted in enumerate(TIMED):
        sizes = sizes_for(names, wanted)
        if sizes in timed:
            continue
        shapes = {name: tuple(sizes.get(n, n) for n in shape) for name, shape in general.dims.items()}
        start = time.perf_counter()
        tw.compile(folder / "model.onnx", shapes=shapes).save(place / f"fixed-{number}.tw")
        seconds.append(time.perf_counter() - start)
        timed.append(sizes)
    row = {"model": folder.name, "folder": str(folder), "sets": len(found["sizes"]), "error": found["error"]}
    row |= {"compiled": found["compiled"], "compile_s": [round(s, 1) for s in seconds], "timed": timed}
    (place / "row.json").write_text(json.dumps(row) + "\n")
    return row


def alternating(runs: Mapping[str, Callable[[], Any]], seconds: float) -> dict[str, list[Any]]:
    """What each of some functions returned in turns, for about as long as said, and a few times at least."""
    found: dict[str, list[Any]] = {name: [] for name in runs}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(next(iter(found.values()))) < _LEAST:
        for name, run in runs.items():
            found[name].append(run())
    return found


def seconds_of(model: Any, inputs: Sequence[np.ndarray]) -> float:
    """How long a call takes; without what its results take to go."""
    start = time.perf_counter()
    result = model(*inputs)
    taken = time.perf_counter() - start
    del result
    return taken


def products(profiles: Sequence[Sequence[tuple[str, int, int]]]) -> float:
    """Milliseconds of the kernels that multiply, attention among them: the least of the profiles for each launch."""
    launches = zip(*profiles, strict=True)
    return sum(min(ns for _, _, ns in same) for same in launches if "product" in same[0][0]) / 1e6


def measure(place: Path, threads: Sequence[int] = (1, 2)) -> Row:
    """The row of a prepared model with its times, of whole calls and of products, open and fixed, in milliseconds."""
    import tilewright as tw

    row = json.loads((place / "row.json").read_text())
    given = [inputs for inputs, _ in calls(Path(row["folder"]))]
    random = np.random.default_rng(0)
    general = tw.load(place / "general.tw")
    cells = []
    for file, sizes in zip(sorted(place.glob("fixed-*.tw")), row["timed"], strict=True):
        fixed = tw.load(file)
        inputs = [array_like(given, s.name, general.dims[s.name], sizes, random) for s in general.inputs]
        for count in threads:
            models = {"open": general, "fixed": fixed}
            for model in models.values():
                model.threads = count
            results = {name: model(*inputs) for name, model in models.items()}
            names = [spec.name for spec in general.outputs]
            arrays: list[Arrays] = [dict(zip(names, result, strict=True)) for result in results.values()]
            taken = alternating({n: partial(seconds_of, m, inputs) for n, m in models.items()}, _SECONDS)
            profiles = alternating({n: partial(m.profile, *inputs) for n, m in models.items()}, _SECONDS / 2)
            times = {name: 1e3 * median(values) for name, values in taken.items()}
            inside = {f"{name}_products": products(each) for name, each in profiles.items()}
            shown = {name: float(f"{ms:.4g}") for name, ms in (times | inside).items()}
            cells.append({"sizes": sizes, "threads": count, "apart": difference(*arrays), **shown})
    del row["folder"]
    return row | {"times": cells}


def main() -> int:
    """Prepare or measure; 1 where a model failed."""
    step, first, *rest = sys.argv[1:]
    failed = 0
    path = Path(first)
    rows = {}
    if step == "measure" and path.exists():
        rows = {row["model"]: row for row in json.loads(path.read_text())["rows"]}
    for each in map(Path, rest):
        try:
            row = prepare(each, path / each.name) if step == "prepare" else measure(each)
        except Exception as error:
            row, failed = {"model": each.name, "failed": first_line(error)}, 1
        print(json.dumps(row), flush=True)
        if step == "measure":
            rows[row["model"]] = row
            about = {"open_sizes": True, "date": datetime.date.today().isoformat(), "cpu": cpu()}
            records.write(path, about | {"rows": [rows[name] for name in sorted(rows)]})
    return failed


if __name__ == "__main__":
    sys.exit(main())
