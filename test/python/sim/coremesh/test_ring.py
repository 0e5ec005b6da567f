# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The folded ring: one cycle, two hops at most, one flow per link."""

from __future__ import annotations

import pytest

from tilewright.sim.coremesh.ring import link_loads, logical, physical, predecessor, successor, walk

LENGTHS = [*range(1, 61), 360, 375, 720, 750]


@pytest.mark.parametrize("length", LENGTHS)
def test_one_cycle_of_neighbours_at_most_two_hops_apart(length: int):
    """Sending and receiving are inverse permutations of one single cycle; nobody is further than two hops away."""
    assert sorted(walk(length)) == list(range(length))
    position, visited = 0, []
    for _ in range(length):
        visited.append(position)
        assert predecessor(successor(position, length), length) == position
        assert abs(successor(position, length) - position) <= 2
        position = successor(position, length)
    assert position == 0
    assert visited == walk(length)


@pytest.mark.parametrize("length", LENGTHS)
def test_every_link_carries_one_flow_each_way(length: int):
    up, down = link_loads(length)
    assert up == down == [1] * (length - 1)


@pytest.mark.parametrize("length", LENGTHS)
def test_logical_position_along_the_walk(length: int):
    """Even cores i are at i / 2, odd ones at length - (i + 1) / 2."""
    for place, position in enumerate(walk(length)):
        assert logical(position, length) == place
        assert physical(place, length) == position
        assert place == (position // 2 if position % 2 == 0 else length - (position + 1) // 2)


def test_walks_as_published():
    assert walk(5) == [0, 2, 4, 3, 1]
    assert walk(6) == [0, 2, 4, 5, 3, 1]


@pytest.mark.parametrize("length", [3, 4, 5, 6, 9, 12])
def test_who_sends_to_whom_as_published(length: int):
    """WaferLLM's table: even cores send two up, odd ones two down, the ends turn."""
    for position in range(2, length - 2):
        assert successor(position, length) == position + (2 if position % 2 == 0 else -2)
    assert successor(0, length) == 2
    assert predecessor(0, length) == 1
    last = length - 1
    assert successor(last, length) == (last - 1 if last % 2 == 0 else last - 2)
