# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tree LSTM (Tai et al. 2015): a cell for two children, each with a forget gate of its own."""

import tilewright.fractal as ft


def program(words: int = 300, hidden: int = 150) -> ft.Function:
    """The states of the root; gates stand side by side: i, o, u, then the forget gates."""

    @ft.function
    def tree_lstm(
        tree: ft.Tree[(1, words)],
        w: ft.Tensor[words, 3 * hidden],
        u: ft.Tensor[2 * hidden, 5 * hidden],
        b: ft.Tensor[1, 5 * hidden],
    ) -> tuple[ft.Tensor[1, hidden], ft.Tensor[1, hidden]]:
        def gate(gates, k):
            return gates[:, k * hidden : (k + 1) * hidden]

        def output(gates, c):
            return ft.sigmoid(gate(gates, 1)) * ft.tanh(c), c

        def states(node):
            if node.is_leaf:
                gates = node.value @ w + b[:, : 3 * hidden]
                return output(gates, ft.sigmoid(gate(gates, 0)) * ft.tanh(gate(gates, 2)))
            (hl, cl), (hr, cr) = states(node.left), states(node.right)
            gates = ft.cat([hl, hr], axis=1) @ u + b
            c = ft.sigmoid(gate(gates, 0)) * ft.tanh(gate(gates, 2))
            return output(gates, c + ft.sigmoid(gate(gates, 3)) * cl + ft.sigmoid(gate(gates, 4)) * cr)

        return states(tree)

    return tree_lstm
