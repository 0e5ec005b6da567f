# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Layers of WaferLLM's models take what its tables 3 and 4 say, on WSE-2 with preset `calibrated`: by programs.

Both are skeletons, by the plans of the paper (section 4): the products and allreduces of a layer with their tiles,
padded to whole ones; norms, rotations and the softmax are in the fixed costs of rounds and collectives.
"""

from __future__ import annotations

import time

import numpy as np
import pytest
from timed_programs import ALL, P, k_tree, k_tree_routes, mod, plus, product, shifts

from tilewright.sim.coremesh.machine import machine
from tilewright.sim.coremesh.program import Buffer, Compute, Cost, Instruction, Loop, Program, Route
from tilewright.sim.coremesh.timing import Timing, time_program

MEASURED, IDEAL = machine("wse2", "calibrated"), machine("wse2")
TOKENS = 4096
#: Width, hidden width, layers; tokens per second by side of the grid, of prefill (table 3) and decode (table 4).
MODELS = {
    "8B": (4096, 14336, 32, {480: 20320.6, 600: 25037.2, 720: 27686.5}, {420: 2699.9, 540: 2501.5, 660: 2243.3}),
    "13B": (5120, 13824, 40, {480: 13685.1, 600: 16854.2, 720: 17498.3}, {420: 2039.2, 540: 1899.4, 660: 1739.8}),
    "34B": (8192, 22016, 48, {480: 5471.4, 600: 7540.1, 720: 8526.0}, {420: 1450.8, 540: 1407.7, 660: 1359.2}),
    "72B": (8192, 29568, 80, {480: 2785.2, 600: 3775.5, 720: 4421.6}, {420: 839.7, 540: 824.3, 660: 787.1}),
}
#: Groups of the K-tree by side of the grid, as the released configurations have them.
GROUPS = {420: 20, 540: 20, 660: 22}


def tile(size: int, side: int) -> int:
    return -(-size // side)


def prefill(side: int, width: int, hidden: int) -> Program:
    """Nine products: queries, keys, values, scores, times values, output; up, gate, down. All shift."""
    s, d, f = tile(TOKENS, side), tile(width, side), tile(hidden, side)
    sizes = [(s, d, d)] * 4 + [(s, d, s), (s, s, d)] + [(s, d, f)] * 2 + [(s, f, d)]
    buffers, body = [], []
    for number, (m, k, n) in enumerate(sizes):
        cost = Cost(m * k * n, k * n, 0, 16)
        buffers += [
            Buffer(f"a{number}", (m, k), np.dtype("float16"), 2),
            Buffer(f"b{number}", (k, n), np.dtype("float16"), 2),
        ]
        body.append(Loop(side, product(str(number), side, side, True, cost)))
    routes = (Route("a", "x", mod(plus(P, -1), side), "ring"), Route("b", "y", mod(plus(P, -1), side), "ring"))
    return Program("prefill", side, side, tuple(buffers), routes, (), (), tuple(body))


def decode(side: int, width: int, hidden: int) -> Program:
    """Ten allreduces along axes that alternate, behind the products of a vector that each core has a part of."""
    s, d, f = tile(TOKENS, side), tile(width, side), tile(hidden, side)
    # Axis; numbers reduced; what is multiplied before, as (inputs, outputs) of a core.
    steps = [
        ("y", 1, ()),
        ("y", 3 * d, ((d, 3 * d),)),
        ("x", s, ((d, s),)),
        ("y", 1, ()),
        ("y", 1, ()),
        ("y", d, ((s, d),)),
        ("x", d, ((d, d),)),
        ("y", 1, ()),
        ("y", 2 * f, ((d, 2 * f),)),
        ("x", d, ((f, d),)),
    ]
    body: list[Instruction] = []
    buffers = []
    for number, (axis, count, products) in enumerate(steps):
        buffers.append(Buffer(f"v{number}", (count,), np.dtype("float16")))
        for inputs, outputs in products:
            cost = Cost(inputs * outputs, inputs, 0, 16)
            body.append(Compute(ALL, "product", (), (), cost, tuple))
        body += k_tree(axis, side, GROUPS[side], f"v{number}")
    routes = [*k_tree_routes("x", side, GROUPS[side]), *k_tree_routes("y", side, GROUPS[side])]
    return Program("decode", side, side, tuple(buffers), tuple(routes), (), (), tuple(body))


def test_a_product_by_the_fitted_law() -> None:
    """P rounds of 416 + 2.73 Kt Nt + 0.579 Mt Kt Nt cycles, where those hide the shifts; to a thousandth a round."""
    for side, (m, k, n) in ((480, (9, 9, 30)), (720, (6, 6, 6)), (31, (5, 7, 11))):
        one = shifts(side, side, (m * k // 2, k * n // 2), m * k * n, calls=k * n, bits=16)
        law = side * (416 + 2.73 * k * n + 0.579 * m * k * n)
        assert time_program(one, MEASURED).cycles == pytest.approx(law, abs=side / 1000)


def check(program: Program, published: float, tolerance: float) -> Timing:
    """Cycles are within the tolerance of the published, and the ideal machine is faster."""
    timing = time_program(program, MEASURED, loads=False)
    assert timing.cycles == pytest.approx(published, rel=tolerance)
    assert time_program(program, IDEAL, loads=False).cycles < published
    return timing


@pytest.mark.parametrize("model", MODELS)
def test_prefill(model: str) -> None:
    """Table 3 within 5 %."""
    width, hidden, layers, rates, _ = MODELS[model]
    for side, rate in rates.items():
        timing = check(prefill(side, width, hidden), TOKENS / rate * MEASURED.clock / layers, 0.05)
        assert timing.extrapolated


@pytest.mark.parametrize("model", MODELS)
def test_decode(model: str) -> None:
    """Table 4 within 5 %: slower on larger grids, unlike prefill; a layer is timed in a fraction of a second."""
    width, hidden, layers, _, rates = MODELS[model]
    cycles, took = [], []
    for side, rate in rates.items():
        program = decode(side, width, hidden)
        start = time.process_time()
        time_program(program, MEASURED, loads=False)
        took.append(time.process_time() - start)
        cycles.append(check(program, MEASURED.clock / rate / layers, 0.05).cycles)
    assert cycles == sorted(cycles)
    assert min(took) < 0.3
