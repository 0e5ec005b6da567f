# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of one product with constant sparse weights, for kernels of GPUs; small whole numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32}


@dataclass(frozen=True)
class SparseProduct:
    """`a @ b (+ c)` with one operand packed from a constant.

    Attributes:
        form: the family of kernels.
        pattern: what stands in `#sparse_tile.tesa<...>`.
        shape: of the weight.
        other: of the dense operand across the depth.
        left: whether the weight is `a`.
        types: of the operands and of the result.
        init: whether something is added.
        open: whether a run brings `other`.
        density: the part of blocks that is kept.
    """

    form: str
    pattern: str
    shape: tuple[int, int]
    other: int
    left: bool = True
    types: tuple[str, str] = ("f16", "f32")
    init: bool = False
    open: bool = False
    density: float = 0.4

    def weight(self) -> np.ndarray:
        """Whole numbers in the pattern, a row of blocks without any among them."""
        rng = np.random.default_rng(sum(self.shape))
        numbers = [int(n) for n in re.findall(r"\d+", self.pattern)]
        if self.pattern.startswith("block"):
            keep = rng.random([-(-s // b) for s, b in zip(self.shape, numbers, strict=True)]) < self.density
            keep[0, 0], keep[-1 if self.left else 0, :] = True, keep[-1 if self.left else 0, :] & False
            keep[0, 0] = True
            unit = numbers
        else:
            n, m, axis = numbers[:3]
            unit = numbers[3:] or [1, 1]
            counts = [-(-s // u) for s, u in zip(self.shape, unit, strict=True)]
            windows = rng.random((counts[1 - axis], -(-counts[axis] // m), m))
            keep = (np.argsort(np.argsort(windows, -1), -1) < n).reshape(counts[1 - axis], -1)
            keep = keep if axis == 1 else keep.T
        keep = np.repeat(np.repeat(keep, unit[0], 0), unit[1], 1)[: self.shape[0], : self.shape[1]]
        return (keep * rng.integers(1, 5, self.shape) * rng.choice([-1, 1], self.shape)).astype(DTYPES[self.types[0]])

    def text(self) -> str:
        """The program; the weight is the global `w`."""
        given, result = self.types
        size = "?" if self.open else self.other
        depth, across = self.shape[::-1] if self.left else self.shape
        w = f"tensor<{self.shape[0]}x{self.shape[1]}x{given}"
        x = f"tensor<{depth}x{size}x{given}>" if self.left else f"tensor<{size}x{depth}x{given}>"
        y = f"tensor<{across}x{size}x{result}>" if self.left else f"tensor<{size}x{across}x{result}>"
        operands = f'%p, %x, %c {{kernel = "{self.form}"}} : {w}, #w>, {x}, {y}'
        if not self.left:
            operands = f'%x, %p, %c {{kernel = "{self.form}"}} : {x}, {w}, #w>, {y}'
        argument, filled = (f", %c: {y}", "") if self.init else ("", self._zeros(x, y, result))
        return f"""
#w = #sparse_tile.tesa<{self.pattern}>
#e = #ml_program.extern : {w}>
ml_program.global private @w(#e) : {w}>
func.func @main(%x: {x}{argument}) -> {y} {{
  %w = ml_program.global_load_const @w : {w}>
  %p = sparse_tile.pack %w : {w}> to {w}, #w>
{filled}
  %y = sparse_tile.matmul {operands}
  return %y : {y}
}}
"""

    def _zeros(self, x: str, y: str, result: str) -> str:
        dim = f"  %d = arith.constant {int(self.left)} : index\n  %n = tensor.dim %x, %d : {x}\n" if self.open else ""
        return f"""{dim}  %zero = arith.constant 0.0 : {result}
  %e = tensor.empty({"%n" if self.open else ""}) : {y}
  %c = linalg.fill ins(%zero : {result}) outs(%e : {y}) -> {y}"""

    def inputs(self) -> list[np.ndarray]:
        """The dense operand, and what is added."""
        rng = np.random.default_rng(7)
        depth, across = self.shape[::-1] if self.left else self.shape
        shapes = (
            [(depth, self.other), (across, self.other)] if self.left else [(self.other, depth), (self.other, across)]
        )
        found = [rng.integers(-4, 5, shape).astype(DTYPES[t]) for shape, t in zip(shapes, self.types, strict=True)]
        return found if self.init else found[:1]

    def expected(self, inputs: Sequence[np.ndarray]) -> np.ndarray:
        """The result, of the type that it has."""
        w, x = self.weight().astype(np.float64), inputs[0].astype(np.float64)
        product = w @ x if self.left else x @ w
        if self.init:
            product = product + inputs[1].astype(np.float64)
        return product.astype(DTYPES[self.types[1]])
