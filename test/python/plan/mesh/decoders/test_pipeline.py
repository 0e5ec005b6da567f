# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model over several regions of cores: plan, capacity, values, times."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from python.plan.mesh.decoders.layers_in_numpy import attention_of_one, layer_tail, normal, weights_of
from python.plan.mesh.decoders.test_decode_layer import inputs_of
from tilewright.core.errors import UserError
from tilewright.plan.mesh.attention import mask
from tilewright.plan.mesh.decoders.decode_layer import DecodeLayer, decode_layer
from tilewright.plan.mesh.decoders.decoder import Decoder
from tilewright.plan.mesh.decoders.hand_over import Way, hand_over
from tilewright.plan.mesh.decoders.pipeline import (
    PipelineTime,
    Region,
    footprint,
    plan_pipeline,
    regions_of,
    time_pipeline,
)
from tilewright.plan.mesh.fit_program import fit_program
from tilewright.plan.mesh.kv_cache import Cache
from tilewright.plan.mesh.reduction import Scheme
from tilewright.sim.coremesh.functional import run
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.timing import time_program

TOY = machine("toy8x8")


def small(side: int = 4, slots: int = 3) -> DecodeLayer:
    decoder = Decoder(32, 48, 4, 2)
    return DecodeLayer(decoder, Cache("shift", side, side, slots, 32), 2, (Scheme("chain"), Scheme("chain")))


@pytest.mark.parametrize("way", ["right", "left", "down"])
@pytest.mark.parametrize(("region", "width"), [((3, 3), 7), ((5, 2), 10), ((2, 5), 1), ((1, 1), 4), ((4, 1), 9)])
def test_a_vector_goes_on(way: Way, region: tuple[int, int], width: int):
    """From one region to the next, to all of its columns; the checks of `fit_program` pass."""
    x = np.arange(1, width + 1).astype(np.float32)
    program, _ = fit_program(hand_over(width, region, way, np.float32), machine("wse2"))
    np.testing.assert_array_equal(run(program, {"x": x})["x"], x)


def test_square_regions_share_no_link():
    """Down: no slower than a row alone would be, but for its longer way."""
    cycles = [time_program(hand_over(40 * side, (side, side), "down", np.float32), TOY).cycles for side in (1, 4)]
    assert cycles[1] - cycles[0] < 40 + 4 * 8


def test_a_snake():
    """Each region stands beside the next; what does not make a whole region is left."""
    found = regions_of(3, 2, TOY)
    assert len(found) == 8 and found[4] == Region(3, 6, 3, 2)
    ways = [one.way_to(other) for one, other in zip(found, found[1:], strict=False)]
    assert ways == ["right"] * 3 + ["down"] + ["left"] * 3


def test_three_layers_in_two_regions():
    """Against NumPy, each stage's layers on its region, the vector handed over in between; three tokens."""
    plan = replace(plan_pipeline(small(), 3, TOY), layers=(2, 1))
    decoder, cache = plan.layer.decoder, plan.layer.cache
    generator = np.random.default_rng(3)
    weights = [weights_of(decoder, generator) for _ in range(3)]
    empty = np.zeros((cache.height * cache.slots, cache.features), np.float32)
    memory = [{"k": empty, "v": empty} for _ in weights]
    seen: list[list[tuple[np.ndarray, np.ndarray]]] = [[] for _ in weights]
    for length in range(3):
        x = expected = generator.standard_normal(decoder.width).astype(np.float32)
        what = replace(plan.layer, length=length)
        for stage, over in zip(plan.stages, (*plan.hand_overs(), None), strict=True):
            for number in range(stage.first, stage.first + stage.layers):
                given = {"x": x, "mask": mask(cache, length + 1), **inputs_of(what, weights[number]), **memory[number]}
                found = run(decode_layer(what), given)
                x, memory[number] = found["y"], {name: found[name] for name in ("k", "v")}
            x = run(over, {"x": x})["x"] if over else x
        for one, before in zip(weights, seen, strict=True):
            inner = normal(expected, one["norm1"], decoder.eps)
            expected = layer_tail(decoder, one, expected, attention_of_one(decoder, one, inner, length, before))
        np.testing.assert_allclose(x, expected, rtol=1e-4, atol=1e-4)


