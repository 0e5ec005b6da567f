# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Random numbers: NumPy's RandomState, drawn at compile time or at run time."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from support import compare, feeds, interpret, node_model

from tilewright.frontend import import_onnx
from tilewright.frontend.onnx.ops.tensor import random as operators


@pytest.fixture(params=["compile time", "run time"])
def _when(request, monkeypatch):
    if request.param == "run time":
        monkeypatch.setattr(operators, "FOLD_ELEMENTS", 0)


def run(op, *inputs, **options):
    model = node_model(op, inputs, **options)
    return interpret(import_onnx(model), feeds(model, inputs))


@pytest.mark.usefixtures("_when")
@pytest.mark.parametrize("count", [1, 312, 313, 1000])
def test_uniform(count):
    (got,) = run("RandomUniform", shape=[count], seed=7.0, low=-1.0, high=3.0)
    expected = np.random.RandomState(7).rand(count).astype(np.float32) * 4 - 1
    np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.usefixtures("_when")
@pytest.mark.parametrize("count", [1, 2, 301])
def test_normal(count):
    (got,) = run("RandomNormal", shape=[count, 2], seed=3.0, mean=1.0, scale=0.5, dtype=onnx.TensorProto.DOUBLE)
    np.testing.assert_allclose(got, np.random.RandomState(3).randn(count, 2) * 0.5 + 1, rtol=1e-12)


@pytest.mark.parametrize("op", ["RandomUniformLike", "RandomNormalLike"])
def test_like(op):
    x = np.zeros((3, 4), np.float64)
    (got,) = run(op, x)
    assert got.shape == x.shape
    assert got.dtype == x.dtype
    (again,) = run(op, x)
    np.testing.assert_array_equal(got, again)  # the name of the node is the seed


def test_bernoulli():
    p = np.linspace(0.01, 1, 50)
    (got,) = run("Bernoulli", p, seed=5.0)
    np.testing.assert_array_equal(got, np.random.RandomState(5).binomial(1, p))


def test_multinomial_draws_by_weight():
    x = np.log(np.float32([[0.0, 1, 3, 0], [5, 0, 0, 5]]) + 1e-30)
    (got,) = run("Multinomial", x, sample_size=400, seed=1.0)
    assert got.shape == (2, 400)
    assert got.dtype == np.int32
    shares = np.stack([np.bincount(row, minlength=4) / 400 for row in got])
    np.testing.assert_allclose(shares, [[0, 0.25, 0.75, 0], [0.5, 0, 0, 0.5]], atol=0.06)


def dropped(x, ratio, seed):
    mask = np.random.RandomState(seed).uniform(0, 1, x.shape) >= ratio
    return [(mask * x / (1 - ratio)).astype(x.dtype), mask]


@pytest.mark.parametrize("known", [[1, 2], []], ids=["known", "run time"])
@pytest.mark.parametrize("training", [True, False])
def test_dropout(known, training):
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    got = run("Dropout", x, np.float32(0.3), np.array(training), known=known, outputs=2, seed=4)
    compare(got, dropped(x, np.float32(0.3), 4) if training else [x, np.ones((4, 6), bool)], 1e-6, 0)


@pytest.mark.parametrize(("opset", "dtype"), [(7, np.float32), (10, np.bool_)])
def test_dropout_before_training_mode(opset, dtype):
    x = np.float32([1, 2])
    compare(run("Dropout", x, outputs=2, opset=opset, ratio=0.9), [x, np.ones(2, dtype)], 0, 0)
