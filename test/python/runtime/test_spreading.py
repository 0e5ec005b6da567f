# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that stand for several inputs: nested Python lists, `ft.Lists`, tuples of a program."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tilewright.core.errors import UserError
from tilewright.dialects.fractal import Lists
from tilewright.runtime.spreading import Inputs

F32, I64 = np.dtype(np.float32), np.dtype(np.int64)
RAGGED = Inputs(["w", "u", "u.offsets0"], [(4,), (15, 2), (4,)], [F32, F32, I64])
TUPLE = Inputs(
    ["p.0", "p.0.offsets0", "p.1.0", "p.1.1", "k"], [(6, 2), (3,), (4,), (5,), (2,)], [F32, I64, F32, F32, F32]
)


def rows(*counts: int) -> list[list[np.ndarray]]:
    """Lists of as many tensors, which count up."""
    number = iter(range(100))
    return [[np.full(2, next(number), np.float32) for _ in range(count)] for count in counts]


@pytest.mark.parametrize("counts", [(2, 0, 5), (0, 0, 0), (5, 5, 5), (1, 3, 2)])
def test_nested_lists_are_lists(counts: tuple[int, ...]) -> None:
    """By position and by name as `ft.Lists`; tuples are lists, too."""
    nested, w = rows(*counts), np.zeros(4, np.float32)
    lists = Lists.of(nested, 2, **({"leaf_shape": (2,), "dtype": F32} if not sum(counts) else {}))
    expected, _ = RAGGED.spread([w, lists], {})
    assert expected[2].tolist() == [0, *np.cumsum(counts)]
    for value in (nested, tuple(map(tuple, nested))):
        positional, named = RAGGED.spread([w, value], {})
        assert not named and len(positional) == 3
        for got, wanted in zip(positional, expected, strict=True):
            np.testing.assert_array_equal(got, wanted)
        assert list(RAGGED.spread([w], {"u": value})[1]) == ["u", "u.offsets0"]


def test_tuples_of_a_program() -> None:
    """Nested as the parameter is; what stands behind them keeps its place."""
    value = (rows(2, 3), (np.zeros(4), np.ones(5)))
    positional, named = TUPLE.spread([value, "k"], {})
    assert not named and [np.shape(part) for part in positional] == [(6, 2), (3,), (4,), (5,), ()]
    assert positional[-1] == "k"
    _, named = TUPLE.spread([], {"p": value, "k": "k"})
    assert list(named) == list(TUPLE.names)


def test_other_values_stay() -> None:
    """An input that is one array may be nested lists of numbers."""
    assert RAGGED.spread([[1, 2, 3, 4]], {"x": (1, 2)}) == ([[1, 2, 3, 4]], {"x": (1, 2)})
    assert RAGGED.spread([1, 2, 3, [4]], {}) == ([1, 2, 3, [4]], {})  # too many: who binds them says so


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (rows(2, 6, 1), 'input u: list 1 of level 1 has 6 elements; .* compile it with \\("ragged", 6\\) in shapes='),
        (rows(1, 1, 1, 1), "input u is a list of 3, got 4 lists"),
        ([np.zeros(2, np.float32)] * 3, "input u: the lists have 1 levels, depth says 2"),
        ([[np.zeros(3, np.float32)], [], []], r"input u: the tensors have shape \(3,\)"),
        ([[[np.zeros(2, np.float32)]], [], []], "input u: a list stands where its neighbours are tensors"),
    ],
    ids=["long", "many", "flat", "leaf", "deep"],
)
def test_what_does_not_fit(value: Any, told: str) -> None:
    error = pytest.raises(UserError, RAGGED.spread, [0, value], {})
    assert error.match(told)


def test_tuples_of_another_length() -> None:
    with pytest.raises(UserError, match="input p.1 is a tuple of 2, got one of 1"):
        TUPLE.spread([(rows(1, 1), (np.zeros(4),))], {})


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(
    ("inputs", "named", "told"),
    [
        (
            TUPLE,
            {"p": (rows(2, 3), (np.zeros(4), np.ones(5))), "p.1.0": 5},
            "input p.1.0 is given twice: .* part of p$",
        ),
        (RAGGED, {"u": rows(1, 0, 2), "u.offsets0": [0, 1, 1, 2]}, "input u.offsets0 is given twice: .* part of u$"),
    ],
    ids=["tuple", "lists"],
)
def test_a_whole_and_a_part(inputs: Inputs, named: dict[str, Any], told: str, turned: bool) -> None:
    """Offsets that are given beside the lists whose they are might be others."""
    given = dict(reversed(named.items())) if turned else named
    with pytest.raises(UserError, match=told):
        inputs.spread([], given)


def test_names_that_only_begin_like_parts() -> None:
    """An array may be given as a tuple of numbers: h.01 is no part of a tuple h."""
    inputs = Inputs(["h.01", "h.02"], [(3,), (2,)], [F32, F32])
    assert inputs.spread([(1, 2, 3), (4, 5)], {}) == ([(1, 2, 3), (4, 5)], {})
