# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products with vector-wise and block-wise N:M operands on CPUs, against NumPy; the law of their tiles."""

import numpy as np
import pytest
from sparse_products import SparseProduct, check, vectors

from tilewright.plan.sparse.forms.cpu.panel_product import Core, panel_tile

RNG = np.random.default_rng(7)
CPUS = ["cpu", "cpu:x86-64-v3", "reference"]
RIGHT = [  # n, m, unit, rows, depth, columns
    (2, 4, (1, 32), 37, 64, 96),
    (3, 32, (1, 32), 1, 100, 70),
    (8, 32, (1, 64), 13, 96, 128),
    (1, 2, (1, 16), 53, 31, 16),
    (3, 7, (1, 24), 24, 50, 72),
    (2, 4, (1, 4), 101, 40, 22),
    (2, 4, (4, 4), 50, 70, 36),
    (1, 3, (16, 32), 17, 96, 64),
    (2, 4, (1, 34), 5, 20, 41),
]
LEFT = [
    (2, 4, (32, 1), 96, 64, 49),
    (1, 8, (4, 1), 21, 30, 200),
    (2, 4, (8, 2), 40, 33, 1),
    (3, 5, (17, 1), 34, 45, 97),
]


def right(n, m, unit, rows, depth, columns, **more) -> SparseProduct:
    """[rows, depth] @ [depth, columns] with columns of weights."""
    encoding = f"nm<{n} : {m}, axis = 0, unit = [{unit[0]}, {unit[1]}]>"
    weight = vectors(RNG, (depth, columns), n, m, unit).astype(np.float32)
    return SparseProduct(encoding, weight, rows, False, "panels", **more)


def left(n, m, unit, rows, depth, columns, **more) -> SparseProduct:
    """[rows, depth] @ [depth, columns] with rows of weights, as of a 1x1 convolution with pixels side by side."""
    encoding = f"nm<{n} : {m}, axis = 1, unit = [{unit[0]}, {unit[1]}]>"
    weight = vectors(RNG, (depth, rows), n, m, unit[::-1]).T.astype(np.float32)
    return SparseProduct(encoding, weight, columns, True, "panels", **more)


@pytest.mark.slow
@pytest.mark.parametrize("target", CPUS)
def test_shapes(target):
    """Units of all kinds, sizes that are ragged in all ways; with a tensor that is added to."""
    products = [right(*case, init=number % 2 == 0) for number, case in enumerate(RIGHT)]
    check(products + [left(*case, init=number % 2 == 1) for number, case in enumerate(LEFT)], target, RNG)


@pytest.mark.slow
@pytest.mark.parametrize("target", CPUS)
def test_types(target):
    """Wide sums of small floats; doubles."""
    types = [("f64", "f64", "f64"), ("bf16", "bf16", "f32"), ("f16", "f16", "f16"), ("f16", "f32", "f32")]
    products = [right(2, 4, (1, 16), 29, 44, 48, types=kinds, init=True) for kinds in types]
    products += [right(2, 4, (1, 4), 29, 44, 20, types=kinds, init=True) for kinds in types]
    check(products + [left(2, 4, (16, 1), 48, 44, 29, types=kinds) for kinds in types], target, RNG)


@pytest.mark.parametrize("target", CPUS[:2])
@pytest.mark.parametrize("on_left", [False, True], ids=["right", "left"])
def test_open(on_left, target):
    """The number of rows is that of a run."""
    product = left(2, 4, (16, 1), 48, 44, 1, open=True) if on_left else right(2, 4, (1, 16), 1, 44, 48, open=True)
    check([product], target, RNG, [1, 5, 12, 49, 130])


def test_all_zero():
    """A pattern that holds zeros alone."""
    weight = np.zeros((32, 64), np.float32)
    check([SparseProduct("nm<2 : 4, axis = 0, unit = [1, 32]>", weight, 9, False, "panels", init=True)], "cpu", RNG)


WIDE = Core(lanes=16, registers=32, slab=100, line=6.0)


@pytest.mark.parametrize(
    ("columns", "on_left", "width", "height", "wide"),
    [
        (32, False, 32, 12, True),
        (64, False, 32, 12, True),
        (16, False, 16, 24, True),
        (8, False, 8, 48, False),
        (4, False, 4, 96, False),
        (32, True, 8, 48, False),
    ],
)
def test_tiles(columns, on_left, width, height, wide):
    """24 vectors of sums in 32 registers; fewer than a vector of columns: rows are the lanes."""
    tile = panel_tile(columns, -1, on_left, WIDE)
    assert (tile.width, tile.height, tile.wide) == (width, height, wide)


def test_efficiency():
    """The narrower a unit, the lower the part of the peak: a slab's elements come slower than they multiply."""
    parts = [panel_tile(columns, -1, False, WIDE).efficiency for columns in (32, 16, 8, 4, 2, 1)]
    assert parts == sorted(parts, reverse=True)
    assert parts[0] == 1.0
    assert parts[-1] < 0.3
