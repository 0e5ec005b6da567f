# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX of the probe of phases: a ring of buffers between a producer and two consumer warps, whose waits end."""

from __future__ import annotations

from bench.gpu.ladder.watched import HEADER, REGISTERS, SHARED_BYTES, copies, poll, postmortem

#: bytes of a buffer, most buffers, threads, consumer warps (each arrives once)
PITCH, STAGES, THREADS, WARPS = 1024, 8, 96, 2
_NUMBERS = "stages rounds full_count empty_count tx_bytes box_bytes full_parity empty_parity limit".split()


def ring() -> str:
    """Kernel ``ring``: as `MbarrierSetup` says, round by round.

    Parameters: addresses of the image, the source, the result (`PITCH` bytes of each round), the dump and the verdict
    (u64); the fields of the set-up and the limit of polls (u32). The verdict, s32: rounds that the producer began, that
    the consumer ended; excess and missing of the full barrier that the consumer is left at, then of the producer's
    empty one. Loads have `stages` times the limit to come before all is dumped.
    """
    parameters = ", ".join(f".param .u32 {name}" for name in _NUMBERS)
    addresses = "".join(
        f"  ld.param.u64 %rd{i}, [{name}];\n  cvta.to.global.u64 %rd{i}, %rd{i};\n"
        for i, name in enumerate(("image", "source", "result", "dump", "verdict"))
    )
    numbers = "".join(f"  ld.param.u32 %n{i}, [{name}];\n" for i, name in enumerate(_NUMBERS[:-1]))
    return f"""{HEADER}.visible .entry ring(.param .u64 image, .param .u64 source, .param .u64 result, .param .u64 dump,
    .param .u64 verdict, {parameters})
.maxntid {THREADS}, 1, 1
{{
{REGISTERS}  .reg .b32 %n<8>;
{addresses}{numbers}  ld.param.u32 %limit, [limit];
  mov.u32 %base, smem;
  mov.u32 %tix, %tid.x;
{copies("IN", "%rd0", True, THREADS)}  add.s32 %r0, %base, {SHARED_BYTES};
  setp.ne.u32 %p0, %tix, 0;
  @%p0 bra READY;
  mov.u32 %r1, 0;
INIT:
  shl.b32 %r2, %r1, 3;
  add.s32 %r2, %r2, %r0;
  mbarrier.init.shared::cta.b64 [%r2], %n2;
  mbarrier.init.shared::cta.b64 [%r2+{8 * STAGES}], %n3;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p1, %r1, %n0;
  @%p1 bra INIT;
  fence.mbarrier_init.release.cluster;
READY:
  fence.proxy.async.shared::cta;
  bar.sync 0;
  mov.u32 %r10, 0;
  mov.u32 %r11, 0;
  mov.u32 %r12, 0;
  setp.lt.u32 %p2, %tix, 32;
  @!%p2 bra CONSUME;
  @%p0 bra MET;
PRODUCE:
  setp.ge.u32 %p1, %r10, %n1;
  @%p1 bra MET;
  shl.b32 %r2, %r11, 3;
  add.s32 %r13, %r2, %r0;
  add.s32 %r14, %r13, {8 * STAGES};
  xor.b32 %r15, %r12, %n7;
{poll("FREE", "%r14", "%r15", "%p3")}  @!%p3 bra MET;
  mbarrier.arrive.expect_tx.shared::cta.b64 %rd8, [%r13], %n4;
  mul.wide.u32 %rd9, %r10, {PITCH};
  add.s64 %rd9, %rd9, %rd1;
  mad.lo.u32 %r16, %r11, {PITCH}, %base;
  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r16], [%rd9], %n5, [%r13];
  add.u32 %r10, %r10, 1;
  add.u32 %r11, %r11, 1;
  setp.lt.u32 %p1, %r11, %n0;
  @%p1 bra PRODUCE;
  mov.u32 %r11, 0;
  xor.b32 %r12, %r12, 1;
  bra PRODUCE;
CONSUME:
  sub.u32 %r17, %tix, 32;
  shl.b32 %r17, %r17, 4;
TAKE:
  setp.ge.u32 %p1, %r10, %n1;
  @%p1 bra MET;
  shl.b32 %r2, %r11, 3;
  add.s32 %r13, %r2, %r0;
  xor.b32 %r15, %r12, %n6;
{poll("FULL", "%r13", "%r15", "%p3")}  @!%p3 bra MET;
  mad.lo.u32 %r16, %r11, {PITCH}, %base;
  add.s32 %r16, %r16, %r17;
  ld.shared.v4.b32 {{%r20, %r21, %r22, %r23}}, [%r16];
  mad.lo.u32 %r18, %r10, {PITCH}, %r17;
  cvt.u64.u32 %rd9, %r18;
  add.s64 %rd9, %rd9, %rd2;
  st.global.v4.b32 [%rd9], {{%r20, %r21, %r22, %r23}};
  bar.warp.sync -1;
  and.b32 %r19, %tix, 31;
  setp.eq.u32 %p4, %r19, 0;
  @%p4 mbarrier.arrive.shared::cta.b64 %rd8, [%r13+{8 * STAGES}];
  add.u32 %r10, %r10, 1;
  add.u32 %r11, %r11, 1;
  setp.lt.u32 %p1, %r11, %n0;
  @%p1 bra TAKE;
  mov.u32 %r11, 0;
  xor.b32 %r12, %r12, 1;
  bra TAKE;
MET:
  bar.sync 0;
  @%p0 bra SETTLED;
  mov.u32 %r24, 0;
AGAIN:
  mov.u32 %r1, 0;
SETTLE:
  mbarrier.test_wait.parity.shared::cta.b64 %p3, [%r0], 0;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p4, %r1, %limit;
  @%p4 bra SETTLE;
  st.shared.b32 [%r0+512], %r24;
  add.u32 %r24, %r24, 1;
  setp.lt.u32 %p4, %r24, %n0;
  @%p4 bra AGAIN;
SETTLED:
  bar.sync 0;
{copies("OUT", "%rd3", False, THREADS)}  setp.eq.u32 %p5, %tix, 32;
  @!%p5 bra ASKING;
  st.shared.v4.b32 [%r0+512], {{%r10, %r13, %r15, %r10}};
ASKING:
  bar.sync 0;
  @%p0 bra END;
  st.global.b32 [%rd4], %r10;
  ld.shared.v4.b32 {{%r20, %r21, %r22, %r23}}, [%r0+512];
  st.global.b32 [%rd4+4], %r20;
  mov.s32 %excess, 0;
  mov.s32 %missing, 0;
  setp.ge.u32 %p6, %r20, %n1;
  @%p6 bra OTHER;
{postmortem("F", "%r21", "%r22", PITCH // 16, 16)}OTHER:
  st.global.v2.b32 [%rd4+8], {{%excess, %missing}};
  mov.s32 %excess, 0;
  mov.s32 %missing, 0;
  setp.ge.u32 %p6, %r10, %n1;
  @%p6 bra SAY;
{postmortem("E", "%r14", "%r15", PITCH // 16, 16)}SAY:
  st.global.v2.b32 [%rd4+16], {{%excess, %missing}};
END:
  ret;
}}
"""
