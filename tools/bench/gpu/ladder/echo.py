# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""PTX of the probe of launches: each CTA writes down how it was launched and what its parameters are."""

from __future__ import annotations

from bench.gpu.ladder.watched import HEADER

#: words of a CTA's record, and the first of its values
WORDS, VALUES = 24, 16
_SPECIAL = (
    *(f"{register}.{axis}" for register in ("%ctaid", "%nctaid", "%ntid", "%cluster_nctaid") for axis in "xyz"),
    "%cluster_ctarank", "%dynamic_smem_size",
)  # fmt: skip


def echo() -> str:
    """Kernel ``echo``.

    Parameters: records (u64) and how many there may be (u32); then five whose values are written down: two addresses
    (u64), a size, a stride (u32), a small number (u16). A record, u32: how many threads came; the special registers;
    from word `VALUES` on the values, of 64 bits in two words each.
    """
    names = (("x", "u64"), ("y", "u64"), ("size", "u32"), ("stride", "u32"), ("mode", "u16"))
    parameters = ", ".join(f".param .{kind} {name}" for name, kind in names)
    stores = "".join(f"  mov.u32 %r4, {r};\n  st.global.b32 [%rd2+{4 * i + 4}], %r4;\n" for i, r in enumerate(_SPECIAL))
    at = VALUES * 4
    for name, kind in names:
        register, bits = ("%rd5", 64) if kind == "u64" else ("%r5", 32)
        stores += f"  ld.param.{kind} {register}, [{name}];\n  st.global.b{bits} [%rd2+{at}], {register};\n"
        at += bits // 8
    return f"""{HEADER.replace(".extern .shared .align 1024 .b8 smem[];", "")}.visible .entry echo(.param .u64 records,
    .param .u32 most, {parameters})
{{
  .reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [records];
  cvta.to.global.u64 %rd1, %rd1;
  ld.param.u32 %r0, [most];
  mov.u32 %r1, %ctaid.z;
  mov.u32 %r2, %nctaid.y;
  mov.u32 %r3, %ctaid.y;
  mad.lo.u32 %r1, %r1, %r2, %r3;
  mov.u32 %r2, %nctaid.x;
  mov.u32 %r3, %ctaid.x;
  mad.lo.u32 %r1, %r1, %r2, %r3;
  setp.ge.u32 %p0, %r1, %r0;
  @%p0 bra END;
  mul.wide.u32 %rd2, %r1, {4 * WORDS};
  add.s64 %rd2, %rd2, %rd1;
  red.global.add.u32 [%rd2], 1;
  mov.u32 %r4, %tid.x;
  mov.u32 %r5, %tid.y;
  or.b32 %r4, %r4, %r5;
  mov.u32 %r5, %tid.z;
  or.b32 %r4, %r4, %r5;
  setp.ne.u32 %p1, %r4, 0;
  @%p1 bra END;
{stores}END:
  ret;
}}
"""
