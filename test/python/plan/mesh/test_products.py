# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Products of matrices on meshes equal NumPy's, for all grids, sizes and ways of alignment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from python.plan.mesh.paths import busiest, distances
from tilewright.core.errors import UserError
from tilewright.plan.mesh.fit_program import fit_program
from tilewright.plan.mesh.multicast_product import all_gather_product, summa
from tilewright.plan.mesh.product import Product
from tilewright.plan.mesh.shifting.shifted_product import shifted_product, shifted_products
from tilewright.plan.mesh.transposed_product import transposed_product
from tilewright.sim.coremesh.checks.losses import lost_values
from tilewright.sim.coremesh.functional import run
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.program import Program

GRIDS = [(1, 1), (1, 3), (2, 1), (2, 2), (3, 3), (2, 4), (6, 4), (3, 5), (4, 4), (5, 5), (6, 3), (7, 7), (8, 2)]


def integers(*shape: int, seed: int = 0, dtype: type = np.int32) -> np.ndarray:
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(dtype)


@pytest.mark.parametrize("algorithm", ["meshgemm", "cannon"])
@pytest.mark.parametrize("grid", GRIDS)
@pytest.mark.parametrize("skew", [("host", "host"), ("run", "run"), ("host", "run"), ("run", "host")])
def test_shifted_products_equal_numpy(algorithm: str, grid: tuple[int, int], skew: tuple[str, str]):
    """Sizes are no multiples of the grid's sides."""
    m, k, n = 2 * grid[0] + 1, grid[0] * grid[1] + 2, grid[1] + 3
    a, b = integers(m, k), integers(k, n, seed=1)
    product = Product(m, k, n, *grid, dtype=np.int32, skew_a=skew[0], skew_b=skew[1])
    program = shifted_product(product, algorithm)
    np.testing.assert_array_equal(run(program, {"A": a, "B": b})["C"], a @ b)
    if algorithm == "meshgemm":
        assert max(distances(program), default=0) <= 2


@pytest.mark.parametrize("side", [8, 12, 15])
def test_larger_grids(side: int):
    a, b = integers(side, side), integers(side, side, seed=1)
    product = Product(side, side, side, side, side, dtype=np.int32, skew_a="run", skew_b="run")
    np.testing.assert_array_equal(run(shifted_product(product), {"A": a, "B": b})["C"], a @ b)


@pytest.mark.parametrize("grid", [(1, 1), (3, 3), (4, 4), (3, 2), (5, 4)])
@pytest.mark.parametrize("skew", ["host", "run"])
def test_several_products_of_one_operand(grid: tuple[int, int], skew: str):
    """After an odd number of shifts the live data lie in other slots: what follows reads them there."""
    m, k, sizes = 5, 11, (7, 2, 9)
    a = integers(m, k)
    weights = [integers(k, n, seed=n) for n in sizes]
    products = [Product(m, k, n, *grid, dtype=np.int32, skew_a=skew) for n in sizes]
    done = run(shifted_products(products), {"A": a, **{f"B{i + 1}": weight for i, weight in enumerate(weights)}})
    for number, weight in enumerate(weights):
        np.testing.assert_array_equal(done[f"C{number + 1}"], a @ weight)


@pytest.mark.parametrize("algorithm", [summa, all_gather_product, transposed_product])
@pytest.mark.parametrize("grid", [*GRIDS, (1, 9), (9, 9)])
def test_other_products_equal_numpy(algorithm: Callable[[Product], Program], grid: tuple[int, int]):
    m, k, n = 2 * grid[0] + 1, grid[0] + grid[1] + 2, grid[0] * grid[1] + 3
    a, b = integers(m, k), integers(k, n, seed=1)
    operand = b.T.copy() if algorithm is transposed_product else b
    done = run(algorithm(Product(m, k, n, *grid, dtype=np.int32)), {"A": a, "B": operand})
    np.testing.assert_array_equal(done["C"], a @ b)


@pytest.mark.parametrize("grid", [(3, 3), (4, 2)])
def test_transposed_product_in_half_precision(grid: tuple[int, int]):
    """Partial sums travel in the accumulator's type, and are rounded once."""
    a, b = integers(7, 33, dtype=np.float16), integers(9, 33, seed=1, dtype=np.float16)
    product = Product(7, 33, 9, *grid, dtype=np.float16, accumulator=np.float32)
    done = run(transposed_product(product), {"A": a, "B": b})["C"]
    assert done.dtype == np.float16
    np.testing.assert_array_equal(done, (a.astype(np.float32) @ b.astype(np.float32).T).astype(np.float16))


