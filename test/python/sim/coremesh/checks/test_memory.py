# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory by liveness: exact on small programs, against every step of every core; overflow names all (reference 28)."""

from dataclasses import replace

import numpy as np
import pytest
from small_programs import ALL, F32, X, all_gather, cannon, chain, compute, mesh_gemm, only, slot, summa, zero
from undone import random_memory, takes_part
from undone import steps as undone_steps

from tilewright.core.errors import UserError
from tilewright.plan.mesh.assign_addresses import assign_addresses
from tilewright.sim.coremesh.checks.lifetimes import buffer_bytes, live_buffers, points_of, slot_bytes
from tilewright.sim.coremesh.checks.memory import check_memory, core_classes
from tilewright.sim.coremesh.checks.races import accesses
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.program import Buffer, Loop, Program, Recv, Send, Wait

WSE = machine("wse2", code_bytes=0)
PROGRAMS = [mesh_gemm(1), mesh_gemm(5), cannon(4), summa(5), all_gather(4), chain(5)]


class Core:
    """One core, step by step: which buffers hold something that a later step reads, or that is in flight."""

    def __init__(self, program, found, y, x):
        self.program, self.found, self.at = program, found, (y, x)
        self.filled = {place.slot.buffer: -1 for place in program.inputs}
        self.flights = {}

    def hold(self, buffer, first, last):
        for number in range(first, last + 1):
            self.found[number].add(buffer)

    def step(self, number, instruction, loops):
        if isinstance(instruction, Wait):
            for token in instruction.tokens:
                for start, buffer in self.flights.pop(token, ()):
                    self.hold(buffer, start, number)
        elif takes_part(self.program, instruction.cores, *self.at, loops):
            for where, kind in accesses(instruction):
                if kind != "write" and where.buffer in self.filled:
                    self.hold(where.buffer, self.filled[where.buffer] + 1, number)
            for where, _ in accesses(instruction):
                self.found[number].add(where.buffer)
                self.filled[where.buffer] = number
                if token := getattr(instruction, "token", None):
                    self.flights.setdefault(token, []).append((number, where.buffer))

    def end(self):
        last = len(self.found) - 1
        for place in self.program.outputs:
            if place.slot.buffer in self.filled:
                self.hold(place.slot.buffer, self.filled[place.slot.buffer] + 1, last)
        for flights in self.flights.values():
            for start, buffer in flights:
                self.hold(buffer, start, last)


def needed(program):
    """By step: buffers that hold something which a later step of the same core may read, or that it touches."""
    order = list(undone_steps(program.body))
    found = [set() for _ in order]
    for y in range(program.height):
        for x in range(program.width):
            core = Core(program, found, y, x)
            for number, (instruction, loops) in enumerate(order):
                core.step(number, instruction, loops)
            core.end()
    return [(instruction, live) for (instruction, _), live in zip(order, found, strict=True)]


@pytest.mark.parametrize("program", [*PROGRAMS, *(random_memory(seed) for seed in range(60))], ids=lambda p: p.name)
def test_what_is_needed_is_live_and_addresses_keep_it_apart(program):
    live = {
        id(point.instruction): names for point, names in zip(points_of(program), live_buffers(program), strict=True)
    }
    placed = assign_addresses(program, WSE)
    at = {buffer.name: range(buffer.address, buffer.address + buffer_bytes(buffer)) for buffer in placed.buffers}
    for instruction, names in needed(program):
        assert names <= live[id(instruction)], instruction
        used = [byte for name in names for byte in at[name]]
        assert len(used) == len(set(used))
    check_memory(placed, WSE)
    peak = core_classes(program)[0].peak
    end = max(span.stop for span in at.values())
    assert peak <= end <= sum(buffer_bytes(buffer) for buffer in program.buffers)


def straight(*body, **sizes):
    buffers = tuple(Buffer(name, (size,), F32) for name, size in sizes.items())
    return Program("straight", 1, 1, buffers, (), (), (), tuple(body))


def fill(name):
    return compute(ALL, (), (slot(name),), 0, zero)


def use(name):
    return compute(ALL, (slot(name),), (), 0, zero)


def test_buffers_that_are_never_live_together_share_memory():
    program = straight(fill("a"), use("a"), fill("b"), use("b"), a=10, b=8)
    assert [sorted(names) for names in live_buffers(program)] == [["a"], ["a"], ["b"], ["b"]]
    placed = assign_addresses(program, WSE)
    assert [buffer.address for buffer in placed.buffers] == [0, 0]
    assert core_classes(program)[0].peak == 40


def test_a_value_that_goes_round_a_loop_is_live_in_all_of_it():
    program = straight(fill("a"), Loop(3, (use("a"), fill("b"), use("b"), fill("a"))), a=1, b=1)
    assert [sorted(names) for names in live_buffers(program)] == [["a"], ["a"], ["b"], ["b"], ["a"]]
    carried = straight(fill("a"), Loop(3, (use("a"), fill("b"), use("b"))), a=1, b=1)
    assert [sorted(names) for names in live_buffers(carried)] == [["a"], ["a"], ["a", "b"], ["a", "b"]]
    once = straight(fill("a"), Loop(1, (use("a"), fill("b"), use("b"))), a=1, b=1)
    assert [sorted(names) for names in live_buffers(once)] == [["a"], ["a"], ["b"], ["b"]]


