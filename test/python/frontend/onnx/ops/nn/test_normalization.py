# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Normalizations with all their results and options, beside ONNX Runtime and onnx's reference."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator
from support import check_numbers, check_reference, check_values, feeds, node_model

_RANDOM = np.random.default_rng(25)


def random(*shape, dtype=np.float32):
    return _RANDOM.standard_normal(shape).astype(dtype)


def run(op, *inputs, check=check_numbers, **options):
    model = node_model(op, inputs, **options)
    return check(model, feeds(model, inputs))


def statistics(channels, dtype=np.float32):
    return [random(channels, dtype=dtype) for _ in range(3)] + [np.abs(random(channels, dtype=dtype)) + 0.1]


@pytest.mark.parametrize("opset", [14, 15])
def test_batch_norm_training(opset):
    options = {"training_mode": 1, "momentum": 0.75, "epsilon": 1e-3, "outputs": 3, "opset": opset}
    run("BatchNormalization", random(4, 3, 5, 2), *statistics(3), check=check_reference, **options)


def test_batch_norm_training_of_opset_9():
    x, (scale, shift, mean, variance) = random(4, 3, 5), statistics(3)
    model = node_model("BatchNormalization", [x, scale, shift, mean, variance], opset=9, outputs=5, momentum=0.75)
    saved = [f(x, axis=(0, 2)) for f in (np.mean, np.var)]
    y = (x - saved[0][:, None]) / np.sqrt(saved[1][:, None] + 1e-5) * scale[:, None] + shift[:, None]
    running = [old * 0.75 + new * 0.25 for old, new in zip((mean, variance), saved, strict=True)]
    check_values(model, feeds(model, [x, scale, shift, mean, variance]), [y, *running, *saved])


@pytest.mark.parametrize("dtype", [np.float16, np.float64])
def test_batch_norm_of_other_types(dtype):
    run("BatchNormalization", random(2, 3, 4, dtype=dtype), *statistics(3, dtype), check=_loose, opset=15)


def _loose(model, arrays):
    return check_reference(model, arrays, 1e-2, 1e-2)


@pytest.mark.parametrize("axis", [-1, 1, 0])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_layer_norm_with_statistics(axis, dtype):
    x = random(2, 3, 4).astype(dtype)
    scale, shift = random(*x.shape[axis:]).astype(dtype), random(*x.shape[axis:]).astype(dtype)
    exact = [v.astype(np.float32) for v in (x, scale, shift)]
    model = node_model("LayerNormalization", exact, outputs=3, axis=axis)
    expected = [np.asarray(v) for v in ReferenceEvaluator(model).run(None, feeds(model, exact))]
    expected[0] = expected[0].astype(dtype)
    model = node_model("LayerNormalization", [x, scale, shift], outputs=3, axis=axis)
    tolerance = 1e-4 if dtype == np.float32 else 1e-2
    check_values(model, feeds(model, [x, scale, shift]), expected, tolerance, tolerance)


@pytest.mark.parametrize("axis", [-1, 1])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_rms_norm(axis, dtype):
    x = random(2, 3, 8, dtype=dtype)
    run("RMSNormalization", x, random(*x.shape[axis:], dtype=dtype), check=_loose, opset=23, axis=axis)


@pytest.mark.parametrize("shape", [(2, 6), (2, 6, 4), (1, 6, 2, 3, 2)])
def test_group_norm(shape):
    options = {"num_groups": 3, "epsilon": 0.05, "opset": 21}
    run("GroupNormalization", random(*shape), random(6), random(6), check=check_reference, **options)


@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_lp_norm(p, axis):
    x = random(3, 4, 5)
    x[1] = 0
    expected = np.abs(x).sum(axis, keepdims=True) if p == 1 else np.sqrt((x * x).sum(axis, keepdims=True))
    model = node_model("LpNormalization", [x], p=p, axis=axis, opset=22)
    y = np.divide(x, expected, out=np.zeros_like(x), where=expected != 0)
    check_values(model, feeds(model, [x]), [y])


@pytest.mark.parametrize("axes", [None, [0, 2], [1]])
def test_mean_variance_norm(axes):
    options = {} if axes is None else {"axes": axes}
    run("MeanVarianceNormalization", random(3, 4, 5, 2), check=check_reference, opset=13, **options)


@pytest.mark.parametrize("size", [1, 3, 5])
@pytest.mark.parametrize("channels", [1, 4])
def test_local_response_norm(size, channels):
    run("LRN", random(2, channels, 3, 4), size=size, alpha=0.01, beta=0.6, bias=2.0)
    run("LRN", random(2, channels, 5, 1), size=size)


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax_of_many_narrow_floats(op):
    x = np.zeros((2, 70000), np.float16)
    share = 1 / 70000
    y = np.full(x.shape, share if op == "Softmax" else np.log(share), np.float16)
    model = node_model(op, [x], opset=13)
    check_values(model, feeds(model, [x]), [y])
