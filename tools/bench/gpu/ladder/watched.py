# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX of probes whose waits end: what a hang leaves behind is dumped, and the mbarrier is asked what it waits for.

A phase that has not ended after `limit` polls is taken for one that never will. Transactions, then arrivals, are added
one after the other until it ends: their number tells the count that is wrong.
"""

from __future__ import annotations

#: bytes of shared memory that are filled and dumped; the mbarriers lie behind
SHARED_BYTES = 32768
#: as far/ladder/diagnosis/tma.py
STEP, STEPS, SINGLE, ARRIVALS = 16, 2048, 512, 1024
#: no number of bytes
NONE = 2**31 - 1
#: of every probe
HEADER = ".version 8.0\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 smem[];\n"


def copies(label: str, pointer: str, to_shared: bool, threads: int = 128) -> str:
    """All threads copy `SHARED_BYTES` between memory at `pointer` and shared memory at %base, 16 bytes at a time."""
    move = ["ld.global.v4.b32 {%q0, %q1, %q2, %q3}, [%qd1];", "st.shared.v4.b32 [%qa], {%q0, %q1, %q2, %q3};"]
    if not to_shared:
        move = ["ld.shared.v4.b32 {%q0, %q1, %q2, %q3}, [%qa];", "st.global.v4.b32 [%qd1], {%q0, %q1, %q2, %q3};"]
    return f"""  shl.b32 %qi, %tix, 4;
{label}:
  cvt.u64.u32 %qd0, %qi;
  add.s64 %qd1, {pointer}, %qd0;
  add.s32 %qa, %base, %qi;
  {move[0]}
  {move[1]}
  add.s32 %qi, %qi, {16 * threads};
  setp.lt.u32 %qp, %qi, {SHARED_BYTES};
  @%qp bra {label};
"""


def poll(label: str, bar: str, parity: str, over: str) -> str:
    """Ask for a phase until it has ended or %limit polls are over; `over`: the predicate that says which."""
    return f"""  mov.u32 %pi, 0;
{label}:
  mbarrier.test_wait.parity.shared::cta.b64 {over}, [{bar}], {parity};
  add.u32 %pi, %pi, 1;
  setp.lt.u32 %pp, %pi, %limit;
  @{over} bra {label}_END;
  @%pp bra {label};
{label}_END:
"""


def postmortem(label: str, bar: str, parity: str, steps: int = STEPS, single: int = SINGLE) -> str:
    """Find what ends a phase: %excess in bytes (2^31 - 1: none does), then %missing arrivals.

    Multiples of `STEP` bytes are tried first, `steps` of them, then single ones.
    """

    def scan(name: str, op: str, change: str, found: str, by: int, most: int) -> str:
        return f"""  mov.u32 %mi, 0;
  mov.s32 %mv, 0;
{label}_{name}:
  {op} {change};
  add.s32 %mv, %mv, {by};
  mbarrier.test_wait.parity.shared::cta.b64 %mp, [{bar}], {parity};
  @!%mp bra {label}_{name}_ON;
  mov.s32 {found}, %mv;
  bra {label}_DONE;
{label}_{name}_ON:
  add.u32 %mi, %mi, 1;
  setp.lt.u32 %mp, %mi, {most};
  @%mp bra {label}_{name};
"""

    def both(name: str, by: int, most: int) -> str:
        less, more = (f"mbarrier.{op}_tx.relaxed.cta.shared::cta.b64" for op in ("complete", "expect"))
        return (
            scan(f"MORE{name}", less, f"[{bar}], {by}", "%excess", by, most)
            + f"  {more} [{bar}], {by * most};\n"
            + scan(f"LESS{name}", more, f"[{bar}], {by}", "%excess", -by, most)
            + f"  {less} [{bar}], {by * most};\n"
        )

    return (
        f"  mov.s32 %excess, {NONE};\n  mov.s32 %missing, 0;\n"
        + both("", STEP, steps)
        + both("1", 1, single)
        + scan("CAME", "mbarrier.arrive.shared::cta.b64", f"%mq, [{bar}]", "%missing", 1, ARRIVALS)
        + f"{label}_DONE:\n"
    )


#: that the pieces of a probe use
REGISTERS = """  .reg .pred %p<8>, %qp, %pp, %mp; .reg .b32 %r<32>, %q<4>, %qi, %qa, %pi, %mi, %mv, %tix, %base, %limit;
  .reg .b32 %excess, %missing; .reg .b64 %rd<16>, %qd<2>, %mq;
