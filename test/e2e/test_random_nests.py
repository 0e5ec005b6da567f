# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random nests of loops, branches and recursion, wherever they may run: on the host, in kernels, or some here and some
there. Nests are as ONNX Runtime has them, recursion as the eager mode."""

from __future__ import annotations

import os
import random
from typing import Any

import numpy as np
import onnxruntime
import pytest
from random_nests import Nest
from random_trees import TreeProgram
from tree_runs import grown

import tilewright as tw
import tilewright.fractal as ft
from tilewright.plan.graph import plan_loops

#: More seeds: `RANDOM_NESTS=60:600 pytest test/e2e/test_random_nests.py`.
MORE = range(*map(int, os.environ.get("RANDOM_NESTS", "0:40").split(":")))
#: Those that run always: nests that were wrong once among them.
CPU_SEEDS, GPU_SEEDS, TREE_SEEDS = (2, 10), ((3, "kernel"), (7, "kernel"), (14, "mixed")), (6, 9)
UNITS = 3


def some(always: tuple, more: list) -> list:
    """Seeds that run always, and those that are slow together."""
    return [*always, *(pytest.param(*one, marks=pytest.mark.slow) for one in more)]


def onnx_runtime(nest: Nest, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """On one thread."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level, options.intra_op_num_threads = 3, 1
    session = onnxruntime.InferenceSession(nest.model.SerializeToString(), options, ["CPUExecutionProvider"])
    return [np.asarray(array) for array in session.run(None, feeds)]


def check(nest: Nest, model: Any) -> None:
    """With several inputs: nothing stays from the call before."""
    for seed in range(3):
        feeds = nest.feeds(seed)
        for ours, theirs in zip(model(**feeds), onnx_runtime(nest, feeds), strict=True):
            np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("seed", some(CPU_SEEDS, [(seed,) for seed in MORE if seed not in CPU_SEEDS]))
def test_nests_on_cpus(seed: int) -> None:
    """On one thread and on two: steps are launches, or one program."""
    nest = Nest(seed)
    model = tw.compile(nest.model, ("cpu", "cpu:x86-64-v3")[seed % 2], threads=2)
    check(nest, model)
    model.threads = 1
    check(nest, model)


def leave_to_host(monkeypatch: pytest.MonkeyPatch, level: str, seed: int) -> None:
    """Decide for all or some stretches that the host runs them; loops in these are decided about anew."""
    take, choose = plan_loops._take, random.Random(seed)

    def decided(*stretch: Any) -> bool:
        return False if level == "host" or choose.random() < 0.5 else take(*stretch)

    if level != "kernel":
        monkeypatch.setenv("TILEWRIGHT_CACHE", "0")  # the decision is no option of a compilation
        monkeypatch.setattr(plan_loops, "_take", decided)


LEVELS = ("kernel", "mixed", "host")
GPU_MORE = [(seed, LEVELS[seed // 2 % 3]) for seed in MORE]


@pytest.mark.parametrize(("seed", "level"), some(GPU_SEEDS, [one for one in GPU_MORE if one not in GPU_SEEDS]))
def test_nests_on_gpus(seed: int, level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """CTAs in a random order; races and deadlocks are errors."""
    leave_to_host(monkeypatch, level, seed)
    nest = Nest(seed)
    target = ("cuda:sm_80", "cuda:sm_90a")[seed % 2]
    model = tw.compile(nest.model, target, emulate={"multiprocessors": UNITS, "seed": seed})
    phases = {phase["name"]: phase.get("ir", "") for phase in model.report_data()["phases"]}
    in_kernels = "tile.blocks" in phases["schedule"]
    assert not in_kernels if level == "host" else in_kernels or (seed, level) not in GPU_SEEDS
    check(nest, model)


TARGETS = ("cpu", "cuda:sm_80", "cuda:sm_90a")
TREES = [(seed, target) for seed in MORE for target in ("cpu", TARGETS[1 + seed % 2])]


@pytest.mark.parametrize(("seed", "target"), some(tuple((s, "cpu") for s in TREE_SEEDS), TREES[:60]))
def test_recursion(seed: int, target: str) -> None:
    """Trees of one node and of several, and what they carry at all nodes or at leaves."""
    program = TreeProgram(seed)
    print(program.text)  # shown where the test fails
    function, rng = program.function(f"<program {seed}>"), np.random.default_rng(seed)
    x = rng.standard_normal(program.other.shape).astype(np.float32)
    emulate = {"emulate": True} if target != "cpu" else {}
    model = tw.compile(function, target, shapes={"tree": (23, 12)}, **emulate)

    def leaf() -> np.ndarray:
        return rng.standard_normal(program.leaf).astype(np.float32)

    for leaves in (1, 4, 12):
        tree = ft.Tree(grown(leaves, leaf, program.everywhere, seed=seed))
        expected = function(tree, x)
        for ours, theirs in zip(model(tree, x), expected if isinstance(expected, tuple) else (expected,), strict=True):
            np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-3, atol=1e-4)
