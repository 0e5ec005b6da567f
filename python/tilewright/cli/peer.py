# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX Runtime as the peer of ``run --compare``, ``bench --against`` and the demo."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

import numpy as np

from tilewright.core.errors import UserError

_BURST_SECONDS = 0.2
_PAUSE_SECONDS = 0.03


class OnnxRuntime:
    """ONNX Runtime on the CPU, with its default options: its threads spin for a moment, so pause before others run.

    Args:
        model: the ONNX file, or its bytes.
        threads: as many as ours.

    Raises:
        UserError: onnxruntime is not installed, or refuses the model.
    """

    def __init__(self, model: str | bytes, threads: int) -> None:
        try:
            import onnxruntime
        except ImportError:
            raise UserError("comparing needs ONNX Runtime: pip install onnxruntime") from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        try:
            self._session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
        except Exception as error:
            name = "the model" if isinstance(model, bytes) else model
            raise UserError(f"ONNX Runtime cannot load {name}: {error}") from None
        self._names = [output.name for output in self._session.get_outputs()]

    def __call__(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the outputs by name."""
        values = (np.asarray(value) for value in self._session.run(self._names, dict(inputs)))
        return dict(zip(self._names, values, strict=True))

    def bound(self, inputs: Mapping[str, np.ndarray]) -> Callable[[], None]:
        """Return a run on fixed input and output arrays, which neither allocates nor copies."""
        arrays = {name: np.ascontiguousarray(array) for name, array in inputs.items()}
        outputs = self(arrays)
        binding = self._session.io_binding()
        for name, array in arrays.items():
            binding.bind_cpu_input(name, array)
        for name, array in outputs.items():
            binding.bind_output(name, "cpu", 0, array.dtype, array.shape, array.ctypes.data)

        def run(held: object = (arrays, outputs)) -> None:
            self._session.run_with_iobinding(binding)

        return run


def differences(ours: Mapping[str, Any], theirs: Mapping[str, Any], rtol: float, atol: float) -> list[tuple]:
    """Return (output, largest absolute difference, largest relative to the tolerance, within it) per output."""
    rows = []
    for name, value in theirs.items():
        mine, other = np.asarray(ours[name], np.float64), np.asarray(value, np.float64)
        if mine.shape != other.shape:
            rows.append((name, float("inf"), float("inf"), False))
            continue
        same = (mine == other) | (np.isnan(mine) & np.isnan(other))
        gap = np.where(same, 0, np.abs(mine - other))
        share = np.where(same, 0, gap / (atol + rtol * np.abs(other)))
        worst, worst_share = float(gap.max(initial=0)), float(share.max(initial=0))
        rows.append((name, worst, worst_share, bool(worst_share <= 1)))
    return rows


def burst(run: Callable[[], Any]) -> list[float]:
    """Run for about 0.2 s after one warm-up and return the seconds of each run."""
    run()
    times: list[float] = []
    end = time.perf_counter() + _BURST_SECONDS
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    time.sleep(_PAUSE_SECONDS)
    return times


def race(runs: Mapping[str, Callable[[], Any]], seconds: float) -> dict[str, list[float]]:
    """Let all take turns in bursts for about `seconds`; return the burst medians of each."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or not all(found.values()):
        for name, run in runs.items():
            found[name].append(median(burst(run)))
    return found
