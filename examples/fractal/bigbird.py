# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""BigBird: the first and last two blocks attend to all, others to a window of three and to the first and last one."""

import tilewright.fractal as ft


def attend(q, k, v):
    """Softmax attention of one block."""
    return ft.softmax(q @ k.T) @ v


def sentence(qs, ks, vs):
    """All blocks of a sentence."""
    keys, values = ft.cat(ks), ft.cat(vs)
    wks, wvs = ft.shifted_slide(ft.zip(ks, vs), 3)

    def near(q, wk, wv):
        return attend(q, ft.cat([ks[0], ft.cat(wk), ks[-1]]), ft.cat([vs[0], ft.cat(wv), vs[-1]]))

    first, last = (ft.map(lambda q: attend(q, keys, values), part) for part in (qs[:2], qs[-2:]))
    return ft.join(first, ft.map(near, qs[2:-2], wks[2:-2], wvs[2:-2]), last)


def program(rows: int = 32, hidden: int = 512) -> ft.Function:
    """qss[sentence][block], keys and values likewise: how many blocks a sentence has must be known to trace it."""
    blocks = ft.Array[2, (rows, hidden)]

    @ft.function
    def bigbird(qss: blocks, kss: blocks, vss: blocks) -> blocks:
        return ft.map(sentence, qss, kss, vss)

    return bigbird
