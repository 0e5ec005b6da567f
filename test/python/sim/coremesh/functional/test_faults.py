# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs that break a rule: an error that names core, buffer or route, and instructions; never a hang."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import python.sim.coremesh.mesh_programs as programs
from python.sim.coremesh.mesh_programs import TURN, P, X, add, column, line, mod, times
from tilewright.core.errors import UserError
from tilewright.plan.mesh.multicast_product import summa
from tilewright.plan.mesh.product import Product
from tilewright.sim.coremesh.expressions import Const
from tilewright.sim.coremesh.functional import run
from tilewright.sim.coremesh.program import (
    Compute,
    Cores,
    Cost,
    Instruction,
    Loop,
    Place,
    Program,
    Recv,
    Relay,
    Route,
    Send,
    Slot,
    Wait,
)

ALL = Cores()
FIRST, SECOND, THIRD = (Cores(zero=column(at)) for at in range(3))
EAST = Route("east", "x", add(P, -1))
AROUND = Route("around", "x", mod(add(P, 2), 3))


def fails(body: list[Instruction], *parts: str, routes: tuple[Route, ...] = (EAST,), **options: object) -> None:
    """A program of three cores raises a UserError that says all these parts."""
    program = line(3, body, list(routes), **options)  # type: ignore[arg-type]
    with pytest.raises(UserError) as found:
        run(program, {"v": np.zeros((1, 3 * program.buffers[0].shape[1]), program.buffers[0].dtype)})
    for part in parts:
        assert part in str(found.value), str(found.value)


def compute(reads: tuple[str, ...], writes: tuple[str, ...], cores: Cores = ALL) -> Compute:
    keep = lambda *tiles: tuple(tiles[0] for _ in writes)  # noqa: E731
    return Compute(cores, "keep", tuple(map(Slot, reads)), tuple(map(Slot, writes)), Cost(elements=1), keep)


def test_too_many_steps():
    """Counted, not undone: a loop of a billion turns is an error at once."""
    fails([Loop(3, (Loop(10**9, (Wait(()), Wait(()))),)), Wait(())], "has 6000000001 steps", "timing model")


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_read_before_written(dtype: str):
    what = ("slot 0 of buffer 'w'", "never", "core (y=0, x=1)")
    fails([compute(("w",), ("v",), SECOND)], "Compute 'keep' (body[0])", *what, dtype=dtype)
    send = [Send(SECOND, "east", Slot("w"), "s"), Recv(THIRD, "east", Slot("v"), "t"), Wait(("s", "t"))]
    fails(send, "Send on 'east' (body[0])", *what, dtype=dtype)


def test_combine_before_written():
    body = [Send(FIRST, "east", Slot("v"), "s"), Recv(SECOND, "east", Slot("w"), "t", combine="add"), Wait(("s", "t"))]
    fails(body, "Recv on 'east' (body[1])", "'w'", "never")


def test_output_never_written():
    fails([], "Output 'out'", "'w'", "never", out="w")


def test_read_while_received():
    """Test 30 of the reference: the read may see either."""
    body = [
        Send(FIRST, "east", Slot("v"), "s"),
        Recv(SECOND, "east", Slot("v"), "t"),
        compute(("v",), ("w",), SECOND),
        Wait(("s", "t")),
    ]
    fails(body, "Race on core (y=0, x=1)", "buffer 'v'", "Compute 'keep' (body[2]) reads", "Recv on 'east' (body[1])")


def test_write_while_sent():
    body = [
        Send(FIRST, "east", Slot("v"), "s"),
        Recv(SECOND, "east", Slot("w"), "t"),
        compute((), ("v",), FIRST),
        Wait(("s", "t")),
    ]
    body[2] = Compute(FIRST, "zero", (), (Slot("v"),), Cost(), lambda: (np.zeros((1, 1, 1), "float32"),))
    fails(body, "Race on core (y=0, x=0)", "Compute 'zero' (body[2]) writes", "Send on 'east' (body[0])")


