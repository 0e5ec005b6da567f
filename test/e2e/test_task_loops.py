# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops that each task runs by itself: no meeting of tasks, and the numbers of NumPy, on each target."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import tilewright as tw
import tilewright.fractal as ft

CPUS, GPUS = ("cpu", "cpu:x86-64-v3"), ("cuda:sm_80", "cuda:sm_90a")
#: Many tasks, a ragged end, one element.
SIZES = [(16, 256), (7, 131), (1, 1)]


def elementwise(batch: int, width: int) -> ft.Function:
    """A gated average: each element is a recurrence of its own, as in a diagonal state-space model."""

    @ft.function
    def program(
        xs: ft.Array[1, (batch, width)], gate: ft.Tensor[(batch, width)], init: ft.Tensor[(batch, width)]
    ) -> ft.Array[1, (batch, width)]:
        return ft.scanl(lambda s, x: ft.tanh(s * gate + x * 0.5), init, xs)

    return program


def rows(batch: int, width: int) -> ft.Function:
    """Rows that are normalized in each step: a row needs all of itself, and no other row."""

    @ft.function
    def program(
        xs: ft.Array[1, (batch, width)], gate: ft.Tensor[(batch, width)], init: ft.Tensor[(batch, width)]
    ) -> ft.Array[1, (batch, width)]:
        return ft.scanl(lambda s, x: ft.softmax(s * gate + x, axis=1), init, xs)

    return program


def columns(batch: int, width: int) -> ft.Function:
    """Each element needs the one beside it in its row."""

    @ft.function
    def program(
        xs: ft.Array[1, (batch, width)], gate: ft.Tensor[(batch, width)], init: ft.Tensor[(batch, width)]
    ) -> ft.Array[1, (batch, width)]:
        def step(s, x):
            return ft.cat([s[:, 1:], s[:, :1]], axis=1) * gate + x

        return ft.scanl(step, init, xs)

    return program


def oracle(step: Callable[..., np.ndarray], xs: np.ndarray, gate: np.ndarray, init: np.ndarray) -> np.ndarray:
    """All states of a recurrence."""
    states = []
    for x in xs:
        init = step(init, x, gate)
        states.append(init)
    return np.stack(states)


def _softmax(s: np.ndarray, x: np.ndarray, gate: np.ndarray) -> np.ndarray:
    e = np.exp(s * gate + x - np.max(s * gate + x, axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


STEPS: dict[Callable[[int, int], ft.Function], Callable[..., np.ndarray]] = {
    elementwise: lambda s, x, gate: np.tanh(s * gate + x * np.float32(0.5)),
    rows: _softmax,
    columns: lambda s, x, gate: np.roll(s, -1, axis=1) * gate + x,
}


def arrays(batch: int, width: int, steps: int) -> tuple[np.ndarray, ...]:
    random = np.random.default_rng(0)
    shapes = [(steps, batch, width), (batch, width), (batch, width)]
    return tuple(random.standard_normal(shape).astype(np.float32) for shape in shapes)


@pytest.mark.parametrize("target", [*CPUS, *GPUS])
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("program", STEPS, ids=lambda each: each.__name__)
def test_equal_to_numpy(program: Callable[[int, int], ft.Function], size: tuple[int, int], target: str) -> None:
    given = arrays(*size, steps=5)
    options = {"emulate": True} if target in GPUS else {"threads": 2}
    model = tw.compile(program(*size), target, shapes={"xs": (5,)}, **options)
    (found,) = model(*given)
    np.testing.assert_allclose(np.asarray(found), oracle(STEPS[program], *given), rtol=1e-4, atol=1e-5)


def schedule(program: ft.Function, target: str, steps: int = 6) -> str:
    return str(tw.compile(program, target, shapes={"xs": (steps,)}, stop_after="schedule"))


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_90a"])
@pytest.mark.parametrize("program", [elementwise, rows], ids=lambda each: each.__name__)
def test_no_meetings(program: Callable[[int, int], ft.Function], target: str) -> None:
    """One kernel whose tasks run the loop; no program of units, and no launch in a loop around which blocks meet."""
    kernels = schedule(program(64, 256), target).split("tile.kernel")
    (loop,) = [text for text in kernels if "tile.level = " in text]
    assert "scf.for" in loop and "tile.launch" not in loop.partition("tile.return")[0]
    rest = [text.partition("tile.return")[0] for text in kernels if "tile.launch" in text]
    assert all("scf.for" not in text for text in rest if "grid(" not in text.partition("{")[0])
    main = kernels[-1][kernels[-1].index("func.func @main") :]
    assert "scf.for" not in main and "tile.program" not in "".join(kernels)


@pytest.mark.parametrize(("target", "level"), [("cpu", "task"), ("cuda:sm_90a", "thread")])
@pytest.mark.parametrize("size", SIZES[:2], ids=str)
def test_states_in_registers(size: tuple[int, int], target: str, level: str) -> None:
    """A thread reads its elements once, before the loop; on CPUs a task has loops of vectors in each step."""
    (loop,) = [text for text in schedule(elementwise(*size), target).split("tile.kernel") if "tile.level" in text]
    assert f'tile.level = "{level}"' in loop
    body = loop[loop.index("scf.for") : loop.rindex("scf.yield")]
    assert body.count("tile.load") == (2 if level == "thread" else body.count("math.tanh") * 3)
    assert loop.count("tile.load") == body.count("tile.load") + (level == "thread")


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_90a"])
def test_neighbours_meet(target: str) -> None:
    """What reads beside its own elements waits for the others, behind each step."""
    text = schedule(columns(64, 256), target)
    assert ("tile.program" if target == "cpu" else "tile.blocks") in text


@pytest.mark.parametrize("target", [*CPUS, *GPUS])
def test_threads_of_a_task_meet(target: str) -> None:
    """A recurrence that is one task: its threads read what others of them wrote in the step before."""

    @ft.function
    def program(xs: ft.Array[1, (1, 5)], w: ft.Tensor[5, 5]) -> ft.Array[1, (1, 5)]:
        return ft.scanl(lambda h, x: ft.tanh(x + h @ w), ft.zeros(1, 5), xs)

    random = np.random.default_rng(0)
    xs, w = random.standard_normal((7, 1, 5), np.float32), random.standard_normal((5, 5), np.float32)
    options = {"emulate": {"seed": 3}} if target in GPUS else {}
    (found,) = tw.compile(program, target, shapes={"xs": (7,)}, **options)(xs, w)
    state, states = np.zeros((1, 5), np.float32), []
    for x in xs:
        state = np.tanh(x + state @ w)
        states.append(state)
    np.testing.assert_allclose(np.asarray(found), np.stack(states), rtol=1e-4, atol=1e-5)
