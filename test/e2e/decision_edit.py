# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How an edit of each declared attribute changes code: program, pass that reads it next, what is replaced by what."""

from __future__ import annotations

from dataclasses import dataclass

CPU, GPU = "cpu:icelake-server", "cuda:sm_90a"
#: The reader of the IR behind all passes.
ARTIFACT = "the artifact"


@dataclass(frozen=True)
class Edit:
    """One case.

    Attributes:
        name: of the attribute, without `tile.`.
        target: compiled for.
        program: of `decision_programs`, or a part of a lit test: `test/x.mlir#2` is its third.
        reader: the pass whose input is edited, or `ARTIFACT`.
        old: pattern of what is edited, the first place of it.
        new: what stands there instead.
        every: all places of it are.
        refused: pattern of the error that the edit is answered by.
    """

    name: str
    target: str
    program: str
    reader: str
    old: str
    new: str
    every: bool = False
    refused: str = ""
