# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""CTAs that wait for others of their grid: what orders them, what does not, and how many run at a time."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np
import pytest
from ptx_text import assembles, kernel, rule

from tilewright.sim import ptx as emulate

#: CTA 0 leaves what thread t computes at place t; CTA 1 reads that of another warp's thread.
HAND_OVER = """
  mov.u32 %r0, %ctaid.x;
  mul.wide.u32 %rd10, %t, 4;
  add.s64 %rd10, %rd10, %rd0;
  setp.eq.u32 %p0, %r0, 1;
  setp.ne.u32 %p1, %t, 0;
  @%p0 bra $take;
  add.u32 %r1, %t, 100;
  st.global.u32 [%rd10], %r1;
  {met}
  @%p1 bra $end;
  {post}
  bra $end;
$take:
  @%p1 bra $taken;
$poll:
  {poll}
  setp.eq.u32 %p2, %r2, 0;
  {again}
  {behind}
$taken:
  {released}
  xor.b32 %r3, %t, 32;
  mul.wide.u32 %rd11, %r3, 4;
  add.s64 %rd11, %rd11, %rd0;
  {read}
  st.global.u32 [%rd10+256], %r4;
$end:
"""
RIGHT = {
    "met": "bar.sync 0;",
    "post": "red.release.gpu.global.add.u32 [%rd1], 1;",
    "poll": "ld.acquire.gpu.global.u32 %r2, [%rd1];",
    "again": "@%p2 bra $poll;",
    "behind": "",
    "released": "bar.sync 0;",
    "read": "ld.global.u32 %r4, [%rd11];",
}
#: Other ways to say the same.
FORMS: dict[str, dict[str, str]] = {
    "release and acquire": {},
    "a store": {"post": "mov.u32 %r5, 1;\n  st.release.gpu.global.u32 [%rd1], %r5;"},
    "fences": {
        "post": "fence.acq_rel.gpu;\n  red.relaxed.gpu.global.add.u32 [%rd1], 1;",
        "poll": "ld.relaxed.gpu.global.u32 %r2, [%rd1];",
        "behind": "fence.acq_rel.gpu;",
    },
    "volatile": {
        "post": "membar.gl;\n  mov.u32 %r5, 1;\n  st.volatile.global.u32 [%rd1], %r5;",
        "poll": "ld.volatile.global.u32 %r2, [%rd1];",
        "behind": "membar.gl;",
    },
    "an atomic": {"poll": "atom.acq_rel.gpu.global.add.u32 %r2, [%rd1], 0;"},
}
#: What a compiler may forget.
FAULTS: dict[str, dict[str, str]] = {
    "no barrier before the release": {"met": ""},
    "no barrier behind the acquire": {"released": ""},
    "no release": {"post": "red.relaxed.gpu.global.add.u32 [%rd1], 1;"},
    "no acquire": {"poll": "ld.relaxed.gpu.global.u32 %r2, [%rd1];"},
    "a release for the CTA alone": {"post": "red.release.cta.global.add.u32 [%rd1], 1;"},
    "an acquire for the CTA alone": {"poll": "ld.acquire.cta.global.u32 %r2, [%rd1];"},
    "a fence for the CTA alone": {
        "post": "fence.acq_rel.cta;\n  red.relaxed.gpu.global.add.u32 [%rd1], 1;",
    },
    "the non-coherent path": {"read": "ld.global.nc.u32 %r4, [%rd11];"},
}


def run(
    body: str, grid: int = 2, lanes: int = 8192, seed: int | None = None, resident: int | None = None
) -> np.ndarray:
    """Run 64 threads a CTA with 128 words that are zero, and 16 semaphores; returns the words."""
    memory = emulate.GlobalMemory()
    addresses = [memory.alloc(4 * count, name) for count, name in ((128, "words"), (16, "semaphores"))]
    for address, count in zip(addresses, (128, 16), strict=True):
        memory.write(address, np.zeros(count, np.uint32))
    program = emulate.load(kernel(body, threads=64)).kernel("k")
    options = emulate.Options(lanes=lanes, seed=seed)
    params = [address.to_bytes(8, "little") for address in addresses]
    emulate.launch(program, grid, params, memory=memory, options=options, resident=resident)
    return memory.read(addresses[0], 512).view(np.uint32)


