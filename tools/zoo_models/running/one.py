# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""One model for one target in one form: compiled, saved, loaded, run and compared. Prints one JSON object.

A process of its own, as what is compiled may crash or take forever: python -m zoo_models.running.one FOLDER TARGET FORM
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from zoo_models.comparing import Arrays, difference, first_line

Cell = dict[str, Any]


class Heard(logging.Handler):
    """What the compiler says, kept."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one line."""
        self.lines.append(record.getMessage())


def calls(folder: Path) -> list[tuple[Arrays, Arrays]]:
    """Inputs and expected results of each call."""
    found = []
    for file in sorted(folder.glob("inputs_*.npz")):
        expected = file.with_name(file.name.replace("inputs", "expected"))
        found.append(tuple(dict(np.load(f, allow_pickle=True)) for f in (file, expected)))
    return found


def judged(folder: Path, target: str, form: str) -> Cell:
    """What became of the model: `status` is ok, each size, wrong, refused or fixed only; the rest says how and why."""
    import tilewright as tw
    from tilewright.core.errors import TilewrightError

    heard = Heard()
    logging.getLogger("tilewright").addHandler(heard)
    facts = json.loads((folder / "meta.json").read_text())
    given = calls(folder)
    options: dict[str, Any] = {"emulate": True} if target.startswith("cuda") else {}
    if form == "fixed":
        given = given[:1]
        options["shapes"] = {name: value.shape for name, value in given[0][0].items()}
    cell: Cell = {}
    try:
        start = time.perf_counter()
        model = tw.compile(folder / "model.onnx", target, **options)
        cell["compile_s"] = round(time.perf_counter() - start, 2)
        is_one = getattr(model, "general", model) is not None
        if form == "open" and not hasattr(model, "general"):
            return {"status": "fixed only", "reason": "no dimension of the file is open"}
        with tempfile.TemporaryDirectory() as place:  # artifacts may be read when they are called
            runs = reloaded(model, Path(place), options) if is_one else model
            calls_made = given if is_one else given[:1]  # each other one would be compiled
            return cell | compared(runs, calls_made, allowed(facts)) | one_artifact(form, is_one, heard.lines)
    except TilewrightError as error:
        return cell | {"status": "refused", "reason": shortened(error)}


def allowed(facts: Mapping[str, Any]) -> float:
    """The error that is right: the model's tolerance, or twice that of ONNX Runtime from the framework's results."""
    return max(facts["tolerance"], 2 * facts.get("framework_error", 0.0))


def one_artifact(form: str, is_one: bool, lines: Sequence[str]) -> Cell:
    """Whether one compilation serves all sizes, and why not."""
    if form == "fixed" or is_one:
        slow = [line for line in lines if "scalar loop" in line]
        return {"remark": slow[0][:300]} if slow else {}
    reasons = [line for line in lines if line.startswith("compiling for each")]
    return {"each_size": (reasons or ["no reason given"])[0][:400]}


def reloaded(model: Any, place: Path, options: Mapping[str, Any]) -> Any:
    """The model as another process finds it: saved in a folder, and loaded."""
    import tilewright as tw

    given = {"emulate": True} if options.get("emulate") else {}
    return tw.load(model.save(place / "model.tw"), **given)


def compared(model: Any, given: Sequence[tuple[Arrays, Arrays]], tolerance: float) -> Cell:
    """Each call run; the worst error, in units of the largest number of a result."""
    worst, seconds = 0.0, []
    for inputs, expected in given:
        names = {spec.name for spec in model.inputs}
        start = time.perf_counter()
        outputs = model(**{name: value for name, value in inputs.items() if name in names})
        seconds.append(time.perf_counter() - start)
        worst = max(worst, difference(expected, columns(outputs, model)))
    status = "ok" if worst <= tolerance else "wrong"
    reason = {} if status == "ok" else {"reason": f"error {worst:.2g}, allowed {tolerance:.0e}"}
    return {"status": status, "error": float(f"{worst:.2g}"), "run_ms": round(1e3 * min(seconds), 3)} | reason


def columns(outputs: Any, model: Any) -> Arrays:
    """Results by name. A list of dicts stands as its keys and values, as the exporters store it."""
    names = [spec.name for spec in model.outputs]
    results = outputs if isinstance(outputs, tuple) else (outputs,)
    found: Arrays = {}
    for name, result in zip(names, results, strict=True):
        if isinstance(result, list) and result and isinstance(result[0], dict):
            keys = list(result[0])
            found[f"{name}.keys"] = np.array(keys)
            found[f"{name}.values"] = np.array([[row[key] for key in keys] for row in result], np.float32)
        else:
            found[name] = np.asarray(result)
    return found


def shortened(error: Exception) -> str:
    """The message of an error on one line."""
    return " ".join(str(getattr(error, "message", error)).split())[:500]


def main() -> None:
    """Judge one and print."""
    folder, target, form = sys.argv[1:4]
    try:
        cell = judged(Path(folder), target, form)
    except Exception as error:
        cell = {"status": "crash", "reason": first_line(error)}
    print(json.dumps(cell, default=str))


if __name__ == "__main__":
    main()
