# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Determinants beside ONNX Runtime and NumPy; matrix products of all types."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from support import check_numbers, compare, feeds, import_onnx, interpret, node_model

from tilewright.core.errors import UserError

_RANDOM = np.random.default_rng(13)


def run(op, *inputs, **options):
    model = node_model(op, inputs, **options)
    return interpret(import_onnx(model), feeds(model, inputs))


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (3, 3), (8, 8), (3, 4, 4), (2, 3, 5, 5), (2, 1, 1), (1, 6, 6)])
def test_det(shape):
    x = _RANDOM.standard_normal(shape).astype(np.float32)
    model = node_model("Det", [x])
    check_numbers(model, feeds(model, [x]), rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    "matrix",
    [
        [[0, 1], [1, 0]],
        [[0, 0, 1], [0, 1, 0], [1, 0, 0]],
        [[1, 2], [2, 4]],
        [[0, 0], [0, 0]],
        [[0, 2, 1], [3, 0, 5], [1, 4, 0]],
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_det_pivots(matrix, dtype):
    x = np.array(matrix, dtype)
    (y,) = run("Det", x)
    assert y.dtype == dtype
    np.testing.assert_allclose(y, np.linalg.det(x.astype(np.float64)), rtol=1e-3, atol=1e-6)


def test_det_of_what_is_not_square():
    with pytest.raises(UserError):
        run("Det", np.zeros((2, 3), np.float32))


TYPES = [np.int32, np.uint32, np.int64, np.uint64, np.float64, np.float16, ml_dtypes.bfloat16]


def matrix(dtype, *shape):
    return _RANDOM.integers(0, 5, shape).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
def test_matmul_types(dtype):
    x, y = matrix(dtype, 2, 3, 4), matrix(dtype, 4, 5)
    compare(run("MatMul", x, y), [(x.astype(np.float64) @ y.astype(np.float64)).astype(dtype)], 0, 0)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize(("alpha", "beta"), [(1.0, 1.0), (0.5, 3.0), (2.0, 0.0)])
def test_gemm_types(dtype, alpha, beta):
    x, y, z = matrix(dtype, 4, 3), matrix(dtype, 5, 4), matrix(dtype, 5)
    product = x.T.astype(np.float64) @ y.T.astype(np.float64) * alpha + z.astype(np.float64) * beta
    compare(run("Gemm", x, y, z, transA=1, transB=1, alpha=alpha, beta=beta), [product.astype(dtype)], 0, 0)


def test_sums_of_narrow_floats_do_not_stall():
    ones = np.ones((1, 5000), np.float16)
    (y,) = run("MatMul", ones, ones.T)
    assert y.item() == 5000.0
