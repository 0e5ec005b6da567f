# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention as a fold over blocks of keys and values: a running softmax.

The state is (largest score, sum of exponentials, output), here and in the inits. (The example that FractalTensor
published makes its init as (sum, largest score, output): with that, the first block divides by the wrong sum.)
"""

import tilewright.fractal as ft


def block(state, q, k, v):
    """The state with another block of keys and values."""
    m, s, o = state
    scores = q @ k.T
    top = ft.rowmax(scores)
    exps = ft.exp(scores - top)
    largest = ft.maximum(m, top)
    old, new = ft.exp(m - largest) * s, ft.exp(top - largest)
    both = old + new * ft.rowsum(exps)
    return largest, both, (o * old + new * (exps @ v)) / both


def program(rows: int = 64, dim: int = 32) -> ft.Function:
    """qsss[batch][head][block]; keys and values likewise."""
    blocks = ft.Array[3, (rows, dim)]

    @ft.function
    def attention(qsss: blocks, ksss: blocks, vsss: blocks) -> blocks:
        init = ft.full((rows, 1), float("-inf")), ft.zeros(rows, 1), ft.zeros(rows, dim)

        def head(qs, ks, vs):
            return ft.map(lambda q: ft.foldl(lambda state, k, v: block(state, q, k, v), init, ks, vs)[2], qs)

        return ft.map(lambda *batch: ft.map(head, *batch), qsss, ksss, vsss)

    return attention