"""


def box(rank: int) -> str:
    """Kernel ``box``: shared memory filled, one box loaded by TMA, all of it dumped, the mbarrier asked.

    Parameters: the descriptor; addresses of the image, the dump and the verdict (u64); bytes to expect, place in shared
    memory, arrivals of the mbarrier, parity of the wait, limit of polls, five coordinates, innermost first (u32).
    128 threads, `SHARED_BYTES` + 1024 bytes of shared memory. The verdict, s32: whether phase 0 ended; excess; missing.
    """
    at = ", ".join(f"%r{10 + dim}" for dim in range(rank))
    coordinates = "".join(f"  ld.param.u32 %r{10 + dim}, [c{dim}];\n" for dim in range(rank))
    numbers = ("bytes", "place", "arrivals", "parity", "limit", *(f"c{dim}" for dim in range(5)))
    parameters = ", ".join(f".param .u32 {name}" for name in numbers)
    return f"""{HEADER}.visible .entry box(.param .align 64 .b8 map[128], .param .u64 image, .param .u64 dump,
    .param .u64 verdict, {parameters})
.maxntid 128, 1, 1
{{
{REGISTERS}  ld.param.u64 %rd1, [image];
  cvta.to.global.u64 %rd1, %rd1;
  ld.param.u64 %rd2, [dump];
  cvta.to.global.u64 %rd2, %rd2;
  ld.param.u64 %rd3, [verdict];
  cvta.to.global.u64 %rd3, %rd3;
  ld.param.u32 %limit, [limit];
  ld.param.u32 %r2, [parity];
  mov.u32 %base, smem;
  mov.u32 %tix, %tid.x;
{copies("IN", "%rd1", True)}  add.s32 %r8, %base, {SHARED_BYTES};
  setp.ne.u32 %p2, %tix, 0;
  @%p2 bra READY;
  ld.param.u32 %r3, [arrivals];
  mbarrier.init.shared::cta.b64 [%r8], %r3;
  fence.mbarrier_init.release.cluster;
READY:
  fence.proxy.async.shared::cta;
  bar.sync 0;
  @%p2 bra WAITED;
{coordinates}  ld.param.u32 %r16, [bytes];
  ld.param.u32 %r17, [place];
  add.s32 %r17, %r17, %base;
  mov.b64 %rd5, map;
  cvta.param.u64 %rd5, %rd5;
  mbarrier.arrive.expect_tx.shared::cta.b64 %rd6, [%r8], %r16;
  cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
      [%r17], [%rd5, {{{at}}}], [%r8];
{poll("WAIT", "%r8", "%r2", "%p3")}WAITED:
  bar.sync 0;
{copies("OUT", "%rd2", False)}  bar.sync 0;
  @%p2 bra END;
{poll("SETTLE", "%r8", "0", "%p4")}  selp.s32 %r9, 1, 0, %p4;
  st.global.b32 [%rd3], %r9;
  mov.s32 %excess, 0;
  mov.s32 %missing, 0;
  @%p4 bra SAY;
{postmortem("ASK", "%r8", "0")}SAY:
  st.global.b32 [%rd3+4], %excess;
  st.global.b32 [%rd3+8], %missing;
END:
  ret;
}}
"""


def multiply(
    n: int, dtype: str = "f16", a_k_major: bool = True, b_k_major: bool = True, registers: bool = False, steps: int = 1
) -> str:
    """Kernel ``multiply``: shared memory filled, `steps` products on accumulators that hold a number, those dumped.

    Args:
        n: columns.
        dtype: "f16", "bf16" or "tf32".
        a_k_major, b_k_major: of 16-bit elements, whether ``imm-trans-a`` and ``imm-trans-b`` are 0.
        registers: A comes from registers.
        steps: instructions along k.

    Parameters: addresses of the image, the dump and of A in registers (u64: 16 bytes of each thread, step after step),
    descriptors of A and B with addresses from the start of shared memory, what an instruction adds to them in units of
    16 bytes (u64), whether the first product adds (u32), the accumulators' number (f32). 128 threads.
    """
    sums = n // 2
    names = ", ".join(f"%f{i}" for i in range(sums))
    loads = "".join(
        f"  ld.global.v4.b32 {{{', '.join(f'%a{4 * step + i}' for i in range(4))}}}, [%rd9+{2048 * step}];\n"
        for step in range(steps if registers else 0)
    )
    body = ""
    turned = [] if registers else [int(not a_k_major)]
    tail = ", ".join(map(str, [1, 1, *([*turned, int(not b_k_major)] if dtype != "tf32" else [])]))
    for step in range(steps):
        left = "{" + ", ".join(f"%a{4 * step + i}" for i in range(4)) + "}" if registers else "%rd5"
        body += f"  wgmma.mma_async.sync.aligned.m64n{n}k{8 if dtype == 'tf32' else 16}.f32.{dtype}.{dtype}\n"
        body += f"      {{{names}}}, {left}, %rd6, %p{1 if step == 0 else 2}, {tail};\n"
        body += "  add.s64 %rd5, %rd5, %rd7;\n  add.s64 %rd6, %rd6, %rd8;\n" if step + 1 < steps else ""
    zeros = "".join(f"  mov.f32 %f{i}, %initial;\n" for i in range(sums))
    stores = "".join(f"  st.global.f32 [%rd4+{4 * i}], %f{i};\n" for i in range(sums))
    return f"""{HEADER}.visible .entry multiply(.param .u64 image, .param .u64 dump, .param .u64 left,
    .param .u64 a, .param .u64 b, .param .u64 step_a, .param .u64 step_b, .param .u32 add, .param .f32 initial)
