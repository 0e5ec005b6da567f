# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random programs of nested lists: compiled, in the interpreter and in eager mode they give the same."""

from __future__ import annotations

import os

import numpy as np
import pytest
from random_lists import Program

import tilewright as tw
import tilewright.fractal as ft
from tilewright import reference
from tilewright.fractal.trees import flatten
from tilewright.mlir import ir

#: More seeds: `RANDOM_LISTS=60:600 pytest test/e2e/test_fractal_random.py`.
SEEDS = range(*map(int, os.environ.get("RANDOM_LISTS", "0:60").split(":")))


def near(found: np.ndarray, expected: np.ndarray) -> None:
    """Equal but for rounding, which grows with the largest number."""
    scale = np.abs(expected[np.isfinite(expected)]).max(initial=1.0)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=2e-5 * scale)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_program_is_the_same_everywhere(seed: int) -> None:
    program = Program(seed)
    print(program.text)  # shown where the test fails
    function, arrays = program.function(f"<program {seed}>"), program.arguments()
    lengths = {value.name: value.lengths for value in program.inputs if value.lengths}
    eager, _ = flatten(function(*arrays))
    traced = function.trace(lengths)
    taken = [
        a if not v.lengths else ft.Lists.from_array(a, len(v.lengths))
        for a, v in zip(arrays, program.inputs, strict=True)
    ]
    with ir.Context():
        module = ir.Module.parse(traced.module_text)
        interpreted = reference.run(module, "main", taken, traced.weights, seed=seed)
    compiled = tw.compile(function, "cpu", shapes=lengths, threads=1 + seed % 2)(*arrays)
    for value, theirs, told, ours in zip(program.outputs, eager, interpreted, compiled, strict=True):
        shape = (*value.lengths, *value.shape)
        expected, second = (np.asarray(x.flat if isinstance(x, ft.Lists) else x).reshape(shape) for x in (theirs, told))
        assert ours.shape == shape and ours.dtype == expected.dtype == second.dtype == np.float32
        near(second, expected)
        near(ours, expected)
