# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What compiling does for deeper networks: in proportion to the depth, and equal layers are one piece of code.

Calls and code are counted, since seconds depend on the machine.
"""

from __future__ import annotations

import cProfile
import inspect
import pstats
import re
from typing import Any

import numpy as np
import pytest
from examples.fractal import dilated_lstm, grid_rnn, stacked_lstm

import models
import tilewright as tw
import tilewright.fractal as ft
from tilewright.mlir import ir
from tilewright.passes import run_pipeline

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
    """Layers of a grid become code of their own, with weights each; the code of a layer is the same for any rows.

    On CPUs that is the code of bands of rows, and of those that are left.
    """
    operations = []
    for layers, rows in ((8, 13), (8, 53), (16, 53)):
        words, weights = (4, rows), (layers,)
        program = grid_rnn.program(256)
        shapes = dict(zip(program.parameters, [words, words, *[weights] * 6], strict=True))
        options: dict[str, Any] = {} if target == "cpu" else {"emulate": True}
        text = tw.compile(program, target=target, shapes=shapes, stop_after="normalize", **options)
        operations.append(text.count("linalg.generic"))
    assert operations[0] == operations[1]
    assert operations[2] < 2.1 * operations[1]


@pytest.mark.parametrize("target", ["cpu", pytest.param("cuda:sm_90a", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_deep_networks_are_no_more_code(name: str, target: str) -> None:
    """From a few layers on, they are a loop; each layer's weights are packed at compile time as if they were none."""
    operations, packed = [], []
    for layers in (8, 32):
        program = {"stacked_lstm": stacked_lstm, "grid_rnn": grid_rnn}[name].program(HIDDEN)
        rng, arguments = np.random.default_rng(0), PROGRAMS[name](layers)
        held = len(arguments) - {"stacked_lstm": 3, "grid_rnn": 6}[name]
        weights = [rng.standard_normal(shape).astype(np.float32) for shape in arguments[held:]]
        names = list(program.parameters)[:held]
        options: dict[str, Any] = {} if target == "cpu" else {"emulate": True}
        text = tw.compile(
            with_weights(program, names, weights),
            target=target,
            shapes={name: shape[:-2] for name, shape in zip(names, arguments, strict=False)},
            stop_after="plan",
            **options,
        )
        operations.append(text.count("linalg.generic"))
        packed.append(text.count("linalg.pack "))
    assert operations[0] == operations[1]
    assert packed[0] == packed[1]


def with_weights(program: ft.Function, names: list[str], weights: list[np.ndarray]) -> ft.Function:
    """The function of the first arguments, with constants for the others."""

    def closure(*arguments: Any) -> Any:
        return program(*arguments, *weights)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(name, kind) for name in names])
    closure.__signature__ = signature  # type: ignore[attr-defined]
    closure.__annotations__ = {name: program.parameters[name] for name in names}
    return ft.function(closure)


def test_equal_blocks_are_one_piece_of_code() -> None:
    """Of a stage of SkipNet: nine blocks with a branch around each call what five do."""
    functions, lines = [], []
    for blocks in (5, 9):
        path = models.path("skipnet", depths=(blocks,), width=4, gate=3, size=16, classes=5)
        text = tw.compile(str(path), target="cuda:sm_90a", emulate=True, stop_after="lower")
        functions.append(len(re.findall(r"llvm.func internal @\w+_tasks?\(", text)))
        lines.append(text.count("\n"))
    assert functions[0] == functions[1] > 5
    assert lines[1] < 1.4 * lines[0], lines


def test_layers_of_other_lengths_share_code() -> None:
    """Each layer of a dilated LSTM has twice the rows of the one before: gates of all but the first are one kernel."""
    program = dilated_lstm.program(256)
    found = []
    for layers in (3, 5):
        shapes = dict(zip(program.parameters, [(32, 32), *[(layers,)] * 3], strict=True))
        text = tw.compile(program, target="cuda:sm_90a", shapes=shapes, emulate=True, stop_after="schedule")
        with ir.Context():
            module = ir.Module.parse(text)
            run_pipeline(module.operation, "builtin.module(tile-share-kernels)")
            found.append([len(re.findall(r"tile.kernel @map_exp_tanh", part)) for part in (text, str(module))])
    assert found == [[3, 2], [5, 2]]
