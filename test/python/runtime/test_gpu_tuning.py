# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""tune= for GPUs: candidates are measured through the driver, by events; here by a driver of our own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import tilewright as tw
from models._graph import Graph
from tilewright import config
from tilewright.errors import UserError
from tilewright.runtime.gpu_model import GpuModel
from tilewright.targets import tuning


def product() -> onnx.ModelProto:
    half, g = np.dtype(np.float16), Graph("product", 17)
    y = g.op("MatMul", g.input("a", half, [256, 128]), g.input("b", half, [128, 256]))
    g.output(y, "y", half, [256, 256])
    return g.model()


def number_of(model: Any) -> int:
    (kernel,) = model._manifest.kernels
    return kernel.details["plan"].get("number", 0)


def test_the_fastest_candidate_is_taken_and_remembered(fake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The fake driver runs no real kernel: its events' times are a table's, by candidate."""
    seen: list[int] = []

    def profile(self: GpuModel, *values: Any, out: Any = None) -> list[tuple[str, int, int]]:
        seen.append(number_of(self))
        (kernel,) = self._manifest.kernels
        return [(kernel.symbol, 4, {0: 5000, 2: 3000}.get(number_of(self), 9000))]

    monkeypatch.setattr(GpuModel, "profile", profile)
    monkeypatch.setattr(GpuModel, "__call__", lambda self, *values, out=None: [np.zeros((256, 256), np.float16)])
    with config.cache_dir.override(tmp_path):
        model = tw.compile(product(), "cuda:sm_90a", tune=600)
        assert number_of(model) == 2
        assert set(range(4)) <= set(seen) and max(seen) < tuning.TOP
        assert len(list((tmp_path / "tuned").glob("*.json"))) == 1
        monkeypatch.setattr(tuning, "measure_choices", None)  # not called again
        assert number_of(tw.compile(product(), "cuda:sm_90a", tune=1)) == 2


def test_the_emulator_has_no_clock(fake) -> None:
    with pytest.raises(UserError, match="the emulator has no clock"):
        tw.compile(product(), "cuda:sm_90a", tune=1, emulate=True)


def test_without_a_gpu_nothing_can_be_measured() -> None:
    with config.libcuda.override("/nonexistent/libcuda.so"):
        with pytest.raises(UserError, match="there is no NVIDIA GPU with a driver here"):
            tw.compile(product(), "cuda:sm_90a", tune=1)