def text(changes: Mapping[str, str]) -> str:
    """The kernel with some of its parts changed."""
    return HAND_OVER.format(**{**RIGHT, **changes})


@pytest.mark.parametrize("lanes", [64, 8192])
@pytest.mark.parametrize("form", FORMS)
def test_what_is_released_is_seen(form: str, lanes: int) -> None:
    """In any order, in one batch and in two."""
    for seed in (None, *range(6)):
        out = run(text(FORMS[form]), lanes=lanes, seed=seed)
        np.testing.assert_array_equal(out[:64], np.arange(100, 164))
        np.testing.assert_array_equal(out[64:], np.arange(64).reshape(2, 32)[::-1].ravel() + 100)


@pytest.mark.parametrize("form", FORMS)
def test_ptxas_reads_the_forms(form: str, tmp_path) -> None:
    assembles(kernel(text(FORMS[form]), threads=64), tmp_path)


@pytest.mark.parametrize("lanes", [64, 8192])
@pytest.mark.parametrize("fault", FAULTS)
def test_what_is_forgotten_is_a_race(fault: str, lanes: int) -> None:
    """In each order in which the other CTA's words are there; the message says who, and in which line."""
    for seed in (None, *range(4)):
        with pytest.raises(emulate.EmulationError, match=r"CTA|\.nc") as excinfo:
            run(text(FAULTS[fault]), lanes=lanes, seed=seed)
        assert rule(excinfo) == "race" and excinfo.value.line


def test_a_wait_that_does_not_wait_is_a_race_in_some_order() -> None:
    """Where CTA 0 happens to be done first, nothing is wrong."""
    found = []
    for seed in range(8):
        try:
            run(text({"again": ""}), lanes=64, seed=seed)
        except emulate.EmulationError as error:
            found.append(error.rule)
    assert 0 < len(found) < 8 and set(found) == {"race"}


CHAIN = """
  mov.u32 %r0, %ctaid.x;
  mul.wide.u32 %rd10, %r0, 4;
  add.s64 %rd11, %rd10, %rd1;
  setp.eq.u32 %p0, %r0, 0;
  @%p0 bra $own;
$poll:
  ld.acquire.gpu.global.u32 %r2, [%rd11+-4];
  setp.eq.u32 %p2, %r2, 0;
  @%p2 bra $poll;
$own:
  bar.sync 0;
  add.s64 %rd12, %rd10, %rd0;
  setp.ne.u32 %p1, %t, 0;
  @%p1 bra $post;
  mov.u32 %r3, 1;
  @%p0 bra $store;
  ld.global.u32 %r3, [%rd0];
  add.u32 %r3, %r3, %r0;
$store:
  st.global.u32 [%rd12], %r3;
$post:
  bar.sync 0;
  @%p1 bra $end;
  red.release.gpu.global.add.u32 [%rd11], 1;
$end:
"""


@pytest.mark.parametrize("lanes", [64, 128, 8192])
def test_who_is_told_by_another_sees_what_that_saw(lanes: int) -> None:
    """Each of five CTAs reads what the first one wrote, told by the one before it."""
    for seed in (None, 1, 2):
        np.testing.assert_array_equal(run(CHAIN, grid=5, lanes=lanes, seed=seed)[:5], [1, 2, 3, 4, 5])


def test_places_that_are_used_again() -> None:
    """What others have read may be written once they have said so, and not before."""
    body = """
  mov.u32 %r0, %ctaid.x;
  setp.ne.u32 %p1, %t, 0;
  @%p1 bra $end;
  setp.eq.u32 %p0, %r0, 1;
  @%p0 bra $write;
  ld.global.u32 %r1, [%rd0];
  st.global.u32 [%rd0+4], %r1;
  red.{release}.gpu.global.add.u32 [%rd1], 1;
  bra $end;
$write:
  ld.acquire.gpu.global.u32 %r2, [%rd1];
  setp.eq.u32 %p2, %r2, 0;
  @%p2 bra $write;
  mov.u32 %r3, 9;
  st.global.u32 [%rd0], %r3;
$end:
"""
    np.testing.assert_array_equal(run(body.format(release="release"))[:2], [9, 0])
    with pytest.raises(emulate.EmulationError, match=r"writes what .* read") as excinfo:
        run(body.format(release="relaxed"))
    assert rule(excinfo) == "race"


