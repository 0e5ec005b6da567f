# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files with images in blocks of channels, as ONNX Runtime's optimizer writes them at its highest level."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from beside import F32, agree, real, run_runtime
from onnx import TensorProto, helper, numpy_helper
from support import interpret, normalize

from tilewright.core.errors import UnsupportedError, UserError
from tilewright.frontend import import_onnx
from tilewright.frontend.onnx.blocked_files import plain_filter

KEY = "nchwc_block"


class Net:
    """A small image network, convolution by convolution."""

    def __init__(self) -> None:
        self.nodes, self.weights = [], []

    def add(self, op, inputs, **attributes):
        name = f"{op.lower()}{len(self.nodes)}"
        self.nodes.append(helper.make_node(op, inputs, [name], **attributes))
        return name

    def conv(self, x, inputs, outputs, size=3, group=1, **attributes):
        names = f"w{len(self.weights)}", f"v{len(self.weights)}"
        arrays = real(outputs, inputs // group, size, size) * F32(0.3), real(outputs)
        self.weights += [numpy_helper.from_array(a, n) for a, n in zip(arrays, names, strict=True)]
        return self.add("Conv", [x, *names], group=group, pads=[size // 2] * 4, **attributes)

    def model(self, *outputs):
        infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs]
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 3, 16, 16])
        graph = helper.make_graph(self.nodes, "net", [x], infos, self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def mixed() -> onnx.ModelProto:
    """Images, depthwise, grouped, 1x1, an addition, pools, whole scales; 20 channels are no whole blocks."""
    net = Net()
    a = net.add("Relu", [net.conv("x", 3, 24, strides=[2, 2])])
    c = net.conv(net.add("Sigmoid", [net.conv(a, 24, 24, group=24)]), 24, 20, 1)
    r = net.add("Relu", [net.add("Add", [c, net.conv(a, 24, 20)])])
    g = net.conv(net.conv(net.add("MaxPool", [r], kernel_shape=[2, 2], strides=[2, 2]), 20, 32), 32, 64, group=2)
    net.weights.append(numpy_helper.from_array(np.array([1, 1, 2, 2], F32), "scales"))
    pooled = net.add("AveragePool", [g], kernel_shape=[2, 2], pads=[1, 1, 0, 0])
    how = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return net.model(
        net.add("GlobalAveragePool", [net.conv(net.add("Resize", [pooled, "", "scales"], **how), 64, 21)]), r
    )


def optimized(model: onnx.ModelProto, folder: Path) -> onnx.ModelProto:
    """What ONNX Runtime's optimizer makes of a model at its highest level."""
    options, path = onnxruntime.SessionOptions(), str(folder / "optimized.onnx")
    options.log_severity_level, options.optimized_model_filepath = 4, path
    onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found = onnx.load(path)
    if not any(node.domain == "com.microsoft.nchwc" for node in found.graph.node):
        pytest.skip("ONNX Runtime has no blocks of channels for this CPU")
    return found


@pytest.mark.parametrize("opens", [False, True])
def test_beside_the_plain_model(tmp_path, opens):
    model, arrays = mixed(), {"x": real(2, 3, 16, 16)}
    shapes = None if opens else {"n": 2}
    imported = import_onnx(optimized(model, tmp_path), shapes=shapes, symbolic=opens)
    agree(interpret(normalize(imported), arrays), run_runtime(model, arrays), atol=1e-3)


@pytest.mark.parametrize("opens", [False, True])
@pytest.mark.parametrize("how", ["half_pixel", "align_corners", "asymmetric"])
def test_interpolated(tmp_path, how, opens):
    net = Net()
    net.weights.append(numpy_helper.from_array(np.array([1, 1, 2, 3], F32), "scales"))
    wide = net.add("Resize", [net.conv("x", 3, 20), "", "scales"], mode="linear", coordinate_transformation_mode=how)
    model, arrays = net.model(net.conv(wide, 20, 5, 1)), {"x": real(2, 3, 16, 16)}
    found = optimized(model, tmp_path)
    assert any(n.op_type == "Upsample" for n in found.graph.node)
    imported = import_onnx(found, shapes=None if opens else {"n": 2}, symbolic=opens)
    agree(interpret(normalize(imported), arrays), run_runtime(model, arrays), atol=1e-3)


def test_size_of_blocks(tmp_path):
    net = Net()
    model = net.model(net.add("Relu", [net.conv(net.conv("x", 3, 16), 16, 32)]))
    found = optimized(model, tmp_path)
    with pytest.raises(UnsupportedError, match="ORT_ENABLE_EXTENDED, or state nchwc_block"):
        import_onnx(found, shapes={"n": 2})
    want = run_runtime(model, arrays := {"x": real(2, 3, 16, 16)})
    errors = []
    for block in (8, 16):
        stated = onnx.ModelProto()
        stated.CopyFrom(found)
        helper.set_model_props(stated, {KEY: str(block)})
        errors.append(np.abs(interpret(import_onnx(stated, shapes={"n": 2}), arrays)[0] - want[0]).max())
    assert min(errors) < 1e-4 < max(errors)
    helper.set_model_props(found, {KEY: "12"})
    with pytest.raises(UserError, match="nchwc_block=12"):
        import_onnx(found)


@pytest.mark.parametrize("block", [8, 16])
def test_filters(block):
    w = real(2 * block, block, 3, 2)
    split = w.reshape(2, block, 1, block, 3, 2)  # o / B, Bo, i / B, Bi, window
    assert np.array_equal(plain_filter(split.transpose(0, 2, 4, 5, 3, 1).reshape(w.shape), block, False), w)
    split = w.reshape(2, block, block, 3, 2)
    assert np.array_equal(plain_filter(split.transpose(0, 2, 3, 4, 1).reshape(w.shape), block, True), w)


def test_blocks_in_a_body_are_refused():
    """Their filters are not made plain, so taking them for plain ones would give wrong numbers."""
    conv = helper.make_node("Conv", ["x", "w"], ["y"], domain="com.microsoft.nchwc")
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    branch = helper.make_graph([conv], "branch", [], [y])
    choice = helper.make_node("If", ["c"], ["z"], then_branch=branch, else_branch=branch)
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 8, 4, 4])]
    inputs.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    outputs = [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)]
    weights = [numpy_helper.from_array(real(8, 8, 1, 1), "w")]
    graph = helper.make_graph([choice], "net", inputs, outputs, weights)
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft.nchwc", 1)]
    with pytest.raises(UnsupportedError, match=r"Conv in a body of If z.*ORT_ENABLE_EXTENDED"):
        import_onnx(helper.make_model(graph, opset_imports=domains, ir_version=8))
