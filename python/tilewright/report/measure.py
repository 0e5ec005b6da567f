# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Running a model on random inputs, with the time of each launch."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.core.dtypes import to_numpy
from tilewright.core.errors import UserError

if TYPE_CHECKING:
    from tilewright.runtime import TensorSpec

_OPEN_SIZE = 8  # of a dimension that each run brings
_BUDGET_SECONDS = 1.0
_RUNS = 15


@dataclass(frozen=True)
class Launch:
    """One launch: its kernel, number of tasks, median seconds."""

    kernel: str
    tasks: int
    seconds: float


@dataclass(frozen=True)
class Measurement:
    """Medians of several runs: of the whole call (not profiled), and of each launch, in order."""

    seconds: float
    runs: int
    threads: int
    launches: tuple[Launch, ...]

    def per_kernel(self) -> dict[str, float]:
        """Return the seconds of all launches of each kernel in one call."""
        total: dict[str, float] = {}
        for launch in self.launches:
            total[launch.kernel] = total.get(launch.kernel, 0.0) + launch.seconds
        return total


def random_inputs(specs: Sequence[TensorSpec], seed: int = 0) -> dict[str, np.ndarray]:
    """Return random arrays: floats in [-1, 1), integers 0 or 1 (safe as an index into any table of two rows).

    Strings are "0" or "1": some models read numbers from them.

    Raises:
        UserError: an input is a dict.
    """
    generator = np.random.default_rng(seed)
    return {spec.name: _random(spec, generator) for spec in specs}


def _random(spec: TensorSpec, generator: np.random.Generator) -> np.ndarray:
    if spec.dtype == "map":
        raise UserError(f"input {spec.name} is a dict, which stands in no file and is not made up: call it from Python")
    text = spec.dtype == "string"
    dtype = to_numpy("i64" if text else spec.dtype)
    shape = [size if isinstance(size, int) and size >= 0 else _OPEN_SIZE for size in spec.shape]
    if dtype.kind in "iub":
        numbers = generator.integers(0, 2, shape).astype(dtype)
        return numbers.astype(str) if text else numbers
    return (generator.random(shape) * 2 - 1).astype(dtype)


def results_for(model: Any, values: Sequence[np.ndarray]) -> list[np.ndarray] | None:
    """Run a model once: arrays that further runs can write to, or None where the size of a result is not fixed."""
    results = getattr(model, "flat", model)(*values)  # not in the form that a module's results had
    return [np.array(value) for value in results] if all(spec.is_static for spec in model.outputs) else None


def measure_model(model: Any) -> Measurement:
    """Run the model for about a second (at least three times) and return medians.

    Raises:
        UserError: an assertion of the model refuses random inputs.
    """
    inputs = random_inputs(model.inputs)
    values = list(inputs.values())
    out = results_for(model, values)
    calls: list[float] = []
    profiles: list[list[tuple[str, int, int]]] = []
    end = time.perf_counter() + _BUDGET_SECONDS
    while len(calls) < 3 or (len(calls) < _RUNS and time.perf_counter() < end):
        start = time.perf_counter()
        model(*values, out=out)
        calls.append(time.perf_counter() - start)
        profiles.append(model.profile(*values))
    launches = tuple(
        Launch(runs[0][0], runs[0][1], median(run[2] for run in runs) * 1e-9) for runs in zip(*profiles, strict=True)
    )
    return Measurement(median(calls), len(calls), model.threads, launches)
