# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX Runtime as the peer of ``run --compare`` and ``bench --against``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

import numpy as np

from tilewright.errors import UserError

_BURST_SECONDS = 0.2
_PAUSE_SECONDS = 0.03


class OnnxRuntime:
    """A session on the CPU.

    Args:
        path: the ONNX file.
        threads: as many as ours.

    Raises:
        UserError: onnxruntime is not installed, or refuses the model.
    """

    def __init__(self, path: str, threads: int) -> None:
        try:
            import onnxruntime
        except ImportError:
            raise UserError("comparing needs ONNX Runtime: pip install onnxruntime") from None
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        # Helpers that spin after a run would take the cores from whoever runs next.
        options.add_session_config_entry("session.force_spinning_stop", "1")
        try:
            self._session = onnxruntime.InferenceSession(os.fspath(path), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise UserError(f"ONNX Runtime cannot load {path}: {error}") from None

    def __call__(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the outputs by name."""
        names = [output.name for output in self._session.get_outputs()]
        values = (np.asarray(value) for value in self._session.run(names, dict(inputs)))
        return dict(zip(names, values, strict=True))


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
