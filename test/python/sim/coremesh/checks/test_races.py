# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Slots in flight and slots that hold nothing: errors name core, slot and both instructions (reference test 30)."""

from dataclasses import replace

import pytest
from small_programs import (
    ALL,
    X,
    all_gather,
    cannon,
    chain,
    compute,
    mesh_gemm,
    only,
    slot,
    summa,
    two_phase,
    zero,
)

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.checks.races import check_races
from tilewright.sim.coremesh.program import Loop, Wait

PROGRAMS = [mesh_gemm(1), mesh_gemm(5), cannon(4), summa(1), summa(5), all_gather(4), chain(5), two_phase(15, 3)]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
def test_right_programs_have_no_race(program):
    check_races(program)


def inner(program, change):
    """A program whose last loop's body is changed."""
    *before, loop = program.body
    return replace(program, body=(*before, Loop(loop.count, change(loop.body))))


def test_a_wait_that_does_not_wait_for_a_receive():
    program = inner(mesh_gemm(5), lambda body: (*body[:-1], Wait(("sent a", "sent b", "got b"))))
    with pytest.raises(
        UserError, match=r"Race: core \(y=0, x=0\) reads slot 1 of buffer 'a' while Recv on 'x'.*Wait for 'got a'"
    ):
        check_races(program)


def test_a_wait_that_does_not_wait_for_a_send():
    program = inner(mesh_gemm(5), lambda body: (*body[:-1], Wait(("got a", "sent b", "got b"))))
    with pytest.raises(UserError, match=r"writes slot 0 of buffer 'a' while Send on 'x'.*still reads it"):
        check_races(program)


def test_one_slot_instead_of_two():
    program = mesh_gemm(5)
    with pytest.raises(UserError, match="touches slot 1 of buffer 'a', which has 1"):
        check_races(replace(program, buffers=(replace(program.buffers[0], slots=1), *program.buffers[1:])))


def test_a_read_before_anything_was_received():
    program = inner(mesh_gemm(5), lambda body: tuple(i for i in body if getattr(i, "token", "") != "got a"))
    with pytest.raises(UserError, match=r"core \(y=0, x=0\) reads slot 1 of buffer 'a' before anything was written"):
        check_races(program)


def test_a_sum_into_what_holds_nothing():
    program = chain(4)
    with pytest.raises(UserError, match=r"core \(y=0, x=0\) reads slot 0 of buffer 'v' before anything"):
        check_races(replace(program, inputs=()))


def test_only_some_cores_fill_what_all_read():
    program = mesh_gemm(5)
    first = compute(only(X - 1), (), (slot("c"),), 0, zero)
    with pytest.raises(UserError, match=r"reads slot 0 of buffer 'c' before anything .*\(20 cores do\)"):
        check_races(replace(program, body=(first, *program.body[1:])))


def test_an_output_still_in_flight_at_the_end():
    program = chain(4)
    with pytest.raises(UserError, match=r"core \(y=0, x=3\) reads slot 0 of buffer 'v' while Recv on 'east'") as error:
        check_races(replace(program, body=program.body[:-1]))
    assert error.value.location == "output 'v'"


def test_combining_receives_into_one_slot_are_ordered_by_the_machine():
    check_races(two_phase(15, 3, 2))


def test_an_unknown_buffer():
    program = chain(4)
    broken = replace(program, body=(compute(ALL, (slot("w"),), (), 0, zero), *program.body))
    with pytest.raises(UserError, match="Buffer 'w' is not a buffer of the program"):
        check_races(broken)
