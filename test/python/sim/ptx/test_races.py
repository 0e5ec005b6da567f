# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Races in shared memory: what is found, and what is none."""

import numpy as np
import pytest
from ptx_text import kernel, rule, run

from tilewright.sim import ptx as emulate

EXCHANGE = """
  mov.u32 %r0, sh;
  mad.lo.u32 %r1, %t, {size}, %r0;
  xor.b32 %r2, %t, {other};
  mad.lo.u32 %r3, %r2, {size}, %r0;
  {store} [%r1], %r{value};
  {sync}
  {load} %r{value}, [%r3];
  {after}
  mad.wide.u32 %rd10, %t, 4, %rd1;
  st.global.u32 [%rd10], %t;
"""


def _exchange(other=32, size=4, sync="bar.sync 0;", after="", threads=64, seed=None, kind="u32", value=4):
    """Each thread writes its place in shared memory and reads another one's."""
    store, load = f"st.shared.{kind}", f"ld.shared.{kind}"
    body = EXCHANGE.format(other=other, size=size, sync=sync, after=after, store=store, load=load, value=value)
    body = f"  mov.u32 %r{value}, 7;\n" + body
    run(kernel(body, threads=threads, shared=1024), [np.zeros(1), np.zeros(threads, np.uint32)],
        options=emulate.Options(seed=seed))  # fmt: skip


def _race(**arguments):
    with pytest.raises(emulate.EmulationError) as excinfo:
        _exchange(**arguments)
    return excinfo


@pytest.mark.parametrize("size, kind", [(1, "u8"), (2, "u16"), (4, "u32")])
def test_a_barrier_orders_warps(size, kind):
    _exchange(size=size, kind=kind)


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("size, kind", [(1, "u8"), (4, "u32")])
def test_without_a_barrier(size, kind, seed):
    error = _race(sync="", size=size, kind=kind, seed=seed)
    assert rule(error) in ("race", "uninitialised") and error.value.line


def test_reading_before_the_next_write():
    """The second write needs a barrier after the read."""
    again = "mov.u32 %r9, %t;\n  st.shared.u32 [%r1], %r9;"
    assert rule(_race(after=again)) == "race"
    _exchange(after="bar.sync 0;\n  " + again)


def test_named_barriers_order_those_that_come_to_them():
    _exchange(sync="bar.sync 3, 64;")
    half = "setp.lt.u32 %p0, %t, 32;\n  @%p0 bar.arrive 1, 64;\n  @!%p0 bar.sync 1, 64;"
    assert rule(_race(sync=half)) == "race"  # those that only arrive have not waited


def test_lanes_of_a_warp_need_bar_warp_sync():
    error = _race(other=1, sync="", threads=32)
    assert rule(error) == "race" and "lane" in str(error.value)
    _exchange(other=1, sync="bar.warp.sync -1;", threads=32)
    _exchange(other=0, sync="", threads=32)  # a lane reads what it wrote itself


def test_writing_the_same_value_again_is_no_race():
    body = """
  mov.u32 %r0, sh;
  mov.u32 %r1, {value};
  st.shared.u32 [%r0], %r1;
  bar.sync 0;
  ld.shared.u32 %r2, [%r0];
  mad.wide.u32 %rd10, %t, 4, %rd1;
  st.global.u32 [%rd10], %r2;
"""
    out = run(kernel(body.format(value=5), threads=64, shared=16), [np.zeros(1), np.zeros(64, np.uint32)])[1]
    assert (out == 5).all()
    with pytest.raises(emulate.EmulationError) as excinfo:
        run(kernel(body.format(value="%warpid"), threads=64, shared=16), [np.zeros(1), np.zeros(64, np.uint32)])
    assert rule(excinfo) == "race"


def test_atomics_do_not_race_with_each_other():
    body = """
  mov.u32 %r0, sh;
  setp.eq.u32 %p0, %t, 0;
  @%p0 st.shared.u32 [%r0], 0;
  {before}
  atom.shared.add.u32 %r1, [%r0], 1;
  {after}
  ld.shared.u32 %r2, [%r0];
  mad.wide.u32 %rd10, %t, 4, %rd1;
  st.global.u32 [%rd10], %r2;
"""

    def go(before, after):
        text = kernel(body.format(before=before, after=after), threads=96, shared=16)
        return run(text, [np.zeros(1), np.zeros(96, np.uint32)])[1]

    assert (go("bar.sync 0;", "bar.sync 0;") == 96).all()
    for before, after in (("", "bar.sync 0;"), ("bar.sync 0;", "")):
        with pytest.raises(emulate.EmulationError) as excinfo:
            go(before, after)
        assert rule(excinfo) in ("race", "uninitialised")


