# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Clusters: distributed shared memory, barriers across CTAs, remote arrivals, multicast, register reallocation."""

import numpy as np
import pytest
from ptx_text import assembles, kernel, rule, run

from tilewright.sim import ptx as emulate

NEIGHBOUR = """
  mov.u32 %r0, sh;
  mad.lo.u32 %r1, %t, 4, %r0;
  mov.u32 %r2, %cluster_ctarank;
  mov.u32 %r3, %ctaid.x;
  mad.lo.u32 %r4, %r3, 1000, %t;
  st.shared.u32 [%r1], %r4;
  {arrive}
  {wait}
  add.u32 %r5, %r2, 1;
  rem.u32 %r5, %r5, 4;
  mapa.shared::cluster.u32 %r6, %r1, %r5;
  ld.shared::cluster.u32 %r7, [%r6];
  getctarank.shared::cluster.u32 %r8, %r6;
  mad.lo.u32 %r7, %r8, 100000, %r7;
  mad.lo.u32 %r9, %r3, 32, %t;
  mad.wide.u32 %rd10, %r9, 4, %rd1;
  st.global.u32 [%rd10], %r7;
  {end}
"""
GOOD = {
    "arrive": "barrier.cluster.arrive.release.aligned;",
    "wait": "barrier.cluster.wait.acquire.aligned;",
    "end": "barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;",
}


def _neighbour(seed=None, **changes):
    ptx = kernel(NEIGHBOUR.format(**{**GOOD, **changes}), shared=128, cluster=4)
    return ptx, run(ptx, [np.zeros(1), np.zeros((8, 32), np.uint32)], grid=8, options=emulate.Options(seed=seed))[1]