.maxntid 128, 1, 1
{{
{REGISTERS}  .reg .f32 %f<{sums}>, %initial; .reg .b32 %a<{4 * steps}>;
  ld.param.u64 %rd1, [image];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %base, smem;
  mov.u32 %tix, %tid.x;
{copies("IN", "%rd1", True)}  fence.proxy.async.shared::cta;
  bar.sync 0;
  ld.param.u64 %rd5, [a];
  ld.param.u64 %rd6, [b];
  ld.param.u64 %rd7, [step_a];
  ld.param.u64 %rd8, [step_b];
  cvt.u64.u32 %rd10, %base;
  shr.u64 %rd10, %rd10, 4;
  add.s64 %rd5, %rd5, %rd10;
  add.s64 %rd6, %rd6, %rd10;
  ld.param.u32 %r8, [add];
  ld.param.f32 %initial, [initial];
  setp.ne.u32 %p1, %r8, 0;
  setp.eq.u32 %p2, %base, %base;
  ld.param.u64 %rd9, [left];
  cvta.to.global.u64 %rd9, %rd9;
  mul.wide.u32 %rd11, %tix, 16;
  add.s64 %rd9, %rd9, %rd11;
{loads}{zeros}  wgmma.fence.sync.aligned;
{body}  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  ld.param.u64 %rd4, [dump];
  cvta.to.global.u64 %rd4, %rd4;
  mul.wide.u32 %rd11, %tix, {4 * sums};
  add.s64 %rd4, %rd4, %rd11;
{stores}  ret;
}}
"""
