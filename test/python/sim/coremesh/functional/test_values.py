# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What programs for a mesh compute, against plain NumPy: every dtype, odd sizes, padding, orders of sums."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import python.sim.coremesh.mesh_programs as programs
from python.sim.coremesh.mesh_programs import TURN, P, X, Y, add, column, line, mod, times
from tilewright.sim.coremesh.expressions import Const
from tilewright.sim.coremesh.functional import run
from tilewright.sim.coremesh.program import (
    Buffer,
    Compute,
    Cores,
    Cost,
    Loop,
    Place,
    Program,
    Recv,
    Route,
    Send,
    Slot,
    Wait,
)

DTYPES = ("float32", "float16", ml_dtypes.bfloat16, "float64", "int8", "int32", "int64")


def numbers(shape: tuple[int, ...], dtype: Any = "float32", most: int = 9, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-most, most + 1, shape).astype(np.dtype(dtype))


@pytest.mark.parametrize("order", ["ring", "linear"])
@pytest.mark.parametrize("side", [1, 2, 3, 5, 8])
def test_gemm(side: int, order: programs.Order):
    a, b = numbers((side * 3, side * 2)), numbers((side * 2, side * 5), seed=1)
    found = run(programs.gemm(side, (3, 2, 5), order=order), {"a": a, "b": b})
    np.testing.assert_array_equal(found["c"], a @ b)


@pytest.mark.parametrize("dtype", DTYPES)
def test_gemm_of_every_dtype(dtype: str):
    """Small integers: exact in each of them, so that equality can be asked for."""
    a, b = numbers((12, 8), dtype, most=1), numbers((8, 4), dtype, most=1, seed=1)
    found = run(programs.gemm(4, (3, 2, 1), dtype), {"a": a, "b": b})["c"]
    assert found.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(found.astype(float), a.astype(float) @ b.astype(float))


def test_gemm_padded():
    """7 x 5 by 5 x 11 on 3 x 3 cores: no dimension is a multiple."""
    a, b = numbers((7, 5)), numbers((5, 11), seed=1)
    found = run(programs.gemm(3, (3, 2, 4), shape=(7, 5, 11)), {"a": a, "b": b})
    np.testing.assert_array_equal(found["c"], a @ b)


def test_64_x_64_cores():
    """A whole machine of the wavelet simulator's size: 64 rounds of 8 x 8 tiles."""
    a, b = numbers((512, 512)), numbers((512, 512), seed=1)
    found = run(programs.gemm(64, (8, 8, 8)), {"a": a, "b": b})
    np.testing.assert_array_equal(found["c"], a @ b)


@pytest.mark.parametrize("dtype", ["float16", ml_dtypes.bfloat16, "float32"])
def test_a_chain_sums_from_its_beginning(dtype: str):
    """Each stage rounds: adding the other way around gives other bits."""
    values = (np.random.default_rng(3).standard_normal((2, 7 * 33)) * 100).astype(np.dtype(dtype))
    found = run(programs.chain(7, 33, dtype, height=2), {"v": values})["out"].reshape(2, 7, 33)
    parts = values.reshape(2, 7, 33)
    forward, backward = parts[:, 0], parts[:, 6]
    for at in range(1, 7):
        forward = forward + parts[:, at]
        backward = backward + parts[:, 6 - at]
    np.testing.assert_array_equal(found[:, 6].view(np.uint8), forward.view(np.uint8))
    assert (forward != backward).any()
    np.testing.assert_array_equal(found[:, :6], parts[:, :6])


def test_combinations_take_turns_in_program_order():
    """Core 3's message comes first, as core 1 has to wait for core 2's: it is added last all the same."""
    v = np.float16
    body = [
        Send(Cores(zero=column(2)), "near", Slot("v"), "s"),
        Recv(Cores(zero=column(1)), "near", Slot("w"), "w"),
        Wait(("w",)),
        Send(Cores(zero=column(1)), "near", Slot("v"), "s"),
        Send(Cores(zero=column(3)), "far", Slot("v"), "s"),
        Recv(Cores(zero=column(0)), "near", Slot("v"), "t", combine="add"),
        Recv(Cores(zero=column(0)), "far", Slot("v"), "t", combine="add"),
        Wait(("s", "t")),
    ]
    program = line(4, body, [Route("near", "x", add(P, 1)), Route("far", "x", add(P, 3))], dtype="float16")
    values = np.array([[v(1), v(2048), v(0), v(-2048)]])
    assert run(program, {"v": values})["out"][0, 0] == v(v(1) + v(2048)) + v(-2048) != v(1)


@pytest.mark.parametrize("width", [1, 2, 3, 6, 7])
def test_ring_allreduce(width: int):
    values = numbers((1, width * width * 2))
    found = run(programs.ring_allreduce(width, 2), {"v": values})["out"]
    np.testing.assert_array_equal(found[0], values.reshape(width, -1).sum(0))


@pytest.mark.parametrize(
    "program", [programs.star(7, 5), programs.tree(8, 5), programs.two_phase(12, 3, 5), programs.two_phase(12, 2, 5)]
)
def test_reductions(program: Program):
    values = numbers((1, program.width * 5))
    found = run(program, {"v": values})["out"]
    np.testing.assert_array_equal(found[0, :5], values.reshape(-1, 5).sum(0))


@pytest.mark.parametrize("root", [0, 3, 6])
def test_broadcast(root: int):
    values = numbers((1, 7 * 3))
    found = run(programs.broadcast(7, root, 3), {"v": values})["out"].reshape(7, 3)
    np.testing.assert_array_equal(found, np.tile(values.reshape(7, 3)[root], (7, 1)))


