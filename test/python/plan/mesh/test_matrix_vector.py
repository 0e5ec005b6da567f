# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Chains of matrix-vector products on meshes equal NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.core.errors import UserError
from tilewright.plan.mesh.matrix_vector import MatrixVector, matrix_vector
from tilewright.plan.mesh.reduction import Scheme
from tilewright.sim.coremesh.functional import run


def integers(*shape: int, seed: int = 0, dtype: type = np.int32) -> np.ndarray:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


@pytest.mark.parametrize("axis", ["x", "y"])
@pytest.mark.parametrize("scheme", [Scheme("k_tree", 2), Scheme("chain"), Scheme("tree")], ids=lambda s: s.kind)
@pytest.mark.parametrize("grid", [(1, 1), (1, 4), (3, 1), (4, 4), (5, 7), (8, 3)])
@pytest.mark.parametrize("sizes", [(13, 17), (6, 11, 5), (10, 23, 9, 4)])
def test_chains_equal_numpy(sizes: tuple[int, ...], grid: tuple[int, int], scheme: Scheme, axis: str):
    """The result of each product is where the next one needs it, on every core: copies agree to the bit."""
    x = integers(sizes[0])
    weights = {f"W{i}": integers(*pair, seed=i) for i, pair in enumerate(zip(sizes, sizes[1:], strict=False), 1)}
    what = MatrixVector(sizes, *grid, axis, np.int32, schemes=(scheme, scheme))  # type: ignore[arg-type]
    expected = x
    for weight in weights.values():
        expected = expected @ weight
    np.testing.assert_array_equal(run(matrix_vector(what), {"x": x} | weights)["y"], expected)


def test_sums_of_half_precision_travel_in_single():
    x, w1, w2 = (integers(*shape, seed=1, dtype=np.float16) for shape in ((64,), (64, 9), (9, 5)))
    what = MatrixVector((64, 9, 5), 4, 3, "y", np.float16, np.float32)
    result = run(matrix_vector(what), {"x": x, "W1": w1, "W2": w2})["y"]
    middle = (x.astype(np.float32) @ w1.astype(np.float32)).astype(np.float16)
    assert result.dtype == np.float16
    np.testing.assert_array_equal(result, (middle.astype(np.float32) @ w2.astype(np.float32)).astype(np.float16))


@pytest.mark.parametrize("rows", [1, 3, 20])
def test_several_vectors(rows: int):
    """All rows at once: one reduction for each matrix, with the routes of one vector."""
    x, w1, w2 = integers(rows, 13), integers(13, 9, seed=1), integers(9, 5, seed=2)
    what = MatrixVector((13, 9, 5), 3, 4, "x", np.int32, rows=rows)
    program = matrix_vector(what)
    np.testing.assert_array_equal(run(program, {"x": x, "W1": w1, "W2": w2})["y"], x @ w1 @ w2)
    assert len(program.body) == len(matrix_vector(MatrixVector((13, 9, 5), 3, 4, "x", np.int32)).body)


def test_routes_of_both_axes():
    """Two per level and one to broadcast, for each axis: 10, as in WaferLLM's code, however many products follow."""
    assert len(matrix_vector(MatrixVector((5, 6, 7, 8), 9, 16)).routes) == 10


def test_what_makes_no_sense():
    with pytest.raises(UserError, match="two sizes"):
        MatrixVector((4,), 2, 2)
    with pytest.raises(UserError, match="one at least"):
        MatrixVector((4, 4), 2, 2, rows=0)
    with pytest.raises(UserError, match="ring"):
        MatrixVector((4, 4), 2, 2, schemes=(Scheme("ring"), Scheme()))
