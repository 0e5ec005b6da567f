# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""How generated pages are written: no line has more than 120 columns."""

from __future__ import annotations

from make_docs import WIDTH, folded

HEAD = "  %s = memref.subview %x[0, 0] [1, 64] [1, 1] : memref<2x64xf16, #tile.level<shared>> to"
TAIL = "memref<64xf16, strided<[1]>>, memref<4x4xf32, #tile.level<shared>>"


def test_a_long_line_goes_on_below_where_no_bracket_is_open() -> None:
    assert folded(f"{HEAD} {TAIL}") == f"{HEAD} " + TAIL.replace(", memref", ",\n      memref") + "\n"
    assert all(len(line) <= WIDTH for line in folded(f"{HEAD} {TAIL}").splitlines())


def test_what_fits_or_has_no_space_stays() -> None:
    assert folded("# A page\n\n" + "x" * 130) == "# A page\n\n" + "x" * 130 + "\n"
    assert folded("a" * WIDTH) == "a" * WIDTH + "\n"


def test_an_arrow_closes_no_bracket() -> None:
    line = "a" * 70 + " f(b, " + "c" * 20 + ") -> (d, " + "e" * 30 + ", f)"
    assert folded(line).splitlines()[0].endswith(") ->")
