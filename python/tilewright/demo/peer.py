# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""ONNX Runtime beside us: the same model, the same threads, and a fair race."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median

import numpy as np
import onnx


class OnnxRuntime:
    """A session on the CPU, with `threads` threads (None or 0: all cores that this process may use)."""

    def __init__(self, proto: onnx.ModelProto, threads: int | None) -> None:
        import onnxruntime

        self.threads = threads or len(os.sched_getaffinity(0))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self.threads
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(
            proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )

    def __call__(self, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """The first output."""
        return np.asarray(self._session.run(None, dict(inputs))[0])

    def bind(self, inputs: Mapping[str, np.ndarray]) -> None:
        """Fix inputs and output arrays, so that run_bound neither allocates nor copies."""
        self._bound = dict(inputs)
        self._out = self(inputs)
        self._binding = self._session.io_binding()
        for name, array in self._bound.items():
            self._binding.bind_cpu_input(name, array)
        name = self._session.get_outputs()[0].name
        self._binding.bind_output(name, "cpu", 0, self._out.dtype, self._out.shape, self._out.ctypes.data)

    def run_bound(self) -> None:
        """Run on the bound arrays."""
        self._session.run_with_iobinding(self._binding)


def _burst(run: Callable[[], object], seconds: float) -> float:
    """Median seconds per run, after one that does not count."""
    run()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return median(times)


def alternate(
    ours: Callable[[], object], theirs: Callable[[], object], rounds: int = 8, seconds: float = 0.15
) -> tuple[float, float]:
    """Seconds per run of both: medians over bursts that take turns, far enough apart for spinning threads to sleep."""
    times: tuple[list[float], list[float]] = ([], [])
    for done in range(-1, rounds):  # round -1 warms up
        for run, kept in zip((ours, theirs), times, strict=True):
            time.sleep(0.03)
            value = _burst(run, seconds)
            if done >= 0:
                kept.append(value)
    return median(times[0]), median(times[1])


def processor() -> str:
    """Name of the CPU and number of cores that this process may use."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
    return f"{name or platform.processor() or platform.machine()}, {len(os.sched_getaffinity(0))} cores"