@pytest.mark.parametrize("grid", [(1, 1), (1, 3), (2, 1), (4, 4), (3, 2)])
@pytest.mark.parametrize("algorithm", [shifted_product, summa, all_gather_product, transposed_product])
def test_all_that_is_received_is_used(algorithm: Callable[[Product], Program], grid: tuple[int, int]):
    """No operand goes on after its last use."""
    assert lost_values(algorithm(Product(5, 7, 9, *grid))) == ()


def test_half_precision_in_memory_single_in_sums():
    """Sums of 256 ones and small numbers stay right; sums in half precision would lose them."""
    k = 512
    a = np.full((4, k), 1, np.float16)
    b = np.full((k, 4), 0.0009765625, np.float16)
    a[:, 0], b[0] = 2048, 1
    wide = Product(4, k, 4, 2, 2, dtype=np.float16, accumulator=np.float32)
    narrow = Product(4, k, 4, 2, 2, dtype=np.float16)
    exact = (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float16)
    good = run(shifted_product(wide), {"A": a, "B": b})["C"]
    assert good.dtype == np.float16
    np.testing.assert_array_equal(good, exact)
    single = Product(4, k, 4, 2, 2, dtype=np.float16, accumulator=np.float32, result=np.float32)
    np.testing.assert_array_equal(
        run(shifted_product(single), {"A": a, "B": b})["C"], a.astype(np.float32) @ b.astype(np.float32)
    )
    assert np.abs(run(shifted_product(narrow), {"A": a, "B": b})["C"] - single_error(a, b)).max() > 0.25


def single_error(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return a.astype(np.float64) @ b.astype(np.float64)


def peak_bytes(program: Program) -> int:
    """Memory of a core if nothing is shared between buffers."""
    return sum(np.prod(b.shape, dtype=int) * b.dtype.itemsize * b.slots for b in program.buffers)


def test_memory_falls_with_the_number_of_cores():
    """Panels of the all-gather fall as 1 / N, tiles of the others as 1 / N^2 (section 5 of WaferLLM)."""
    at = {side: Product(240, 240, 240, side, side) for side in (6, 12, 24)}
    for algorithm in (shifted_product, summa, transposed_product):
        assert peak_bytes(algorithm(at[6])) == 4 * peak_bytes(algorithm(at[12])) == 16 * peak_bytes(algorithm(at[24]))
    gathered = [peak_bytes(all_gather_product(one)) for one in at.values()]
    assert 1.9 < gathered[0] / gathered[1] < 2.2
    assert 1.9 < gathered[1] / gathered[2] < 2.1
    assert peak_bytes(summa(at[24])) == peak_bytes(shifted_product(at[24])) + 2 * 10 * 10 * 4  # one more tile each


@pytest.mark.parametrize("side", [5, 8, 9, 16])
def test_paths_through_a_core(side: int):
    """Send, receive and transit of the folded ring: three per axis; a multicast from each core of a line: all of it."""
    product = Product(side, side, side, side, side)
    assert busiest(shifted_product(product), "x") == busiest(shifted_product(product), "y") == 3
    aligned = Product(side, side, side, side, side, skew_a="run", skew_b="run")
    assert busiest(shifted_product(aligned), "x") <= 6
    assert busiest(summa(product), "x") == busiest(all_gather_product(product), "y") == side


@pytest.mark.parametrize("sizes", [{"m": 0}, {"width": 0}, {"skew_a": "later"}])
def test_products_that_make_no_sense(sizes: dict[str, Any]):
    with pytest.raises(UserError, match=next(iter(sizes))):
        Product(**{"m": 4, "k": 4, "n": 4, "height": 2, "width": 2} | sizes)


def test_a_whole_wafer_of_cores():
    """Colors, addresses and all checks of 720 x 720 cores (two to three seconds): no path more than on a small grid."""
    _, report = fit_program(shifted_product(Product(720, 720, 720, 720, 720, np.float16)), machine("wse2"))
    assert report.paths == (3, 3)
    assert max(one.hops for one in report.distances) == 2
