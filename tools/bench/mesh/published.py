# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What WaferLLM (OSDI 2025) published for WSE-2: models, rates, capacities; and the grids that it used."""

from __future__ import annotations

from dataclasses import dataclass

TOKENS = 4096
#: Groups of the K-tree by side of the grid, as the released configurations have them; of 375 the nearest that divides.
GROUPS = {360: 18, 375: 15, 420: 20, 540: 20, 660: 22}


@dataclass(frozen=True)
class Model:
    """A model, and what was measured with it.

    Attributes:
        width, hidden, layers: of the model; ``narrow``: features of keys as a part of the width.
        prefill, decode: tokens per second by side of the grid, of 4096 tokens (tables 3 and 4).
    """

    width: int
    hidden: int
    layers: int
    narrow: float
    prefill: dict[int, float]
    decode: dict[int, float]


MODELS = {
    "8B": Model(
        4096, 14336, 32, 0.25, {480: 20320.6, 600: 25037.2, 720: 27686.5}, {420: 2699.9, 540: 2501.5, 660: 2243.3}
    ),
    "13B": Model(
        5120, 13824, 40, 1.0, {480: 13685.1, 600: 16854.2, 720: 17498.3}, {420: 2039.2, 540: 1899.4, 660: 1739.8}
    ),
    "34B": Model(
        8192, 22016, 48, 0.125, {480: 5471.4, 600: 7540.1, 720: 8526.0}, {420: 1450.8, 540: 1407.7, 660: 1359.2}
    ),
    "72B": Model(8192, 29568, 80, 0.125, {480: 2785.2, 600: 3775.5, 720: 4421.6}, {420: 839.7, 540: 824.3, 660: 787.1}),
}
#: Table 2: grids of prefill and decode, tokens per second by (input, output) lengths.
REQUESTS = {
    "8B": (660, 360, {(2048, 128): 764.4, (4096, 128): 604.4, (2048, 2048): 2370.3, (4096, 4096): 2459.0}),
    "13B": (750, 375, {(2048, 128): 473.9, (4096, 128): 414.0, (2048, 2048): 1690.3, (4096, 4096): 1826.0}),
}
#: Table 5: rows of the grid, tokens that concat and shift hold.
CAPACITIES = {"8B": (360, 382, 137_548), "13B": (375, 16, 6_168)}
#: Tables 3, 4, 7, 8: tokens per second of 1, 8 and 16 A100s, and energy relative to the wafer.
ENERGY = {
    ("8B", "prefill", 720): (((1, 13988.3), 0.05), ((8, 17361.6), 0.34), ((16, 13994.2), 0.84)),
    ("13B", "prefill", 720): (((1, 7805.1), 0.06), ((8, 12287.1), 0.30)),
    ("8B", "decode", 420): (((1, 78.9), 0.92), ((8, 260.4), 2.22), ((16, 164.6), 7.02)),
    ("13B", "decode", 420): (((1, 48.7), 1.13), ((8, 175.8), 2.49)),
}
#: Nominal power of an A100.
A100_WATTS = 400.0