def test_as_few_regions_as_hold_the_model():
    """Layers as equal as can be; memory is weights, caches and work of one layer; one byte less, and one fewer fits."""
    one = footprint(small(), TOY)
    width, rows = 32, 8
    weights = 4 * (rows * 3 * 8 + 8 * rows + rows * 2 * 12 + 12 * rows + 2 * rows)
    assert one.layer == weights + 4 * 2 * 3 * width // 4 and one.caches == 4 * 2 * 3 * width // 4
    tight = TOY.replace(sram_bytes=TOY.mesh.code_bytes + one.work + 3 * one.layer)
    assert plan_pipeline(small(), 8, tight).layers == (3, 3, 2)
    assert plan_pipeline(small(), 8, tight.replace(sram_bytes=tight.sram_bytes - 1)).layers == (2, 2, 2, 2)
    stage = plan_pipeline(small(), 8, tight).stages[2]
    assert (stage.first, stage.layers, stage.bytes) == (6, 2, one.work + 2 * one.layer)
    assert stage.tokens[0] == 12 and stage.tokens[1] > 12
    slots = stage.tokens[1] // 4
    for more, fits in ((0, True), (1, False)):
        roomy = footprint(replace(small(), cache=replace(small().cache, slots=slots + more)), tight)
        assert (roomy.work + 2 * roomy.layer <= roomy.free) == fits


def test_what_does_not_fit():
    """Each says what is short, where, and what would help."""
    one = footprint(small(), TOY)
    tight = TOY.replace(sram_bytes=TOY.mesh.code_bytes + one.work + one.layer)
    with pytest.raises(UserError, match="5 stages do not fit machine 'toy8x8'.*4 regions.*larger regions"):
        plan_pipeline(small(), 5, tight)
    with pytest.raises(UserError, match=r"core \(0, 4\): stage 1 has 2 layers.*1 layers fit"):
        replace(plan_pipeline(small(), 2, tight), layers=(1, 2))
    with pytest.raises(UserError, match="one layer takes"):
        plan_pipeline(small(), 1, tight.replace(sram_bytes=tight.sram_bytes - 1))
    with pytest.raises(UserError, match="1 layer or more"):
        plan_pipeline(small(), 0, TOY)


def test_a_region_receives_computes_and_sends_in_turn():
    assert PipelineTime(10.0, (20.0, 30.0, 40.0), (7.0, 2.0)).interval == 42.0
    assert PipelineTime(10.0, (20.0, 35.0, 30.0), (7.0, 2.0)).interval == 44.0
    assert PipelineTime(10.0, (20.0,), ()).interval == 20.0


def llama_13b(height: int, width: int) -> DecodeLayer:
    decoder = Decoder(5120, 13824, dtype=np.float16, accumulator=np.float16)
    return DecodeLayer(decoder, Cache("shift", height, width, 1, width * decoder.slice(width), np.float16), 0)


def test_llama_13b():
    """LLaMA2-13B on WSE-2: 40 layers do not fit its four regions of 375 x 375, and fit four of 497 x 375."""
    which = machine("wse2", "calibrated")
    with pytest.raises(UserError, match="5 stages do not fit machine 'wse2'.*4 regions.*larger regions"):
        plan_pipeline(llama_13b(375, 375), 40, which)
    plan = plan_pipeline(llama_13b(497, 375), 40, which)
    assert plan.layers == (10,) * 4
    assert all(stage.bytes <= stage.free < 48 * 1024 and stage.tokens[0] == 497 for stage in plan.stages)
    found = time_pipeline(plan)
    assert found.utilization == 1 / 4
    assert found.cycles == pytest.approx(40 * found.layer + sum(found.hand_overs))
    assert found.interval < found.cycles / 3
    assert max(found.hand_overs) < found.layer / 5
