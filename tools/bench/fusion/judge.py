# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fusion against the best grouping by brute force, on random graphs and on the same graphs written in other ways.

    tools/bench/run fusion [--seeds 100] [--first 0] [--length 6] [--styles 2] [--verbose]

Prints, per graph, the bytes (launches included) and kernels of the plan and of the best grouping; at the end, how many
plans are within 5 % of the best, and how many rewritten graphs cost what the plain one does.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import tilewright as tw
from bench.fusion.graphs import RandomGraph
from bench.fusion.optimum import Problem
from tilewright.ir.structure import Weights, blocks, linalg_ops
from tilewright.mlir import ir
from tilewright.passes import run_pipeline
from tilewright.plan.model.traffic import Levels

LEVELS = Levels(2 << 20, 480 << 20, 160.0, 28.0, 15.0)
_BEFORE = "builtin.module(tile-materialize-fills,tile-mark-host-fallback,tile-plan-orders,tile-apply-orders)"
#: Operations of the largest graph whose partitions (4140 of 8) are all tried.
_MOST = 8


@dataclass(frozen=True)
class Judged:
    """Cost in bytes and kernels of the plan, and of the best grouping (None where the graph is too large)."""

    ours: int
    kernels: int
    best: int | None
    best_kernels: int | None
    text: str = ""

    @property
    def ratio(self) -> float:
        """Cost of the plan relative to the best one."""
        return self.ours / self.best if self.best else 1.0


def judge(graph: RandomGraph, brute: bool = True, verbose: bool = False) -> Judged:
    """Plan a graph, and find the best grouping of its operations."""
    text = tw.compile(graph.model().SerializeToString(), stop_after="normalize")
    with ir.Context() as context:
        module = ir.Module.parse(str(text), context)
        run_pipeline(module.operation, _BEFORE)
        ops = [op for block in blocks(module.operation) for op in linalg_ops(block, Weights())]
        problem = Problem(ops, LEVELS)
        ours = problem.planned()
        assert problem.is_acyclic(ours)
        best = problem.best() if brute and len(ops) <= _MOST else None
        shown = "\n".join([str(module), _shown(ops, ours), _shown(ops, best or [])]) if verbose else ""
        cost = problem.cost(best) if best is not None else None
        return Judged(problem.cost(ours), len(ours), cost, None if best is None else len(best), shown)


def _shown(ops: list, groups: Sequence[frozenset]) -> str:
    return " | ".join(" ".join(str(ops.index(op)) for op in sorted(g, key=lambda o: o.position)) for g in groups)


def main(arguments: Sequence[str] | None = None) -> int:
    """Judge some seeds."""
    parser = argparse.ArgumentParser(
        prog="tools/bench/run fusion", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--length", type=int, default=6, help="operators of the longest graph")
    parser.add_argument("--styles", type=int, default=2, help="other ways of writing each graph")
    parser.add_argument("--verbose", action="store_true", help="show graphs whose plan is more than 5 %% from the best")
    options = parser.parse_args(arguments)
    near = judged = same = rewritten = 0
    for seed in range(options.first, options.first + options.seeds):
        length = 3 + seed % max(options.length - 2, 1)
        plain = judge(RandomGraph(seed, length), verbose=options.verbose)
        if plain.best is not None:
            judged += 1
            near += plain.ratio <= 1.05
            print(f"{seed}: {plain.ours} of {plain.best}, kernels {plain.kernels} of {plain.best_kernels}", flush=True)
            if plain.ratio > 1.05:
                print(f"  {plain.ratio:.2f}\n{plain.text}")
        for style in range(1, options.styles + 1):
            other = judge(RandomGraph(seed, length, style), brute=False)
            rewritten += 1
            same += other.ours <= 1.05 * plain.ours
            if other.ours > 1.05 * plain.ours:
                print(f"  style {style}: {other.ours} of {plain.ours}, kernels {other.kernels} of {plain.kernels}")
    print(
        f"{near} of {judged} within 5 % of the best, {same} of {rewritten} rewritten graphs within 5 % of the plain one"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
