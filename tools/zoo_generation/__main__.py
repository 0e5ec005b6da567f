# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Decoders of transformers: one artifact each, ten sets of sizes, 200 greedy tokens, requests that come and go.

`tools/decoders FOLDER [NAME...] [--framework PYTHON [--exporter NAME]] [--json FILE]`

With `--framework` the models are exported first, by that interpreter (of an environment with PyTorch and transformers,
see `decoders.py`). With `--genai` instead, tokens per second beside ONNX Runtime GenAI, which that interpreter has (see
`beside_genai.py`).
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


def together(generator: tw.Generator, prompts: list[list[int]]) -> tuple[list[list[int]], float]:
    """Tokens of requests of which one more comes every second step, and tokens per second."""
    start, requests = time.perf_counter(), []
    for prompt in prompts:
        requests.append(generator.submit(prompt, max_tokens=_STEPS))
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
        compiled = tw.compile(str(path), threads=1)
        row["compile_s"] = round(time.perf_counter() - start, 2)
        saved = tw.load(compiled.save(path.with_suffix(".tw")), threads=1)
        row["loops_on_host"] = sorted({loop["reason"] for loop in saved.report_data().get("open_loops", ())})
        row["error"] = worst(saved, np.load(path.parent / f"{name}.npz"))
        known = json.loads((path.parent / f"{name}.json").read_text())
        alone = [tw.Generator(saved).generate(p, max_tokens=_STEPS) for p in known["prompts"]]
        shared, row["tokens_per_s"] = together(tw.Generator(saved, batch=_TOGETHER), known["prompts"])
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
    parser.add_argument("--json", type=Path, help="where the rows are written")
    options = parser.parse_args()
    if options.genai:
        return _report(beside_genai.compare(options.genai, options.folder), options.json)
    if options.framework:
        script = Path(__file__).with_name("decoders.py")
        which = ["--exporter", options.exporter] if options.exporter else []
        subprocess.run([options.framework, str(script), str(options.folder), *options.names, *which], check=True)
    logging.getLogger("tilewright").setLevel(logging.ERROR)
    paths = sorted(options.folder.glob("*.onnx"))
    chosen = [p for p in paths if not options.names or p.name.partition(".")[0] in options.names]
    rows = [_shown(checked(path)) for path in chosen]
    _report(rows, options.json)
    return 0 if rows and all(row["status"] == "equal" for row in rows) else 1


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    print(json.dumps(row), flush=True)
    return row


def _report(rows: list[dict[str, Any]], path: Path | None) -> int:
    """Write rows to a file, or to the standard output."""
    text = json.dumps(rows, indent=1)
    if path is not None:
        path.write_text(text + "\n")
    else:
        print(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
