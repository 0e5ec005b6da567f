# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Back-to-back GEMM, A @ B @ C by blocks: a block of A @ B is used while it is there."""

import tilewright.fractal as ft


def total(xs, rows: int, columns: int):
    """The sum of a list, in any order."""
    return ft.reduce(lambda left, right: left + right, ft.zeros(rows, columns), xs)


def program(m: int = 64, k: int = 64, n: int = 64, p: int = 64) -> ft.Function:
    """a[M/m][K/k] holds blocks of A; b[N/n][K/k] and c[P/p][N/n] those of B and C, by columns."""

    @ft.function
    def b2b_gemm(a: ft.Array[2, (m, k)], b: ft.Array[2, (k, n)], c: ft.Array[2, (n, p)]) -> ft.Array[2, (m, p)]:
        def part(row, column, below):
            return total(ft.map(lambda x, y: x @ y, row, column), m, n) @ below

        def block(row, column):
            return total(ft.map(lambda bs, below: part(row, bs, below), b, column), m, p)

        return ft.map(lambda row: ft.map(lambda column: block(row, column), c), a)

    return b2b_gemm
