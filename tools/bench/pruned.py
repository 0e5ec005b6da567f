# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models with pruned heads and channels beside their dense form: `tools/bench/run pruned [--part 0.7]`.

Both are ours, run in turns; printed are medians of the ratio of neighbours, and its spread.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx

import models
import tilewright as tw
from models.pruned import prune_channels, prune_encoder

_CASES: dict[str, tuple[str, Callable[[onnx.ModelProto, float], onnx.ModelProto]]] = {
    "bert_base": ("bert_base", lambda model, part: prune_encoder(model, part, heads=12)),
    "mobilenet_v2": ("mobilenet_v2", prune_channels),
    "resnet50": ("resnet50", prune_channels),
}


def _seconds(model: Any, inputs: Mapping[str, Any], runs: int) -> float:
    model(**inputs)
    start = time.perf_counter()
    for _ in range(runs):
        model(**inputs)
    return (time.perf_counter() - start) / runs


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="tools/bench/run pruned", description=__doc__)
    parser.add_argument("--part", type=float, default=0.7, help="of heads and channels that are zero (0.7)")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--case", choices=_CASES, action="append", help="only these")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args(arguments)
    for case in options.case or _CASES:
        name, prune = _CASES[case]
        dense = tw.compile(models.build(name), options.target)
        pruned = tw.compile(prune(models.build(name), options.part), options.target)
        inputs = models.random_inputs(models.build(name))
        for threads in (1, 2):
            dense.threads = pruned.threads = threads
            ratios = [_seconds(dense, inputs, 3) / _seconds(pruned, inputs, 3) for _ in range(options.rounds)]
            spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
            print(f"{case:14} {threads} threads  dense/pruned {statistics.median(ratios):5.2f}  ({spread})", flush=True)
    return 0
