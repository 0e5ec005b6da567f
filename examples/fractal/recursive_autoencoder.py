# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Recursive autoencoder: a binary tree of words as one vector, each node made of both below it."""

import tilewright.fractal as ft


def program(hidden: int = 512) -> ft.Function:
    """A sentence's tree, words at its leaves; one layer encodes two vectors as one."""

    @ft.function
    def encoder(
        tree: ft.Tree[(1, hidden)], w: ft.Tensor[2 * hidden, hidden], b: ft.Tensor[1, hidden]
    ) -> ft.Tensor[1, hidden]:
        def encode(node):
            if node.is_leaf:
                return node.value
            left, right = encode(node.left), encode(node.right)
            return ft.tanh(ft.cat([left, right], axis=1) @ w + b)

        return encode(tree)

    return encoder
