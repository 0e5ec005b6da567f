# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The model of reductions equals its published closed forms, and chooses by them."""

from __future__ import annotations

import math

import pytest

from tilewright.core.errors import UserError
from tilewright.plan.mesh.allreduce import Reduce, reduction
from tilewright.plan.mesh.reduction import Scheme
from tilewright.plan.mesh.reduction_cost import (
    allreduce_cycles,
    broadcast_cycles,
    channels,
    choose,
    levels,
    reduce_cycles,
)

SIZES = [(2, 1), (2, 64), (7, 3), (16, 16), (64, 1), (512, 1000)]


@pytest.mark.parametrize(("length", "wavelets"), SIZES)
@pytest.mark.parametrize("ramp", [2, 7])
def test_closed_forms(length: int, wavelets: int, ramp: int):
    """Of HPDC 2024 for one dimension: P cores, B wavelets, ramps of T_R cycles."""
    p, b, stage = length, wavelets, 2 * ramp + 1
    assert reduce_cycles(Scheme("chain"), p, b, ramp) == b + (2 * ramp + 2) * (p - 1)
    assert broadcast_cycles(p, b, p - 1, ramp) == b + p + 2 * ramp
    assert allreduce_cycles(Scheme("ring"), p, b, ramp) == 2 * (p - 1) * b / p + 4 * p - 6 + 2 * (p - 1) * stage
    if b * (p - 1) >= b * p / 2 + p - 1:
        assert reduce_cycles(Scheme("star"), p, b, ramp) == b * (p - 1) + stage


@pytest.mark.parametrize("length", [4, 16, 64, 256])
def test_tree_of_a_power_of_two(length: int):
    """Depth log2 P, each core handles up to B log2 P wavelets; where that dominates."""
    steps = int(math.log2(length))
    wavelets = 4 * length
    assert (
        reduce_cycles(Scheme("tree"), length, wavelets)
        == max(wavelets * steps, wavelets * length / 2 * steps / (length - 1) + length - 1) + 5 * steps
    )


@pytest.mark.parametrize(("length", "groups"), [(240, 15), (360, 18), (480, 20), (720, 24)])
def test_two_way_tree_as_fitted_to_waferllm(length: int, groups: int):
    """chain(B, S / 2 + 1), then G / 2 stages over P / 2 hops; of short vectors."""
    size = length // groups
    depth, hops = size // 2 + groups // 2, size // 2 + groups // 2 * size
    assert reduce_cycles(Scheme("k_tree", 2, (groups,)), length, 1) == 2 + hops + 5 * depth


def test_choice_follows_the_vector():
    """Few wavelets on long lines: few stages. Many on short lines: a chain's, or a ring's, single pass."""
    assert choose(720, 12).kind == "k_tree"
    assert choose(720, 12).levels >= 2
    assert choose(4, 100_000, ring=True).kind == "ring"
    for length, wavelets in [(2, 1), (5, 40), (64, 64), (300, 9), (750, 5000)]:
        best = choose(length, wavelets, ring=True)
        others = [Scheme(kind) for kind in ("star", "chain", "tree", "two_phase", "ring")]
        assert allreduce_cycles(best, length, wavelets) <= min(
            allreduce_cycles(other, length, wavelets) for other in others if channels(other, length) <= 21
        )


def test_choice_for_one_core():
    """Without a broadcast, and so without a ring."""
    for length, wavelets in [(5, 40), (64, 1), (300, 9)]:
        best = choose(length, wavelets, everywhere=False, ring=True)
        assert best.kind != "ring"
        assert reduce_cycles(best, length, wavelets) <= reduce_cycles(Scheme("chain"), length, wavelets)


def test_choice_within_the_routes_that_are_left():
    assert choose(720, 12, most_channels=3) in (Scheme("k_tree", 1), Scheme("chain"))
    assert channels(choose(720, 12, most_channels=1, ring=True), 720) == 1
    with pytest.raises(UserError, match="at least 1 channels, and 0 are free"):
        choose(720, 12, most_channels=0, ring=True)


@pytest.mark.parametrize(
    "scheme", [Scheme("chain"), Scheme("tree"), Scheme("two_phase"), Scheme("k_tree", 3), Scheme("ring")]
)
@pytest.mark.parametrize("length", [2, 5, 12, 64])
def test_channels_are_those_of_the_program(scheme: Scheme, length: int):
    """A route of relays has two; two-way chains share them, as no link is on both sides of a root."""
    routes = len(reduction(Reduce(1, length, 4, schemes=(scheme,))).routes)
    one_way = len(levels(scheme, length, 1)) if scheme.kind in ("chain", "two_phase") else 0
    assert routes + one_way == channels(scheme, length)
