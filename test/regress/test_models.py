# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Models that once failed, each as small as it could be made."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import tilewright as tw


def check(nodes: list, shapes: dict[str, list[int]], constants: dict[str, list[int]]) -> None:
    """Compile a graph of float inputs with the output `y`, and compare with ONNX Runtime."""
    inputs = [helper.make_tensor_value_info(name, 1, shape) for name, shape in shapes.items()]
    known = [numpy_helper.from_array(np.array(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "case", inputs, [helper.make_tensor_value_info("y", 1, None)], known)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    choose = np.random.default_rng(0)
    feeds = {name: choose.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    expected = np.asarray(onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)[0])
    np.testing.assert_allclose(tw.compile(model)(**feeds)[0], expected, rtol=1e-4, atol=1e-5)


def test_a_slice_seen_in_another_shape() -> None:
    """Heads of a fused query-key-value product: the kernel got a strided buffer for a contiguous one."""
    nodes = [
        helper.make_node("Split", ["x"], ["q", "k", "v"], num_outputs=3, axis=2),
        helper.make_node("Reshape", ["q", "heads"], ["q4"]),
        helper.make_node("Reshape", ["k", "heads"], ["k4"]),
        helper.make_node("Mul", ["q4", "k4"], ["y"]),
    ]
    check(nodes, {"x": [10, 2, 96]}, {"heads": [10, 2, 4, 8]})


def test_blocks_of_rows_that_no_panel_divides() -> None:
    """Long attention: tasks of 48 rows started inside of panels of 32, and read past their end."""
    nodes = [
        helper.make_node("Transpose", ["k"], ["kt"], perm=[1, 0]),
        helper.make_node("MatMul", ["q", "kt"], ["s"]),
        helper.make_node("Softmax", ["s"], ["p"], axis=-1),
        helper.make_node("MatMul", ["p", "v"], ["y"]),
    ]
    check(nodes, {"q": [2048, 64], "k": [2048, 64], "v": [2048, 64]}, {})


def _depthwise_then_points() -> onnx.ModelProto:
    """A window over each of 144 channels of a padded image, then 24 sums of all channels: a part of MobileNetV2."""
    choose = np.random.default_rng(1)
    weights = [choose.standard_normal(shape, np.float32) / 10 for shape in ((144, 1, 3, 3), (24, 144, 1, 1))]
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["h"], group=144, pads=[1] * 4),
        helper.make_node("Conv", ["h", "v"], ["y"]),
    ]
    inputs = [helper.make_tensor_value_info("x", 1, [1, 144, 56, 56])]
    known = [numpy_helper.from_array(value, name) for value, name in zip(weights, "wv", strict=True)]
    graph = helper.make_graph(nodes, "case", inputs, [helper.make_tensor_value_info("y", 1, None)], known)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a"])
def test_an_image_padded_in_the_kernel_is_not_made_in_blocks(arch: str) -> None:
    """Channels of the window were to run in blocks on sm_90a, and the kernel pads all of them: tile-apply-online."""
    assert tw.compile(_depthwise_then_points(), target=f"cuda:{arch}", emulate=True).inputs[0].name == "x"


@pytest.mark.slow
def test_an_image_padded_in_the_kernel_gives_the_right_numbers() -> None:
    """The same on the emulator."""
    model = _depthwise_then_points()
    x = np.random.default_rng(0).standard_normal((1, 144, 56, 56), np.float32)
    expected = np.asarray(onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0])
    ours = tw.compile(model, target="cuda:sm_90a", emulate=True)(x)[0]
    np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-5)
