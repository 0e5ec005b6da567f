# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Memory: vectors, state spaces, atomics, and every check."""

from __future__ import annotations

import weakref

import numpy as np
import pytest
from emulation import kernel_text, run

from tilewright.sim import ptx as emulate

TID = "ld.param.u64 %d0, [p0]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 4; add.s64 %d2, %d0, %d1;\n"
SHARED = ".shared .align 16 .b8 buffer[256];\nmov.b32 %r6, buffer; shl.b32 %r7, %r0, 2; add.u32 %r8, %r6, %r7;\n"


def broken(
    body: str, rule: str, *arrays: np.ndarray, match: str = "", threads: int = 32, **options
) -> emulate.EmulationError:
    """Run a kernel that must break a rule."""
    with pytest.raises(emulate.EmulationError, match=match) as raised:
        run(kernel_text(body, threads=threads), *(arrays or (np.zeros(threads, np.int32),)), **options)
    assert raised.value.rule == rule, raised.value
    return raised.value


def test_vectors_and_narrow_types() -> None:
    """v4 loads, bytes with and without sign, stores of bytes."""
    body = """
ld.param.u64 %d0, [p0]; mov.u32 %r0, %tid.x; mul.wide.u32 %d1, %r0, 16; add.s64 %d2, %d0, %d1;
ld.global.v4.b32 {%r1, %r2, %r3, %r4}, [%d2];
ld.global.s8 %h0, [%d2+3]; ld.global.u8 %h1, [%d2+3];
cvt.s32.s16 %r5, %h0; cvt.u32.u16 %r6, %h1;
st.global.v2.u32 [%d2], {%r4, %r5}; st.global.u32 [%d2+8], %r6; st.global.u8 [%d2+12], %r1;
"""
    rng = np.random.default_rng(0)
    a = rng.integers(-(2**31), 2**31, (32, 4)).astype(np.int32)
    (out,) = run(kernel_text(body), a)
    np.testing.assert_array_equal(out[:, 0], a[:, 3])
    np.testing.assert_array_equal(out[:, 1], a.view(np.int8)[:, 3])
    np.testing.assert_array_equal(out[:, 2], a.view(np.uint8)[:, 3])
    np.testing.assert_array_equal(out.view(np.uint8)[:, 12], a.view(np.uint8)[:, 0])


def test_generic_addresses_reach_every_space() -> None:
    """One load instruction, lanes in global, shared, local and parameter memory."""
    body = (
        TID
        + SHARED
        + """
.local .align 8 .b8 depot[16];
mov.u32 %r9, 1000; add.u32 %r9, %r9, %r0; st.shared.u32 [%r8], %r9; bar.sync 0;
mov.b64 %d3, depot; add.u32 %r10, %r9, 1000; st.local.u32 [%d3+8], %r10; cvta.local.u64 %d3, %d3; add.s64 %d3, %d3, 8;
cvt.u64.u32 %d4, %r8; cvta.shared.u64 %d4, %d4;
mov.b64 %d5, p0; cvta.param.u64 %d5, %d5;
and.b32 %r11, %r0, 3;
setp.eq.u32 %p0, %r11, 0; setp.eq.u32 %p1, %r11, 1; setp.eq.u32 %p2, %r11, 2;
selp.b64 %d6, %d2, %d5, %p0; selp.b64 %d6, %d3, %d6, %p1; selp.b64 %d6, %d4, %d6, %p2;
isspacep.shared %p3, %d6;
ld.u32 %r12, [%d6];
@%p3 add.u32 %r12, %r12, 5;
st.global.u32 [%d2], %r12;
"""
    )
    a = np.arange(32, dtype=np.int32)
    (out,) = run(kernel_text(body), a)
    np.testing.assert_array_equal(out[0::4], a[0::4])
    np.testing.assert_array_equal(out[1::4], a[1::4] + 2000)
    np.testing.assert_array_equal(out[2::4], a[2::4] + 1005)
    assert len(set(out[3::4])) == 1


