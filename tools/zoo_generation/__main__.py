# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decoders of transformers: one artifact each, ten sets of sizes, 200 greedy tokens, requests that come and go.

`tools/decoders FOLDER [NAME...] [--framework PYTHON [--exporter NAME]] [--json FILE]`

With `--framework` the models are exported first, by that interpreter (of an environment with PyTorch and transformers,
see `decoders.py`). With `--genai` instead, tokens per second beside ONNX Runtime GenAI and OpenVINO GenAI, which that
interpreter has (see `beside_genai.py`).
"""

from __future__ import annotations

import argparse
import json
import logging
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import tilewright as tw
from bench import records
from zoo_generation import beside_genai

_STEPS, _TOGETHER = 200, 3


def worst(model: Any, data: Any) -> float:
    """The largest difference from the framework, over all sets of sizes."""
    count = 1 + max(int(key.partition("/")[0]) for key in data)
    errors = []
    for number in range(count):
        outputs = model(**{spec.name: data[f"{number}/in/{spec.name}"] for spec in model.inputs})
        errors += [np.abs(value - data[f"{number}/out/{name}"]).max() for name, value in outputs.items()]
    return float(max(errors))


def asked(folder: Path, name: str, prompts: list[list[int]]) -> list[tuple[list[int], dict[str, Any]]]:
    """Each request: its prompt, and what else it gives to a generator (an encoder's states)."""
    path = folder / f"{name}.inputs.npz"
    arrays = dict(np.load(path)) if path.exists() else {}
    given: list[dict[str, np.ndarray]] = [{} for _ in prompts]
    for key, array in arrays.items():
        number, _, what = key.partition("/")
        given[int(number)][what] = array
    return [(prompt, {"inputs": more} if more else {}) for prompt, more in zip(prompts, given, strict=True)]


def told_when_full(model: Any, prompt: list[int], more: dict[str, Any]) -> str:
    """What a request is told whose tokens the cache does not hold."""
    generator = tw.Generator(model, capacity=len(prompt) + 3)
    request = generator.submit(prompt, max_tokens=_STEPS, **more)
    generator.run()
    return f"{request.reason}: {request.error}"


def together(generator: tw.Generator, asked_for: list[tuple[list[int], Any]]) -> tuple[list[list[int]], float]:
    """Tokens of requests of which one more comes every second step, and tokens per second."""
    start, requests = time.perf_counter(), []
    for prompt, more in asked_for:
        requests.append(generator.submit(prompt, max_tokens=_STEPS, **more))
        generator.step()
        generator.step()
    generator.run()
    tokens = [request.result() for request in requests]
    return tokens, sum(map(len, tokens)) / (time.perf_counter() - start)


def first_difference(ours: list[int], theirs: list[int]) -> int | None:
    """The first step with another token; None where there is none."""
    return next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=True)) if a != b), None)


def checked(path: Path) -> dict[str, Any]:
    """Everything about one exported model, as a row of results."""
    name, _, exporter = path.stem.partition(".")
    row: dict[str, Any] = {"model": name, "exporter": exporter}
    start = time.perf_counter()
    try:
        compiled = tw.compile(str(path), threads=1, append_in_place=True)
        row["compile_s"] = round(time.perf_counter() - start, 2)
        saved = tw.load(compiled.save(path.with_suffix(".tw")), threads=1)
        row["loops_on_host"] = sorted({loop["reason"] for loop in saved.report_data().get("open_loops", ())})
        row["error"] = worst(saved, np.load(path.parent / f"{name}.npz"))
        known = json.loads((path.parent / f"{name}.json").read_text())
        requests = asked(path.parent, name, known["prompts"])
        alone = [tw.Generator(saved).generate(p, max_tokens=_STEPS, **more) for p, more in requests]
        shared, row["tokens_per_s"] = together(tw.Generator(saved, batch=_TOGETHER), requests)
        row["full_cache"] = told_when_full(saved, *requests[0])
        row["distinct"] = [len(set(tokens)) for tokens in known["tokens"]]
        for what, tokens in (("alone", alone), ("together", shared)):
            row[what] = [first_difference(a, b) for a, b in zip(tokens, known["tokens"], strict=True)]
        row["status"] = "equal" if not any(d is not None for d in row["alone"] + row["together"]) else "tokens differ"
    except tw.TilewrightError as error:
        row |= {"status": "failed", "reason": str(error).partition("\n")[0]}
    return row


def main() -> int:
    """Export where asked to, check, print a line for each, write the rows."""
    parser = argparse.ArgumentParser(prog="tools/decoders", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--framework", help="Python of an environment with torch and transformers: export first")
    parser.add_argument("--exporter", choices=["script", "dynamo"], help="of PyTorch's exporters, this one alone")
    parser.add_argument("--genai", help="Python of an environment with onnxruntime-genai: compare with that alone")
    parser.add_argument("--threads", type=int, nargs="+", default=[1], help="with --genai: threads of each run")
    parser.add_argument("--rounds", type=int, default=2, help="with --genai: runs of each, of which the best counts")
    parser.add_argument("--json", type=Path, help="where the rows are written")
    options = parser.parse_args()
    if options.genai:
        rows = []
        for row in beside_genai.compare(options.genai, options.folder, tuple(options.threads), options.rounds):
            rows.append(_shown(row))
            _report("beside", rows, options.json)  # what is known, also where the rest takes too long
        return 0
    if options.framework:
        script = Path(__file__).with_name("decoders.py")
        which = ["--exporter", options.exporter] if options.exporter else []
        subprocess.run([options.framework, str(script), str(options.folder), *options.names, *which], check=True)
    logging.getLogger("tilewright").setLevel(logging.ERROR)
    paths = sorted(options.folder.glob("*.onnx"))
    chosen = [p for p in paths if not options.names or p.name.partition(".")[0] in options.names]
    rows = [_shown(checked(path)) for path in chosen]
    _report("decoders", rows, options.json)
    return 0 if rows and all(row["status"] == "equal" for row in rows) else 1


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    print(json.dumps(row), flush=True)
    return row


def _report(what: str, rows: list[dict[str, Any]], path: Path | None) -> None:
    """Write rows to a file, beside what else it holds."""
    known = json.loads(path.read_text()) if path is not None and path.exists() else {}
    cpu = next((line for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line), "")
    known |= {"cpu": cpu.partition(":")[2].strip(), "date": time.strftime("%Y-%m-%d"), what: rows}
    if path is not None:
        records.write(path, known)


if __name__ == "__main__":
    sys.exit(main())
