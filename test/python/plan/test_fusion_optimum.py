# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Fusion of random graphs against the best grouping by brute force, and of the same graphs written in other ways."""

from __future__ import annotations

import numpy as np
import pytest

import tilewright as tw
from bench.fusion.graphs import RandomGraph
from bench.fusion.judge import judge

SEEDS = range(48)


def graph(seed: int, style: int = 0) -> RandomGraph:
    """A graph of three to six operators."""
    return RandomGraph(seed, 3 + seed % 4, style)


def test_most_plans_are_within_five_percent_of_the_best():
    ratios = [judge(graph(seed)).ratio for seed in SEEDS]
    assert sum(ratio <= 1.05 for ratio in ratios) >= 0.93 * len(ratios)
    assert max(ratios) < 1.5


@pytest.mark.slow
def test_most_rewritten_graphs_cost_what_the_plain_ones_do():
    pairs = [(judge(graph(seed), brute=False), judge(graph(seed, 1), brute=False)) for seed in SEEDS]
    assert sum(other.ours <= 1.05 * plain.ours for plain, other in pairs) >= 0.9 * len(pairs)


@pytest.mark.parametrize("seed", [6, 24, 42])
def test_moved_maps_and_small_tasks_compute_the_same(seed):
    """A map that a product's reader reads as well; reductions to a scalar in one task; a sum of two maps."""
    onnxruntime = pytest.importorskip("onnxruntime")
    model = graph(seed).model().SerializeToString()
    compiled = tw.compile(model, threads=1)
    x = np.random.default_rng(seed).standard_normal(compiled.inputs[0].shape).astype(np.float32)
    expected = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).run(None, {"x": x})
    found = compiled(x)
    for ours, theirs in zip(found if isinstance(found, list | tuple) else [found], expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-3)
