# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Images that run in rounds (`tile-split-micro-batches`) give what the whole batch gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import onnx
import pytest

import models
import tilewright as tw
from tilewright.plan.conv.split_micro_batches import SplitMicroBatches

MODELS = {
    "resnet_tiny": dict(batch=6),
    "mobilenet_tiny": dict(batch=4),
}


@pytest.fixture
def small_caches(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """A machine whose largest cache holds few images; counts the loops that the pass makes."""
    loops: list[int] = []
    run = SplitMicroBatches.run

    def counted(self: SplitMicroBatches, op) -> None:
        run(replace(self, l3_bytes=1 << 15), op)
        loops.append(str(op).count("scf.for"))

    monkeypatch.setattr(SplitMicroBatches, "run", counted)
    yield loops


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_rounds(name: str, small_caches: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    file = str(models.path(name, **MODELS[name]))
    monkeypatch.setenv("TILEWRIGHT_CACHE", "0")
    model = tw.compile(file, target="cpu", threads=2)
    assert small_caches == [1]
    monkeypatch.undo()
    inputs = models.random_inputs(onnx.load(file))
    whole = tw.compile(file, target="cpu", threads=2)
    np.testing.assert_allclose(model(*inputs.values())[0], whole(*inputs.values())[0], rtol=1e-5, atol=1e-6)
    model.threads = 1
    again = model(*inputs.values())[0]
    model.threads = 2
    np.testing.assert_array_equal(again, model(*inputs.values())[0])
    names = [name for name, _, _ in model.profile(*inputs.values())]
    assert len(names) > len(whole.profile(*inputs.values()))


def test_one_image_runs_as_it_is(small_caches: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILEWRIGHT_CACHE", "0")
    tw.compile(str(models.path("resnet_tiny")), target="cpu", threads=1)
    assert small_caches == [0]
