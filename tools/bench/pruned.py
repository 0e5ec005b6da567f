# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pruned models beside their dense form: `tools/bench/run pruned [--case bert_base_24] [--json FILE]`.

Both are ours, run in turns; printed are medians of the ratio of neighbours, and its spread. The dense form is the
pruned model with numbers in place of its zeros that are too small to be seen (`models.pruned.filled`), so that its
results are to be the same; those of bytes are the model as it was before, whose results say nothing.
"""

from __future__ import annotations

import argparse
import math
import shlex
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import models
import tilewright as tw
from bench import machine, records
from bench.hold import Hold
from models.pruned import filled, prune_channels, prune_encoder, pruned

Prune = Callable[[onnx.ModelProto, float], onnx.ModelProto]
_SPIN = 1e-3  # of the largest result: sums in another order


@dataclass(frozen=True)
class Pruned:
    """A model and how it is pruned.

    Attributes:
        model: a name in test/models.
        prune: of the model and the part that goes.
        part: that part.
        gain: how much faster than dense it must be; None where that is only shown.
        quantized: whether ONNX Runtime's tools quantize both forms to bytes.
    """

    model: str
    prune: Prune
    part: float
    gain: float | None = None
    quantized: bool = False

    def forms(self, part: float) -> tuple[onnx.ModelProto, onnx.ModelProto]:
        """The pruned model and its dense form."""
        model = self.prune(models.build(self.model), part)
        if not self.quantized:
            return model, filled(model)
        dense = models.build(self.model)
        return models.quantized_by(model, "static"), models.quantized_by(dense, "static")


def _pattern(text: str) -> Prune:
    """By magnitude, with a pattern of `tw.sparsify` that the part is put into."""
    return lambda model, part: pruned(model, text.format(part=part))


def _pointwise(model: onnx.ModelProto, part: float) -> onnx.ModelProto:
    """Single elements of all convolutions of one by one."""
    small = [t.name for t in model.graph.initializer if list(t.dims[2:]) == [1, 1] and t.dims[1] > 1]
    return tw.sparsify(model, f"unstructured@{part}", layers=small, measure=False).model


CASES = {
    "bert_base": Pruned("bert_base", lambda model, part: prune_encoder(model, part, heads=12), 0.7, 2.3),
    "bert_base_24": Pruned("bert_base", _pattern("2:4"), 0.5, 1.3),
    "bert_base_fine": Pruned("bert_base", _pattern("unstructured@{part}"), 0.95),
    "bert_base_blocks": Pruned("bert_base", _pattern("block:32x32@{part}"), 0.9),
    "mobilenet_v2": Pruned("mobilenet_v2", prune_channels, 0.7),
    "mobilenet_coarse": Pruned("mobilenet_v1", prune_channels, 0.6),
    "mobilenet_coarse_int8": Pruned("mobilenet_v1", prune_channels, 0.6, quantized=True),
    "mobilenet_fine": Pruned("mobilenet_v1", _pointwise, 0.95),
    "resnet50": Pruned("resnet50", prune_channels, 0.7),
}


def seconds(model: Any, inputs: Mapping[str, Any], runs: int) -> float:
    """Of one run, the first of which is not counted."""
    model(**inputs)
    start = time.perf_counter()
    for _ in range(runs):
        model(**inputs)
    return (time.perf_counter() - start) / runs


def difference(one: Any, other: Any, inputs: Mapping[str, Any]) -> float:
    """The largest difference of the results, in parts of the largest of the other model; infinite for no numbers."""
    worst = 0.0
    for a, b in zip(one(**inputs), other(**inputs), strict=True):
        size = max(float(np.abs(b).max(initial=0.0)), 1e-30)
        apart = float(np.abs(a.astype(np.float64) - b).max(initial=0.0)) / size
        worst = max(worst, apart if math.isfinite(apart) else math.inf)
    return worst


@dataclass(frozen=True)
class Pair:
    """Both forms of a case, compiled; `error` of the results, where the dense form has them."""

    name: str
    part: float
    ours: tw.Model
    dense: tw.Model
    inputs: Mapping[str, Any]
    error: float | None

    @classmethod
    def of(cls, name: str, part: float | None, target: str) -> Pair:
        """Compile a case, with another part than its own where one is given, and compare results."""
        case = CASES[name]
        part = case.part if part is None else part
        small, large = case.forms(part)
        ours, dense = tw.compile(small, target), tw.compile(large, target)
        inputs = models.random_inputs(small)
        error = None if case.quantized else difference(ours, dense, inputs)
        return cls(name, part, ours, dense, inputs, error)

    def rows(self, threads: Iterable[int], rounds: int) -> Iterator[dict[str, Any]]:
        """Time both in turns, and print; a row for each number of threads."""
        case, bad = CASES[self.name], self.error is not None and self.error > _SPIN
        for count in threads:
            self.ours.threads = self.dense.threads = count
            ratios = [seconds(self.dense, self.inputs, 3) / seconds(self.ours, self.inputs, 3) for _ in range(rounds)]
            print(f"{self.name:22} {count} threads  {_line(case, ratios, self.error)}", flush=True)
            held = {"case": self.name, "part": self.part, "threads": count, "target": case.gain, "error": self.error}
            held["status"] = "wrong" if bad else "ok"
            yield {**held, "ratio": statistics.median(ratios), "ratios": [round(one, 3) for one in ratios]}


def main(arguments: Sequence[str]) -> int:
    """Measure and print; 1 where the results of a pruned model are not those of its dense form."""
    parser = argparse.ArgumentParser(prog="tools/bench/run pruned", description=__doc__)
    parser.add_argument("--part", type=float, help="of what is pruned that goes (the case's own)")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--case", choices=CASES, action="append", help="only these")
    parser.add_argument("--threads", default="1,2", help="numbers of threads (1,2)")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything measured to FILE")
    parser.add_argument(
        "--hold", type=shlex.split, default=[], metavar="COMMAND", help="runs a child while models are timed"
    )
    options = parser.parse_args(arguments)
    pairs = [Pair.of(name, options.part, options.target) for name in options.case or CASES]
    with Hold(options.hold):
        rows = [row for pair in pairs for row in pair.rows(map(int, options.threads.split(",")), options.rounds)]
    wrong = any(row["status"] == "wrong" for row in rows)
    if options.json:
        date = datetime.now(timezone.utc).isoformat(timespec="seconds")
        given = {"date": date, "target": options.target, "machine": machine.describe()}
        records.write(options.json, {"command": "pruned", **given, "rows": rows})
    return int(wrong)


def _line(case: Pruned, ratios: Sequence[float], error: float | None) -> str:
    target = f", target {case.gain:.2f}" if case.gain else ""
    same = "" if error is None else f"  results differ by {error:.1e}{' WRONG' if error > _SPIN else ''}"
    return f"dense/pruned {statistics.median(ratios):5.2f}  ({min(ratios):.2f} to {max(ratios):.2f}{target}){same}"
