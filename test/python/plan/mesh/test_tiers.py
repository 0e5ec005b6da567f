# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The algorithms of `plan/mesh` take as long in the timing of whole machines as wavelet by wavelet."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from tilewright.plan.mesh.allreduce import Reduce, reduction
from tilewright.plan.mesh.multicast_product import all_gather_product, summa
from tilewright.plan.mesh.product import Product
from tilewright.plan.mesh.reduction import Scheme
from tilewright.plan.mesh.shifting.shifted_product import shifted_product
from tilewright.plan.mesh.transposed_product import transposed_product
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.program import Program
from tilewright.sim.coremesh.timing import time_program
from tilewright.sim.coremesh.wavelets import simulate

WSE = machine("wse2")


def off(program: Program) -> float:
    """How far the timing of whole machines is off, as a part of the wavelet simulator's cycles."""
    return time_program(program, WSE).cycles / simulate(program, WSE).cycles - 1


def allreduce(size: tuple[int, int, int], scheme: Scheme) -> Program:
    return reduction(Reduce(*size, schemes=(scheme,)))


@pytest.mark.parametrize("size", [(1, 16, 16), (3, 9, 5), (8, 8, 20), (1, 64, 64), (1, 33, 100)])
def test_reductions(size: tuple[int, int, int]):
    """Chains, also those that meet in a root, to 3 %; most to the cycle."""
    for scheme in (Scheme("chain"), Scheme("two_phase"), Scheme("ring"), *(Scheme("k_tree", k) for k in (1, 2, 3))):
        error = off(allreduce(size, scheme))
        assert abs(error) < 0.035, scheme
        assert error == 0 or scheme.levels == 3


@pytest.mark.parametrize("size", [(1, 16, 16), (3, 9, 5), (1, 33, 100)])
def test_messages_in_each_others_way(size: tuple[int, int, int]):
    """A tree's early messages take links from others: 10 %. A star's N - 1 channels fill all queues to the root before
    it takes the first message to its end: a round of each queue's wavelets, 6 cycles, for each that waits."""
    assert -0.1 < off(allreduce(size, Scheme("tree"))) <= 0
    star = allreduce(size, Scheme("star"))
    longer = simulate(star, WSE).cycles - time_program(star, WSE).cycles
    assert 0 <= longer <= 6 * (size[1] - 2)


@pytest.mark.parametrize("algorithm", [shifted_product, partial(shifted_product, algorithm="cannon"), summa])
@pytest.mark.parametrize("sizes", [(18, 18, 18, 3, 9), (32, 32, 32, 8, 8), (33, 35, 37, 5, 7)])
def test_products(algorithm: Callable[[Product], Program], sizes: tuple[int, ...]):
    assert abs(off(algorithm(Product(*sizes)))) < 0.035


@pytest.mark.parametrize("sizes", [(18, 18, 18, 3, 9), (32, 32, 32, 8, 8), (33, 35, 37, 5, 7)])
def test_products_with_more_on_their_way(sizes: tuple[int, ...]):
    """All-gather, moving roots, alignment at run time."""
    for program in (
        all_gather_product(Product(*sizes)),
        transposed_product(Product(*sizes)),
        shifted_product(Product(*sizes, skew_a="run", skew_b="run")),
    ):
        assert abs(off(program)) < 0.05
