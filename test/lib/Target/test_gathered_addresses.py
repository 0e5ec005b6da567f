# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rows whose places stand in memory are read relative to one register: lib/Target/GatheredAddresses.cpp."""

from __future__ import annotations

import re

import pytest

from lib.Conversion.native import emit

_ROW = """
    %p{0} = llvm.getelementptr %row[{1}] : (!llvm.ptr) -> !llvm.ptr, f32
    %v{0} = llvm.load %p{0} {{alignment = 4 : i64}} : !llvm.ptr -> vector<16xf32>"""


def _code(index: str, vectors: int) -> str:
    """Assembly of a function that adds vectors of the row of x that `index` names."""
    loads = "".join(_ROW.format(n, 16 * n) for n in range(vectors))
    sums = "".join(f"\n    %s{n} = llvm.fadd %{'v0' if n == 1 else f's{n - 1}'}, %v{n} : vector<16xf32>"
                   for n in range(1, vectors))  # fmt: skip
    text = f"""module {{
  llvm.func @rows(%x: !llvm.ptr, %list: !llvm.ptr, %given: i64) -> vector<16xf32> {{
    {index}
    %row = llvm.getelementptr %x[%i] : (!llvm.ptr, i64) -> !llvm.ptr, !llvm.array<64 x f32>{loads}{sums}
    llvm.return %s{vectors - 1} : vector<16xf32>
  }}
}}"""
    return bytes(emit("assembly", text, "sapphirerapids", "")).decode()


_LOADED = "%w = llvm.load %list : !llvm.ptr -> i16\n    %i = llvm.zext %w : i16 to i64"


@pytest.mark.parametrize(
    ("index", "vectors", "held"),
    [
        (_LOADED, 4, True),
        (_LOADED, 2, False),
        ("%o = llvm.mlir.constant(1 : i64) : i64\n    %i = llvm.add %given, %o : i64", 4, False),
    ],
)
def test_one_register_holds_the_address(index: str, vectors: int, held: bool) -> None:
    """Base plus index stays where few vectors are read, or where the place is computed, not read."""
    indexed = re.findall(r"\(%r\w+,\s*%r\w+[,)].*zmm", _code(index, vectors))
    assert (not indexed) == held
