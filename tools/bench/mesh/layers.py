# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of a layer as WaferLLM's released kernels have them: one head as wide as the model, half precision."""

from __future__ import annotations

import functools
from math import gcd, lcm

import numpy as np

from bench.mesh.published import GROUPS, MODELS, TOKENS
from tilewright.plan.mesh.decoders.decode_layer import DecodeLayer, decode_layer
from tilewright.plan.mesh.decoders.decoder import Decoder
from tilewright.plan.mesh.decoders.prefill_layer import PrefillLayer, prefill_layer
from tilewright.plan.mesh.decoders.transition import Transition
from tilewright.plan.mesh.kv_cache import Cache
from tilewright.plan.mesh.reduction import Scheme
from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.program import Program
from tilewright.sim.coremesh.timing import time_program
from tilewright.sim.coremesh.timing.grown import time_grown

HALF = np.dtype("float16")


def tile(size: int, side: int) -> int:
    """Of a size, one core's."""
    return -(-size // side)


def _decoder(width: int, hidden: int) -> Decoder:
    return Decoder(width, hidden, dtype=HALF, accumulator=HALF)


def prefill(model: str, side: int, tokens: int, small: int, then: int | None = None) -> Program:
    """The program of `prefill_layout`; with a second grid, new rows of matrices are kept, columns do not travel."""
    return prefill_layer(prefill_layout(model, side, tokens, small, then), travel=False)


def prefill_layout(model: str, side: int, tokens: int, small: int, then: int | None = None) -> PrefillLayer:
    """A layer on a grid of ``small`` rows with the tiles of ``side`` rows.

    Args:
        then: rows of the grid on which tokens follow.
    """
    sizes = MODELS[model]
    second = small * then // side if then else None
    # With a second grid, sizes fill that one: so blocks are as large on both small grids as on the whole ones.
    grid, rows = (then, second) if then and second else (side, small)
    width, hidden, prompt = (tile(size, grid) * rows for size in (sizes.width, sizes.hidden, tokens))
    return PrefillLayer(_decoder(width, hidden), small, prompt, then=second)


def decode(model: str, side: int, tokens: int) -> Program:
    """A layer for one token and a cache of so many, full rows; it is appended where it lies, as in the kernels."""
    decoder = _decoder(MODELS[model].width, MODELS[model].hidden)
    cache = Cache("concat", side, side, tile(tokens, side), side * decoder.slice(side), HALF)
    scheme = Scheme("k_tree", 2, (GROUPS[side],))
    return decode_layer(DecodeLayer(decoder, cache, 0, (scheme, scheme)))


def transition(model: str, first: int, then: int, tokens: int = TOKENS) -> Transition:
    """From the layer of a prompt on one grid to that of a token on another; the prompt is padded to full rows."""
    rows = tile(tokens, then)
    decoder = _decoder(MODELS[model].width, MODELS[model].hidden)
    cache = Cache("shift", then, then, rows + 1, then * decoder.slice(then), HALF)
    return Transition(PrefillLayer(decoder, first, rows * then, then=then), cache)


@functools.cache
def prefill_cycles(model: str, side: int, preset: str, tokens: int = TOKENS) -> float:
    """Of one layer; from smaller grids with tiles of the same size."""
    return time_grown(lambda small: prefill(model, side, tokens, small), side, machine("wse2", preset)).cycles


@functools.cache
def last_prefill_cycles(model: str, side: int, then: int, tokens: int) -> float:
    """Of one layer that is followed by tokens on another grid: from pairs of smaller grids in the same proportion.

    Both halves of the samples agree to two thousandths; what that is on the whole grid: mesh_validation, note 2.
    """
    unit = lcm(2, side // gcd(side, then))
    return time_grown(
        lambda small: prefill(model, side, tokens, small, then),
        side,
        machine("wse2", "calibrated"),
        step=unit * -(-8 // unit),
        bend=2e-3,
    ).cycles


@functools.cache
def decode_cycles(model: str, side: int, preset: str, tokens: int = TOKENS) -> float:
    """Of one layer, on the whole grid."""
    return time_program(decode(model, side, tokens), machine("wse2", preset), loads=False).cycles
