# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Grid RNN: each point of the grid of two sentences has a state from above and one from the left."""

import tilewright.fractal as ft


def layer(xss, yss, wx, ux, bx, wy, uy, by):
    """The states of a layer at all points, [row][column], in both directions."""
    zero = ft.zeros(*bx.shape)

    def row(above, xs, ys):
        def point(left, up, x, y):
            s = ft.cat([up, left[1]], axis=1)
            return ft.tanh(x @ wx + s @ ux + bx), ft.tanh(y @ wy + s @ uy + by)

        return ft.scanl(point, (zero, zero), above[0], xs, ys)

    border = ft.map(lambda x: zero, xss[0])
    return ft.scanl(row, (border, border), xss, yss)


def program(hidden: int = 128) -> ft.Function:
    """sources[sentence][word], targets[sentence][word]; parameters[layer]."""
    weights, recurrent, biases = (ft.Array[1, (rows, hidden)] for rows in (hidden, 2 * hidden, 1))
    words = ft.Array[2, (1, hidden)]
    grids = ft.Array[3, (1, hidden)]

    @ft.function
    def grid_rnn(
        sources: words, targets: words,
        wx: weights, ux: recurrent, bx: biases, wy: weights, uy: recurrent, by: biases,
    ) -> tuple[grids, grids]:  # fmt: skip
        def sentence(source, target):
            return ft.foldl(lambda grid, *p: layer(*grid, *p), ft.product(source, target), wx, ux, bx, wy, uy, by)

        return ft.map(sentence, sources, targets)

    return grid_rnn
