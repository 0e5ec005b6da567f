# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX of probes: kernels that move one box, or multiply once, and dump what came of it, byte by byte.

No model makes them. What they take is what the compiler makes: TMA's descriptors come from the run-time's own encoder
as parameters, matrix descriptors are read out of kernels that the compiler lowered (:func:`matrix_operands`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

#: Bytes of shared memory that a probe fills and dumps.
SHARED_BYTES = 32768
_HEADER = ".version 8.0\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 smem[];\n"
#: All threads copy `SHARED_BYTES` between memory at %rd1 and shared memory at %r1: 16 bytes of each thread at a time.
_COPY = """  mov.u32 %r2, %tid.x;
  shl.b32 %r2, %r2, 4;
COPY{name}:
  cvt.u64.u32 %rd2, %r2;
  add.s64 %rd3, {global_}, %rd2;
  add.s32 %r3, %r1, %r2;
  {load} {{%r4, %r5, %r6, %r7}}, [{source}];
  {store} [{target}], {{%r4, %r5, %r6, %r7}};
  add.s32 %r2, %r2, 2048;
  setp.lt.u32 %p1, %r2, {bytes};
  @%p1 bra COPY{name};
"""


def _copy(name: str, global_: str, to_shared: bool) -> str:
    pair = ("ld.global.v4.b32", "st.shared.v4.b32", "%rd3", "%r3")
    load, store, source, target = pair if to_shared else ("ld.shared.v4.b32", "st.global.v4.b32", "%r3", "%rd3")
    return _COPY.format(
        name=name, global_=global_, load=load, store=store, source=source, target=target, bytes=SHARED_BYTES
    )


#: A bounded wait. Late polls count themselves in memory: the emulator takes a loop that writes for no dead-lock.
_AFTER = """  mov.u32 %r18, 0;
POLL:
  mbarrier.test_wait.parity.shared::cta.b64 %p3, [%r8], %r19;
  @%p3 bra OVER;
  add.s32 %r18, %r18, 1;
  setp.lt.u32 %p1, %r18, {silent};
  @%p1 bra POLL;
  st.global.u32 [%rd4+{place}], %r18;
  setp.lt.u32 %p1, %r18, {polls};
  @%p1 bra POLL;
"""
#: One way to end a phase that did not end by itself: a step, tried so often; the number of steps goes to %r20.
_TRY = """  mov.u32 %r18, 0;
{name}:
  {step}
  add.s32 %r18, %r18, 1;
  st.global.u32 [%rd4+{place}], %r18;
  mbarrier.test_wait.parity.shared::cta.b64 %p3, [%r8], %r19;
  @%p3 bra {name}_ENDED;
  setp.lt.u32 %p1, %r18, {times};
  @%p1 bra {name};
  {undo}
  bra {name}_OFF;
{name}_ENDED:
  mov.u32 %r{word}, %r18;
  bra DONE;
{name}_OFF:
"""
_SILENT, _POLLS, _STEPS, _ARRIVALS = 500, 20000, 2048, 64
#: After a wait that did not end: bytes that are missing, bytes too many, arrivals that are missing.
_POST_MORTEM = (
    ("LESS", "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r8], 16;", _STEPS,
     f"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r8], {16 * _STEPS};", 21),
    ("MORE", "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r8], 16;", _STEPS,
     f"mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%r8], {16 * _STEPS};", 22),
    ("LATE", "mbarrier.arrive.shared::cta.b64 %rd6, [%r8];", _ARRIVALS, "", 23),
)  # fmt: skip


def _post_mortem() -> str:
    return "".join(
        _TRY.format(name=name, step=step, times=times, undo=undo, word=word, place=SHARED_BYTES)
        for name, step, times, undo, word in _POST_MORTEM
    )


def box_dump(rank: int) -> str:
    """Kernel ``box``: shared memory filled with an image, one box loaded into it by TMA, all of it dumped.

    Parameters: the descriptor, addresses of the image and of the dump (u64), bytes to expect, arrivals that the
    mbarrier waits for (one comes), the parity that is waited for, place in shared memory, and five coordinates,
    innermost first (u32). 128 threads, `SHARED_BYTES` + 1024 bytes of shared memory. The wait is bounded: after the
    dump lie four words: whether it ended, how often 16 bytes less, and 16 bytes more, had to be expected until it did,
    and how many arrivals were missing; zeros where none of them ends it.
    """
    at = ", ".join(f"%r{10 + dim}" for dim in range(rank))
    coordinates = "".join(f"  ld.param.u32 %r{10 + dim}, [c{dim}];\n" for dim in range(5))
    parameters = ", ".join(f".param .u32 c{dim}" for dim in range(5))
    return f"""{_HEADER}.visible .entry box(.param .align 64 .b8 map[128], .param .u64 image, .param .u64 dump,
    .param .u32 bytes, .param .u32 count, .param .u32 parity, .param .u32 place, {parameters})
.maxntid 128, 1, 1
{{
  .reg .pred %p<4>; .reg .b32 %r<25>; .reg .b64 %rd<12>;
  ld.param.u64 %rd1, [image];
  cvta.to.global.u64 %rd1, %rd1;
  ld.param.u64 %rd4, [dump];
  cvta.to.global.u64 %rd4, %rd4;
  mov.u32 %r1, smem;
{_copy("IN", "%rd1", True)}
  add.s32 %r8, %r1, {SHARED_BYTES};
  mov.u32 %r9, %tid.x;
  ld.param.u32 %r19, [parity];
  ld.param.u32 %r24, [count];
  setp.ne.u32 %p2, %r9, 0;
  @%p2 bra READY;
  mbarrier.init.shared::cta.b64 [%r8], %r24;
  fence.mbarrier_init.release.cluster;
READY:
  fence.proxy.async.shared::cta;
  bar.sync 0;
  @%p2 bra WAIT;
{coordinates}  ld.param.u32 %r16, [bytes];
  ld.param.u32 %r17, [place];
  add.s32 %r17, %r17, %r1;
  mov.b64 %rd5, map;
  cvta.param.u64 %rd5, %rd5;
  mov.u32 %r20, 1;
  mov.u32 %r21, 0;
  mov.u32 %r22, 0;
  mov.u32 %r23, 0;
  mbarrier.arrive.expect_tx.shared::cta.b64 %rd6, [%r8], %r16;
  cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes
      [%r17], [%rd5, {{{at}}}], [%r8];
{_AFTER.format(silent=_SILENT, polls=_POLLS, place=SHARED_BYTES)}  mov.u32 %r20, 0;
{_post_mortem()}DONE:
OVER:
  st.global.v4.b32 [%rd4+{SHARED_BYTES}], {{%r20, %r21, %r22, %r23}};
WAIT:
  bar.sync 0;
  mbarrier.test_wait.parity.shared::cta.b64 %p3, [%r8], %r19;
{_copy("OUT", "%rd4", False)}
  ret;
}}
"""


@dataclass(frozen=True)
class Multiply:
    """What a probe of wgmma is compiled for.

    Attributes:
        n: columns.
        dtype: "f16" or "bf16".
        a_k_major: as `imm-trans-a` has it.
        b_k_major: as `imm-trans-b`.
        registers: A comes from registers.
        steps: instructions along k, 16 of it each.
    """

    n: int
    dtype: str = "f16"
    a_k_major: bool = True
    b_k_major: bool = True
    registers: bool = False
    steps: int = 1


def multiply(one: Multiply) -> str:
    """Kernel ``multiply``: shared memory filled with an image, `steps` products added up, accumulators dumped.

    Parameters: addresses of the image, of the dump, of A where it comes from registers (u64), descriptors of A and B
    with addresses from the start of shared memory (u64), what is added to them a step, in units of 16 bytes (u64), and
    whether the first product adds (u32). 128 threads. The dump holds n / 2 words of f32 of each thread in turn; A lies
    as 4 words of each thread in turn, step after step.
    """
    sums = one.n // 2
    names = ", ".join(f"%f{i}" for i in range(sums))
    body = "".join(_product(one, names, step) for step in range(one.steps))
    stores = "".join(f"  st.global.f32 [%rd4+{4 * i}], %f{i};\n" for i in range(sums))
    loads = "".join(
        f"  ld.global.v4.b32 {{{', '.join(f'%a{4 * step + i}' for i in range(4))}}}, [%rd9+{2048 * step}];\n"
        for step in range(one.steps if one.registers else 0)
    )
    zeros = "".join(f"  mov.f32 %f{i}, 0f00000000;\n" for i in range(sums))
    return f"""{_HEADER}.visible .entry multiply(.param .u64 image, .param .u64 dump, .param .u64 left,
    .param .u64 a, .param .u64 b, .param .u64 step_a, .param .u64 step_b, .param .u32 add)
.maxntid 128, 1, 1
{{
  .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<16>; .reg .f32 %f<{sums}>; .reg .b32 %a<{4 * one.steps}>;
  ld.param.u64 %rd1, [image];
  cvta.to.global.u64 %rd1, %rd1;
  mov.u32 %r1, smem;
{_copy("IN", "%rd1", True)}
  fence.proxy.async.shared::cta;
  bar.sync 0;
  ld.param.u64 %rd5, [a];
  ld.param.u64 %rd6, [b];
  ld.param.u64 %rd7, [step_a];
  ld.param.u64 %rd8, [step_b];
  cvt.u64.u32 %rd10, %r1;
  shr.u64 %rd10, %rd10, 4;
  add.s64 %rd5, %rd5, %rd10;
  add.s64 %rd6, %rd6, %rd10;
  ld.param.u32 %r8, [add];
  setp.ne.u32 %p1, %r8, 0;
  setp.eq.u32 %p2, %r1, %r1;
  mov.u32 %r9, %tid.x;
  ld.param.u64 %rd9, [left];
  cvta.to.global.u64 %rd9, %rd9;
  mul.wide.u32 %rd11, %r9, 16;
  add.s64 %rd9, %rd9, %rd11;
{loads}{zeros}  wgmma.fence.sync.aligned;
{body}  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  ld.param.u64 %rd4, [dump];
  cvta.to.global.u64 %rd4, %rd4;
  mul.wide.u32 %rd11, %r9, {4 * sums};
  add.s64 %rd4, %rd4, %rd11;
{stores}  ret;
}}
"""


def _product(one: Multiply, names: str, step: int) -> str:
    left = "{" + ", ".join(f"%a{4 * step + i}" for i in range(4)) + "}" if one.registers else "%rd5"
    turned = ("" if one.registers else f"{int(not one.a_k_major)}, ") + str(int(not one.b_k_major))
    text = f"  wgmma.mma_async.sync.aligned.m64n{one.n}k16.f32.{one.dtype}.{one.dtype}\n"
    text += f"      {{{names}}}, {left}, %rd6, %p{1 if step == 0 else 2}, 1, 1, {turned};\n"
    if step + 1 < one.steps:
        text += "  add.s64 %rd5, %rd5, %rd7;\n  add.s64 %rd6, %rd6, %rd8;\n"
    return text


_WGMMA = re.compile(
    r"wgmma\.mma_async\.sync\.aligned\.m64n(\d+)k(\d+)\.\w+\.(\w+)\.\w+ \{[^}]*\}, (?:\{[^}]*\}|(%rd\d+)), (%rd\d+), p"
    r"(?:, 1, 1)?((?:, [01])*);"
)
_MOVED = re.compile(r"\b(?:or\.b64|add\.s64)\s+(%rd\d+), (%rd\d+), (-?\d+);")


@dataclass(frozen=True)
class Operand:
    """A matrix descriptor as the compiler emits it, without its address, and what it adds per instruction, bytes."""

    bits: int
    advance: int
    k_major: bool


def matrix_operands(ptx: str) -> tuple[int, str, Operand | None, Operand]:
    """What the first two products of a kernel read.

    Returns:
        Columns, element type, the left operand (None: registers), the right one.

    Raises:
        ValueError: the kernel has no wgmma, or one whose descriptor is not made of constants.
    """
    found = list(_WGMMA.finditer(ptx))
    if not found:
        raise ValueError("the kernel has no wgmma")
    made = {target: (source, int(number)) for target, source, number in _MOVED.findall(ptx)}
    first, second = found[0], found[1 if len(found) > 1 else 0]
    turned = [int(digit) for digit in re.findall(r"[01]", first[6])]
    right = _operand(made, first[5], second[5], not (turned and turned[-1]))
    left = _operand(made, first[4], second[4], not (len(turned) > 1 and turned[0])) if first[4] else None
    return int(first[1]), first[3], left, right


def _operand(made: dict[str, tuple[str, int]], first: str, second: str, k_major: bool) -> Operand:
    bits, next_bits = (_constants(made, register) for register in (first, second))
    if not bits >> 32:
        raise ValueError(f"the descriptor in {first} is not made of constants")
    return Operand(bits, (next_bits - bits) % 2**64 * 16, k_major)


def _constants(made: dict[str, tuple[str, int]], register: str) -> int:
    """The sum of constants that a register is made with, without what varies."""
    total = 0
    while register in made:
        register, number = made[register]
        total += number % 2**64
        if number % 2**64 >> 32:
            break  # what is before is the address
    return total % 2**64


def entries() -> Sequence[tuple[str, str]]:
    """Name and PTX of the dumps of boxes, one for each rank."""
    return [(f"box{rank}", box_dump(rank)) for rank in range(1, 6)]
