# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Threads, branches, barriers, waits and dead-lock."""

from __future__ import annotations

import numpy as np
import pytest
from emulation import kernel_text, run

from tilewright.core.errors import UnsupportedError
from tilewright.sim import ptx as emulate

ADDRESS = """
ld.param.u64 %d0, [p0];
mov.u32 %r0, %tid.x;
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mad.lo.s32 %r3, %r1, %r2, %r0;
mul.wide.u32 %d1, %r3, 4;
add.s64 %d2, %d0, %d1;
"""


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_loops_of_different_length_diverge_and_meet(seed) -> None:
    """Each thread adds 3 as often as its number says, a barrier follows."""
    body = (
        ADDRESS
        + """
mov.u32 %r4, 0;
mov.u32 %r5, 0;
$head:
setp.ge.u32 %p0, %r5, %r0;
@%p0 bra $done;
add.u32 %r4, %r4, 3;
add.u32 %r5, %r5, 1;
bra $head;
$done:
bar.sync 0;
st.global.u32 [%d2], %r4;
"""
    )
    out = np.zeros(300, np.int32)
    (out,) = run(kernel_text(body, threads=100), out, grid=3, seed=seed)
    np.testing.assert_array_equal(out, np.tile(np.arange(100) * 3, 3))


def test_neighbours_exchange_through_shared_memory() -> None:
    """A barrier between write and read: the numbers come in reverse."""
    body = (
        ADDRESS
        + """
.shared .align 4 .b8 buffer[256];
mov.b32 %r6, buffer;
shl.b32 %r7, %r0, 2;
add.u32 %r8, %r6, %r7;
st.shared.u32 [%r8], %r0;
bar.sync 0;
sub.u32 %r9, %r6, %r7;
ld.shared.u32 %r10, [%r9+252];
st.global.u32 [%d2], %r10;
"""
    )
    (out,) = run(kernel_text(body, threads=64), np.zeros(128, np.int32), grid=2)
    np.testing.assert_array_equal(out, np.tile(np.arange(63, -1, -1), 2))


def test_dead_lock_names_who_waits_where() -> None:
    """Half of the warps wait at a barrier that expects all."""
    body = ADDRESS + "setp.lt.u32 %p0, %r0, 32;\n@%p0 bar.sync 1, 64;"
    with pytest.raises(emulate.EmulationError, match="threads 0-31") as raised:
        run(kernel_text(body, threads=64), np.zeros(64, np.int32))
    assert raised.value.rule == "dead-lock"
    assert "bar.sync 1, 64" in str(raised.value)
    assert raised.value.line is not None


def test_half_a_warp_at_a_shuffle_is_a_dead_lock() -> None:
    """The other half has left."""
    body = ADDRESS + "setp.lt.u32 %p0, %r0, 16;\n@%p0 ret;\nshfl.sync.bfly.b32 %r4, %r0, 1, 31, -1;"
    with pytest.raises(emulate.EmulationError, match="the rest of the warp") as raised:
        run(kernel_text(body), np.zeros(32, np.int32))
    assert raised.value.rule == "dead-lock"


def test_a_flag_between_ctas_is_polled() -> None:
    """CTA 1 waits in a loop for what CTA 0 writes; CTA 0 comes later in the code."""
    body = """
ld.param.u64 %d0, [p0];
mov.u32 %r1, %ctaid.x;
setp.eq.u32 %p0, %r1, 0;
@%p0 bra $write;
$poll:
ld.acquire.gpu.global.u32 %r2, [%d0];
setp.eq.u32 %p1, %r2, 0;
@%p1 bra $poll;
st.global.u32 [%d0+4], %r2;
ret;
$write:
mov.u32 %r3, 7;
st.release.gpu.global.u32 [%d0], %r3;
"""
    (out,) = run(kernel_text(body, threads=1), np.zeros(2, np.int32), grid=2)
    np.testing.assert_array_equal(out, [7, 7])


@pytest.mark.parametrize("seed", [None, 3])
def test_early_ctas_wait_for_late_ones(seed) -> None:
    """Each of 6 CTAs polls for its successor's flag; batches hold two."""
    body = """
ld.param.u64 %d0, [p0];
mov.u32 %r1, %ctaid.x;
mul.wide.u32 %d1, %r1, 4;
add.s64 %d2, %d0, %d1;
setp.eq.u32 %p0, %r1, 5;
mov.u32 %r2, 1;
@%p0 bra $write;
$poll:
ld.acquire.gpu.global.u32 %r2, [%d2+4];
setp.eq.u32 %p1, %r2, 0;
@%p1 bra $poll;
add.u32 %r2, %r2, 1;
$write:
st.release.gpu.global.u32 [%d2], %r2;
"""
    (out,) = run(kernel_text(body, threads=1), np.zeros(6, np.int32), grid=6, lanes=64, seed=seed)
    np.testing.assert_array_equal(out, [6, 5, 4, 3, 2, 1])


def test_polling_with_an_atomic_is_found_too() -> None:
    """A lock that nobody gives back."""
    body = """
ld.param.u64 %d0, [p0];
$poll:
atom.global.cas.b32 %r2, [%d0], 0, 1;
setp.ne.u32 %p1, %r2, 0;
@%p1 bra $poll;
"""
    with pytest.raises(emulate.EmulationError, match="polling") as raised:
        run(kernel_text(body), np.zeros(1, np.int32))
    assert raised.value.rule == "dead-lock"


def test_polling_for_what_never_comes_is_a_dead_lock() -> None:
    """Nobody writes the flag."""
    body = """
ld.param.u64 %d0, [p0];
$poll:
ld.volatile.global.u32 %r2, [%d0];
setp.eq.u32 %p1, %r2, 0;
@%p1 bra $poll;
"""
    with pytest.raises(emulate.EmulationError, match="polling") as raised:
        run(kernel_text(body), np.zeros(1, np.int32))
    assert raised.value.rule == "dead-lock"


def test_an_opcode_that_nobody_knows_is_an_error_with_its_line() -> None:
    """At load time."""
    with pytest.raises(UnsupportedError, match=r"PTX line \d+.*vmad"):
        emulate.load(kernel_text("vmad.u32.u32.u32 %r0, %r1, %r2, %r3;"))


def test_a_modifier_that_nobody_knows_is_an_error() -> None:
    """At load time, too."""
    with pytest.raises(UnsupportedError, match="modifier .odd"):
        emulate.load(kernel_text("add.odd.u32 %r0, %r1, %r2;"))
