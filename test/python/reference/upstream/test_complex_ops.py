# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`complex` against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

ELEMENTS = [("f32", np.complex64), ("f64", np.complex128)]
UNARY = {
    "neg": np.negative,
    "conj": np.conjugate,
    "exp": np.exp,
    "expm1": lambda a: np.exp(a) - 1,
    "log": np.log,
    "log1p": lambda a: np.log(1 + a),
    "sqrt": np.sqrt,
    "rsqrt": lambda a: 1 / np.sqrt(a),
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "tanh": np.tanh,
    "sign": lambda a: a / np.abs(a),
    "abs": np.abs,
    "angle": np.angle,
    "re": np.real,
    "im": np.imag,
}
BINARY = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "pow": np.power,
    "atan2": lambda a, b: -1j * np.log((b + 1j * a) / np.sqrt(a * a + b * b)),
    "eq": np.equal,
    "neq": np.not_equal,
}
REAL = ("abs", "angle", "re", "im")


def scalar_function(op: str, operands: int, element: str, result: str, signature: str) -> str:
    """A function of complex scalars around one op."""
    params = ", ".join(f"%{i}: complex<{element}>" for i in range(operands))
    names = ", ".join(f"%{i}" for i in range(operands))
    return f"func.func @main({params}) -> {result} {{ %r = complex.{op} {names} : {signature} return %r : {result} }}"


def values(rng, dtype, count=6):
    """Numbers of size about 1 in all quadrants."""
    return (rng.standard_normal(count) + 1j * rng.standard_normal(count)).astype(dtype)


@pytest.mark.parametrize(("element", "dtype"), ELEMENTS)
@pytest.mark.parametrize("op", UNARY)
def test_unary(interpret, rng, op, element, dtype):
    kind = f"complex<{element}>"
    text = scalar_function(op, 1, element, element if op in REAL else kind, kind)
    for a in values(rng, dtype):
        (got,) = interpret(text, a)
        assert got.dtype == (np.zeros(1, dtype).real.dtype if op in REAL else dtype)
        np.testing.assert_allclose(got, UNARY[op](np.complex128(a)), rtol=1e-6 if element == "f32" else 1e-13)


@pytest.mark.parametrize(("element", "dtype"), ELEMENTS)
@pytest.mark.parametrize("op", BINARY)
def test_binary(interpret, rng, op, element, dtype):
    kind = f"complex<{element}>"
    text = scalar_function(op, 2, element, "i1" if op in ("eq", "neq") else kind, kind)
    for a, b in zip(values(rng, dtype), values(rng, dtype), strict=True):
        (got,) = interpret(text, a, b)
        np.testing.assert_allclose(got, BINARY[op](np.complex128(a), np.complex128(b)), rtol=1e-5)
        if op in ("eq", "neq"):
            assert bool(interpret(text, a, a)[0]) == (op == "eq")


def test_small_arguments_keep_their_digits(interpret):
    tiny = np.complex128(1e-12 + 2e-12j)
    for op in ("log1p", "expm1"):
        text = scalar_function(op, 1, "f64", "complex<f64>", "complex<f64>")
        np.testing.assert_allclose(interpret(text, tiny)[0], tiny, rtol=1e-11)


def test_parts_and_powers(interpret):
    text = """func.func @main(%re: f32, %im: f32, %n: i32) -> (complex<f32>, complex<f32>, i64, complex<f64>) {
      %c = complex.create %re, %im : complex<f32>
      %p = complex.powi %c, %n : complex<f32>, i32
      %b = complex.bitcast %c : complex<f32> to i64
      %k = complex.constant [3.0, -4.0] : complex<f64>
      return %c, %p, %b, %k : complex<f32>, complex<f32>, i64, complex<f64> }"""
    created, power, bits, constant = interpret(text, np.inf, 1, 2)
    assert (created.real, created.imag) == (np.inf, 1)
    np.testing.assert_allclose(interpret(text, 1, 2, 3)[1], (1 + 2j) ** 3, rtol=1e-6)
    assert bits.view(np.complex64) == created
    assert (power.dtype, complex(constant)) == (np.complex64, 3 - 4j)


def test_in_a_generic(interpret, rng):
    text = """func.func @main(%a: tensor<3xcomplex<f32>>) -> tensor<2x3xcomplex<f32>> {
      %k = arith.constant dense<[(1.0, 2.0), (-3.0, 0.5)]> : tensor<2xcomplex<f32>>
      %one = arith.constant dense<(0.0, 1.0)> : tensor<2x3xcomplex<f32>>
      %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i)>,
          affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
          ins(%a, %k : tensor<3xcomplex<f32>>, tensor<2xcomplex<f32>>) outs(%one : tensor<2x3xcomplex<f32>>) {
      ^bb0(%x: complex<f32>, %y: complex<f32>, %o: complex<f32>):
        %m = complex.mul %x, %y : complex<f32>
        %s = complex.add %m, %o : complex<f32>
        linalg.yield %s : complex<f32> } -> tensor<2x3xcomplex<f32>>
      return %r : tensor<2x3xcomplex<f32>> }"""
    a = values(rng, np.complex64, 3)
    (got,) = interpret(text, a)
    np.testing.assert_allclose(got, np.outer([1 + 2j, -3 + 0.5j], a) + 1j, rtol=1e-6)
