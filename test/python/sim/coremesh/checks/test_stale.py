# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Old tiles that are read in the place of new ones are errors; a last tile that nobody reads is none."""

from dataclasses import replace

import pytest
from planned import programs
from small_programs import ALL, F32, chain, compute, mesh_gemm, slot, summa, zero

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.checks.losses import lost_values
from tilewright.sim.coremesh.checks.races import Slots
from tilewright.sim.coremesh.expressions import Binary, Const
from tilewright.sim.coremesh.program import Buffer, Compute, Loop


def other_slot(instruction, buffer):
    """A kernel that reads the other one of two slots."""
    reads = tuple(
        replace(one, index=Binary("mod", Binary("+", one.index, Const(1)), Const(2))) if one.buffer == buffer else one
        for one in instruction.reads
    )
    return replace(instruction, reads=reads)


@pytest.mark.parametrize("buffer", ["A", "B"])
def test_the_tile_of_the_round_before(buffer):
    """Cannon's last product takes what it multiplied before, and what came last is never used."""
    program = programs()["cannon"]
    body = list(program.body)
    (last,) = [number for number, one in enumerate(body) if isinstance(one, Compute) and one.name == "matmul"]
    body[last] = other_slot(body[last], buffer)
    with pytest.raises(
        UserError, match=rf"reads slot 0 of buffer '{buffer}' again, which is older than what Recv on .* Read slot 1"
    ) as error:
        lost_values(replace(program, body=tuple(body)))
    assert str(error.value.location).startswith("Compute 'matmul'")


def test_what_came_last_and_nobody_reads_is_a_warning():
    """No older tile is read after it: a shift too many is waste, not a wrong slot."""
    program = mesh_gemm(3)
    *before, loop = program.body
    body = tuple(replace(one, cores=ALL) if hasattr(one, "token") else one for one in loop.body)
    assert len(lost_values(replace(program, body=(*before, Loop(3, body))))) == 2


def test_a_kernel_s_tile_that_is_left_for_an_older_one():
    """The same for what is computed into one of two slots."""
    program = chain(2)
    write = [compute(ALL, (), (slot("w", number),), 0, zero) for number in (0, 1)]
    buffers = (*program.buffers, Buffer("w", (4,), F32, 2), Buffer("u", (4,), F32))

    def copy(number):
        return compute(ALL, (slot("w", number),), (slot("u"),), 0, lambda tile: (tile,))

    def body(*last):
        return replace(program, buffers=buffers, body=(write[0], copy(0), write[1], *last, *program.body))

    with pytest.raises(
        UserError, match=r"reads slot 0 of buffer 'w' again, which is older than what .*body\[2\]\) put into"
    ):
        lost_values(body(copy(0)))
    assert not any("'w'" in one for one in lost_values(body(copy(1))))


def test_one_walk_is_enough_for_many_wasted_tiles(monkeypatch: pytest.MonkeyPatch):
    """A panel in each round that no product takes: four times the rounds, about four times the accesses looked at."""
    calls = []
    plain = Slots.slots
    monkeypatch.setattr(Slots, "slots", lambda *arguments: calls.append(1) or plain(*arguments))

    def looked_at(n):
        first, loop = summa(n).body
        taken = loop.body[-1]
        reads = tuple(replace(one, buffer="b panel") if one.buffer == "a panel" else one for one in taken.reads)
        calls.clear()
        body = (first, Loop(n, (*loop.body[:-1], replace(taken, reads=reads))))
        assert any("'a panel'" in one for one in lost_values(replace(summa(n), body=body)))
        return len(calls)

    assert looked_at(32) < 5 * looked_at(8)
