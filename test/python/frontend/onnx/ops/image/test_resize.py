# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Resize and Upsample beside ONNX Runtime and onnx's reference, their parameters known and unknown."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from support import check_numbers, check_reference, feeds, node_model

_RANDOM = np.random.default_rng(23)
COORDINATES = ["half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel", "half_pixel_symmetric"]


def random(*shape, dtype=np.float32):
    return _RANDOM.standard_normal(shape).astype(dtype)


def sizes(*values):
    return np.array(values, np.int64)


def scales(*values):
    return np.array(values, np.float32)


def model_of(x, *inputs, known, opset=19, shape="inferred", **attributes):
    """Resize; `shape` is what the model declares for the result."""
    model = node_model("Resize", [x, *inputs], known=known, opset=opset, **attributes)
    if shape != "inferred":
        model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y0", 1, shape))
    return model


def by_sizes(x, out, *, known=True, check=check_reference, shape="inferred", **attributes):
    inputs = [x, None, None, sizes(*out)]
    model = model_of(*inputs, known=[3] if known else [], shape=shape, **attributes)
    return check(model, feeds(model, inputs), 1e-4, 1e-5)


def by_scales(x, factors, *, known=True, check=check_reference, shape="inferred", **attributes):
    inputs = [x, None, scales(*factors)]
    model = model_of(*inputs, known=[2] if known else [], shape=shape, **attributes)
    return check(model, feeds(model, inputs), 1e-4, 1e-5)


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_nearest(coordinates, rounding):
    options = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
    by_sizes(random(1, 2, 5, 6), (1, 2, 7, 4), **options)
    by_scales(random(1, 2, 4, 6), (1, 1, 2.0, 0.5), **options)


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("exclude", [0, 1])
def test_interpolation(coordinates, mode, exclude):
    options = {"coordinate_transformation_mode": coordinates, "mode": mode, "exclude_outside": exclude}
    by_sizes(random(1, 2, 5, 6), (1, 2, 8, 4), **options)
    by_scales(random(2, 3, 4, 6), (1, 1, 1.6, 0.7), **options)


@pytest.mark.parametrize("coordinates", COORDINATES[:4])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_beside_onnx_runtime(coordinates, mode):
    options = {"coordinate_transformation_mode": coordinates, "mode": mode, "opset": 13, "check": check_numbers}
    by_sizes(random(1, 2, 5, 6), (1, 2, 10, 12), **options)
    by_sizes(random(1, 1, 6, 8), (1, 1, 3, 5), **options)


@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("factors", [(1, 1, 0.6, 0.6), (1, 1, 0.23, 1.5)])
@pytest.mark.parametrize("known", [True, False])
def test_antialias(mode, factors, known):
    shape = [1, 2, *(int(n * np.float32(f)) for n, f in zip((11, 12), factors[2:], strict=True))]
    by_scales(random(1, 2, 11, 12), factors, known=known, shape=shape, mode=mode, antialias=1)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("shape", [[1, 2, 6, 3], None])
def test_parameters_known_at_run_time_only(mode, shape):
    x = random(1, 2, 4, 6)
    by_scales(x, (1, 1, 1.7, 0.55), known=False, shape=shape, mode=mode)
    by_sizes(x, (1, 2, 6, 3), known=False, shape=shape, mode=mode)


@pytest.mark.parametrize("policy", ["stretch", "not_larger", "not_smaller"])
@pytest.mark.parametrize("known", [True, False])
def test_axes_and_policies(policy, known):
    out = {"stretch": [1, 2, 7, 8], "not_larger": [1, 2, 5, 8], "not_smaller": [1, 2, 7, 11]}[policy]
    shape = None if known else out
    options = {"axes": [3, 2], "keep_aspect_ratio_policy": policy, "opset": 18}
    by_sizes(random(1, 2, 4, 6), (8, 7), known=known, shape=shape, **options)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("known", [[1, 3], []])
def test_crop(mode, known):
    inputs = [random(1, 1, 4, 5), scales(0, 0, 0.4, 0.6, 1, 1, 1.2, 0.9), None, sizes(1, 1, 3, 4)]
    options = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 9.0, "mode": mode}
    model = model_of(*inputs, known=known, shape=[1, 1, 3, 4], **options)
    check_reference(model, feeds(model, inputs))


def test_other_numbers_of_dimensions():
    by_sizes(random(3, 5), (3, 9), mode="linear")
    by_sizes(random(1, 1, 3, 4, 5), (1, 1, 5, 3, 7), mode="linear")


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8, np.uint8])
def test_other_types(mode, dtype):
    x = _RANDOM.integers(0, 100, (1, 1, 4, 4)).astype(dtype)
    inputs = [x, None, scales(1, 1, 2, 2)]
    model = model_of(*inputs, known=[2], mode=mode)
    check_reference(model, feeds(model, inputs), 1e-3)


def test_multiples_are_broadcasts():
    options = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    imported = by_scales(random(1, 2, 4, 6), (1, 1, 2, 3), **options)
    assert "tensor.extract " not in str(imported.module)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("known", [[1], []])
def test_older_opsets(mode, known):
    x, factors = random(1, 2, 4, 6), scales(1, 1, 2, 3)
    for op, opset in (("Upsample", 9), ("Resize", 10)):
        model = node_model(op, [x, factors], known=known, opset=opset, mode=mode)
        check_numbers(model, feeds(model, [x, factors]))
    model = node_model("Upsample", [x], opset=7, mode=mode, scales=[1.0, 1.0, 2.0, 3.0])
    check_numbers(model, feeds(model, [x]))


def test_shrinking_by_opset_10():
    x, factors = random(1, 2, 4, 6), scales(1, 1, 0.6, 0.4)
    model = node_model("Resize", [x, factors], known=[1], opset=10)
    check_numbers(model, feeds(model, [x, factors]))
