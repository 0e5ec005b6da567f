# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What compiling does for deeper networks: in proportion to the depth, and equal layers are one piece of code.

Calls and code are counted, since seconds depend on the machine.
"""

from __future__ import annotations

import cProfile
import pstats
import re
from typing import Any

import pytest
from examples.fractal import grid_rnn, stacked_lstm

import models
import tilewright as tw

HIDDEN = 64
#: Shapes of the arguments for a number of layers, which become code of their own: large enough for that.
PROGRAMS = {
    "stacked_lstm": lambda n: [(16, 8, 1, HIDDEN), *[(n, 4, HIDDEN, HIDDEN)] * 2, (n, 4, 1, HIDDEN)],
    "grid_rnn": lambda n: [(4, 6, 1, HIDDEN)] * 2 + [(n, HIDDEN, HIDDEN), (n, 2 * HIDDEN, HIDDEN), (n, 1, HIDDEN)] * 2,
}


def calls(name: str, layers: int, target: str) -> int:
    """Calls of functions until kernels are lowered."""
    program = {"stacked_lstm": stacked_lstm, "grid_rnn": grid_rnn}[name].program(HIDDEN)
    shapes = dict(zip(program.parameters, (shape[:-2] for shape in PROGRAMS[name](layers)), strict=True))
    options: dict[str, Any] = {} if target == "cpu" else {"emulate": True}
    with cProfile.Profile() as profile:
        tw.compile(program, target=target, shapes=shapes, stop_after="lower", **options)
    return pstats.Stats(profile).total_calls  # type: ignore[attr-defined]


@pytest.mark.parametrize("target", ["cpu", pytest.param("cuda:sm_90a", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_work_grows_with_the_depth_of_lists(name: str, target: str) -> None:
    calls(name, 1, target)  # imports
    assert calls(name, 8, target) < 1.05 * 4 * calls(name, 2, target)


@pytest.mark.parametrize("target", ["cpu", pytest.param("cuda:sm_90a", marks=pytest.mark.slow)])
def test_rows_with_the_same_weights_are_a_loop(target: str) -> None:
    """Layers of a grid become code of their own, with weights each; the code of a layer is the same for any rows."""
    operations = []
    for layers, rows in ((8, 5), (8, 13), (16, 13)):
        words, weights = (4, rows), (layers,)
        program = grid_rnn.program(256)
        shapes = dict(zip(program.parameters, [words, words, *[weights] * 6], strict=True))
        options: dict[str, Any] = {} if target == "cpu" else {"emulate": True}
        text = tw.compile(program, target=target, shapes=shapes, stop_after="normalize", **options)
        operations.append(text.count("linalg.generic"))
    assert operations[0] == operations[1]
    assert operations[2] < 2.1 * operations[1]


def test_equal_blocks_are_one_piece_of_code() -> None:
    """Of a stage of SkipNet: nine blocks with a branch around each call what five do."""
    functions, lines = [], []
    for blocks in (5, 9):
        path = models.path("skipnet", depths=(blocks,), width=4, gate=3, size=16, classes=5)
        text = tw.compile(str(path), target="cuda:sm_90a", emulate=True, stop_after="lower")
        functions.append(len(re.findall(r"llvm.func internal @\w+_task\(", text)))
        lines.append(text.count("\n"))
    assert functions[0] == functions[1] > 5
    assert lines[1] < 1.4 * lines[0], lines