def test_largest_of_a_chain():
    """`max` streams as sums do, and combines what is stored."""
    base = programs.chain(5, 4)
    body = tuple(type(one)(**{**vars(one), "combine": "max"}) if hasattr(one, "combine") else one for one in base.body)
    program = Program(**{**vars(base), "body": body})
    values = numbers((1, 20))
    found = run(program, {"v": values})["out"][0, -4:]
    np.testing.assert_array_equal(found, values.reshape(5, 4).max(0))


def test_a_source_that_moves_with_the_loop():
    """Every column is the root of one broadcast: routes as SUMMA has them. Tall, not square, an odd number of cores."""
    height, width = 3, 5
    root = add(X, times(TURN, -1))
    others = (add(root, -1),), (add(times(root, -1), -1),)
    body = (
        Compute(Cores(), "keep", (Slot("v"),), (Slot("w"),), Cost(elements=2), lambda v: (v,)),
        Loop(
            width,
            (
                Send(Cores(zero=(root,)), "r", Slot("v"), "s"),
                *(Recv(Cores(at_least_zero=side), "r", Slot("t"), "t") for side in others),
                Wait(("s", "t")),
                *(
                    Compute(
                        Cores(at_least_zero=side),
                        "add",
                        (Slot("w"), Slot("t")),
                        (Slot("w"),),
                        Cost(elements=2),
                        lambda w, t: (w + t,),
                    )
                    for side in others
                ),
            ),
        ),
    )
    number = np.dtype("int32")
    program = Program(
        "summa",
        height,
        width,
        tuple(Buffer(name, (1, 2), number) for name in ("v", "w", "t")),
        (Route("r", "x", TURN),),
        (Place("v", (height, width * 2), Slot("v"), (Y, X)),),
        (Place("out", (height, 2), Slot("w"), (Y, Const(0))),),
        body,
    )
    values = numbers((height, width * 2), "int32")
    np.testing.assert_array_equal(run(program, {"v": values})["out"], values.reshape(height, width, 2).sum(1))


@pytest.mark.parametrize("ahead", [1, 2, 7])
def test_messages_queue_in_order(ahead: int):
    """The sender is done before the receiver starts."""
    body = (
        Loop(ahead, (Send(Cores(zero=(X,)), "r", Slot("v", TURN), "s"),)),
        Wait(("s",)),
        Loop(ahead, (Recv(Cores(zero=(add(X, -1),)), "r", Slot("v", TURN), "t"), Wait(("t",)))),
    )
    number = np.dtype("uint16")
    place = lambda name, at, core: Place(name, (1,), Slot("v", Const(at)), (add(X, -core),))  # noqa: E731
    program = Program(
        "ahead",
        1,
        2,
        (Buffer("v", (1,), number, ahead),),
        (Route("r", "x", add(P, -1)),),
        tuple(place(f"i{at}", at, 0) for at in range(ahead)),
        tuple(place(f"o{at}", at, 1) for at in range(ahead)),
        body,
    )
    values = {f"i{at}": np.array([100 + at], number) for at in range(ahead)}
    found = run(program, values)
    assert [int(found[f"o{at}"][0]) for at in range(ahead)] == [100 + at for at in range(ahead)]


def test_columns_move_data_too():
    """Along ``y``, three hops, on a machine that is not square; every row has data of its own."""
    body = [
        Send(Cores(at_least_zero=(add(times(Y, -1), 1),)), "r", Slot("v"), "s"),
        Recv(Cores(at_least_zero=(add(Y, -3),)), "r", Slot("v"), "t"),
        Wait(("s", "t")),
    ]
    program = line(4, body, [Route("r", "y", add(P, -3))], height=5)
    values = numbers((5, 4))
    found = run(program, {"v": values})["out"]
    np.testing.assert_array_equal(found, np.concatenate([values[:3], values[:2]]))


def test_the_folded_ring_shifts_by_two_hops():
    """`ring` positions: 0-2-4-3-1-0 on five cores."""
    every = Cores(order="ring")
    body = [Send(every, "r", Slot("v"), "s"), Recv(every, "r", Slot("w"), "t"), Wait(("s", "t"))]
    program = line(5, body, [Route("r", "x", mod(add(P, 4), 5), order="ring")], out="w")
    found = run(program, {"v": np.arange(5, dtype="float32")[None]})["out"][0]
    assert found.tolist() == [1, 3, 0, 4, 2]


def test_kernel_without_operands_makes_one_tile_for_all_cores():
    fill = Compute(Cores(), "fill", (), (Slot("x"),), Cost(), lambda: (np.full((1, 1, 2), 7, np.int32),))
    place = Place("x", (2, 6), Slot("x"), (Y, X))
    buffer = Buffer("x", (1, 2), np.dtype(np.int32))
    made = Program("fill", 2, 3, (buffer,), (), (), (place,), (fill,))
    np.testing.assert_array_equal(run(made, {})["x"], np.full((2, 6), 7))


def test_output_in_several_slots():
    """Blocks 2 x and 2 x + 1 of each row lie in the two slots of core x."""
    x = np.arange(12, dtype=np.int32).reshape(1, 12)
    buffer = Buffer("x", (1, 2), np.dtype(np.int32), 2)
    places = tuple(Place("x", (1, 12), Slot("x", Const(s)), (Y, add(times(X, 2), s))) for s in (0, 1))
    same = Program("same", 1, 3, (buffer,), (), places, places, ())
    np.testing.assert_array_equal(run(same, {"x": x})["x"], x)
