# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with vector-wise and block-wise N:M operands on CPUs, against NumPy."""

import numpy as np
import pytest
from sparse_products import SparseProduct, check, vectors

RNG = np.random.default_rng(7)
CPUS = ["cpu", "cpu:x86-64-v3"]


@pytest.mark.parametrize("target", CPUS)
@pytest.mark.parametrize(
    ("n", "m", "unit", "rows", "depth", "columns"),
    [
        (2, 4, (1, 32), 37, 64, 96),
        (3, 32, (1, 32), 1, 100, 70),
        (8, 32, (1, 64), 13, 96, 128),
        (1, 2, (1, 16), 53, 31, 16),
        (3, 7, (1, 24), 24, 50, 72),
        (2, 4, (1, 4), 101, 40, 22),
        (2, 4, (4, 4), 50, 70, 36),
        (1, 3, (16, 32), 17, 96, 64),
    ],
)
def test_right(n, m, unit, rows, depth, columns, target):
    """Columns of weights: [rows, depth] @ [depth, columns], sizes ragged in all ways."""
    weight = vectors(RNG, (depth, columns), n, m, unit).astype(np.float32)
    encoding = f"nm<{n} : {m}, axis = 0, unit = [{unit[0]}, {unit[1]}]>"
    check(SparseProduct(encoding, weight, rows, False, "panels"), target, RNG)


@pytest.mark.parametrize("target", CPUS)
@pytest.mark.parametrize(
    ("n", "m", "unit", "rows", "depth", "columns"),
    [
        (2, 4, (32, 1), 96, 64, 49),
        (1, 8, (4, 1), 21, 30, 200),
        (2, 4, (8, 2), 40, 33, 1),
        (3, 5, (17, 1), 34, 45, 97),
    ],
)
def test_left(n, m, unit, rows, depth, columns, target):
    """Rows of weights: [rows, depth] @ [depth, columns], as of a 1x1 convolution with pixels side by side."""
    weight = vectors(RNG, (depth, rows), n, m, unit[::-1]).T.copy().astype(np.float32)
    encoding = f"nm<{n} : {m}, axis = 1, unit = [{unit[0]}, {unit[1]}]>"
    check(SparseProduct(encoding, weight, columns, True, "panels", init=True), target, RNG)


@pytest.mark.parametrize("target", CPUS)
@pytest.mark.parametrize(
    "types",
    [("f64", "f64", "f64"), ("bf16", "bf16", "f32"), ("f16", "f16", "f16"), ("f16", "f32", "f32")],
    ids=lambda types: "-".join(types),
)
@pytest.mark.parametrize("left", [False, True])
def test_types(types, left, target):
    """Wide sums of small floats; doubles."""
    weight = vectors(RNG, (44, 48), 2, 4, (1, 16))
    unit = "[16, 1]" if left else "[1, 16]"
    weight = weight.T if left else weight
    encoding = f"nm<2 : 4, axis = {int(left)}, unit = {unit}>"
    check(SparseProduct(encoding, weight, 29, left, "panels", types, init=True), target, RNG)


@pytest.mark.parametrize("target", CPUS)
@pytest.mark.parametrize("left", [False, True])
def test_open(left, target):
    """The number of rows is that of a run."""
    weight = vectors(RNG, (44, 48), 2, 4, (1, 16)).astype(np.float32)
    unit = "[16, 1]" if left else "[1, 16]"
    product = SparseProduct(
        f"nm<2 : 4, axis = {int(left)}, unit = {unit}>", weight.T if left else weight, 1, left, "panels", open=True
    )
    check(product, target, RNG, [1, 5, 12, 49, 130])


def test_all_zero():
    """A pattern that holds zeros alone."""
    weight = np.zeros((32, 64), np.float32)
    check(SparseProduct("nm<2 : 4, axis = 0, unit = [1, 32]>", weight, 9, False, "panels", init=True), "cpu", RNG)
