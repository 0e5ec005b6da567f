# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs of one product with a constant encoded operand, and what they are to compute, for tests of its kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np

import tilewright as tw

DTYPES = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}


@dataclass(frozen=True)
class SparseProduct:
    """`a @ b + c` with one operand packed from a constant.

    Attributes:
        encoding: what stands in `#sparse_tile.tesa<...>`.
        weight: the constant, zero where the pattern leaves elements out.
        other: elements of the dense operand across the depth.
        left: whether the constant is `a`.
        form: the family of kernels that is asked for.
        types: of the weight, the dense operand and the result.
        init: whether `c` is an argument, else zero.
        open: whether a run brings `other`.
    """

    encoding: str
    weight: np.ndarray
    other: int
    left: bool
    form: str
    types: tuple[str, str, str] = ("f32", "f32", "f32")
    init: bool = False
    open: bool = False

    def kinds(self) -> tuple[str, str, str, str]:
        """Types of the weight, as it is and encoded, of the dense operand and of the result."""
        of_weight, of_dense, of_result = self.types
        columns, depth = self.weight.shape if self.left else self.weight.shape[::-1]
        size = "?" if self.open else str(self.other)
        dense = f"tensor<{depth}x{size}x{of_dense}>" if self.left else f"tensor<{size}x{depth}x{of_dense}>"
        result = f"tensor<{columns}x{size}x{of_result}>" if self.left else f"tensor<{size}x{columns}x{of_result}>"
        shape = "x".join(map(str, self.weight.shape)) + "x" + of_weight
        return f"tensor<{shape}>", f"tensor<{shape}, #sparse_tile.tesa<{self.encoding}>>", dense, result

    def arguments(self, tag: str) -> str:
        """Arguments of the program."""
        _, _, dense, result = self.kinds()
        return f"%x{tag}: {dense}" + (f", %c{tag}: {result}" if self.init else "")

    def body(self, tag: str) -> str:
        """The product, %y, of the global `w`."""
        plain, encoded, dense, result = self.kinds()
        element = self.types[2]
        c = f"%c{tag}" if self.init else f"%f{tag}"
        operands, kinds = f"%p{tag}, %x{tag}, {c}", f"{encoded}, {dense}, {result}"
        if not self.left:
            operands, kinds = f"%x{tag}, %p{tag}, {c}", f"{dense}, {encoded}, {result}"
        at, size = "", ""
        if self.open:
            at = f"%d{tag} = arith.constant {int(self.left)} : index\n  %n{tag} = tensor.dim %x{tag}, %d{tag} : {dense}"
            size = f"%n{tag}"
        return f"""
  %w{tag} = ml_program.global_load_const @w{tag} : {plain}
  %p{tag} = sparse_tile.pack %w{tag} : {plain} to {encoded}
  {at}
  %zero{tag} = arith.constant 0.0 : {element}
  %e{tag} = tensor.empty({size}) : {result}
  %f{tag} = linalg.fill ins(%zero{tag} : {element}) outs(%e{tag} : {result}) -> {result}
  %y{tag} = sparse_tile.matmul {operands} {{kernel = "{self.form}"}} : {kinds}"""

    def text(self) -> str:
        """The program: the weight is the external global `w`."""
        return program({"": self})

    def inputs(self, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
        """Small integers, whose sums are exact in any order."""
        columns, depth = self.weight.shape if self.left else self.weight.shape[::-1]
        dense = (depth, self.other) if self.left else (self.other, depth)
        result = (columns, self.other) if self.left else (self.other, columns)
        x = rng.integers(-3, 4, dense).astype(DTYPES[self.types[1]])
        return (x, rng.integers(-3, 4, result).astype(DTYPES[self.types[2]])) if self.init else (x,)

    def expected(self, inputs: Sequence[np.ndarray]) -> np.ndarray:
        """The result in f64."""
        x, w = inputs[0].astype(np.float64), self.weight.astype(np.float64)
        product = w @ x if self.left else x @ w
        return product + inputs[1].astype(np.float64) if self.init else product


def program(products: Mapping[str, SparseProduct]) -> str:
    """A program of products: one each of what `main` takes and returns, in order."""
    globals_, bodies = "", ""
    for tag, product in products.items():
        plain = product.kinds()[0]
        globals_ += f"ml_program.global private @w{tag}(#ml_program.extern : {plain}) : {plain}\n"
        bodies += product.body(tag)
    arguments = ", ".join(product.arguments(tag) for tag, product in products.items())
    kinds = ", ".join(product.kinds()[3] for product in products.values())
    values = ", ".join(f"%y{tag}" for tag in products)
    return f"""
{globals_}
func.func @main({arguments}) -> ({kinds}) {{{bodies}
  return {values} : {kinds}
}}
"""


def check(products: Sequence[SparseProduct], target: str, rng: np.random.Generator, sizes: Sequence[int] = ()) -> None:
    """Compile in one program, and compare exactly; with `sizes`, for each of these numbers of `other`."""
    named = {str(number): product for number, product in enumerate(products)}
    weights = {
        f"w{tag}": np.ascontiguousarray(product.weight).astype(DTYPES[product.types[0]])
        for tag, product in named.items()
    }
    model = tw.compile(program(named), target, weights=weights, threads=2)
    for size in sizes or [0]:
        each = [replace(product, other=size) if size else product for product in products]
        inputs = [product.inputs(rng) for product in each]
        results = model(*(array for given in inputs for array in given))
        for product, given, result in zip(each, inputs, results, strict=True):
            told = f"{product.encoding} of {product.weight.shape}, {product.other} others, left: {product.left}"
            np.testing.assert_array_equal(result.astype(np.float64), product.expected(given), told)


def vectors(rng: np.random.Generator, shape: tuple[int, int], n: int, m: int, unit: tuple[int, int]) -> np.ndarray:
    """A matrix of small integers with `n` of `m` units left along the first dimension."""
    rows, columns = (-(-size // u) for size, u in zip(shape, unit, strict=True))
    windows = -(-rows // m)
    rank = np.argsort(np.argsort(rng.random((windows, m, columns)), axis=1), axis=1)
    mask = (rank < n).reshape(windows * m, columns)
    mask = np.repeat(np.repeat(mask, unit[0], axis=0), unit[1], axis=1)[: shape[0], : shape[1]]
    return mask * rng.integers(1, 4, shape) * rng.choice([-1, 1], shape)


def blocks(rng: np.random.Generator, shape: tuple[int, int], block: tuple[int, int], density: float) -> np.ndarray:
    """A matrix of small integers of which some blocks are kept."""
    counts = [-(-size // b) for size, b in zip(shape, block, strict=True)]
    mask = rng.random(counts) < density
    mask = np.repeat(np.repeat(mask, block[0], axis=0), block[1], axis=1)[: shape[0], : shape[1]]
    return mask * rng.integers(1, 4, shape) * rng.choice([-1, 1], shape)
