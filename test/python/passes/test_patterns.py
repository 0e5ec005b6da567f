# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rewrite patterns in Python: True means changed, exceptions come out, endless rewriting is an error."""

from __future__ import annotations

import pytest
from adding_functions import functions

from tilewright.core.errors import InternalError
from tilewright.mlir import ir
from tilewright.passes import apply_patterns, rewrite_pattern


@rewrite_pattern("arith.addf")
def add_to_mul(op: ir.OpView, rewriter: object) -> bool:
    if op.operands[0] != op.operands[1]:
        return False
    new = ir.Operation.create("arith.mulf", results=[op.result.type], operands=list(op.operands))
    rewriter.replace_op(op, new)
    return True


def test_patterns() -> None:
    module = functions(1)
    apply_patterns(module.operation, [add_to_mul])
    text = str(module)
    assert text.count("arith.mulf") == 2
    assert text.count("arith.addf") == 1


def test_pattern_exception_comes_out() -> None:
    @rewrite_pattern("arith.addf")
    def broken(op: ir.OpView, rewriter: object) -> bool:
        raise KeyError("lost")

    with pytest.raises(KeyError, match="lost"):
        apply_patterns(functions(1).operation, [broken])


def test_pattern_without_end() -> None:
    @rewrite_pattern("arith.addf")
    def forever(op: ir.OpView, rewriter: object) -> bool:
        operands = [op.operands[1], op.operands[0]]
        rewriter.replace_op(op, ir.Operation.create("arith.addf", results=[op.result.type], operands=operands))
        return True

    with pytest.raises(InternalError, match="did not end"):
        apply_patterns(functions(1).operation, [forever], max_rewrites=100)
