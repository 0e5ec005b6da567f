# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recurrences over lists of lengths of their own take as many steps as the longest list of a call has, counted.

On a GPU by what the emulator issues, on a CPU by the kernels that the run-time records.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from fractal_runs import declared, ragged, values

import tilewright as tw
import tilewright.fractal as ft
from tilewright.sim import ptx as emulate

WIDTH = 2


def step(state, x):
    return ft.tanh(state * 0.5 + x)


def folds(row):
    return ft.foldl(step, ft.zeros(WIDTH), row)


def from_the_right(row):
    return ft.foldr(step, ft.zeros(WIDTH), row)


def states(row):
    return ft.scanl(step, ft.zeros(WIDTH), row)


def positive_only(row):
    return ft.foldl(step, ft.zeros(WIDTH), ft.filter(lambda x: x[0] > 0, row))


PROGRAMS = {"folds": folds, "right": from_the_right, "scans": states, "filtered": positive_only}


@functools.cache
def compiled(name: str, arch: str, most: int) -> tuple[Any, Any, emulate.Trace]:
    trace = emulate.Trace()
    function = declared(lambda xss: ft.map(PROGRAMS[name], xss), ragged([1, 1, 1], WIDTH))
    options = {"multiprocessors": 2, "seed": 1, "trace": trace}
    model = tw.compile(function, f"cuda:{arch}", shapes={"xss": (3, ("ragged", most))}, emulate=options)
    return function, model, trace


def ran(name: str, arch: str, most: int, lists: ft.Lists) -> tuple[int, int]:
    """Run a batch, check what it gives, and return how many multiplications with an addition were issued, and launches.

    Only `tanh` has any: each step has as many as it has elements of states, times a number.
    """
    function, model, trace = compiled(name, arch, most)
    before = len(trace.launches)
    (found,) = ft.unpacked(model(lists))
    expected = function(lists)
    found, expected = (x.flat if isinstance(x, ft.Lists) else np.asarray(x) for x in (found, expected))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    launches = trace.launches[before:]
    lines = [line for launch in launches for line in launch.lines.values() if "fma.rn.f32" in line.text]
    return sum(line.threads for line in lines), len(launches)


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "arch"),
    [
        ("folds", "sm_80"),
        pytest.param("folds", "sm_90a", marks=SLOW),
        pytest.param("right", "sm_80", marks=SLOW),
        ("scans", "sm_90a"),
        pytest.param("filtered", "sm_80", marks=SLOW),
    ],
)
def test_on_the_emulator(name: str, arch: str) -> None:
    """As many steps as the longest list, in one launch, however long lists may be."""
    work = {}
    for lengths in ([0, 0, 0], [1, 0, 1], [2, 3, 0], [1, 7, 2]):
        lists = ragged(lengths, WIDTH)
        longest = max(lengths)
        if name == "filtered":  # up to the last one that is kept
            longest = max((i + 1 for row in lists for i, x in enumerate(row.array()) if x[0] > 0), default=0)
        work[longest], launches = ran(name, arch, 7, lists)
        assert launches == 1
    assert work[0] == 0
    (one,) = {count / longest for longest, count in work.items() if longest}
    assert one > 0 and one % (3 * WIDTH) == 0


def test_a_larger_bound_adds_no_step() -> None:
    lists = ragged([2, 0, 3], WIDTH)
    assert ran("folds", "sm_80", 7, lists) == ran("folds", "sm_80", 40, lists)


@functools.cache
def on_the_cpu(target: str) -> Any:
    """A recurrence with a product, whose steps are kernels that the run-time records one by one."""
    weight = values(WIDTH, WIDTH)
    function = declared(
        lambda xss: ft.map(lambda xs: ft.scanl(lambda s, x: ft.tanh(s @ weight + x), ft.zeros(1, WIDTH), xs), xss),
        ragged([1, 1, 1], 1, WIDTH),
    )
    return function, tw.compile(function, target, shapes={"xss": (3, ("ragged", 40))}, threads=1)


@pytest.mark.parametrize("target", ["cpu", pytest.param("cpu:x86-64-v3", marks=SLOW)])
def test_on_the_cpu(target: str) -> None:
    """Steps add as many kernels each, whatever the batch and the largest length are."""
    function, model = on_the_cpu(target)
    counts = {}
    for lengths in ([0, 0, 0], [0, 1, 0], [3, 1, 2], [40, 0, 17]):
        lists = ragged(lengths, 1, WIDTH)
        (found,) = ft.unpacked(model(lists))
        np.testing.assert_allclose(found.flat, function(lists).flat, rtol=1e-5, atol=1e-6)
        counts[max(lengths)] = len(model.profile(lists))
    beside = counts.pop(0)
    (each,) = {(count - beside) / longest for longest, count in counts.items()}
    assert each >= 1
