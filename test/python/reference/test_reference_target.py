# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""`tw.compile(..., target="reference")`: sizes known after the run, every dtype at the border, demands of the model."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw

FIRST = """
func.func @main(%x: tensor<4xf32>, %n: tensor<1xi64>) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %v = tensor.extract %n[%c0] : tensor<1xi64>
  %k = arith.index_cast %v : i64 to index
  %ok = arith.cmpi ule, %k, %c4 : index
  cf.assert %ok, "TopK 'k': more than there are"
  %s = tensor.extract_slice %x[0] [%k] [1] : tensor<4xf32> to tensor<?xf32>
  return %s : tensor<?xf32> }
"""


def test_sizes_known_after_the_run():
    model = tw.compile(FIRST, target="reference")
    x = np.arange(4, dtype=np.float32)
    assert model.outputs[0].shape == (-1,)
    for k in (3, 0, 4):
        assert model(x, np.array([k]))[0].tolist() == list(range(k))
    place = np.full(2, -1, np.float32)
    model(x, np.array([2]), out=[place])
    assert place.tolist() == [0, 1]
    with pytest.raises(tw.UserError, match="has shape"):
        model(x, np.array([3]), out=[place])


def test_what_the_model_demands_is_a_user_error():
    model = tw.compile(FIRST, target="reference")
    with pytest.raises(tw.UserError, match="^TopK 'k': more than there are$"):
        model(np.zeros(4, np.float32), np.array([5]))
    with pytest.raises(tw.UserError, match="dtype"):
        model(np.zeros(4, np.float64), np.array([5]))


@pytest.mark.parametrize(
    ("element", "dtype"),
    [
        ("f64", np.float64),
        ("f16", np.float16),
        ("bf16", ml_dtypes.bfloat16),
        ("f8E4M3FN", ml_dtypes.float8_e4m3fn),
        ("f8E5M2FNUZ", ml_dtypes.float8_e5m2fnuz),
        ("i8", np.int8),
        ("ui16", np.uint16),
        ("i1", np.bool_),
        ("complex<f32>", np.complex64),
        ("complex<f64>", np.complex128),
    ],
)
def test_every_dtype_passes(element, dtype):
    kind = f"tensor<2x2x{element}>"
    text = f"""
func.func @main(%x: {kind}) -> {kind} {{
  %e = tensor.empty() : {kind}
  %t = linalg.transpose ins(%x : {kind}) outs(%e : {kind}) permutation = [1, 0]
  return %t : {kind} }}
"""
    x = np.array([[0, 1], [1, 0.5]]).astype(dtype)
    (got,) = tw.compile(text, target="reference")(x)
    assert got.dtype == dtype
    np.testing.assert_array_equal(got, x.T)
    out = np.zeros((2, 2), dtype)
    tw.compile(text, target="reference")(x, out=[out])
    np.testing.assert_array_equal(out, x.T)
