# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What programs over lists must not do: an error that says which op, where, and what was found."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.dialects.fractal.values import Lists
from tilewright.reference import InterpreterError

X, XX, E = "!fractal.array<[?] of tensor<1x2xf32>>", "!fractal.array<[?, ragged] of tensor<1x2xf32>>", "tensor<1x2xf32>"
FIVE = Lists(np.arange(10, dtype=np.float32).reshape(5, 1, 2))
NONE = FIVE[:0]
PAIRS = Lists(FIVE.flat, [[0, 2, 5]])


def ints(*values):
    return np.array(values, np.int32)


@pytest.mark.parametrize(
    ("text", "given", "results", "message"),
    [
        (f"fractal.at %0[%1] : {X} -> {E}", [(5, "index")], [E], "index 5 is outside a list of length 5"),
        (f"fractal.at %0[%1] : {X} -> {E}", [(-1, "index")], [E], "index -1 is outside a list of length 5"),
        (
            f"fractal.slice %0 [%1] [3] [2] : {X} -> {X}",
            [(1, "index")],
            [X],
            r"index 5 \(number 2 of 3\) is outside a list of length 5",
        ),
        (f"fractal.slice %0 [1] [%1] [-1] : {X} -> {X}", [(3, "index")], [X], r"index -1 \(number 2 of 3\)"),
        (f"fractal.slice %0 [0] [%1] [1] : {X} -> {X}", [(-1, "index")], [X], "a slice of size -1"),
        (
            f"fractal.gather %0[%1] : {X}, tensor<?xi32> -> {X}",
            [(ints(0, 7), "tensor<?xi32>")],
            [X],
            r"index 7 \(number 1 of 2\) is outside a list of length 5",
        ),
        (f"fractal.split %0 into 2 : {X} -> {XX}", [], [XX], "a list of length 5 has no 2 equal parts"),
        (f"fractal.repeat %0, %1 : {X} -> {XX}", [(-2, "index")], [XX], "repeated -2 times"),
        (
            f"fractal.window %1 size 2 stride 1 dilation 1 padding [1, 1] wrap : {X} -> {XX}",
            [(NONE, X)],
            [XX],
            "2 elements are read around an empty list",
        ),
        (
            f"fractal.deinterleave %1 : {XX} -> {X}",
            [(PAIRS, XX)],
            [X],
            "group 0 has 2 elements, not 3: so many has each 2-th of 5",
        ),
        (
            f"fractal.from_ragged %0, %1 : {X}, tensor<?xi64> -> {XX}",
            [(np.array([0, 4, 3, 5]), "tensor<?xi64>")],
            [XX],
            "offsets of level 0 start at 0 and never fall, found 4, then 3",
        ),
        (
            f"fractal.from_ragged %0, %1 : {X}, tensor<?xi64> -> {XX}",
            [(np.array([0, 6]), "tensor<?xi64>")],
            [XX],
            "offsets of level 0 end at 6, but there are 5 elements",
        ),
        (
            f"fractal.from_ragged %0, %1 most [2] : {X}, tensor<?xi64> -> {XX}",
            [(np.array([0, 1, 4]), "tensor<?xi64>")],
            [XX],
            "a list of level 1 has 3 elements; most says 2",
        ),
        (
            f"fractal.from_ragged %0, %1 : {X}, tensor<?xi64> -> {XX}",
            [(np.array([1, 5]), "tensor<?xi64>")],
            [XX],
            "found 1 first",
        ),
        (
            f"fractal.cast %0 : {X} -> {X.replace('?', '4')}",
            [],
            [X.replace("?", "4")],
            r"has lists of length 5 at level 0, but is !fractal.array<\[4\] of",
        ),
        (
            f"fractal.cast %1 : {XX} -> {XX.replace('ragged', '?')}",
            [(PAIRS, XX)],
            [XX.replace("ragged", "?")],
            "has lists of length 2 and 3 at level 1",
        ),
    ],
)
def test_undefined_behaviour(text, given, results, message, programs):
    with pytest.raises(InterpreterError, match=message) as caught:
        programs.run(f"%r0 = {text}", [(FIVE, X), *given], results)
    name = text.split(" ")[0]
    assert name in str(caught.value) and f"at: {name} at loc(" in str(caught.value)


ZIPS = {
    "map": f"fractal.map (%x = %0, %y = %1) : ({X}, {X}) -> {X} {{ fractal.yield %x : {E} }}",
    "scan": f"""fractal.scan left (%s = %2) over (%x = %0, %y = %1) : ({E}, {X}, {X}) -> {X} {{
                fractal.yield %s : {E} }}""",
    "fold": f"""fractal.fold right (%s = %2) over (%x = %0, %y = %1) : ({E}, {X}, {X}) -> {E} {{
                fractal.yield %s : {E} }}""",
    "reduce": f"""fractal.reduce (%a, %b = %0, %c, %d = %1) init (%2, %2) : ({X}, {X}, {E}, {E}) -> ({E}, {E}) {{
                  fractal.yield %a, %c : {E}, {E} }}""",
}


@pytest.mark.parametrize("name", ZIPS)
def test_lists_in_step_have_one_length(name, programs):
    results = {"fold": [E], "reduce": [E, E]}.get(name, [X])
    given = [(FIVE, X), (FIVE[:3], X), (FIVE[0], E)]
    pair = "%r:2" if name == "reduce" else "%r0"
    text = f"{pair} = {ZIPS[name]}"
    with pytest.raises(InterpreterError, match="array 0 has length 5, but array 1 has length 3") as caught:
        programs.run(text, given, results if name != "reduce" else [])
    assert f"at: fractal.{name} at loc(" in str(caught.value)


@pytest.mark.parametrize(
    ("value", "type_", "message"),
    [
        (FIVE.flat, X, "argument 0 of @main is a ndarray: .* needs Lists"),
        (Lists(FIVE.flat.astype(np.float64)), X, r"is Lists\(\[5\] of float64 \(1, 2\)\), which is no"),
        (FIVE, "!fractal.array<[?] of tensor<2xf32>>", r"is Lists\(\[5\] of float32 \(1, 2\)\), which is no"),
        (FIVE, XX, r"is Lists\(\[5\] of float32 \(1, 2\)\), which is no"),
        (FIVE, X.replace("?", "6"), r"has lists of length 5 at level 0, but is !fractal.array<\[6\]"),
        (PAIRS, XX.replace("ragged", "?"), "has lists of length 2 and 3 at level 1"),
        (PAIRS, XX.replace("ragged", "2"), "has lists of length 2 and 3 at level 1"),
        (FIVE, E, "dtype|shape"),
    ],
)
def test_arguments_that_do_not_fit(value, type_, message, programs):
    with pytest.raises(InterpreterError, match=message):
        programs.run("", [(value, type_)], [])


def test_bytes_have_no_sign(programs):
    type_ = "!fractal.array<[2] of tensor<i8>>"
    (found,) = programs.run(
        f"%r0 = fractal.reverse %0 : {type_} -> {type_}", [(Lists(np.uint8([200, 1])), type_)], [type_]
    )
    assert found == Lists(np.int8([1, -56]))
