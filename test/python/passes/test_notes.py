# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Notes of passes reach who runs them, on that module, and nobody else."""

from __future__ import annotations

from tilewright.mlir import ir
from tilewright.passes.notes import Note, collected, listened, note

MODULE = "func.func @main() { return }"


def test_notes() -> None:
    with ir.Context():
        one, two = ir.Module.parse(MODULE).operation, ir.Module.parse(MODULE).operation
        inside = one.regions[0].blocks[0].operations[0]
        note(inside, "lost", {})
        with collected(one) as ours, collected(two) as theirs:
            assert listened(inside)
            note(inside, "kind", {"n": 1})
            with collected(one) as inner:
                note(inside, "deeper", {})
        assert not listened(inside)
        assert ours == [Note("kind", {"n": 1})] and theirs == [] and inner == [Note("deeper", {})]
