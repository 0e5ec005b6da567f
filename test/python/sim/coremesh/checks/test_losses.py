# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values received in vain are warnings; messages stored over others that nobody read, and wrong shapes, are errors."""

from dataclasses import replace

import numpy as np
import pytest
from planned import programs
from small_programs import ALL, F32, E, L, all_gather, cannon, chain, compute, mesh_gemm, slot, summa, two_phase, zero

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.checks.field import Field
from tilewright.sim.coremesh.checks.losses import lost_values
from tilewright.sim.coremesh.checks.shapes import check_shapes
from tilewright.sim.coremesh.expressions import Const
from tilewright.sim.coremesh.program import Buffer, Loop, Recv
from tilewright.sim.coremesh.steps import unroll

PLANNED = {name: program for name, program in programs().items() if name != "gemm-t"}


@pytest.mark.parametrize("program", [mesh_gemm(5), cannon(4), summa(4), all_gather(3), chain(5), two_phase(15, 3, 2)])
def test_nothing_is_lost_in_programs_by_hand(program):
    assert lost_values(program) == ()


@pytest.mark.parametrize("name", PLANNED)
def test_nothing_is_lost_in_planned_programs(name):
    assert lost_values(PLANNED[name]) == ()


def test_a_shift_after_the_last_product_is_in_vain():
    program = mesh_gemm(3)
    *before, loop = program.body
    body = tuple(replace(one, cores=ALL) if hasattr(one, "token") else one for one in loop.body)
    found = lost_values(replace(program, body=(*before, Loop(3, body))))
    assert len(found) == 2
    assert found[0] == (
        "core (y=0, x=0): what Recv on 'x' (body[1][1] at loop indices (2,)) puts into slot 1 of buffer 'a' "
        "is never used"
    )


def test_a_sum_that_is_stored_overwrites_what_nobody_read():
    program = chain(4)
    body = tuple(
        replace(one, combine=None) if getattr(one, "combine", None) == "add" and "Recv" in repr(type(one)) else one
        for one in program.body
    )
    with pytest.raises(UserError) as error:
        lost_values(replace(program, body=body))
    assert str(error.value).startswith(
        "core (y=0, x=3): Recv on 'east' (body[2]) overwrites what input 'v' put into slot 0 of buffer 'v' before it "
        "is read. Combine it"
    )


def test_a_message_that_is_stored_over_another_is_an_error():
    """Which of both was in vain, the program cannot mean."""
    star = PLANNED["star"]
    body = tuple(replace(one, combine=None) if isinstance(one, Recv) and one.combine else one for one in star.body)
    with pytest.raises(
        UserError, match=r"core \(y=0, x=0\): Recv on 'x_star2' .* overwrites what Recv on 'x_star' .* Combine it"
    ) as error:
        lost_values(replace(star, body=body))
    assert str(error.value.location).startswith("Recv on 'x_star2'")


def test_a_result_that_a_kernel_overwrites_is_a_warning():
    """A kernel may make more than is used; what a message brings is meant to be."""
    program = chain(2)
    start = compute(ALL, (), (slot("w"),), 0, zero)
    buffers = (*program.buffers, Buffer("w", (4,), F32))
    found = lost_values(replace(program, body=(start, start, *program.body), buffers=buffers))
    assert [one.partition(": ")[2] for one in found] == [
        "Compute 'zero' (body[1]) overwrites what Compute 'zero' (body[0]) put into slot 0 of buffer 'w' before it is "
        "read"
    ]


def shapes(program):
    check_shapes(program, Field(program), unroll(program))


@pytest.mark.parametrize("name", programs())
def test_shapes_of_planned_programs_fit(name):
    shapes(programs()[name])


def changed(program, name, **fields):
    buffers = tuple(replace(one, **fields) if one.name == name else one for one in program.buffers)
    return replace(program, buffers=buffers)


def test_a_kernel_that_cannot_take_its_tiles():
    with pytest.raises(
        UserError, match=r"Kernel 'product' cannot take tiles float32\[2, 2\], float32\[2, 3\], float32"
    ) as e:
        shapes(changed(mesh_gemm(3), "a", shape=(2, 3)))
    assert e.value.location == "Compute 'product' (body[1][4] at loop indices (0,))"


def test_a_kernel_that_makes_another_tile():
    with pytest.raises(
        UserError, match=r"makes float32\[2, 2\] of .*, and buffer 'c' holds float64\[2, 2\]|makes float64"
    ):
        shapes(changed(mesh_gemm(3), "a", dtype=np.dtype(np.float64)))


def test_ends_of_a_route_of_different_sizes():
    program = summa(3)
    body = tuple(one for one in program.body if not isinstance(one, Loop))
    loop = replace(program.body[-1], body=tuple(one for one in program.body[-1].body if hasattr(one, "token")))
    program = replace(program, body=(*body, loop))
    with pytest.raises(
        UserError, match=r"Route 'x' carries float32\[2, 2\], and no core receives that; Recv on 'x' .* takes"
    ):
        shapes(changed(program, "a panel", shape=(2, 1)))


def test_blocks_of_a_tensor_that_no_core_holds():
    program = chain(4, 1, 4)
    shapes(program)
    with pytest.raises(UserError, match=r"input 'v' has 2 dimensions, and buffer 'v' holds float32\[4\]"):
        shapes(changed(program, "v", shape=(4,)))
    with pytest.raises(
        UserError, match=r"input 'v', \[1, 16\]: dimension 1 in tiles of 3 needs 6 blocks, and block 4 lies on no core"
    ):
        shapes(changed(program, "v", shape=(1, 3)))


def test_kernels_that_make_too_many_tiles():
    program = replace(chain(2), body=(compute(ALL, (), (), 0, zero),), buffers=(Buffer("v", (1, 4), F32),))
    with pytest.raises(UserError, match="makes 1 tiles, and 0 are stored"):
        shapes(program)


def test_a_kernel_that_takes_one_tile_of_all_twice():
    """As many operands as a cache has slots are to be all of them; fewer may be the same."""
    buffers = (*chain(2).buffers, Buffer("k", (4,), F32, 3), Buffer("u", (4,), F32))

    def taking(*at):
        one = compute(ALL, tuple(slot("k", number) for number in at), (slot("u"),), 0, lambda *tiles: (sum(tiles),))
        return replace(chain(2), buffers=buffers, body=(one,))

    shapes(taking(0, 1, 2))
    shapes(taking(1, 1))
    with pytest.raises(UserError, match=r"takes 3 tiles of buffer 'k', which has as many slots, and slot 1 twice"):
        shapes(taking(1, 1, 2))


def test_a_tile_that_a_later_turn_takes_twice():
    """What the first turn takes says nothing of the others."""
    buffers = (*chain(2).buffers, Buffer("k", (4,), F32, 3), Buffer("u", (4,), F32))
    reads = (slot("k", 0), slot("k", 1), slot("k", E(Const(2)) - L))
    one = compute(ALL, reads, (slot("u"),), 0, lambda *tiles: (sum(tiles),))
    shapes(replace(chain(2), buffers=buffers, body=(Loop(1, (one,)),)))
    with pytest.raises(UserError, match="and slot 1 twice") as error:
        shapes(replace(chain(2), buffers=buffers, body=(Loop(2, (one,)),)))
    assert "loop indices (1,)" in str(error.value.location)
