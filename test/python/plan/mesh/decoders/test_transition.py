# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A prompt on one grid, the token after it on another: weights and caches move through the mesh."""

from __future__ import annotations

import numpy as np
import pytest

from python.plan.mesh.decoders.layers_in_numpy import attention, layer_tail, normal, rotated, weights_of
from python.plan.mesh.decoders.test_decode_layer import inputs_of
from python.plan.mesh.decoders.test_prefill_layer import given_of
from tilewright.core.errors import UserError
from tilewright.plan.mesh.attention import mask
from tilewright.plan.mesh.decoders.decode_layer import DecodeLayer, decode_layer
from tilewright.plan.mesh.decoders.decoder import Decoder, full_width
from tilewright.plan.mesh.decoders.prefill_layer import PrefillLayer, prefill_layer
from tilewright.plan.mesh.decoders.transition import Move, Transition, cached_rows, time_move, time_transition
from tilewright.plan.mesh.fit_program import fit_program
from tilewright.plan.mesh.kv_cache import Cache
from tilewright.plan.mesh.moves.reshape_grid import Reshape
from tilewright.sim.coremesh.checks.memory import core_classes
from tilewright.sim.coremesh.functional import run
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.timing import time_program


def moved(what: Transition, tensors: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """All matrices, by the programs."""
    found = {}
    for move in what.moves():
        together = np.stack([tensors[name] for name in move.names])
        found |= dict(zip(move.names, run(move.program(), {"x": together})["x"], strict=True))
    return found


@pytest.mark.parametrize(
    ("side", "rows", "tokens", "sizes"),
    [
        (4, 2, 4, (8, 6, 2, 1)),  # two columns a head, then one
        (3, 3, 6, (6, 5, 3, 3)),  # the same grid, by other layouts
        (5, 3, 3, (10, 7, 1, 1)),  # one head, all padded, blocks of odd and even sizes
        (2, 1, 3, (4, 3, 1, 1)),
    ],
)
def test_the_token_after_a_prompt(side: int, rows: int, tokens: int, sizes: tuple[int, int, int, int]):
    """It attends to all of the prompt, on the other grid, with the weights and caches that came there."""
    decoder = Decoder(*sizes)
    generator = np.random.default_rng(0)
    weights = weights_of(decoder, generator)
    wide = weights | {name: full_width(weights[name], decoder) for name in ("k", "v")}
    x = generator.standard_normal((tokens + 1, decoder.width)).astype(np.float32)
    cache = Cache("shift", rows, rows, tokens // rows + 1, rows * decoder.slice(rows))
    what = Transition(PrefillLayer(decoder, side, tokens), cache)
    prompt = run(prefill_layer(what.prefill), given_of(what.prefill, weights, x[:-1]))
    cached = {f"cached {name}": prompt[name][:, : decoder.width] for name in ("k", "v")}
    there = moved(what, {**wide, **cached})
    for name, value in {**wide, **cached}.items():
        if name in there:
            np.testing.assert_array_equal(there[name], value)
    token = DecodeLayer(decoder, cache, tokens)
    given = {"x": x[-1], "mask": mask(cache, tokens + 1), **inputs_of(token, weights)}
    given |= {name: cached_rows(cache, there[f"cached {name}"]) for name in ("k", "v")}
    found = run(decode_layer(token), given)["y"]
    inner, at = normal(x, weights["norm1"], decoder.eps), np.arange(tokens + 1)
    query, keys = (rotated(inner @ wide[name], decoder, at) for name in ("q", "k"))
    attended = attention(decoder, query, keys, inner @ wide["v"], 0)[-1]
    np.testing.assert_allclose(found, layer_tail(decoder, weights, x[-1], attended), rtol=5e-5, atol=5e-5)


def test_each_tile_lies_where_the_layer_wants_it():
    """The blocks that arrive are those of the decode layer's inputs: `o` by columns of cores, keys by rows."""
    what = Transition(PrefillLayer(Decoder(16, 24, 2, 1), 4, 6), Cache("shift", 2, 2, 4, 16))
    last = {move.names: move.program() for move in what.moves()}
    layer = decode_layer(DecodeLayer(what.decoder, what.cache, 6))
    wanted = {place.name: place for place in layer.inputs}
    shapes = {buffer.name: buffer.shape for buffer in layer.buffers}
    for name in ("o", "down"):
        place, goal = last[(name,)].outputs[0], wanted[name]
        piece = next(buffer.shape for buffer in last[(name,)].buffers if buffer.name == place.slot.buffer)
        for core in np.ndindex(2, 2):
            first = [int(expr(core)) * size for expr, size in zip(place.block[1:], piece[1:], strict=True)]
            assert first == [
                int(expr(core)) * size for expr, size in zip(goal.block, shapes[goal.slot.buffer], strict=True)
            ]


@pytest.mark.parametrize("kind", range(5))
@pytest.mark.parametrize("layers", [1, 3])
def test_times_of_lines(kind: int, layers: int):
    """Lines by themselves take no less than the grid, and no more than cores gain that go on early."""
    decoder = Decoder(40, 90, dtype=np.float16, accumulator=np.float16)
    what = Transition(PrefillLayer(decoder, 11, 18), Cache("shift", 6, 6, 4, 42, np.float16))
    which, move = machine("wse2", "calibrated"), what.moves(layers)[kind]
    found, grid = time_move(move, which, samples=11), time_program(move.program(), which, loads=False)
    assert grid.cycles - 1e-3 <= found.cycles <= 1.1 * grid.cycles
    assert found.peak == core_classes(move.program())[0].peak < which.sram_bytes


def test_samples_of_lines_are_no_bound():
    """The slowest line may be none of five; all of them take no less than the grid."""
    what = Reshape(28, 41, (15, 15), (13, 13), np.float16, "ring", skewed=True, copies=1)
    which, move = machine("wse2", "calibrated"), Move(("x",), what)
    grid = time_program(move.program(), which, loads=False).cycles
    five, all_lines = (time_move(move, which, samples).cycles for samples in (5, 15))
    assert 0.9 * grid < five < grid <= all_lines + 1e-3


def test_more_layers_cost_fewer_rounds():
    what = Transition(PrefillLayer(Decoder(40, 90), 11, 18), Cache("shift", 6, 6, 4, 42))
    one, four = (
        sum(move.cycles for move in time_transition(what, machine("wse2", "calibrated"), layers)) / layers
        for layers in (1, 4)
    )
    assert four < 0.5 * one


@pytest.mark.slow
def test_a_wafer():
    """8B from 660 x 660 to 360 x 360 cores, blocks of 7 rows to blocks of 12."""
    half = np.dtype(np.float16)
    decoder = Decoder(4096, 14336, dtype=half, accumulator=half)
    what = Transition(PrefillLayer(decoder, 660, 4320), Cache("shift", 360, 360, 13, 4320, half))
    took = time_transition(what, machine("wse2", "calibrated"), 4)
    assert 5e5 < sum(move.cycles for move in took) / 4 < 2e6


def test_programs_fit_a_router():
    what = Transition(PrefillLayer(Decoder(8, 6, 2, 1), 4, 4), Cache("shift", 2, 2, 4, 8))
    for move in what.moves(2):
        _, report = fit_program(move.program(), machine("wse2"))
        assert max(one.hops for one in report.distances) == 1


def test_what_cannot_move():
    prompt = PrefillLayer(Decoder(16, 24, 2, 1), 4, 6)
    with pytest.raises(UserError, match="square within the first"):
        Transition(prompt, Cache("shift", 2, 4, 4, 16))
    with pytest.raises(UserError, match="Pad the prompt"):
        Transition(prompt, Cache("shift", 4, 4, 4, 16))
    with pytest.raises(UserError, match="Pad the prompt"):
        Transition(prompt, Cache("concat", 2, 2, 8, 16))
    with pytest.raises(UserError, match="does not fit a cache of 4"):
        Transition(prompt, Cache("shift", 2, 2, 2, 16))
