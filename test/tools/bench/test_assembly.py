# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Hot loops are found in a disassembly, and spills in them are counted."""

from __future__ import annotations

import pytest

import models
import tilewright as tw
from bench.assembly import describe, hot_loops, innermost_loops, model_loops, parse

TEXT = """
0000000000001000 <kernel>:
    1000: xorl	%eax, %eax
    1002: vmovups	(%rsi), %zmm1
    1008: vfmadd231ps	(%rdi){1to16}, %zmm1, %zmm2 # zmm2 = (zmm1 * mem) + zmm2
    100e: vmovups	%zmm2, 0x40(%rsp)
    1014: vfmadd231ps	0x80(%rsp), %zmm1, %zmm3
    101a: incq	%rax
    101d: cmpq	$0x10, %rax
    1021: jne	0x1002 <kernel+0x2>
    1023: vmovups	(%rsi), %zmm1
    1029: cmpq	$0x10, %rax
    102d: jne	0x1023 <kernel+0x23>
    102f: decq	%rcx
    1032: jne	0x1000 <kernel>
    1034: jmp	0x2000 <elsewhere>
    1039: retq
"""


def test_the_hot_loop_is_the_innermost_one_with_most_multiply_adds() -> None:
    loops = innermost_loops("kernel", parse(TEXT))
    assert [len(loop.body) for loop in loops] == [7, 3]
    (hot,) = hot_loops(loops)
    assert hot.multiplies == 2
    assert hot.spills == (1, 1)
    assert hot.counts()["broadcast loads"] == 1
    assert "SPILLS: 1 stores, 1 loads" in describe(hot)
    assert "* vmovups" in describe(hot)


def test_a_kernel_without_products_has_one_hot_loop() -> None:
    loops = [loop for loop in innermost_loops("kernel", parse(TEXT)) if not loop.multiplies]
    assert hot_loops(loops) == loops
    assert hot_loops([]) == []


@pytest.mark.parametrize("text", ["", "no code here\n"])
def test_no_code_has_no_loops(text: str) -> None:
    assert innermost_loops("kernel", parse(text)) == []


def test_the_loops_of_a_compiled_product() -> None:
    model = tw.compile(str(models.path("matmul", m=64, n=64, k=64)), threads=1)
    loops = model_loops(model)
    assert loops and all(loop.multiplies for loop in loops)