@pytest.mark.parametrize("seed", [None, *range(6)])
def test_an_mbarrier_is_made_before_others_wait_for_it(seed):
    """Those that find it made by chance are in the wrong, too."""
    body = """
  setp.eq.u32 %p0, %t, 0;
  @%p0 mbarrier.init.shared.b64 [full], 1;
  {sync}
  @%p0 mbarrier.arrive.shared.b64 %rd12, [full];
W:
  mbarrier.try_wait.parity.shared.b64 %p9, [full], 0;
  @!%p9 bra W;
"""

    def go(sync):
        text = kernel(body.format(sync=sync), threads=64)
        text = text.replace(".visible .entry", ".shared .align 8 .b64 full;\n.visible .entry", 1)
        run(text, [np.zeros(1), np.zeros(1)], options=emulate.Options(seed=seed))

    go("bar.sync 0;")
    with pytest.raises(emulate.EmulationError) as excinfo:
        go("")
    assert rule(excinfo) in ("race", "barrier")


def test_an_mbarrier_orders_those_that_wait_for_it():
    """A producer warp writes, arrives; a consumer waits, reads, arrives on the other mbarrier; two rounds."""
    body = """
  mov.u32 %r0, sh;
  setp.eq.u32 %p0, %t, 0;
  @%p0 mbarrier.init.shared.b64 [full], 32;
  @%p0 mbarrier.init.shared.b64 [empty], 32;
  bar.sync 0;
  and.b32 %r1, %t, 31;
  mad.lo.u32 %r2, %r1, 4, %r0;
  setp.lt.u32 %p1, %t, 32;
  mov.u32 %r5, 0;
  @!%p1 bra CONSUMER;
PRODUCER:
  {refill}
  mad.lo.u32 %r3, %r5, 1000, %t;
  st.shared.u32 [%r2], %r3;
  mbarrier.arrive.shared.b64 %rd12, [full];
  add.u32 %r5, %r5, 1;
  setp.lt.u32 %p3, %r5, 2;
  @%p3 bra PRODUCER;
  bra END;
CONSUMER:
  mbarrier.try_wait.parity.shared.b64 %p9, [full], %r5;
  @!%p9 bra CONSUMER;
  xor.b32 %r4, %r1, 1;
  mad.lo.u32 %r4, %r4, 4, %r0;
  ld.shared.u32 %r6, [%r4];
  {release}
  shl.b32 %r7, %r5, 7;
  mad.lo.u32 %r7, %r1, 4, %r7;
  cvt.u64.u32 %rd10, %r7;
  add.s64 %rd10, %rd10, %rd1;
  st.global.u32 [%rd10], %r6;
  add.u32 %r5, %r5, 1;
  setp.lt.u32 %p3, %r5, 2;
  @%p3 bra CONSUMER;
END:
"""
    refill = """xor.b32 %r8, %r5, 1;
W:
  mbarrier.try_wait.parity.shared.b64 %p9, [empty], %r8;
  @!%p9 bra W;"""

    def go(refill, release, seed=None):
        text = kernel(body.format(refill=refill, release=release), threads=64, shared=128)
        text = text.replace(
            ".visible .entry", ".shared .align 8 .b64 full;\n.shared .align 8 .b64 empty;\n.visible .entry", 1
        )
        return run(text, [np.zeros(1), np.zeros((2, 32), np.uint32)], options=emulate.Options(seed=seed))[1]

    arrive = "mbarrier.arrive.shared.b64 %rd12, [empty];"
    for seed in (None, 1, 2, 3):
        out = go(refill, arrive, seed)
        np.testing.assert_array_equal(out, np.arange(2)[:, None] * 1000 + (np.arange(32) ^ 1))
    with pytest.raises(emulate.EmulationError) as excinfo:
        go("", arrive)
    assert rule(excinfo) in ("race", "dead-lock")  # two phases ahead is none behind
    with pytest.raises(emulate.EmulationError) as excinfo:
        go(refill, "")
    assert rule(excinfo) == "dead-lock"
