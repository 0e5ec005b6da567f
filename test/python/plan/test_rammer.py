# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Rammer's policy: waves, fast against efficient kernels, when a program grows and when a new one starts."""

from __future__ import annotations

import pytest

from tilewright.plan.graph.rammer import Packing, Variant, fastest, most_efficient, pack_wave, plan_programs, waves


def cells(layers: int, steps: int) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """A stack of recurrent layers: each cell needs the one below and the one before."""
    grid = {(layer, step): [(layer - 1, step), (layer, step - 1)] for layer in range(layers) for step in range(steps)}
    return {cell: [need for need in needs if need in grid] for cell, needs in grid.items()}


@pytest.mark.parametrize(("layers", "steps"), [(4, 100), (10, 3), (5, 5), (1, 7)])
def test_recurrent_stack_is_a_wavefront(layers: int, steps: int) -> None:
    found = waves(cells(layers, steps))
    assert len(found) == layers + steps - 1
    assert max(len(wave) for wave in found) == min(layers, steps)


def test_cycles_are_refused() -> None:
    with pytest.raises(ValueError, match="cycle"):
        waves({"a": ["b"], "b": ["a"], "c": []})


def test_efficient_kernel_is_the_one_with_less_work() -> None:
    # The product of LSTM-TC in the paper: 1024 tasks of 4.28 us, or 16 of 7.46 us.
    many, few = Variant(1024, 4.28), Variant(16, 7.46)
    assert fastest([many, few], units=1024) is many
    assert most_efficient([many, few]) is few


def test_full_wave_takes_efficient_kernels() -> None:
    variants = {n: [Variant(1024, 4.28), Variant(16, 7.46)] for n in range(4)}
    packing = pack_wave(range(4), {n: [] for n in range(4)}, variants, Packing(80))
    assert packing.time == pytest.approx(7.46)
    assert all(sum(packing.placed[n].values()) == 16 for n in range(4))


def test_wave_that_leaves_units_idle_takes_fast_kernels() -> None:
    packing = pack_wave(["a"], {"a": []}, {"a": [Variant(4, 1.0), Variant(1, 3.0)]}, Packing(8))
    assert packing.placed["a"] == {0: 1, 1: 1, 2: 1, 3: 1}


def test_program_grows_while_waits_are_cheaper_than_launches() -> None:
    needs = cells(4, 6)
    variants = {cell: [Variant(1, 5.0)] for cell in needs}
    (program,) = plan_programs(needs, variants, units=4, launch=1.0, wait=0.3)
    assert program.time == pytest.approx(9 * 5.0 + 8 * 0.3)
    dear = plan_programs(needs, variants, units=4, launch=0.1, wait=2.0)
    assert len(dear) == len(waves(needs))


def test_tasks_wait_for_what_they_need() -> None:
    packing = Packing(2, wait=0.5)
    packing.add("a", Variant(1, 4.0), [])
    packing.add("b", Variant(2, 1.0), ["a"])
    assert packing.done == {"a": 4.0, "b": 5.5}
    assert packing.placed["b"] == {0: 1, 1: 1}
