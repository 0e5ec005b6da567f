# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A layer of a decoder for one token, on a mesh, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from python.plan.mesh.decoders.layers_in_numpy import Weights, attention_of_one, layer_tail, normal, weights_of
from tilewright.core.errors import UserError
from tilewright.plan.mesh.attention import mask
from tilewright.plan.mesh.decoders.decode_layer import DecodeLayer, decode_layer
from tilewright.plan.mesh.decoders.decoder import Decoder, full_width, rotary, side_by_side
from tilewright.plan.mesh.kv_cache import Cache
from tilewright.plan.mesh.reduction import Scheme
from tilewright.sim.coremesh.functional import run
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.timing import time_program


def inputs_of(what: DecodeLayer, weights: Weights) -> dict[str, np.ndarray]:
    """As the host lays them out."""
    decoder, cache = what.decoder, what.cache
    part, inner = decoder.slice(cache.width), -(-decoder.hidden // cache.width)
    keys, values = (full_width(one, decoder) for one in (weights["k"], weights["v"]))
    cos, sin = rotary(np.array([what.length]), cache.features, decoder.head)
    kind = decoder.dtype
    return {
        "norm1": weights["norm1"],
        "norm2": weights["norm2"],
        "qkv": side_by_side([weights["q"], keys, values], cache.width, part).astype(kind),
        "up_gate": side_by_side([weights["up"], weights["gate"]], cache.width, inner).astype(kind),
        "o": np.pad(weights["o"], ((0, cache.features - decoder.width), (0, 0))),
        "down": weights["down"],
        "cos": cos[0],
        "sin": sin[0],
    }


@pytest.mark.parametrize(
    ("policy", "height", "width", "sizes"),
    [
        ("shift", 3, 4, (16, 24, 4, 2)),  # a head a column
        ("round_robin", 4, 4, (24, 20, 2, 1)),  # two columns a head
        ("concat", 2, 6, (24, 13, 2, 2)),  # three columns a head, padded inner part
        ("shift", 2, 2, (16, 11, 4, 1)),  # two heads a column
        ("shift", 5, 3, (16, 7, 1, 1)),  # one head, padded
        ("concat", 1, 1, (8, 6, 2, 1)),
    ],
)
def test_tokens_one_after_the_other(policy: str, height: int, width: int, sizes: tuple[int, int, int, int]):
    """Three tokens through one layer: each attends to those before it."""
    decoder = Decoder(*sizes)
    generator = np.random.default_rng(0)
    weights = weights_of(decoder, generator)
    cache = Cache(policy, height, width, 4, width * decoder.slice(width))  # type: ignore[arg-type]
    memory = {name: np.zeros((height * cache.slots, cache.features), np.float32) for name in ("k", "v")}
    seen: list[tuple[np.ndarray, np.ndarray]] = []
    for length in range(3):
        x = generator.standard_normal(decoder.width).astype(np.float32)
        what = DecodeLayer(decoder, cache, length, (Scheme("k_tree", 1), Scheme("chain")))
        given = {"x": x, "mask": mask(cache, length + 1), **inputs_of(what, weights), **memory}
        found = run(decode_layer(what), given)
        memory = {name: found[name] for name in ("k", "v")}
        attended = attention_of_one(decoder, weights, normal(x, weights["norm1"], decoder.eps), length, seen)
        expected = layer_tail(decoder, weights, x, attended)
        np.testing.assert_allclose(found["y"], expected, rtol=2e-5, atol=2e-5)


def test_heads_that_do_not_fit():
    with pytest.raises(UserError, match="6 heads of 4 features do not fit 4 columns"):
        Decoder(24, 8, 6, 6).slice(4)
    with pytest.raises(UserError, match="each must divide"):
        Decoder(24, 8, 5, 5)
    with pytest.raises(UserError, match="has 16 features a token, not 12"):
        DecodeLayer(Decoder(16, 8, 2, 2), Cache("shift", 2, 4, 3, 12), 0)


def test_ten_collectives():
    """Each pays its overhead once."""
    decoder = Decoder(64, 96, dtype=np.float16, accumulator=np.float16)
    cache = Cache("round_robin", 8, 8, 4, 64, np.float16)
    program = decode_layer(DecodeLayer(decoder, cache, 24))
    slow, fast = machine("wse2", "calibrated"), machine("wse2")
    overhead = time_program(program, slow).split.overhead
    assert overhead == pytest.approx(10 * slow.overheads.collective + 2 * slow.overheads.round)
    assert time_program(program, fast).split.overhead == 0