def test_relay_reads_what_is_combined():
    body = [
        Send(FIRST, "east", Slot("v"), "s"),
        Recv(SECOND, "east", Slot("v"), "t", combine="add"),
        Send(FIRST, "east", Slot("v"), "s"),
        Relay(SECOND, "east", "east", Slot("v"), "u"),
        Recv(THIRD, "east", Slot("v"), "u"),
        Wait(("s", "t", "u")),
    ]
    fails(body, "Race", "Relay 'east' -> 'east' (body[3]) reads", "(body[1])")


def test_two_receives_into_one_slot():
    body = [
        Loop(2, (Send(FIRST, "east", Slot("v"), "s"),)),
        Loop(2, (Recv(SECOND, "east", Slot("w"), "t"),)),
        Wait(("s", "t")),
    ]
    fails(body, "Race", "(body[1][0] at loop indices (1,)) writes", "(body[1][0] at loop indices (0,))")


def test_output_still_on_its_way():
    body = [Send(FIRST, "east", Slot("v"), "s"), Recv(SECOND, "east", Slot("v"), "t")]
    fails(body, "Output 'out' reads", "Recv on 'east' (body[1])")


def test_waiting_clears_the_race():
    body = [
        Send(FIRST, "east", Slot("v"), "s"),
        Recv(SECOND, "east", Slot("v"), "t"),
        Wait(("s", "t")),
        compute(("v",), ("v",)),
    ]
    found = run(line(3, body, [EAST]), {"v": np.array([[1, 2, 3]], "float32")})
    assert found["out"].tolist() == [[1, 1, 3]]


def test_send_without_receiver():
    fails([Send(THIRD, "east", Slot("v"), "s")], "core (y=0, x=2)", "'east'", "no core receives")
    body = [Loop(3, (Send(FIRST, "east", Slot("v"), "s"),)), Recv(SECOND, "east", Slot("w"), "t")]
    fails(body, "core (y=0, x=0) sends 3 messages on route 'east' to core (y=0, x=1), which receives 1")


def test_receive_without_sender():
    body = [Send(FIRST, "east", Slot("v"), "s"), Loop(2, (Recv(SECOND, "east", Slot("w"), "t"), Wait(("t",))))]
    fails(body, "core (y=0, x=0) sends 1 message on route 'east' to core (y=0, x=1), which receives 2")


def test_source_outside():
    fails([Recv(FIRST, "east", Slot("w"), "t")], "core (y=0, x=0)", "'east'", "outside the grid of 1 x 3")


def test_cyclic_wait():
    """Test 29 of the reference: all receive first."""
    body = [Recv(ALL, "around", Slot("w"), "t"), Wait(("t",)), Send(ALL, "around", Slot("v"), "s"), Wait(("s",))]
    cycle = [f"core (y=0, x={at}) stands at Wait for 't' (body[1])" for at in range(3)]
    fails(body, "Deadlock: 3 cores", *cycle, "waits for Recv on 'around' (body[0])", routes=(AROUND,))


def test_cyclic_relays_that_nobody_waits_for():
    fails([Relay(ALL, "around", "around", Slot("v"), "t")], "Deadlock", "Relay", "core (y=0, x=2)", routes=(AROUND,))


def test_a_turn_that_never_comes():
    """Core 2 takes from core 0 first, which waits for core 2's message to core 1, which is sent after."""
    near, far = Route("near", "x", add(P, -1)), Route("far", "x", add(P, -2))
    west = Route("west", "x", add(P, 1))
    body = [
        Recv(THIRD, "far", Slot("w"), "t"),
        Wait(("t",)),
        Send(THIRD, "west", Slot("v"), "s"),
        Recv(SECOND, "west", Slot("w"), "t"),
        Wait(("t",)),
        Send(SECOND, "west", Slot("v"), "s"),
        Recv(FIRST, "west", Slot("w"), "t"),
        Wait(("t",)),
        Send(FIRST, "far", Slot("v"), "s"),
        Wait(("s",)),
    ]
    fails(body, "Deadlock", "x=0", "x=1", "x=2", "(body[0])", routes=(near, far, west))


def test_slot_that_is_not_there():
    body = [Loop(2, (Compute(ALL, "keep", (Slot("v", TURN),), (Slot("w"),), Cost(), lambda v: (v,)),))]
    fails(body, "asks for slot 1 of buffer 'v', which has 1", "core (y=0, x=0)")


