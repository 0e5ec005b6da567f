# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What lanes of a warp, and warps of a CTA, do together."""

from __future__ import annotations

import numpy as np
import pytest
from emulation import kernel_text, run

from tilewright.core.errors import UnsupportedError
from tilewright.sim import ptx as emulate

TID = "ld.param.u64 %d0, [p0]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.s64 %d2, %d0, %d1;\n"
STORE = "st.global.u32 [%d2], %r9;"
LANE = np.arange(64) % 32
WARP = np.arange(64) // 32


def result(body: str, threads: int = 64, **options) -> np.ndarray:
    """What threads store of %r9."""
    return run(kernel_text(TID + body + STORE, threads=threads), np.zeros(threads, np.int32), **options)[0]


@pytest.mark.parametrize(
    ("form", "want"),
    [
        ("bfly.b32 %r9, %r0, 5, 31, -1", (LANE ^ 5) + 32 * WARP),
        ("down.b32 %r9, %r0, 3, 31, -1", np.where(LANE + 3 > 31, LANE, LANE + 3) + 32 * WARP),
        ("up.b32 %r9, %r0, 4, 0, -1", np.where(LANE < 4, LANE, LANE - 4) + 32 * WARP),
        ("idx.b32 %r9, %r0, 7, 31, -1", 7 + 32 * WARP),
        ("idx.b32 %r9, %r0, 1, 0x181f, -1", LANE // 8 * 8 + 1 + 32 * WARP),
        ("down.b32 %r9, %r0, 2, 0x181f, -1", np.where(LANE % 8 + 2 > 7, LANE, LANE + 2) + 32 * WARP),
    ],
)
def test_shuffles(form: str, want: np.ndarray) -> None:
    """Whole warps and segments of 8 lanes (mask 0x18 in bits 8-12)."""
    np.testing.assert_array_equal(result(f"shfl.sync.{form};"), want)


def test_shuffle_predicate() -> None:
    """Says whether the source lane was in range."""
    body = "shfl.sync.down.b32 %r8|%p0, %r0, 8, 31, -1; selp.u32 %r9, 1, 0, %p0;"
    np.testing.assert_array_equal(result(body), LANE < 24)


def test_votes_matches_and_reductions() -> None:
    """ballot, any, all, match.any, redux, activemask."""
    odd = "and.b32 %r1, %r0, 1; setp.eq.u32 %p0, %r1, 1;\n"
    assert (result(odd + "vote.sync.ballot.b32 %r9, %p0, -1;").view(np.uint32) == 0xAAAAAAAA).all()
    np.testing.assert_array_equal(result(odd + "vote.sync.any.pred %p1, %p0, -1; selp.u32 %r9, 1, 0, %p1;"), 1)
    np.testing.assert_array_equal(result(odd + "vote.sync.all.pred %p1, %p0, -1; selp.u32 %r9, 1, 0, %p1;"), 0)
    got = result(odd + "match.any.sync.b32 %r9, %r1, -1;").view(np.uint32)
    np.testing.assert_array_equal(got, np.where(LANE % 2, 0xAAAAAAAA, 0x55555555))
    np.testing.assert_array_equal(result("redux.sync.add.s32 %r9, %r0, -1;"), np.where(WARP, 1520, 496))
    np.testing.assert_array_equal(result("redux.sync.max.u32 %r9, %r0, -1;"), np.where(WARP, 63, 31))
    got = result("mov.u32 %r9, 0; setp.lt.u32 %p0, %r0, 16; @!%p0 bra $on; activemask.b32 %r9; $on:\n")
    np.testing.assert_array_equal(got, np.where(np.arange(64) < 16, 0xFFFF, 0))


@pytest.mark.parametrize("seed", [None, 0, 1])
def test_member_masks_name_parts_of_warps(seed) -> None:
    """The halves of a warp take different ways, and each exchanges among itself."""
    body = """
setp.lt.u32 %p1, %r0, 16; @%p1 bra $low;
shfl.sync.bfly.b32 %r9, %r0, 1, 31, 0xFFFF0000; redux.sync.add.s32 %r8, %r0, 0xFFFF0000; bra $join;
$low:
redux.sync.max.s32 %r8, %r0, 0xFFFF; shfl.sync.bfly.b32 %r9, %r0, 2, 31, 0xFFFF;
vote.sync.ballot.b32 %r7, %p1, 0xFFFF; add.u32 %r8, %r8, %r7;
$join:
bar.warp.sync -1; mad.lo.u32 %r9, %r8, 1000, %r9;
"""
    lane = np.arange(32)
    low, high = (15 + 0xFFFF) * 1000 + (lane ^ 2), sum(range(16, 32)) * 1000 + (lane ^ 1)
    np.testing.assert_array_equal(result(body, threads=32, seed=seed), np.where(lane < 16, low, high))


def test_predicated_shuffle_of_a_part() -> None:
    """The mask names those whose predicate holds; a source outside of it is an error."""
    body = "mov.u32 %r9, 0; setp.lt.u32 %p0, %r0, 8; @%p0 shfl.sync.bfly.b32 %r9, %r0, XOR, 31, 0xFF;"
    np.testing.assert_array_equal(result(body.replace("XOR", "7"), threads=32), np.where(LANE < 8, LANE ^ 7, 0)[:32])
    with pytest.raises(emulate.EmulationError, match="does not take part") as raised:
        result(body.replace("XOR", "8"), threads=32)
    assert raised.value.rule == "convergence"


def test_a_predicate_must_be_the_same_in_a_warp() -> None:
    """bar.sync for half a warp."""
    with pytest.raises(emulate.EmulationError, match="not the same in all lanes") as raised:
        result("mov.u32 %r9, 0; setp.lt.u32 %p0, %r0, 16; @%p0 bar.sync 0;")
    assert raised.value.rule == "convergence"


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_named_barriers_of_a_producer_and_a_consumer(seed) -> None:
    """Warp 0 arrives, warp 1 waits, and reads what warp 0 wrote."""
    body = """
.shared .align 4 .b8 buffer[128];
mov.b32 %r6, buffer; and.b32 %r5, %r0, 31; shl.b32 %r7, %r5, 2; add.u32 %r8, %r6, %r7;
mov.u32 %r9, 0;
setp.ge.u32 %p0, %r0, 32; @%p0 bra $consumer;
add.u32 %r4, %r0, 100; st.shared.u32 [%r8], %r4; bar.arrive 3, 64; bra $end;
$consumer: bar.sync 3, 64; ld.shared.u32 %r9, [%r8];
$end:
"""
    np.testing.assert_array_equal(result(body, seed=seed)[32:], np.arange(32) + 100)


def test_barrier_with_a_reduction() -> None:
    """bar.red gives all threads the number of those whose predicate holds."""
    body = "setp.lt.u32 %p0, %r0, 40; bar.red.popc.u32 %r9, 0, %p0;"
    np.testing.assert_array_equal(result(body), 40)
    body = "setp.lt.u32 %p0, %r0, 64; bar.red.and.pred %p1, 0, %p0; selp.u32 %r9, 1, 0, %p1;"
    np.testing.assert_array_equal(result(body), 1)


def test_threads_that_left_are_not_waited_for() -> None:
    """A barrier without a count waits for threads that are alive."""
    body = "mov.u32 %r9, 5; setp.ge.u32 %p0, %r0, 32; @%p0 ret; bar.sync 0;"
    np.testing.assert_array_equal(result(body), np.where(WARP, 0, 5))


def test_wrong_count_of_a_barrier_is_a_dead_lock() -> None:
    """96 threads are expected, 64 exist."""
    with pytest.raises(emulate.EmulationError, match="barrier 1: 64 of 96 threads are there") as raised:
        result("mov.u32 %r9, 0; bar.sync 1, 96;")
    assert raised.value.rule == "dead-lock"


MBARRIER = """
.shared .align 8 .b8 barrier[8];
.shared .align 4 .b8 buffer[128];
mov.b32 %r6, buffer; and.b32 %r5, %r0, 31; shl.b32 %r7, %r5, 2; add.u32 %r8, %r6, %r7;
mov.b32 %r10, barrier; mov.u32 %r9, 0;
setp.eq.u32 %p0, %r0, 0; @%p0 mbarrier.init.shared.b64 [%r10], 32; bar.sync 0;
setp.ge.u32 %p0, %r0, 32; @%p0 bra $consumer;
add.u32 %r4, %r0, 100; st.shared.u32 [%r8], %r4; mbarrier.arrive.shared.b64 _, [%r10]; bra $end;
$consumer:
$wait: mbarrier.try_wait.parity.shared.b64 %p1, [%r10], PARITY; @!%p1 bra $wait;
ld.shared.u32 %r9, [%r8];
$end:
"""


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_mbarrier_of_a_producer_and_a_consumer(seed) -> None:
    """32 arrivals complete phase 0; the waiting warp goes on."""
    np.testing.assert_array_equal(result(MBARRIER.replace("PARITY", "0"), seed=seed)[32:], np.arange(32) + 100)


def test_waiting_for_the_wrong_parity() -> None:
    """Parity 1 is over from the start: the read is unordered."""
    with pytest.raises(emulate.EmulationError) as raised:
        result(MBARRIER.replace("PARITY", "1"), seed=0)
    assert raised.value.rule in ("race", "uninitialised")


def test_one_arrival_too_few_is_a_dead_lock() -> None:
    """The report names the mbarrier's wait."""
    with pytest.raises(emulate.EmulationError, match="1 of 33 arrivals and 0 bytes are missing") as raised:
        result(MBARRIER.replace("PARITY", "0").replace("[%r10], 32", "[%r10], 33"))
    assert raised.value.rule == "dead-lock"


def test_one_arrival_too_many_is_an_error() -> None:
    """More arrivals than a phase expects."""
    with pytest.raises(emulate.EmulationError, match="waits for 0 more|arrivals at an mbarrier") as raised:
        result(MBARRIER.replace("PARITY", "0").replace("[%r10], 32", "[%r10], 31"))
    assert raised.value.rule == "barrier"


def test_threads_that_drop_out_of_an_mbarrier() -> None:
    """Phase 0 needs 32 arrivals, 16 of them the last of their kind; phase 1 needs 16."""
    body = """
.shared .align 8 .b8 barrier[8];
mov.b32 %r10, barrier; mov.u32 %r9, 0;
setp.eq.u32 %p0, %r0, 0; @%p0 mbarrier.init.shared.b64 [%r10], 32; bar.sync 0;
setp.lt.u32 %p0, %r0, 16;
@%p0 mbarrier.arrive_drop.shared.b64 _, [%r10];
@!%p0 mbarrier.arrive.shared.b64 _, [%r10];
$first: mbarrier.try_wait.parity.shared.b64 %p1, [%r10], 0; @!%p1 bra $first;
@!%p0 mbarrier.arrive.shared.b64 _, [%r10];
$second: mbarrier.try_wait.parity.shared.b64 %p1, [%r10], 1; @!%p1 bra $second;
mov.u32 %r9, 1;
"""
    np.testing.assert_array_equal(result(body, threads=32), 1)


def test_a_missing_barrier_is_a_race() -> None:
    """Warp 1 reads what warp 0 writes."""
    body = """
.shared .align 4 .b8 buffer[256];
mov.b32 %r6, buffer; shl.b32 %r7, %r0, 2; add.u32 %r8, %r6, %r7; st.shared.u32 [%r8], %r0; BARRIER
xor.b32 %r4, %r7, 128; add.u32 %r8, %r6, %r4; ld.shared.u32 %r9, [%r8];
"""
    np.testing.assert_array_equal(result(body.replace("BARRIER", "bar.sync 0;")), np.arange(64) ^ 32)
    with pytest.raises(emulate.EmulationError, match="no barrier") as raised:
        result(body.replace("BARRIER", ""))
    assert raised.value.rule == "race"
    assert raised.value.ir == "ld.shared.u32 %r9, [%r8]"


def test_indexed_branches() -> None:
    """brx.idx by a table."""
    body = """
and.b32 %r1, %r0, 3; mov.u32 %r9, 0;
$table: .branchtargets $a, $b, $b, $c;
brx.idx %r1, $table;
$a: mov.u32 %r9, 10; bra $end;
$b: add.u32 %r9, %r1, 20; bra $end;
$c: mov.u32 %r9, 30;
$end:
"""
    np.testing.assert_array_equal(result(body), np.array([10, 21, 22, 30])[np.arange(64) % 4])


def test_a_call_says_what_to_do() -> None:
    """At load time."""
    body = "{ .param .b32 param0; st.param.b32 [param0], %r0; call.uni (retval0), __nv_expf, (param0); }"
    with pytest.raises(UnsupportedError, match="__nv_expf"):
        emulate.load(kernel_text(body))
