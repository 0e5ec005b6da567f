# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Poolings over windows, over everything and over regions, and MaxUnpool, beside ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from support import check_numbers, check_reference, feeds, node_model

_RANDOM = np.random.default_rng(22)


def random(*shape, dtype=np.float32):
    return _RANDOM.standard_normal(shape).astype(dtype)


def small_numbers(*shape, dtype=np.float32):
    """Few different values, so that there are equal maxima."""
    return _RANDOM.integers(0, 4, shape).astype(dtype)


def run(op, *inputs, **options):
    model = node_model(op, inputs, **options)
    return check_numbers(model, feeds(model, inputs))


WINDOWS = [
    {"kernel_shape": [2, 3]},
    {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1]},
    {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1},
    {"kernel_shape": [2, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"},
    {"kernel_shape": [2, 3], "auto_pad": "SAME_LOWER"},
]


@pytest.mark.parametrize("attributes", [*WINDOWS, {"kernel_shape": [2, 2], "dilations": [3, 2]}])
@pytest.mark.parametrize("columns", [0, 1])
def test_places_of_maxima(attributes, columns):
    run("MaxPool", small_numbers(2, 3, 8, 7), outputs=2, storage_order=columns, **attributes)


def test_places_of_maxima_of_one_and_three_dimensions():
    run("MaxPool", small_numbers(2, 3, 9), outputs=2, kernel_shape=[3], strides=[2], pads=[1, 1])
    run("MaxPool", small_numbers(2, 2, 4, 5, 3), outputs=2, kernel_shape=[2, 2, 2], strides=[1, 2, 1])


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float64])
def test_maxima_of_other_types(dtype):
    x = (_RANDOM.integers(0, 256, (1, 2, 5, 6)) - (0 if dtype == np.uint8 else 128)).astype(dtype)
    run("MaxPool", x, kernel_shape=[3, 3], pads=[1, 1, 1, 1])


@pytest.mark.parametrize("attributes", [*WINDOWS, {"kernel_shape": [2, 2], "dilations": [3, 2]}])
@pytest.mark.parametrize("include", [0, 1])
def test_average(attributes, include):
    if "ceil_mode" in attributes and include:  # ONNX Runtime counts what lies behind the padding
        model = node_model("AveragePool", [random(1, 2, 8, 7)], opset=19, count_include_pad=1, **attributes)
        x = random(1, 2, 8, 7)
        check_reference(model, feeds(model, [x]))
    else:
        run("AveragePool", random(2, 3, 8, 7), opset=19, count_include_pad=include, **attributes)


@pytest.mark.parametrize("attributes", WINDOWS)
@pytest.mark.parametrize("p", [1, 2, 3])
def test_norm_of_windows(attributes, p):
    run("LpPool", random(2, 3, 8, 7), opset=18, p=p, **attributes)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_norm_of_everything(p):
    run("GlobalLpPool", random(2, 3, 4, 5), p=p)


def test_means_of_narrow_floats_are_exact():
    x = np.full((1, 1, 80, 80), 1.5, np.float16)
    model = node_model("GlobalAveragePool", [x])
    check_reference(model, feeds(model, [x]))


@pytest.mark.parametrize("shape", [None, [1, 2, 8, 9]])
@pytest.mark.parametrize("known", [[], [2]])
def test_unpool(shape, known):
    x = random(1, 2, 3, 4)
    flat = np.stack([_RANDOM.permutation(48)[:12] + 48 * c for c in range(2)]).reshape(1, 2, 3, 4)
    inputs = [x, flat.astype(np.int64)] + ([] if shape is None else [np.array(shape)])
    model = node_model("MaxUnpool", inputs, known=known if shape else [], kernel_shape=[2, 2], strides=[2, 2])
    check_reference(model, feeds(model, inputs))


ROIS = np.float32([[0, 0, 5.3, 6.2], [1.5, 2.25, 3, 4], [2, 2, 2, 2], [-3, -2, 12, 14]])
BATCH = np.array([0, 1, 1, 0])


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("ratio", [0, 1, 2])
@pytest.mark.parametrize("opset", [10, 16])
def test_aligned_regions(mode, ratio, opset):
    options = {"mode": mode, "sampling_ratio": ratio, "output_height": 3, "output_width": 2, "spatial_scale": 0.75}
    run("RoiAlign", random(2, 3, 7, 9), ROIS, BATCH, opset=opset, **options)


@pytest.mark.parametrize("scale", [1.0, 0.5])
def test_maxima_of_regions(scale):
    rois = np.concatenate([BATCH[:, None], np.abs(ROIS)], axis=1).astype(np.float32)
    run("MaxRoiPool", random(2, 3, 7, 9), rois, pooled_shape=[3, 2], spatial_scale=scale)
