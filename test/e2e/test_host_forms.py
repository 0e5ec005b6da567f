# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operations of layer 1 that make, cut and reshape tensors by sizes known at run time only."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tilewright as tw

X = np.arange(3, dtype=np.float32)
ELEMENT = """
func.func @main(%i: tensor<i64>) -> tensor<TYPE> {
  %c = arith.constant dense<[VALUES]> : tensor<2xTYPE>
  %v = tensor.extract %i[] : tensor<i64>
  %k = arith.index_cast %v : i64 to index
  %x = tensor.extract %c[%k] : tensor<2xTYPE>
  %o = tensor.from_elements %x : tensor<TYPE>
  return %o : tensor<TYPE>
}
"""
CASES: dict[str, tuple[str, list[Any], list[Any]]] = {
    "constants of sizes that are forgotten": (
        """
    func.func @main(%i: tensor<i64>) -> (tensor<?xf32>, tensor<?xf32>, tensor<?xf32>) {
      %c = arith.constant dense<[1.0, 2.0, 3.0]> : tensor<3xf32>
      %d = tensor.cast %c : tensor<3xf32> to tensor<?xf32>
      %v = tensor.extract %i[] : tensor<i64>
      %k = arith.index_cast %v : i64 to index
      %s = tensor.extract_slice %c[%k] [2] [1] : tensor<3xf32> to tensor<2xf32>
      %e = tensor.cast %s : tensor<2xf32> to tensor<?xf32>
      return %d, %d, %e : tensor<?xf32>, tensor<?xf32>, tensor<?xf32>
    }
    """,
        [np.array(1)],
        [[1, 2, 3], [1, 2, 3], [2, 3]],
    ),
    "an input returned twice": (
        """
    func.func @main(%x: tensor<?xf32>, %u: tensor<4xi64>) -> (tensor<?xf32>, tensor<?xf32>) {
      return %x, %x : tensor<?xf32>, tensor<?xf32>
    }
    """,
        [X, np.zeros(4, np.int64)],
        [X, X],
    ),
    "padding": (
        """
    func.func @main(%x: tensor<?xf32>, %n: tensor<i64>) -> tensor<?xf32> {
      %v = tensor.extract %n[] : tensor<i64>
      %k = arith.index_cast %v : i64 to index
      %z = arith.constant 7.0 : f32
      %p = tensor.pad %x low[%k] high[1] {
      ^bb0(%i: index):
        tensor.yield %z : f32
      } : tensor<?xf32> to tensor<?xf32>
      return %p : tensor<?xf32>
    }
    """,
        [X, np.array(2)],
        [[7, 7, 0, 1, 2, 7]],
    ),
    "slices put side by side": (
        """
    func.func @main(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>) -> tensor<?x3xf32> {
      %c0 = arith.constant 0 : index
      %a = tensor.dim %x, %c0 : tensor<?x3xf32>
      %b = tensor.dim %y, %c0 : tensor<?x3xf32>
      %n = arith.addi %a, %b : index
      %e = tensor.empty(%n) : tensor<?x3xf32>
      %1 = tensor.insert_slice %x into %e[0, 0] [%a, 3] [1, 1] : tensor<?x3xf32> into tensor<?x3xf32>
      %2 = tensor.insert_slice %y into %1[%a, 0] [%b, 3] [1, 1] : tensor<?x3xf32> into tensor<?x3xf32>
      return %2 : tensor<?x3xf32>
    }
    """,
        [np.ones((2, 3), np.float32), np.zeros((1, 3), np.float32)],
        [[[1, 1, 1], [1, 1, 1], [0, 0, 0]]],
    ),
    "a shape that is an input": (
        """
    func.func @main(%x: tensor<?xf32>, %s: tensor<2xi64>) -> tensor<?x?xf32> {
      %r = tensor.reshape %x(%s) : (tensor<?xf32>, tensor<2xi64>) -> tensor<?x?xf32>
      return %r : tensor<?x?xf32>
    }
    """,
        [np.arange(6, dtype=np.float32), np.array([2, 3])],
        [[[0, 1, 2], [3, 4, 5]]],
    ),
    "a slice split": (
        """
    func.func @main(%x: tensor<4x6xf32>, %n: tensor<i64>) -> tensor<?x2x2xf32> {
      %v = tensor.extract %n[] : tensor<i64>
      %k = arith.index_cast %v : i64 to index
      %s = tensor.extract_slice %x[1, 1] [%k, 4] [1, 1] : tensor<4x6xf32> to tensor<?x4xf32>
      %e = tensor.expand_shape %s [[0],[1,2]] output_shape [%k, 2, 2] : tensor<?x4xf32> into tensor<?x2x2xf32>
      return %e : tensor<?x2x2xf32>
    }
    """,
        [np.arange(24, dtype=np.float32).reshape(4, 6), np.array(2)],
        [[[[7, 8], [9, 10]], [[13, 14], [15, 16]]]],
    ),
    "one of two inputs": (
        """
    func.func @main(%x: tensor<?xf32>, %y: tensor<?xf32>, %c: tensor<i1>) -> tensor<?xf32> {
      %p = tensor.extract %c[] : tensor<i1>
      %r = scf.if %p -> (tensor<?xf32>) {
        scf.yield %x : tensor<?xf32>
      } else {
        scf.yield %y : tensor<?xf32>
      }
      return %r : tensor<?xf32>
    }
    """,
        [X, X[:2], np.array(False)],
        [X[:2]],
    ),
    "a choice of tensors": (
        """
    func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>, %c: tensor<i1>) -> tensor<4xf32> {
      %p = tensor.extract %c[] : tensor<i1>
      %r = arith.select %p, %x, %y : tensor<4xf32>
      return %r : tensor<4xf32>
    }
    """,
        [np.ones(4, np.float32), np.zeros(4, np.float32), np.array(True)],
        [np.ones(4)],
    ),
}


@pytest.mark.parametrize("name", list(CASES))
def test_forms(name: str) -> None:
    text, inputs, expected = CASES[name]
    results = tw.compile(text, target="cpu", threads=1)(*inputs)
    for mine, other in zip(results, expected, strict=True):
        np.testing.assert_array_equal(mine, np.array(other, np.float32))
        assert not any(np.may_share_memory(mine, given) for given in inputs)


@pytest.mark.parametrize(
    ("kind", "values", "dtype"),
    [
        ("f8E5M2", "1.0, 2.0", ml_dtypes.float8_e5m2),
        ("f4E2M1FN", "1.0, 2.0", ml_dtypes.float4_e2m1fn),
        ("bf16", "1.0, 2.0", ml_dtypes.bfloat16),
        ("i1", "true, false", np.bool_),
        ("complex<f32>", "(1.0, 2.0), (2.0, 0.0)", np.complex64),
    ],
)
def test_constants(kind: str, values: str, dtype: Any) -> None:
    model = tw.compile(ELEMENT.replace("TYPE", kind).replace("VALUES", values), target="cpu", threads=1)
    assert model(np.array(1))[0] == np.array(0 if kind == "i1" else 2, dtype)
