# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A prompt on one grid, the token after it on another: weights and caches move through the mesh."""

from __future__ import annotations

from dataclasses import replace

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
from tilewright.plan.mesh.decoders.transition import Transition, cached_rows, time_columns
from tilewright.plan.mesh.fit_program import fit_program
from tilewright.plan.mesh.kv_cache import Cache
from tilewright.sim.coremesh.functional import run
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.timing import time_program

GRIDS = [
    (4, 2, 4, (8, 6, 2, 1)),  # two columns a head, then one
    (3, 3, 6, (6, 5, 3, 3)),  # the same grid, by other layouts
    (5, 3, 3, (10, 7, 1, 1)),  # one head, all padded, blocks of odd and even sizes
    (2, 1, 3, (4, 3, 1, 1)),
    (7, 4, 8, (20, 31, 1, 1)),  # cores that have padding alone
]


@pytest.mark.parametrize(("side", "rows", "tokens", "sizes"), GRIDS)
def test_the_token_after_a_prompt(side: int, rows: int, tokens: int, sizes: tuple[int, int, int, int]):
    """It attends to all of the prompt, on the other grid, with the weights and caches that came there."""
    decoder = Decoder(*sizes)
    generator = np.random.default_rng(0)
    weights = weights_of(decoder, generator)
    wide = weights | {name: full_width(weights[name], decoder) for name in ("k", "v")}
    x = generator.standard_normal((tokens + 1, decoder.width)).astype(np.float32)
    cache = Cache("shift", rows, rows, tokens // rows + 1, rows * decoder.slice(rows))
    what = Transition(PrefillLayer(decoder, side, tokens, then=rows), cache)
    given = given_of(what.prefill, weights, x[:-1])
    prompt = run(prefill_layer(what.prefill), given)
    alone = run(prefill_layer(replace(what.prefill, then=None)), given)
    np.testing.assert_allclose(prompt["y"], alone["y"], rtol=3e-5, atol=3e-5)
    cached = {f"cached {name}": prompt[name][:, : decoder.width] for name in ("k", "v")}
    for name, value in {**wide, **cached}.items():
        if name in what.matrices:
            np.testing.assert_array_equal(prompt[f"next {name}"], value)
    token = DecodeLayer(decoder, cache, tokens)
    given = {"x": x[-1], "mask": mask(cache, tokens + 1), **inputs_of(token, weights)}
    given |= {name: cached_rows(cache, prompt[f"next cached {name}"]) for name in ("k", "v")}
    found = run(decode_layer(token), given)["y"]
    inner, at = normal(x, weights["norm1"], decoder.eps), np.arange(tokens + 1)
    query, keys = (rotated(inner @ wide[name], decoder, at) for name in ("q", "k"))
    attended = attention(decoder, query, keys, inner @ wide["v"], 0)[-1]
    np.testing.assert_allclose(found, layer_tail(decoder, weights, x[-1], attended), rtol=5e-5, atol=5e-5)


def test_each_tile_lies_where_the_layer_wants_it():
    """The blocks that arrive are those of the decode layer's inputs: `o` by columns of cores, keys by rows."""
    decoder = Decoder(16, 24, 2, 1)
    what = Transition(PrefillLayer(decoder, 4, 6, then=2), Cache("shift", 2, 2, 4, 16))
    program, layer = prefill_layer(what.prefill), decode_layer(DecodeLayer(decoder, what.cache, 6))
    wanted = {place.name: place for place in layer.inputs}
    left = {place.name: place for place in program.outputs}
    shapes = {one: {buffer.name: buffer.shape for buffer in one.buffers} for one in (program, layer)}
    for name in ("o", "down"):
        place, goal = left[f"next {name}"], wanted[name]
        pieces = shapes[program][place.slot.buffer], shapes[layer][goal.slot.buffer]
        assert pieces[0] == pieces[1]
        for core in np.ndindex(2, 2):
            assert [int(expr(core)) for expr in place.block] == [int(expr(core)) for expr in goal.block]


def test_new_rows_cost_copies_alone():
    """Rings bring them by: the layer takes less than without them, as two products need no aligned operand."""
    decoder, which = Decoder(44, 88, dtype=np.float16, accumulator=np.float16), machine("wse2", "calibrated")
    plain = PrefillLayer(decoder, 11, 18)
    times = [
        time_program(prefill_layer(one, travel=False), which, loads=False).cycles
        for one in (plain, replace(plain, then=6))
    ]
    assert times[1] < times[0]


@pytest.mark.parametrize("layers", [1, 3])
def test_times_of_columns(layers: int):
    """A row by itself takes what the rows of the grid take after the layer."""
    decoder = Decoder(40, 90, dtype=np.float16, accumulator=np.float16)
    what = Transition(PrefillLayer(decoder, 11, 18, then=6), Cache("shift", 6, 6, 4, 48, np.float16))
    which = machine("wse2", "calibrated")
    found = time_columns(what, which, layers)
    assert found.peak < which.sram_bytes
    if layers == 1:
        both, first = (
            time_program(prefill_layer(what.prefill, travel=travel), which, loads=False).cycles
            for travel in (True, False)
        )
        assert both - first == pytest.approx(found.cycles, rel=0.02)


def test_more_layers_cost_fewer_rounds():
    what = Transition(PrefillLayer(Decoder(40, 90), 11, 18, then=6), Cache("shift", 6, 6, 4, 48))
    one, four = (time_columns(what, machine("wse2", "calibrated"), layers).cycles / layers for layers in (1, 4))
    assert four < 0.85 * one


@pytest.mark.slow
def test_a_wafer():
    """8B from 660 x 660 to 360 x 360 cores, blocks of 7 rows to blocks of 12; two layers, alone in their cores."""
    half = np.dtype(np.float16)
    decoder = Decoder(4096, 14336, dtype=half, accumulator=half)
    what = Transition(PrefillLayer(decoder, 660, 4320, then=360), Cache("shift", 360, 360, 13, 4320, half))
    which = machine("wse2", "calibrated")
    took = time_columns(what, which, 2)
    assert 4e5 < took.cycles / 2 < 6e5
    assert took.peak < which.sram_bytes - which.mesh.code_bytes


@pytest.mark.parametrize("side", [8, 12])
def test_programs_fit_a_router(side: int):
    """All colors of WSE-2 are taken, by however many cores."""
    layer = prefill_layer(PrefillLayer(Decoder(44, 60), side, 9, then=side // 2 + 1))
    _, report = fit_program(layer, machine("wse2"))
    assert report.colors == 21 and report.paths == (15, 6)


def test_what_cannot_move():
    decoder = Decoder(16, 24, 2, 1)
    with pytest.raises(UserError, match="square within the first"):
        PrefillLayer(decoder, 4, 6, then=5)
    prompt = PrefillLayer(decoder, 4, 6, then=2)
    with pytest.raises(UserError, match="both must be the same square"):
        Transition(prompt, Cache("shift", 2, 4, 4, 16))
    with pytest.raises(UserError, match="side None"):
        Transition(replace(prompt, then=None), Cache("shift", 2, 2, 4, 16))
    with pytest.raises(UserError, match="Pad the prompt"):
        Transition(replace(prompt, then=4), Cache("shift", 4, 4, 4, 16))
    with pytest.raises(UserError, match="Pad the prompt"):
        Transition(prompt, Cache("concat", 2, 2, 8, 16))
    with pytest.raises(UserError, match="does not fit a cache of 4"):
        Transition(prompt, Cache("shift", 2, 2, 2, 16))
