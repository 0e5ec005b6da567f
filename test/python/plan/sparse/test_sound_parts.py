# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Parts that are not sound let no kernel read outside of a tensor: the compiler refuses weights, a run what it gets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tilewright as tw
from tilewright.dialects.sparse_tile import NM, Block, Encoded, Mask, Tesa
from tilewright.ir.generics import walk
from tilewright.mlir import ir
from tilewright.plan.sparse.sound_parts import sound_parts

NAMES = {"float32": "f32", "int32": "i32", "int8": "i8"}


def kind(array: np.ndarray, open_: bool = False) -> str:
    first = ["?"] if open_ else [str(array.shape[0])]
    return f"tensor<{'x'.join([*first, *map(str, array.shape[1:])])}x{NAMES[array.dtype.name]}>"


def checks(encoded: Encoded) -> str:
    """A module whose @main returns 1, if the parts that it gets may be read by."""
    kinds = [kind(p, len(encoded.parts) == 3 and number < 2) for number, p in enumerate(encoded.parts)]
    arguments = ", ".join(f"%p{number}: {k}" for number, k in enumerate(kinds))
    with ir.Context(), ir.Location.unknown():
        held = encoded.tesa.type(encoded.shape, ir.F32Type.get())
        module = ir.Module.parse(f"""func.func @main({arguments}) -> tensor<1xf32> {{
  %w = sparse_tile.assemble {", ".join(f"%p{n}" for n in range(len(kinds)))} : {", ".join(kinds)} to {held}
  %r = arith.constant dense<1.0> : tensor<1xf32>
  return %r : tensor<1xf32>
}}""")
        (made,) = walk(module.operation, "sparse_tile.assemble")
        with ir.InsertionPoint(made), made.location:
            assert list(sound_parts(made)) == list(made.operands)
        made.erase()
        return str(module)


