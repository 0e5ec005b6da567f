# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random small graphs, compiled and run on two threads, against ONNX Runtime."""

import numpy as np
import onnxruntime
import pytest
from random_graphs import KINDS, Maker

import tilewright as tw

SEEDS = range(3)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_random_graph_computes_what_onnx_runtime_does(kind: str, seed: int) -> None:
    maker = Maker(seed)
    KINDS[kind](maker)
    model, feeds = maker.model(), maker.feeds()
    expected = np.asarray(onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)[0])
    actual = tw.compile(model, threads=2)(**feeds)[0]
    assert actual.shape == expected.shape
    np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-4)
