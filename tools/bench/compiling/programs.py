# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs on nested lists whose compilation is timed: the cases of two suites, and further depths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import models
from bench import list_programs, own_lists
from bench.case import Case
from bench.suites import fractal, fractal_paper

_FURTHER = (
    *(
        fractal.list_case("grid_rnn", f"d{depth}", layers=depth, hidden=256, rows=10, columns=10, batch=32)
        for depth in (8, 16)
    ),
    fractal.list_case("stacked_lstm", "d8", layers=8, hidden=256, sequence=64, batch=256),
    fractal.list_case("dilated_lstm", "d3", layers=3, hidden=256, sequence=64, batch=256),
)
CASES: Mapping[str, Case] = {case.name: case for case in (*fractal.SUITE.cases, *_FURTHER, *fractal_paper.SUITE.cases)}
#: Two cases of a program, and how much deeper the second one is.
GROWTH: Sequence[tuple[str, str, int]] = (
    ("grid_rnn_d8_b32", "grid_rnn_d32_b32", 4),
    ("stacked_lstm_d8_b256", "stacked_lstm_d32_b256", 4),
    ("dilated_lstm_d3_b256", "dilated_lstm_d6_b256", 2),
)


def path_of(name: str) -> Path:
    """The model that holds the weights of a program, built before the clock starts."""
    case = CASES[name]
    return models.path(case.model, **case.sizes)


def function_of(path: str, program: str) -> tuple[Any, Mapping[str, Any]]:
    """What is compiled, and the lengths of its lists."""
    lists = list_programs.read(Path(path), program)
    return own_lists.function(lists), lists.lengths
