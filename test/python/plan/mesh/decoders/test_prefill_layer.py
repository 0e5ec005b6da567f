# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A layer of a decoder for a prompt, on a mesh, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from bench.mesh.layers import prefill
from python.plan.mesh.decoders.layers_in_numpy import Weights, attention, layer_tail, normal, rotated, weights_of
from tilewright.core.errors import UserError
from tilewright.plan.mesh.decoders.decoder import Decoder, full_width, rotary
from tilewright.plan.mesh.decoders.prefill_layer import PrefillLayer, prefill_layer
from tilewright.plan.mesh.fit_program import fit_program
from tilewright.sim.coremesh.functional import run
from tilewright.sim.coremesh.machine import machine


def padded(weight: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    """With zeros."""
    return np.pad(weight, [(0, size - had) for size, had in zip(shape, weight.shape, strict=True)])


def given_of(what: PrefillLayer, weights: Weights, x: np.ndarray) -> dict[str, np.ndarray]:
    """All inputs, as the host lays them out."""
    decoder, tokens = what.decoder, what.tokens
    features = what.side * decoder.slice(what.side)
    wide = weights | {name: full_width(weights[name], decoder) for name in ("k", "v")}
    cos, sin = rotary(np.arange(tokens), features, decoder.head)
    numbers = np.arange(1, tokens + 1).astype(np.float32)
    given = {"x": x, "cos": cos, "sin": sin, "rows": numbers, "columns": numbers}
    given |= {name: weights[name] for name in ("norm1", "norm2", "up", "gate", "down")}
    given |= {name: padded(wide[name], (decoder.width, features)) for name in ("q", "k", "v")}
    return given | {"o": padded(weights["o"], (features, decoder.width))}


@pytest.mark.parametrize(
    ("side", "tokens", "sizes"),
    [
        (4, 8, (16, 24, 2, 1)),  # two columns a head, shared keys
        (3, 7, (12, 10, 3, 3)),  # a head a column; padded tokens
        (5, 6, (16, 7, 1, 1)),  # one head, all padded
        (2, 3, (8, 6, 2, 2)),
        (1, 4, (8, 6, 1, 1)),
    ],
)
def test_a_prompt(side: int, tokens: int, sizes: tuple[int, int, int, int]):
    """Causal, heads that share keys, keys and values as the cache gets them."""
    decoder = Decoder(*sizes)
    generator = np.random.default_rng(0)
    weights = weights_of(decoder, generator)
    x = generator.standard_normal((tokens, decoder.width)).astype(np.float32)
    wide = weights | {name: full_width(weights[name], decoder) for name in ("k", "v")}
    given = given_of(PrefillLayer(decoder, side, tokens), weights, x)
    found = run(prefill_layer(PrefillLayer(decoder, side, tokens)), given)
    inner, at = normal(x, weights["norm1"], decoder.eps), np.arange(tokens)
    query, keys = (rotated(inner @ wide[name], decoder, at) for name in ("q", "k"))
    values = inner @ wide["v"]
    attended = attention(decoder, query, keys, values, 0)
    expected = np.stack([layer_tail(decoder, weights, *pair) for pair in zip(x, attended, strict=True)])
    np.testing.assert_allclose(found["k"][:, : decoder.width], keys, rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(found["v"][:, : decoder.width], values, rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(found["y"], expected, rtol=3e-5, atol=3e-5)


def test_heads_that_do_not_fit():
    with pytest.raises(UserError, match="4 heads do not fit 6 columns"):
        PrefillLayer(Decoder(16, 8, 4, 4), 6, 8)


@pytest.mark.parametrize("side", [12, 24, pytest.param(180, marks=pytest.mark.slow)])
def test_what_a_router_holds_does_not_grow(side: int):
    """Tiles of 8B on 720 rows: colors, paths and memory are the same on any grid, and all checks pass."""
    _, report = fit_program(prefill("8B", 720, 4096, side), machine("wse2"))
    assert (report.colors, report.paths, report.classes[0].peak) == (17, (11, 6), 2508)
    assert report.deadlock.kind == "accept"
