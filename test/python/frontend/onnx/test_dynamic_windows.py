# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Convolutions, poolings, normalizations and sampling of tensors whose size is known at run time only."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from support import check_numbers

_RANDOM = np.random.default_rng(28)


def random(*shape):
    return _RANDOM.standard_normal(shape).astype(np.float32)


CASES = {
    "Conv": ([random(6, 4, 3, 3), random(6)], {"pads": [1, 1, 1, 1], "strides": [2, 1]}),
    "grouped Conv": ([random(8, 2, 3, 3)], {"group": 2, "auto_pad": "SAME_UPPER"}),
    "ConvTranspose": ([random(4, 3, 3, 3), random(3)], {"strides": [2, 1], "pads": [1, 0, 1, 0]}),
    "MaxPool": ([], {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 0]}),
    "AveragePool": ([], {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 0]}),
    "LpPool": ([], {"kernel_shape": [3, 2]}),
    "GlobalAveragePool": ([], {}),
    "GlobalMaxPool": ([], {}),
    "BatchNormalization": ([random(4), random(4), random(4), np.abs(random(4)) + 0.1], {}),
    "InstanceNormalization": ([random(4), random(4)], {}),
    "GroupNormalization": ([random(4), random(4)], {"num_groups": 2}),
    "LayerNormalization": ([random(8)], {}),
    "MeanVarianceNormalization": ([], {}),
    "LpNormalization": ([], {"axis": 1}),
    "LRN": ([], {"size": 3}),
    "nearest Resize": ([None, np.float32([1, 1, 2, 1.5])], {}),
    "linear Resize": ([None, np.float32([1, 1, 2, 1.5])], {"mode": "linear"}),
    "Hardmax": ([], {}),
    "Softmax": ([], {"axis": 1}),
}


def model_of(case, axis):
    """The op on those parts of x along `axis` that a mask selects."""
    others, attributes = CASES[case]
    names = ["" if v is None else f"w{i}" for i, v in enumerate(others)]
    nodes = [
        helper.make_node("NonZero", ["mask"], ["places"]),
        helper.make_node("Squeeze", ["places", "first"], ["indices"]),
        helper.make_node("Gather", ["x", "indices"], ["part"], axis=axis),
        helper.make_node(case.split()[-1], ["part", *names], ["y"], **attributes),
    ]
    weights = {"first": np.array([0])} | {n: v for n, v in zip(names, others, strict=True) if v is not None}
    graph = helper.make_graph(
        nodes,
        "dynamic",
        [
            helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [5, 4, 8, 8]),
            helper.make_tensor_value_info("mask", onnx.TensorProto.FLOAT, [5 if axis == 0 else 8]),
        ],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [numpy_helper.from_array(v, n) for n, v in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("axis", [0, 2])
def test_selected_parts(case, axis):
    mask = np.float32([1, 0, 1, 1, 0] if axis == 0 else [1, 0, 1, 1, 1, 0, 1, 1])
    check_numbers(model_of(case, axis), {"x": random(5, 4, 8, 8), "mask": mask})


REGIONS = np.float32([[0, 0, 5.3, 6.2], [1.5, 2.25, 3, 4], [2, 2, 2, 2], [0.5, 1, 7, 7.5], [1, 1, 1.5, 9]])


def regions_model(nodes, weights):
    """The ops on those rows of five that a mask selects."""
    select = [
        helper.make_node("NonZero", ["mask"], ["places"]),
        helper.make_node("Squeeze", ["places", "first"], ["indices"]),
    ]
    graph = helper.make_graph(
        [*select, *nodes],
        "regions",
        [
            helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 3, 8, 9]),
            helper.make_tensor_value_info("mask", onnx.TensorProto.FLOAT, [5]),
        ],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [numpy_helper.from_array(v, n) for n, v in ({"first": np.array([0])} | weights).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize("ratio", [0, 2])
@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("mask", [[1, 0, 1, 1, 1], [0, 0, 0, 1, 0]])
def test_selected_regions(ratio, mode, mask):
    options = {"mode": mode, "sampling_ratio": ratio, "output_height": 3, "output_width": 2}
    nodes = [
        helper.make_node("Gather", ["boxes", "indices"], ["rois"]),
        helper.make_node("Gather", ["images", "indices"], ["batch"]),
        helper.make_node("RoiAlign", ["x", "rois", "batch"], ["y"], **options),
    ]
    model = regions_model(nodes, {"boxes": REGIONS, "images": np.array([0, 1, 1, 0, 1])})
    check_numbers(model, {"x": random(2, 3, 8, 9), "mask": np.float32(mask)})


def test_selected_regions_of_whole_places():
    boxes = np.concatenate([np.float32([[0], [1], [1], [0], [1]]), REGIONS], axis=1)
    nodes = [
        helper.make_node("Gather", ["boxes", "indices"], ["rois"]),
        helper.make_node("MaxRoiPool", ["x", "rois"], ["y"], pooled_shape=[3, 2]),
    ]
    arrays = {"x": random(2, 3, 8, 9), "mask": np.float32([1, 0, 1, 1, 1])}
    check_numbers(regions_model(nodes, {"boxes": boxes}), arrays)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
def test_selected_samples(reduction):
    nodes = [
        helper.make_node("Gather", ["scores", "indices"], ["part"]),
        helper.make_node("Gather", ["labels", "indices"], ["target"]),
        helper.make_node("SoftmaxCrossEntropyLoss", ["part", "target"], ["y"], reduction=reduction),
    ]
    weights = {"scores": random(5, 4, 3), "labels": _RANDOM.integers(0, 4, (5, 3))}
    arrays = {"x": random(2, 3, 8, 9), "mask": np.float32([1, 0, 1, 1, 1])}
    check_numbers(regions_model(nodes, weights), arrays)