def safe(pattern: Any, parts: list[np.ndarray], shape: tuple[int, int]) -> bool:
    """Whether reading by the parts stays inside."""
    if isinstance(pattern, NM):
        return bool(((parts[1] >= 0) & (parts[1] < pattern.m)).all())
    data, indices, starts = parts
    columns = -(-shape[1] // (pattern.shape[1] if isinstance(pattern, Block) else 1))
    rises = starts[0] == 0 and starts[-1] == len(data) == len(indices) and (starts[:-1] <= starts[1:]).all()
    return bool(rises and ((indices >= 0) & (indices < columns)).all())


@pytest.mark.parametrize("pattern", [NM(2, 4, 1), NM(4, 16, 0, (1, 4)), Mask(), Block((2, 3))], ids=str)
def test_a_run_refuses_what_is_not_safe(pattern: Any) -> None:
    rng, shape = np.random.default_rng(7), (5, 32)
    array = np.zeros(shape, np.float32)
    array[::2, ::16] = 1
    encoded = Encoded.pack(array, Tesa.one(pattern))
    model = tw.compile(checks(encoded), threads=1)
    verdicts = set()
    for _ in range(60):
        parts = [part.copy() for part in encoded.parts]
        if rng.random() < 0.9:
            part = parts[rng.integers(1, len(parts))]
            numbers = np.iinfo(part.dtype)
            values = [-1, 0, 1, 3, 4, 10, 31, 32, numbers.max, numbers.min, part.flat[0]]
            part.flat[rng.integers(part.size)] = rng.choice(values)
        if len(parts) == 3 and rng.random() < 0.2:
            parts[rng.integers(2)] = parts[0][:-1] if rng.random() < 0.5 else np.concatenate([parts[1], parts[1]])
            parts = [np.asarray(p, held.dtype) for p, held in zip(parts, encoded.parts, strict=True)]
            if parts[0].ndim != encoded.parts[0].ndim or parts[1].ndim != 1:
                continue
        verdict = safe(pattern, parts, shape)
        verdicts.add(verdict)
        if verdict:
            assert model(*parts)[0] == 1
        else:
            with pytest.raises(tw.UserError, match="the parts do not fit the encoding"):
                model(*parts)
    assert verdicts == {True, False}


def product(weights: bool) -> str:
    """A product by parts that are weights, or inputs."""
    kinds = ("tensor<32x32xf32>", "tensor<32x32xi8>")
    held = "".join(
        f"ml_program.global private @{n}(#ml_program.extern : {k}) : {k}\n" for n, k in zip("vp", kinds, strict=True)
    )
    loads = "\n".join(f"%{n} = ml_program.global_load_const @{n} : {k}" for n, k in zip("vp", kinds, strict=True))
    arguments = "" if weights else f"%v: {kinds[0]}, %p: {kinds[1]}, "
    return f"""#w = #sparse_tile.tesa<nm<2 : 4, axis = 1>>
{held if weights else ""}
func.func @main({arguments}%x: tensor<64x16xf32>) -> tensor<32x16xf32> {{
  {loads if weights else ""}
  %w = sparse_tile.assemble %v, %p : {", ".join(kinds)} to tensor<32x64xf32, #w>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<32x16xf32>
  %c = linalg.fill ins(%zero : f32) outs(%e : tensor<32x16xf32>) -> tensor<32x16xf32>
  %y = sparse_tile.matmul %w, %x, %c : tensor<32x64xf32, #w>, tensor<64x16xf32>, tensor<32x16xf32>
  return %y : tensor<32x16xf32>
}}"""


def arrays(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, positions, and the other operand."""
    order = np.argsort(rng.random((32, 16, 4)), axis=-1)[..., :2]
    v, x = (rng.integers(-4, 5, size).astype(np.float32) for size in ((32, 32), (64, 16)))
    return v, np.sort(order, axis=-1).reshape(32, 32).astype(np.int8), x


@pytest.mark.parametrize("target", ["cpu", "cpu:x86-64-v3"])
@pytest.mark.parametrize("weights", [False, True])
def test_products_by_given_parts(weights: bool, target: str) -> None:
    v, p, x = arrays(np.random.default_rng(1))
    expected = Encoded(Tesa.one(NM(2, 4, 1)), (32, 64), v.dtype, (v, p)).dense() @ x
    wrong = p.copy()
    wrong[31, 31] = 100
    if weights:
        np.testing.assert_array_equal(tw.compile(product(True), target, weights={"v": v, "p": p})(x)[0], expected)
        with pytest.raises(tw.TilewrightError, match=r"sparse_tile.assemble: positions 0 to 100 in windows of 4"):
            tw.compile(product(True), target, weights={"v": v, "p": wrong})
        return
    model = tw.compile(product(False), target)
    np.testing.assert_array_equal(model(v, p, x)[0], expected)
    with pytest.raises(tw.UserError, match="a position is not below 4"):
        model(v, wrong, x)
    np.testing.assert_array_equal(model(v, p, x)[0], expected)


def test_what_no_kernel_reads_is_refused_at_compile_time() -> None:
    """Rows of compressed columns would be what a kernel reads: a run does not make them of compressed rows."""
    text = """
        #w = #sparse_tile.tesa<mask>
        func.func @main(%v: tensor<9xf32>, %p: tensor<9xi32>, %s: tensor<65xi32>, %x: tensor<16x64xf32>,
            %c: tensor<16x32xf32>) -> tensor<16x32xf32> {
          %w = sparse_tile.assemble %v, %p, %s
              : tensor<9xf32>, tensor<9xi32>, tensor<65xi32> to tensor<64x32xf32, #w>
          %y = sparse_tile.matmul %x, %w, %c : tensor<16x64xf32>, tensor<64x32xf32, #w>, tensor<16x32xf32>
          return %y : tensor<16x32xf32>
        }"""
    with pytest.raises(tw.UnsupportedError, match="of values that a run brings"):
        tw.compile(text, "cpu")