LATER = CHAIN.replace("[%rd11+-4]", "[%rd11+4]").replace("setp.eq.u32 %p0, %r0, 0", "setp.eq.u32 %p0, %r0, 3")


@pytest.mark.parametrize("lanes", [64, 8192])
def test_ctas_beyond_those_that_are_resident_begin_when_others_end(lanes: int) -> None:
    """In order, CTAs that wait for earlier ones never hang; those that wait for later ones do."""
    np.testing.assert_array_equal(run(CHAIN, grid=4, lanes=lanes, resident=1)[:4], [1, 2, 3, 4])
    waits = LATER.replace("ld.global.u32 %r3, [%rd0];", "mov.u32 %r3, 1;")
    run(waits, grid=4, lanes=lanes, resident=4)
    for resident in (1, 3):
        with pytest.raises(emulate.EmulationError, match=f"have not begun, as {resident} run at a time") as excinfo:
            run(waits, grid=4, lanes=lanes, resident=resident)
        assert rule(excinfo) == "dead-lock" and excinfo.value.line


def test_dead_lock_between_ctas_names_the_line() -> None:
    """Each waits for the other."""
    body = CHAIN.replace("[%rd11+-4]", "[%rd13]").replace(
        "  setp.eq.u32 %p0, %r0, 0;\n", "  xor.b32 %r9, %r0, 1;\n  mul.wide.u32 %rd13, %r9, 4;\n"
        "  add.s64 %rd13, %rd13, %rd1;\n  setp.eq.u32 %p0, %r0, 7;\n"
    )  # fmt: skip
    for lanes, seed in itertools.product((64, 8192), (None, 1)):
        with pytest.raises(emulate.EmulationError, match="polling") as excinfo:
            run(body, lanes=lanes, seed=seed)
        assert rule(excinfo) == "dead-lock" and excinfo.value.line


def test_a_device_holds_no_more_ctas_than_fit() -> None:
    """A grid whose CTAs wait for each other is refused where they cannot all be resident, as a driver does."""
    from tilewright.core.errors import UserError

    device = emulate.Device("sm_90a", multiprocessors=2)
    addresses = [device.alloc(nbytes) for nbytes in (512, 64)]
    for address, nbytes in zip(addresses, (512, 64), strict=True):
        device.fill(address, 0, nbytes)
    module = device.load(kernel(CHAIN, threads=64).encode())
    function = device.function(module, "k")
    assert device.resident(function, 64, 0) == 4, "as many as 255 registers a thread allow"
    assert device.resident(function, 64, 100 << 10) == 2
    params = [address.to_bytes(8, "little") for address in addresses]
    device.launch(function, (4, 1, 1), (64, 1, 1), (1, 1, 1), 100 << 10, params, together=True)
    with pytest.raises(UserError, match="only 4 run at the same time"):
        device.launch(function, (5, 1, 1), (64, 1, 1), (1, 1, 1), 100 << 10, params, together=True)


def test_loops_of_compare_and_swap_begin_with_a_plain_read() -> None:
    """As LLVM makes them of atomic operations that no instruction has."""
    body = """
  ld.global.u32 %r1, [%rd0];
$again:
  mov.u32 %r2, %r1;
  add.u32 %r3, %r2, 1;
  atom.global.cas.b32 %r1, [%rd0], %r2, %r3;
  setp.ne.u32 %p0, %r1, %r2;
  @%p0 bra $again;
"""
    for lanes, seed in itertools.product((64, 8192), (None, 1)):
        assert run(body, grid=3, lanes=lanes, seed=seed)[0] == 3 * 64
