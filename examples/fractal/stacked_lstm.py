# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Stacked LSTM: a fold over layers of a scan over time of a map over the batch."""

import tilewright.fractal as ft


def cell(h, c, x, ws, us, bs):
    """One step of one sentence; parameters are lists of those of the four gates."""
    gates = ft.map(lambda w, u, b: x @ w + h @ u + b, ws, us, bs)
    i, f, o = ft.map(ft.sigmoid, gates[:3])
    c = f * c + i * ft.tanh(gates[3])
    return o * ft.tanh(c), c


def layer(xss, ws, us, bs):
    """All steps of a layer, for a batch that is scanned over time."""

    def step(state, xs):
        return ft.map(lambda h, c, x: cell(h, c, x, ws, us, bs), *state, xs)

    zeros = ft.map(lambda x: ft.zeros(*x.shape), xss[0])
    hss, _ = ft.scanl(step, (zeros, zeros), xss)
    return hss


def program(hidden: int = 512) -> ft.Function:
    """xss[time][batch]; parameters[layer][gate]: how many gates there are must be known to trace it."""

    @ft.function
    def stacked_lstm(
        xss: ft.Array[2, (1, hidden)],
        ws: ft.Array[2, (hidden, hidden)],
        us: ft.Array[2, (hidden, hidden)],
        bs: ft.Array[2, (1, hidden)],
    ) -> ft.Array[2, (1, hidden)]:
        return ft.foldl(layer, xss, ws, us, bs)

    return stacked_lstm
