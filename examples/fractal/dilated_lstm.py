# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Dilated LSTM: layer t runs through every 2^t-th element, for each of the 2^t first ones."""

import tilewright.fractal as ft


def layer(hidden: int, w, u, b):
    """The function from a list to the hidden states of an LSTM on it; the four gates stand side by side."""

    def cell(state, x):
        h, c = state
        gates = x @ w + h @ u + b
        i, f, o = (ft.sigmoid(gates[:, k * hidden : (k + 1) * hidden]) for k in range(3))
        c = f * c + i * ft.tanh(gates[:, 3 * hidden :])
        return o * ft.tanh(c), c

    zero = ft.zeros(1, hidden)
    return lambda xs: ft.scanl(cell, (zero, zero), xs)[0]


def program(hidden: int = 512) -> ft.Function:
    """xss[sentence][word]; parameters[layer]: how many layers there are must be known to trace it."""

    @ft.function
    def dilated_lstm(
        xss: ft.Array[2, (1, hidden)],
        ws: ft.Array[1, (hidden, 4 * hidden)],
        us: ft.Array[1, (hidden, 4 * hidden)],
        bs: ft.Array[1, (1, 4 * hidden)],
    ) -> ft.Array[2, (1, hidden)]:
        def sentence(xs):
            for t, parameters in enumerate(zip(ws, us, bs, strict=True)):
                xs = ft.dilated_map(layer(hidden, *parameters), xs, 2**t)
            return xs

        return ft.map(sentence, xss)

    return dilated_lstm
