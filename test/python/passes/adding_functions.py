# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A module that the tests of Python passes run on."""

from __future__ import annotations

from tilewright.mlir import ir


def functions(count: int) -> ir.Module:
    """Return a module of ``count`` functions with two adds of equal operands and one of different ones."""
    body = (
        "%0 = arith.addf %x, %x : f32\n %1 = arith.addf %x, %x : f32\n %2 = arith.addf %0, %1 : f32\n return %2 : f32"
    )
    text = "\n".join(f"func.func @f{i}(%x: f32) -> f32 {{ {body} }}" for i in range(count))
    with ir.Context():
        return ir.Module.parse(text)