def test_misaligned() -> None:
    """A word at an odd address."""
    error = broken(TID + "ld.global.u32 %r1, [%d2+2];", "misaligned", match="no multiple of 4")
    assert error.line is not None and error.thread == 0


def test_out_of_bounds_names_the_allocation() -> None:
    """Behind the end, before the start, behind what was freed, no address at all."""
    error = broken(TID + "st.global.u32 [%d2+8], %r0;", "out-of-bounds", match="128 bytes")
    assert error.thread == 30
    broken(TID + "ld.global.u32 %r1, [%d2+-4];", "out-of-bounds", match="offset -4")
    broken(TID + "mov.u64 %d2, 64; ld.global.u32 %r1, [%d2];", "out-of-bounds", match="no allocation")
    broken(TID + SHARED + "st.shared.u32 [%r8+252], %r0;", "out-of-bounds", match="offset 256 of 256")
    broken(TID + "mov.u32 %r8, 0; st.shared.u32 [%r8], %r0;", "out-of-bounds", match="shared memory")


def test_freed_memory() -> None:
    """The message says so."""
    memory = emulate.GlobalMemory()
    address = memory.alloc(128, "input x")
    found = weakref.ref(memory.range(address, 128)[0])
    memory.range(address, 128)[0].rows(4, 1)
    memory.free(address)
    assert found() is None, "its bytes are free, too"
    kernel = emulate.load(kernel_text(TID + "st.global.u32 [%d2], %r0;")).kernel("k")
    with pytest.raises(emulate.EmulationError, match="input x was freed"):
        emulate.launch(kernel, 1, [address.to_bytes(8, "little")], memory=memory)


def test_uninitialised_shared_and_global_memory() -> None:
    """A read before any write; the check can be switched off."""
    error = broken(TID + SHARED + "ld.shared.u32 %r9, [%r8+4];", "uninitialised", match="shared memory")
    assert "ld.shared.u32" in str(error)
    memory = emulate.GlobalMemory()
    address = memory.alloc(128)
    kernel = emulate.load(kernel_text(TID + "ld.global.u32 %r1, [%d2];")).kernel("k")
    with pytest.raises(emulate.EmulationError, match="nothing has written"):
        emulate.launch(kernel, 1, [address.to_bytes(8, "little")], memory=memory)
    emulate.launch(
        kernel, 1, [address.to_bytes(8, "little")], memory=memory, options=emulate.Options(checks=frozenset())
    )


@pytest.mark.parametrize(
    "use",
    [
        "st.global.u32 [%d2], %r2;",
        "mul.wide.u32 %d3, %r2, 4; add.s64 %d3, %d0, %d3; ld.global.u32 %r3, [%d3];",
        "setp.eq.u32 %p1, %r2, 0; @%p1 bra $on; mov.u32 %r3, 0; $on:",
        "shfl.sync.bfly.b32 %r3, %r2, 1, 31, -1;",
        "selp.u32 %r3, 1, %r2, %p0; st.global.u32 [%d2], %r3;",
        "mov.b32 {%h0, %h1}, %r2; mov.b32 %r3, {%h0, %h1}; st.global.u32 [%d2], %r3;",
    ],
)
def test_uninitialised_registers(use: str) -> None:
    """Written on some paths only: what is computed from it is undefined, its use is an error."""
    body = TID + "setp.lt.u32 %p0, %r0, 31;\n@%p0 mov.u32 %r1, 5;\nadd.u32 %r2, %r1, 1;\n"
    error = broken(body + use, "uninitialised", match="register %")
    assert error.thread == 31
    run(kernel_text(body + use), np.zeros(32, np.int32), checks=emulate.CHECKS - {"uninitialised registers"})


