# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The six benchmark programs, eager and traced, against loops over NumPy arrays in f64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fractal_oracles import (
    EXAMPLES,
    attention,
    b2b_gemm,
    bigbird,
    dilated_lstm,
    example,
    grid_rnn,
    softmax,
    stacked_lstm,
)
from fractal_runs import lengths_of, run, same, values

import tilewright.fractal as ft

H = 6  # hidden size

PROGRAMS: dict[str, tuple[Any, tuple, list[tuple[int, ...]], dict]] = {
    "stacked_lstm": (
        stacked_lstm,
        (H,),
        [(5, 3, 1, H), (2, 4, H, H), (2, 4, H, H), (2, 4, 1, H)],
        dict.fromkeys(("ws", "us", "bs"), (None, 4)),
    ),
    "dilated_lstm": (
        dilated_lstm,
        (H,),
        [(2, 11, 1, H), (3, H, 4 * H), (3, H, 4 * H), (3, 1, 4 * H)],
        dict.fromkeys(("ws", "us", "bs"), 3),
    ),
    "grid_rnn": (
        grid_rnn,
        (H,),
        [(2, 3, 1, H), (2, 4, 1, H), *[(2, H, H), (2, 2 * H, H), (2, 1, H)] * 2],
        {},
    ),
    "b2b_gemm": (b2b_gemm, (2, 3, 4, 5), [(2, 3, 2, 3), (4, 3, 3, 4), (5, 4, 4, 5)], {}),
    "attention": (attention, (3, 4), [(2, 2, 3, 3, 4)] * 3, {}),
    "bigbird": (bigbird, (3, 4), [(2, 7, 3, 4)] * 3, dict.fromkeys(("qss", "kss", "vss"), (None, 7))),
}


def prepared(name: str):
    oracle, sizes, shapes, least = PROGRAMS[name]
    function = example(name).program(*sizes)
    arrays = [values(*shape, seed=i) for i, shape in enumerate(shapes)]
    args = [
        ft.Lists.from_array(array, kind.depth) for array, kind in zip(arrays, function.parameters.values(), strict=True)
    ]
    return function, arrays, args, oracle(*(array.astype(np.float64) for array in arrays)), least


def check(found: Any, expected: Any) -> None:
    found, expected = (x if isinstance(x, tuple) else (x,) for x in (found, expected))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours.array(), theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", PROGRAMS)
def test_eager(name: str):
    function, arrays, args, expected, _ = prepared(name)
    check(function(*arrays), expected)
    check(function(*args), expected)


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("known", [True, False])
def test_traced(name: str, known: bool):
    """With all lengths known; and with those alone that the program needs."""
    function, _, args, expected, least = prepared(name)
    traced = function.trace(lengths_of(function, args, True) if known else least)
    found = traced.structured(run(traced, *args))
    check(found, expected)
    same(found, function(*args), rtol=1e-4)
    lengths = [spec.lengths for spec in traced.outputs]
    assert all(isinstance(n, int) for spec in lengths for n in spec) == known
    assert all(n != "ragged" for spec in lengths for n in spec)


def test_programs_are_short():
    texts = {path.stem: path.read_text() for path in EXAMPLES.glob("*.py")}
    assert set(texts) == {*PROGRAMS, "recursive_autoencoder", "tree_lstm"}
    assert {name: lines for name, text in texts.items() if (lines := text.count("\n") - 3) > 40} == {}


def test_attention_is_wrong_with_the_published_order_of_the_state():
    """Its init is (sum, largest score, output), for a function that takes the largest score first."""
    module = example("attention")
    q, k, v = values(3, 4), ft.Lists(values(5, 3, 4)), ft.Lists(values(5, 3, 4, seed=1))
    lowest, zero, out = ft.full((3, 1), float("-inf")), ft.zeros(3, 1), ft.zeros(3, 4)
    results = []
    for init in ((lowest, zero, out), (zero, lowest, out)):
        with np.errstate(invalid="ignore"):
            state = ft.foldl(lambda state, key, value: module.block(state, q, key, value), init, k, v)
        results.append(state[2])
    expected = softmax(q @ k.flat.reshape(-1, 4).T) @ v.flat.reshape(-1, 4)
    np.testing.assert_allclose(results[0], expected, rtol=1e-5)
    assert not np.allclose(results[1], expected)
