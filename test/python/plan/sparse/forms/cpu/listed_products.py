# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of one `sparse_tile.matmul` with a constant operand, and weights for them."""

from __future__ import annotations

import numpy as np


def product(
    shape: tuple[int, int],
    columns: int,
    encoding: str,
    *,
    left: bool = True,
    kinds: tuple[str, str] = ("f32", "f32"),
    adds: bool = False,
    kernel: str,
) -> str:
    """`y = W @ x (+ c)`, or `y = x @ W (+ c)` where the encoded operand is not the left one.

    Args:
        shape: of W.
        columns: the other size of x, -1 where a run brings it.
        encoding: of W, the inside of `#sparse_tile.tesa<...>`.
        left: whether W is the left operand.
        kinds: element types of W and x, and of y.
        adds: whether there is a `c`, an argument.
        kernel: the family.
    """
    given, result = kinds
    size = "?" if columns < 0 else str(columns)
    (inner, outer) = (shape[1], shape[0]) if left else shape
    plain = f"tensor<{shape[0]}x{shape[1]}x{given}>"
    encoded = f"{plain[:-1]}, #sparse_tile.tesa<{encoding}>>"
    x = f"tensor<{inner}x{size}x{given}>" if left else f"tensor<{size}x{inner}x{given}>"
    y = f"tensor<{outer}x{size}x{result}>" if left else f"tensor<{size}x{outer}x{result}>"
    place = f"%e = tensor.empty() : {y}"
    if columns < 0:
        place = f"""%d = arith.constant {int(left)} : index
      %s = tensor.dim %x, %d : {x}
      %e = tensor.empty(%s) : {y}"""
    zeros = f"""%z = arith.constant 0.0 : {result}
      {place}
      %c = linalg.fill ins(%z : {result}) outs(%e : {y}) -> {y}"""
    operands, types = ("%p, %x", f"{encoded}, {x}") if left else ("%x, %p", f"{x}, {encoded}")
    return f"""
    ml_program.global private @w(#ml_program.extern<{plain}>) : {plain}
    func.func @main(%x: {x} {{tile.name = "x"}}{f', %c: {y} {{tile.name = "c"}}' if adds else ""})
        -> ({y} {{tile.name = "y"}}) {{
      %w = ml_program.global_load_const @w : {plain}
      %p = sparse_tile.pack %w : {plain} to {encoded}
      {"" if adds else zeros}
      %y = sparse_tile.matmul {operands}, %c {{kernel = "{kernel}"}} : {types}, {y}
      return %y : {y}
    }}"""


def windows(rows: int, depth: int, n: int, m: int, rng: np.random.Generator) -> np.ndarray:
    """[rows, depth] small integers, at most `n` of `m` neighbours along a row other than zero, some windows emptier."""
    count = -(-depth // m)
    kept = rng.random((rows, count, m)).argsort(axis=-1) < n
    numbers = kept * rng.integers(-7, 8, kept.shape)
    return numbers.reshape(rows, count * m)[:, :depth].astype(np.float32)


def scattered(rows: int, depth: int, density: float, rng: np.random.Generator) -> np.ndarray:
    """[rows, depth] small integers, a part of them other than zero, none in the first row."""
    kept = rng.random((rows, depth)) < density
    kept[0] = False
    return (kept * rng.integers(1, 8, kept.shape)).astype(np.float32)
