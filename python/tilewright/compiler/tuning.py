# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tuning: the best few predicted tiles of each kernel are compiled and timed within a budget (Roller, "top K").

Each round compiles the whole model with every kernel's next candidate, so that it measures one candidate of all
kernels. Plans need no tuning; the result is kept in the cache folder: it is measured once per model and machine.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tilewright.core import cache
from tilewright.plan.model.names import plan_name

log = logging.getLogger("tilewright")

#: Candidates per kernel that are measured: more brought little (Roller, section 5).
TOP = 10
#: A candidate must be faster than the plan's own choice by this factor: less is noise.
_GAIN = 0.97
_RUNS = 7

#: makes a model with the given choices, KERNEL:NUMBER
Build = Callable[[tuple[str, ...]], Any]


def tuned_choices(key: str, candidates: Mapping[str, int], build: Build, seconds: float) -> tuple[str, ...]:
    """Return the choices for `tile-plan-tiles` that measured fastest, from the cache or by measuring.

    Args:
        key: identifies the model, the options and this machine.
        candidates: number of candidates of each kernel.
        build: compiles the model with given choices.
        seconds: budget; the round that exceeds it is the last.
    """
    file = cache.root() / "tuned" / f"{key}.json"
    known = _read(file)
    if known is not None and (known["seconds"] >= seconds or known["complete"]):
        return tuple(known["choices"])
    choices, complete = measure_choices(candidates, build, seconds)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"seconds": seconds, "complete": complete, "choices": choices}))
    except OSError as error:
        log.warning("the measured tiles cannot be kept in %s: %s", file.parent, error.strerror)
    return choices


def _read(file: Path) -> dict[str, Any] | None:
    try:
        return json.loads(file.read_text())
    except (OSError, ValueError):
        return None


def measure_choices(candidates: Mapping[str, int], build: Build, seconds: float) -> tuple[tuple[str, ...], bool]:
    """Return the fastest choice of each kernel, and whether all candidates were measured."""
    end = time.perf_counter() + seconds
    plain = kernel_times(build(()))
    best: dict[str, tuple[float, str]] = {
        name: (plain[name] * _GAIN, "") for name, count in candidates.items() if count > 1 and name in plain
    }
    for number in range(TOP):
        tried = [name for name in best if number < candidates[name]]
        if not tried:
            return _chosen(best), True
        if time.perf_counter() > end:
            return _chosen(best), False
        times = kernel_times(build(tuple(f"{name}:{number}" for name in sorted(tried))))
        for name in tried:
            best[name] = min(best[name], (times.get(name, float("inf")), f"{name}:{number}"))
    return _chosen(best), True


def _chosen(best: Mapping[str, tuple[float, str]]) -> tuple[str, ...]:
    return tuple(sorted(choice for _, choice in best.values() if choice))


def kernel_times(model: Any) -> dict[str, float]:
    """Return the seconds of all launches of each kernel, by the name that the plan gave it.

    Raises:
        UserError: the model refuses random inputs, or its sizes are open.
    """
    from tilewright.report.measure import random_inputs, results_for

    values = list(random_inputs(model.inputs).values())
    out = results_for(model, values)
    best: list[int] = []
    names: list[str] = []
    for _ in range(_RUNS):
        records = model.profile(*values, **({} if out is None else {"out": out}))
        names = [name for name, _, _ in records]
        spent = [nanoseconds for _, _, nanoseconds in records]
        best = spent if len(best) != len(spent) else [min(pair) for pair in zip(best, spent, strict=True)]
    total: dict[str, float] = {}
    for name, spent in zip(names, best, strict=True):
        total[plan_name(name)] = total.get(plan_name(name), 0.0) + spent * 1e-9
    return total


def candidates_of(module_text: str) -> dict[str, int]:
    """Return how many tiles each kernel can choose from, read from the IR after phase `plan`."""
    found: dict[str, int] = {}
    kernel = ""
    for name, count in re.findall(r'tile\.kernel = "([^"]+)"|candidates = (\d+) : i64', module_text):
        if name:
            kernel = name  # of the group, before its operations
        else:
            found[kernel] = max(int(count), found.get(kernel, 0))
    return found