def test_undefined_values_that_nobody_uses() -> None:
    """Copied, computed with, half of a packed value, not selected: no error."""
    body = TID + "setp.lt.u32 %p0, %r0, 31;\n@%p0 mov.u32 %r1, 5;\nadd.u32 %r2, %r1, 1; mov.u32 %r3, %r2;\n"
    body += "selp.u32 %r4, %r2, 9, %p0; st.global.u32 [%d2], %r4;\n"
    body += "mov.b16 %h0, 7; mov.b32 %r5, {%h0, %h1}; st.global.u32 [%d2], %r5;"
    (out,) = run(kernel_text(body), np.zeros(32, np.int32))
    np.testing.assert_array_equal(out & 0xFFFF, 7)


def test_two_threads_write_one_place() -> None:
    """Different values: whose stays is chance. Equal values are no harm."""
    broken(TID + SHARED + "st.shared.u32 [%r6], %r0;", "race", match="different values")
    run(kernel_text(TID + SHARED + "mov.u32 %r9, 3; st.shared.u32 [%r6], %r9;"), np.zeros(32, np.int32))


@pytest.mark.parametrize("seed", [None, 5])
def test_atomics(seed) -> None:
    """Counters that many threads meet at; each old value once."""
    body = """
ld.param.u64 %d0, [p0]; ld.param.u64 %d1, [p1]; mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x; mad.lo.s32 %r3, %r1, %r2, %r0;
atom.global.add.u32 %r4, [%d0], 1;
mul.wide.u32 %d2, %r4, 4; add.s64 %d2, %d1, %d2; st.global.u32 [%d2], %r3;
red.global.max.s32 [%d0+4], %r3;
red.global.add.f32 [%d0+8], 0f3F000000;
atom.global.inc.u32 %r5, [%d0+12], 6;
"""
    counters, order = np.zeros(4, np.int32), np.zeros(256, np.int32)
    counters, order = run(kernel_text(body, parameters=2, threads=64), counters, order, grid=4, seed=seed)
    assert counters[0] == 256 and counters[1] == 255
    assert counters[2:3].view(np.float32)[0] == 128.0
    assert counters[3] == 256 % 7
    np.testing.assert_array_equal(np.sort(order), np.arange(256))
    assert (order[:64] == np.arange(64)).all() == (seed is None)


def test_compare_and_swap_elects_one() -> None:
    """Of all threads that offer their number, one wins, and all others see it."""
    body = TID + "add.u32 %r3, %r0, 1; atom.global.cas.b32 %r4, [%d0], 0, %r3; st.global.u32 [%d2+4], %r4;"
    (out,) = run(kernel_text(body), np.zeros(33, np.int32))
    assert out[0] == 1 and (out[1:] == 0).sum() == 1 and (out[1:] == 1).sum() == 31


def test_variables_of_the_module() -> None:
    """A table of constants and a variable that keeps its value."""
    head = ".global .align 4 .u32 counter = 40;\n.const .align 4 .b8 table[8] = {1, 0, 0, 0, 2, 0, 0, 0};"
    body = TID + "ld.const.u32 %r1, [table+4]; ld.global.u32 %r2, [counter]; add.u32 %r2, %r2, %r1;"
    body += "st.global.u32 [counter], %r2; st.global.u32 [%d0], %r2;"
    text = kernel_text(body, head=head)
    kernel = emulate.load(text).kernel("k")
    memory = emulate.GlobalMemory()
    address = memory.alloc(128)
    for want in (42, 44):
        emulate.launch(kernel, 1, [address.to_bytes(8, "little")], memory=memory)
        assert memory.read(address, 4).view(np.int32)[0] == want


def test_the_source_location_is_named() -> None:
    """.loc lines of the PTX."""
    body = TID + ".loc 1 42 7\nld.global.u32 %r1, [%d2+2];"
    error = broken_with_file(body)
    assert error.source == "kernel.mlir:42"
    assert "kernel.mlir:42" in str(error)


def broken_with_file(body: str) -> emulate.EmulationError:
    """Run a kernel whose module has a .file."""
    with pytest.raises(emulate.EmulationError) as raised:
        run(kernel_text(body, head='.file 1 "kernel.mlir"'), np.zeros(32, np.int32))
    return raised.value