def test_a_transfer_keeps_its_buffer_until_the_wait():
    send = Send(ALL, "r", slot("a"), "t")
    program = straight(fill("a"), send, fill("b"), use("b"), Wait(("t",)), use("b"), a=1, b=1)
    assert ["a" in names for names in live_buffers(program)] == [True] * 5 + [False]
    never = straight(fill("a"), send, fill("b"), use("b"), a=1, b=1)
    assert all("a" in names for names in live_buffers(never))
    outside = straight(Loop(2, (fill("b"), use("b"), fill("a"), send)), Wait(("t",)), use("b"), a=1, b=1)
    assert ["a" in names for names in live_buffers(outside)] == [True] * 5 + [False]


def test_a_write_by_some_cores_does_not_end_what_others_hold():
    some = compute(only(X), (), (slot("a"),), 0, zero)
    program = straight(fill("a"), fill("b"), some, use("a"), a=1, b=1)
    assert "a" in live_buffers(program)[1]


def test_bytes_of_slots():
    buffer = Buffer("v", (3,), np.dtype(np.float16), 2)
    assert (slot_bytes(buffer), buffer_bytes(buffer)) == (8, 16)


def test_peak_memory_per_core_is_a_square_smaller_for_meshgemm_than_for_all_gather():
    """Reference test 12: with the matrix fixed, 1 / N^2 against 1 / N (panels of a whole row)."""
    whole = 48

    def peak(make, n):
        return core_classes(make(n, whole // n))[0].peak

    for n in (4, 8, 16):
        tile = 4 * (whole // n) ** 2
        assert peak(mesh_gemm, n) == 5 * tile
        assert peak(all_gather, n) == (3 + 2 * n) * tile or peak(all_gather, n) == (2 + 2 * n) * tile + tile
    assert peak(mesh_gemm, 4) == 16 * peak(mesh_gemm, 16)
    assert 4 < peak(all_gather, 4) / peak(all_gather, 16) < 6


def test_overflow_names_core_demand_capacity_tensors_and_a_remedy():
    program = mesh_gemm(4, 64)
    for act in (lambda: check_memory(program, WSE), lambda: assign_addresses(program, WSE)):
        with pytest.raises(UserError) as error:
            act()
        text = str(error.value)
        assert (
            "Memory: core (y=0, x=0) and 15 others like it of program 'meshgemm 4' needs 81920 bytes beside 0" in text
        )
        assert "machine 'wse2' has 49152" in text
        assert "32768 bytes  'a'" in text
        assert "16384 bytes  'c'" in text
        assert "smaller tiles" in text


def test_code_takes_its_part():
    program = mesh_gemm(4, 40)
    assert sum(buffer_bytes(buffer) for buffer in program.buffers) == 32000
    placed = assign_addresses(program, machine("wse2", code_bytes=16000))
    assert min(buffer.address for buffer in placed.buffers) == 16000
    with pytest.raises(UserError, match="needs 32000 bytes beside 18000 bytes of code"):
        assign_addresses(program, machine("wse2", code_bytes=18000))


def test_classes_of_cores():
    big = Buffer("big", (1000,), F32)
    program = chain(5)
    program = replace(
        program,
        buffers=(*program.buffers, big),
        body=(compute(only(X - 2), (), (slot("big"),), 0, zero), *program.body),
    )
    assert [(one.core, one.cores, one.peak) for one in core_classes(program)] == [((0, 2), 1, 4016), ((0, 0), 4, 16)]


def test_operands_of_a_computation_begin_in_different_banks_where_that_is_free():
    def banks(program):
        placed = {buffer.name: buffer for buffer in assign_addresses(program, WSE).buffers}
        end = max(one.address + buffer_bytes(one) for one in placed.values())
        return end, {placed[name].address // 4 % 8 for name in "abc"}

    program = mesh_gemm(4, 8)  # slots of 256 bytes: all multiples of the 32 bytes that the banks span
    assert banks(program) == (5 * 256, {0})
    dead = Buffer("dead", (6 * 64,), F32)  # gone before the product begins: its memory has room to spread in
    body = (fill("dead"), use("dead"), fill("a"), fill("b"), *program.body)
    end, found = banks(replace(program, buffers=(*program.buffers, dead), inputs=(), body=body))
    assert (end, len(found)) == (6 * 256, 3)


def test_addresses_are_checked():
    program = mesh_gemm(4)
    a, b, c = assign_addresses(program, WSE).buffers

    def check(*buffers):
        check_memory(replace(program, buffers=buffers), WSE)

    check(a, b, c)
    with pytest.raises(UserError, match=r"Buffers 'a' \(bytes 0 to 31\) and 'b' \(bytes 28 to 59\) overlap"):
        check(a, replace(b, address=28), replace(c, address=100))
    with pytest.raises(UserError, match="begins at byte 30: buffers begin at multiples of 4"):
        check(a, replace(b, address=30), c)
    with pytest.raises(UserError, match=r"takes bytes 49148 to 49163 of a core's memory, .* has 49152"):
        check(a, b, replace(c, address=49148))


def test_a_receive_writes_a_buffer_anew():
    recv = (Recv(ALL, "r", slot("a"), "t"), Wait(("t",)))
    program = straight(fill("a"), use("a"), *recv, use("a"), a=1)
    assert [sorted(names) for names in live_buffers(program)] == [["a"]] * 5
    some = straight(Loop(2, (fill("b"), use("b"), *recv, use("a"))), a=1, b=1)
    assert [sorted(names) for names in live_buffers(some)] == [["b"], ["b"], ["a"], ["a"], ["a"]]
