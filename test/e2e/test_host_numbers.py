# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Numbers that kernels have no tiles of are computed on the host, as exactly as NumPy does it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw

MAP = """
#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<COUNTxIN>) -> tensor<COUNTxOUT> {
  %e = tensor.empty() : tensor<COUNTxOUT>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<COUNTxIN>) outs(%e : tensor<COUNTxOUT>) {
  ^bb0(%a: IN, %o: OUT):
    BODY
    linalg.yield %r : OUT
  } -> tensor<COUNTxOUT>
  return %y : tensor<COUNTxOUT>
}
"""


def apply(body: str, x: np.ndarray, kind: str, result: str | None = None) -> tuple[np.ndarray, list[str]]:
    """What a body gives on every element, and the remarks of the compiler."""
    text = MAP.replace("BODY", body).replace("COUNT", str(x.size))
    model = tw.compile(text.replace("IN", kind).replace("OUT", result or kind), target="cpu", threads=1)
    return model(x)[0], [remark["message"] for remark in model.report_data()["remarks"]]


@pytest.mark.parametrize("name", ["exp", "expm1", "log1p", "tanh", "sin"])
def test_functions_on_f64_are_those_of_the_c_library(name: str) -> None:
    x = np.linspace(-0.9, 5, 600)
    y, remarks = apply(f"%r = math.{name} %a : f64", x, "f64")
    np.testing.assert_allclose(y, getattr(np, name)(x), rtol=1e-15, atol=1e-300)
    assert remarks == [f"runs as scalar loops on the host: math.{name} on f64 calls a library"]


@pytest.mark.parametrize(("kind", "dtype"), [("bf16", ml_dtypes.bfloat16), ("f16", np.float16)])
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("%r = arith.addf %a, %a : T", lambda x: x + x),
        ("%r = math.exp %a : T", lambda x: np.exp(x.astype(np.float32)).astype(x.dtype)),
        ("%c = arith.constant 0.5 : T\n%r = arith.maximumf %a, %c : T", lambda x: np.maximum(x, x.dtype.type(0.5))),
    ],
)
def test_small_floats(kind: str, dtype: Any, body: str, expected: Any) -> None:
    x = np.linspace(-3, 3, 33).astype(dtype)
    y, _ = apply(body.replace("T", kind), x, kind)
    assert y.dtype == x.dtype
    np.testing.assert_array_equal(y.astype(np.float32), expected(x).astype(np.float32))


@pytest.mark.parametrize(
    ("kind", "dtype"), [("f8E4M3FN", ml_dtypes.float8_e4m3fn), ("f8E5M2", ml_dtypes.float8_e5m2), ("f16", np.float16)]
)
@pytest.mark.parametrize(("wide", "wide_type"), [("f32", np.float32), ("f64", np.float64)])
def test_conversions_round_once(kind: str, dtype: Any, wide: str, wide_type: Any) -> None:
    x = np.linspace(-3, 3, 77).astype(wide_type)
    y, _ = apply(f"%r = arith.truncf %a : {wide} to {kind}", x, wide, kind)
    np.testing.assert_array_equal(y.astype(np.float32), x.astype(dtype).astype(np.float32))
    back, _ = apply(f"%r = arith.extf %a : {kind} to {wide}", y, kind, wide)
    np.testing.assert_array_equal(back, y.astype(wide_type))


@pytest.mark.parametrize(("kind", "dtype"), [("complex<f32>", np.complex64), ("complex<f64>", np.complex128)])
def test_complex_numbers(kind: str, dtype: Any) -> None:
    x = (np.linspace(-2, 2, 9) + 1j * np.linspace(1, 3, 9)).astype(dtype)
    y, _ = apply(f"%q = complex.mul %a, %a : {kind}\n%r = complex.exp %q : {kind}", x, kind)
    np.testing.assert_allclose(y, np.exp(x * x), rtol=1e-5)


def test_powers_of_integers() -> None:
    x = np.arange(-4, 5, dtype=np.int64)
    y, _ = apply("%c = arith.constant 3 : i64\n%r = math.ipowi %a, %c : i64", x, "i64")
    np.testing.assert_array_equal(y, x**3)


def test_rounding_divisions() -> None:
    x = np.arange(-7, 8, dtype=np.int32)
    y, _ = apply("%c = arith.constant 3 : i32\n%r = arith.floordivsi %a, %c : i32", x, "i32")
    np.testing.assert_array_equal(y, x // 3)
