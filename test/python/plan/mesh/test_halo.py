# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Blocks get what lies beside them: values, limits, and how far that goes."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright import devices
from tilewright.plan.mesh.fit_program import fit_program
from tilewright.plan.mesh.halo import Halo, halo
from tilewright.plan.mesh.writer import Axis
from tilewright.sim.coremesh.functional import run
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.program import Loop, Send
from tilewright.sim.coremesh.timing import time_program


def parts(x: np.ndarray, what: Halo) -> np.ndarray:
    """What `halo` means, element by element."""
    moved = np.moveaxis(x, what.dim, 0)
    found = np.full((what.length * what.size, *moved.shape[1:]), what.fill, x.dtype)
    for place in range(what.length):
        for at in range(what.size):
            index = place * what.step + what.first + at
            if 0 <= index < len(moved):
                found[place * what.size + at] = moved[index]
    return np.moveaxis(found, 0, what.dim)


def drawn(rng: np.random.Generator) -> Halo:
    """Any grid, sizes, borders and order; the other dimension split, or whole."""
    height, width, dim = (int(n) for n in (*rng.integers(1, 6, 2), rng.integers(2)))
    shape = tuple(int(size) for size in rng.integers(1, 14, 2))
    axis: Axis = "y" if rng.integers(2) else "x"
    across: Axis | None = (None, "x" if axis == "y" else "y")[rng.integers(2)]
    axes = (axis, across) if dim == 0 else (across, axis)
    length = {"y": height, "x": width, None: 1}
    tile = tuple(-(-size // length[one]) for size, one in zip(shape, axes, strict=True))
    first, step, size = (int(rng.integers(*ends)) for ends in ((-4, 4), (1, 5), (1, 9)))
    order = ("linear", "ring")[rng.integers(2)]
    return Halo(shape, tile, height, width, dim, axis, axes, first, step, size, 7.0, order)


@pytest.mark.parametrize("seed", [0, 1, pytest.param(2, marks=pytest.mark.slow)])
def test_any_halo(seed: int):
    """Values are right, and no rule of the machine is broken: races, lost messages, deadlock, paths."""
    rng = np.random.default_rng(seed)
    toy = machine(devices.get("toy8x8"), "calibrated")
    for _ in range(12 if seed < 2 else 200):
        what = drawn(rng)
        x = rng.integers(-99, 99, what.shape).astype(np.float32)
        program, _ = fit_program(halo(what), toy)
        np.testing.assert_array_equal(run(program, {"x": x})["y"], parts(x, what), str(what))


def test_one_message_each_way():
    """With a step of one block, a border costs one round: what is needed goes to neighbours, and nothing else."""
    what = Halo((32, 4, 8), (4, 4, 8), 8, 8, 0, "y", ("y", None, None), -1, 4, 6, order="ring")
    program = halo(what)
    sends = [one for one in program.body if isinstance(one, Send)]
    assert len(sends) == 2 and not any(isinstance(one, Loop) and _sends(one) for one in program.body)
    toy = machine(devices.get("toy8x8"), "calibrated")
    spent = time_program(program, toy, loads=False).split
    assert spent.overhead == toy.overheads.round
    assert spent.communication < 2 * 4 * 8  # a row of 32 words each way, side by side


def _sends(loop: Loop) -> bool:
    return any(isinstance(one, Send) or (isinstance(one, Loop) and _sends(one)) for one in loop.body)


def test_nothing_moves_where_blocks_are_whole():
    """No border: what a core has is what it needs."""
    program = halo(Halo((9, 3), (3, 3), 3, 1, 0, "y", ("y", None), 0, 3, 3))
    assert not program.routes