def test_kernel_of_another_dtype():
    body = [Compute(ALL, "widen", (Slot("v"),), (Slot("w"),), Cost(), lambda v: (v.astype("float64"),))]
    fails(body, "Compute 'widen'", "float64[1, 1]", "float32[1, 1]")


def test_kernel_that_changes_what_it_reads():
    def spoil(tile: np.ndarray) -> tuple[np.ndarray]:
        tile += 1
        return (tile,)

    program = line(3, [Compute(ALL, "spoil", (Slot("v"),), (Slot("w"),), Cost(), spoil)], [])
    with pytest.raises(ValueError, match="read-only"):
        run(program, {"v": np.zeros((1, 3), "float32")})


def test_tiles_of_two_shapes():
    base = programs.pass_on(3, 1, 4)
    small = (base.buffers[0], type(base.buffers[1])("w", (1, 2), np.dtype("float32")))
    with pytest.raises(UserError, match=r"takes a tile float32\[1, 4\] .*'w' of float32\[1, 2\]"):
        run(Program(**{**vars(base), "buffers": small}), {"v": np.zeros((1, 12), "float32")})


def test_unknown_names():
    fails([Send(ALL, "none", Slot("v"), "s")], "Route 'none'", "['east']")
    fails([compute(("nothing",), ("v",))], "Buffer 'nothing'", "['v', 'w']")
    with pytest.raises(UserError, match=r"takes the inputs \['v'\], not \['u'\]"):
        run(line(3, [], []), {"u": np.zeros((1, 3), "float32")})
    with pytest.raises(UserError, match=r"Input 'v' is float64\[1, 4\].*float32\[1, 3\]"):
        run(line(3, [], []), {"v": np.zeros((1, 4))})


def test_expression_of_a_loop_that_is_not_around():
    fails([compute(("v",), ("w",), Cores(zero=(TURN,)))], "asks for loop 0", "inside 0")


def test_replicas_that_differ():
    base = line(3, [], [])
    program = Program(**{**vars(base), "outputs": (Place("out", (1, 1), Slot("v"), (Const(0), Const(0))),)})
    with pytest.raises(UserError, match=r"Copies of output 'out' differ: .* 2.0 on core \(y=0, x=1\) and 1.0 on"):
        run(program, {"v": np.array([[1, 2, 1]], "float32")})
    assert run(program, {"v": np.full((1, 3), np.nan, "float32")})["out"].shape == (1, 1)


def test_blocks_that_are_to_be_copies():
    """Of an allreduce each core holds a block of its own, and all are alike."""
    base = line(3, [], [])
    place = Place("out", (1, 3), Slot("v"), (Const(0), X), alike=(1,))
    program = Program(**{**vars(base), "outputs": (place,)})
    with pytest.raises(UserError, match=r"Copies of output 'out' differ: .* 2.0 on core \(y=0, x=1\) and 1.0 on"):
        run(program, {"v": np.array([[1, 2, 1]], "float32")})
    assert run(program, {"v": np.full((1, 3), 5, "float32")})["out"].tolist() == [[5, 5, 5]]


def test_parts_that_do_not_belong_together():
    """A product of blocks of inputs, wherever they were sent: both must be the same part of what is summed over."""
    program = summa(Product(4, 6, 4, 2, 3))
    inputs = {"A": np.ones((4, 6), "float32"), "B": np.ones((6, 4), "float32")}
    assert (run(program, inputs)["C"] == 6).all()
    *body, last = program.body
    assert isinstance(last, Compute) and last.name == "matmul"
    a, b, total = last.reads
    wrong = replace(last, reads=(replace(a, index=Const(0)), b, total))
    with pytest.raises(
        UserError, match=r"takes block \(0, 4\) of input 'A' and block \(5, 0\) of input 'B'.*parts 4 and 5 do not"
    ):
        run(replace(program, body=(*body, wrong)), inputs)


def test_output_block_on_no_core():
    base = line(3, [], [])
    program = Program(**{**vars(base), "outputs": (Place("out", (1, 3), Slot("v"), (Const(0), times(X, 2))),)})
    with pytest.raises(UserError, match=r"Block \(0, 1\) of output 'out' is on no core"):
        run(program, {"v": np.zeros((1, 3), "float32")})