@pytest.mark.parametrize("seed", [None, 1, 2, 3])
def test_each_reads_its_neighbours_shared_memory(seed, tmp_path):
    ptx, out = _neighbour(seed)
    cta = np.arange(8)[:, None]
    rank = (cta % 4 + 1) % 4
    np.testing.assert_array_equal(out, (cta // 4 * 4 + rank) * 1000 + np.arange(32) + rank * 100000)
    assembles(ptx, tmp_path)


@pytest.mark.parametrize(
    "changes, expected",
    [
        ({"arrive": "", "wait": ""}, {"race", "uninitialised"}),
        ({"arrive": "barrier.cluster.arrive.relaxed.aligned;"}, {"race"}),
        ({"wait": ""}, {"race", "uninitialised", "barrier"}),
        ({"arrive": ""}, {"barrier"}),
    ],
)
def test_rules_of_clusters(changes, expected):
    found = set()
    for seed in range(12):
        try:
            _neighbour(seed, **changes)
        except emulate.EmulationError as error:
            found.add(error.rule)
    assert found and found <= expected


#: orders in which a fault must be found, each of them
ORDERS = [*(emulate.Options(seed=seed) for seed in (None, *range(8))), emulate.Options(completion="early")]


def _found(ptx, arrays, grid, options):
    """The rule that a kernel breaks, or None."""
    try:
        run(ptx, arrays, grid=grid, options=options)
    except emulate.EmulationError as error:
        return error.rule
    return None


@pytest.mark.parametrize("options", ORDERS)
@pytest.mark.parametrize(
    "end", ["", "barrier.cluster.arrive.aligned;", GOOD["end"].replace("arrive", "arrive.relaxed")]
)
def test_a_cta_that_ends_while_others_may_read_its_memory(end, options):
    """Whether the neighbour has read already or comes too late: no wait tells the CTA, so each order shows it."""
    ptx = kernel(NEIGHBOUR.format(**{**GOOD, "end": end}), shared=128, cluster=4)
    assert _found(ptx, [np.zeros(1), np.zeros((8, 32), np.uint32)], 8, options) in {"race", "asynchronous"}


TO_NEIGHBOUR_BY_THREADS = """
  mov.u32 %r0, sh;
  mov.u32 %r2, %cluster_ctarank;
  xor.b32 %r3, %r2, 1;
  mad.lo.u32 %r1, %t, 4, %r0;
  mapa.shared::cluster.u32 %r4, %r1, %r3;
  {start}
  st.shared::cluster.u32 [%r4], %t;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  ld.shared.u32 %r7, [%r1];
  mad.lo.u32 %r9, %r2, 32, %t;
  mad.wide.u32 %rd10, %r9, 4, %rd1;
  st.global.u32 [%rd10], %r7;
"""


@pytest.mark.parametrize("options", ORDERS)
def test_a_cta_must_have_started(options):
    """An arrival says so even if it is relaxed; that the other is there by chance does not."""
    arrays = [np.zeros(1), np.zeros((2, 32), np.uint32)]
    start = "barrier.cluster.arrive.relaxed.aligned;\n  barrier.cluster.wait.aligned;"
    ptx = kernel(TO_NEIGHBOUR_BY_THREADS.format(start=start), shared=128, cluster=2)
    out = run(ptx, arrays, grid=2, options=options)[1]
    np.testing.assert_array_equal(out, np.stack([np.arange(32)] * 2))
    ptx = kernel(TO_NEIGHBOUR_BY_THREADS.format(start=""), shared=128, cluster=2)
    assert _found(ptx, arrays, 2, options) == "race"


REMOTE = """
  mov.u32 %r0, %cluster_ctarank;
  setp.eq.u32 %p0, %t, 0;
  setp.eq.u32 %p1, %r0, 0;
  @%p0 mbarrier.init.shared.b64 [bar], 2;
  @%p0 fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.relaxed.aligned;
  barrier.cluster.wait.aligned;
  mov.u32 %r1, sh;
  mapa.shared::cluster.u32 %r2, %r1, 0;
  mov.u32 %r3, bar;
  mapa.shared::cluster.u32 %r4, %r3, 0;
  mad.lo.u32 %r5, %r0, 128, %r2;
  mad.lo.u32 %r5, %t, 4, %r5;
  mad.lo.u32 %r6, %r0, 100, %t;
  st.shared::cluster.u32 [%r5], %r6;
  bar.warp.sync -1;
  {arrive}
  @!%p1 bra END;
W:
  mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p9, [bar], 0;
  @!%p9 bra W;
  mad.lo.u32 %r7, %t, 8, %r1;
  ld.shared.v2.b32 {{%r8, %r9}}, [%r7];
  mad.wide.u32 %rd10, %t, 8, %rd1;
  st.global.v2.b32 [%rd10], {{%r8, %r9}};
END:
  {end}
"""


def _with_bar(ptx):
    return ptx.replace(".visible .entry", ".shared .align 8 .b64 bar;\n.visible .entry", 1)


def _remote(arrive, seed, end=GOOD["end"]):
    ptx = _with_bar(kernel(REMOTE.format(arrive=arrive, end=end), shared=256, cluster=2))
    return ptx, run(ptx, [np.zeros(1), np.zeros(64, np.uint32)], grid=2, options=emulate.Options(seed=seed))[1]


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_remote_stores_and_arrivals(seed, tmp_path):
    """Both CTAs write into the first one's shared memory and arrive on its mbarrier."""
    arrive = "@%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4];"
    ptx, out = _remote(arrive, seed)
    np.testing.assert_array_equal(out, np.concatenate([np.arange(32), 100 + np.arange(32)]))
    assembles(ptx, tmp_path)
    _remote(arrive, seed, end="")  # the first CTA has waited for the arrivals: nothing else reaches for its memory


def test_waiting_for_an_arrival_that_does_not_come():
    with pytest.raises(emulate.EmulationError, match="mbarrier") as excinfo:
        _remote("", None)
    assert rule(excinfo) == "dead-lock"


MULTICAST = """
  mov.u32 %r0, %cluster_ctarank;
  setp.eq.u32 %p0, %t, 0;
  @%p0 mbarrier.init.shared.b64 [bar], 1;
  @%p0 fence.mbarrier_init.release.cluster;
  barrier.cluster.arrive.relaxed.aligned;
  barrier.cluster.wait.aligned;
  @%p0 mbarrier.arrive.expect_tx.shared.b64 %rd12, [bar], 512;
  setp.eq.and.u32 %p1, %r0, 1, %p0;
  mov.u32 %r1, sh;
  mov.u32 %r2, bar;
  mov.b16 %rs0, {mask};
  @%p1 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster
    [%r1], [%rd0], 512, [%r2], %rs0;
{skip}
W:
  mbarrier.try_wait.parity.shared.b64 %p9, [bar], 0;
  @!%p9 bra W;
  mad.lo.u32 %r3, %t, 16, %r1;
  ld.shared.v4.b32 {{%r4, %r5, %r6, %r7}}, [%r3];
  mad.lo.u32 %r8, %r0, 32, %t;
  mad.wide.u32 %rd10, %r8, 16, %rd1;
  st.global.v4.b32 [%rd10], {{%r4, %r5, %r6, %r7}};
END:
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
"""


def _multicast(mask, skip=""):
    return _with_bar(kernel(MULTICAST.format(mask=mask, skip=skip), shared=512, cluster=3))


@pytest.mark.parametrize("seed", [None, 1, 2])
def test_multicast(seed, tmp_path):
    """One CTA of three loads for all, and signals the mbarrier of each."""
    data = np.random.default_rng(0).integers(0, 256, 512, np.uint8)
    ptx = _multicast(7)
    out = run(ptx, [data, np.zeros((3, 512), np.uint8)], grid=3, options=emulate.Options(seed=seed))[1]
    np.testing.assert_array_equal(out, np.stack([data] * 3))
    assembles(ptx, tmp_path)


@pytest.mark.parametrize("mask, expected", [(3, "dead-lock"), (15, "out-of-bounds")])
def test_multicast_to_the_wrong_ctas(mask, expected):
    with pytest.raises(emulate.EmulationError) as excinfo:
        run(_multicast(mask), [np.zeros(512, np.uint8), np.zeros((3, 512), np.uint8)], grid=3)
    assert rule(excinfo) == expected


@pytest.mark.parametrize("options", ORDERS)
def test_a_cta_that_ends_with_a_copy_that_it_has_not_waited_for(options):
    """The third CTA goes past its wait; the cluster's barrier says nothing of copies, whenever they arrive."""
    skip = "setp.eq.u32 %p2, %r0, 2;\n  @%p2 bra END;"
    arrays = [np.zeros(512, np.uint8), np.zeros((3, 512), np.uint8)]
    assert _found(_multicast(7, skip), arrays, 3, options) in {"race", "asynchronous"}


TO_NEIGHBOUR = """
  mov.u32 %r0, %cluster_ctarank;
  setp.eq.u32 %p0, %t, 0;
  @%p0 mbarrier.init.shared.b64 [bar], 1;
  @%p0 mbarrier.arrive.expect_tx.shared.b64 %rd12, [bar], 512;
  @%p0 fence.mbarrier_init.release.cluster;
  mov.u32 %r1, sh;
  mad.lo.u32 %r2, %t, 16, %r1;
  mad.lo.u32 %r3, %r0, 1000, %t;
  st.shared.v4.b32 [%r2], {%r3, %r3, %r3, %r3};
  fence.proxy.async.shared::cta;
  bar.warp.sync -1;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
  xor.b32 %r4, %r0, 1;
  add.u32 %r5, %r1, 512;
  mapa.shared::cluster.u32 %r6, %r5, %r4;
  mov.u32 %r7, bar;
  mapa.shared::cluster.u32 %r8, %r7, %r4;
  @%p0 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r6], [%r1], 512, [%r8];
W:
  mbarrier.try_wait.parity.shared.b64 %p9, [bar], 0;
  @!%p9 bra W;
  ld.shared.b32 %r9, [%r2+512];
  mad.lo.u32 %r10, %r0, 32, %t;
  mad.wide.u32 %rd10, %r10, 4, %rd1;
  st.global.b32 [%rd10], %r9;
  barrier.cluster.arrive.aligned;
  barrier.cluster.wait.aligned;
"""


@pytest.mark.parametrize("seed", [None, 1])
def test_bulk_copy_to_another_cta(seed, tmp_path):
    ptx = _with_bar(kernel(TO_NEIGHBOUR, shared=1024, cluster=2))
    out = run(ptx, [np.zeros(1), np.zeros((2, 32), np.uint32)], grid=2, options=emulate.Options(seed=seed))[1]
    np.testing.assert_array_equal(out, np.stack([1000 + np.arange(32), np.arange(32)]))
    assembles(ptx, tmp_path)


@pytest.mark.parametrize("options", ORDERS)
@pytest.mark.parametrize(
    "before, after",
    [
        ("  barrier.cluster.arrive.aligned;\n  barrier.cluster.wait.aligned;\n$", ""),  # ends while it is read from
        ("  ld.shared.b32 %r9, ", "  st.shared.b32 [%r2], %r7;\n  ld.shared.b32 %r9, "),  # writes what is read
        ("  fence.proxy.async.shared::cta;\n", ""),
    ],
)
def test_sources_of_bulk_copies_to_other_ctas(before, after, options):
    """A CTA that waits for what comes to it knows nothing of what it sends."""
    body = TO_NEIGHBOUR + "$"
    assert before in body
    ptx = _with_bar(kernel(body.replace(before, after).replace("$", ""), shared=1024, cluster=2))
    assert _found(ptx, [np.zeros(1), np.zeros((2, 32), np.uint32)], 2, options) == "race"


def test_an_increase_of_registers_waits_for_a_decrease_of_others():
    """Three warpgroups have 168 registers per thread each; 240 + 240 fit only when the third gives most of its own."""
    body = """
  setp.lt.u32 %p0, %t, 256;
  @%p0 bra MORE;
  setmaxnreg.dec.sync.aligned.u32 {less};
  bra END;
MORE:
  setmaxnreg.inc.sync.aligned.u32 240;
END:
"""
    run(kernel(body.replace("{less}", "24"), threads=384), [np.zeros(1), np.zeros(1)])
    with pytest.raises(emulate.EmulationError, match="240 registers") as excinfo:
        run(kernel(body.replace("{less}", "64"), threads=384), [np.zeros(1), np.zeros(1)])
    assert rule(excinfo) == "dead-lock"


def test_elect_chooses_one_lane_of_each_warp():
    body = """
  elect.sync %r0|%p0, -1;
  selp.b32 %r1, 1, 0, %p0;
  mad.wide.u32 %rd10, %t, 4, %rd1;
  st.global.b32 [%rd10], %r1;
"""
    out = run(kernel(body, threads=64), [np.zeros(1), np.full(64, 9, np.uint32)])[1]
    assert out.tolist() == [1] + [0] * 31 + [1] + [0] * 31
