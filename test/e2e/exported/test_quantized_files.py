# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Files that ONNX Runtime's quantizer writes, compiled for open batches, beside ONNX Runtime without its optimizer.

Weights have 7 bits (reduce_range): on CPUs without VNNI ONNX Runtime's kernels saturate sums of pairs in 16 bits.
"""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import tilewright as tw

quantization = pytest.importorskip("onnxruntime.quantization")
_RANDOM = np.random.default_rng(23)
F32 = np.float32


def weight(name: str, *shape: int) -> onnx.TensorProto:
    scale = 1 / np.sqrt(np.prod(shape[1:]) or 1)
    return numpy_helper.from_array((_RANDOM.standard_normal(shape) * scale).astype(F32), name)


def model(name: str, rows: list[str], weights: list[onnx.TensorProto], shape: list, out: list, **attributes):
    """A graph from "op inputs -> outputs" rows; attributes by operator."""
    nodes = []
    for number, row in enumerate(rows):
        left, _, outputs = row.partition(" -> ")
        op, *inputs = left.split()
        inputs = ["" if i == "_" else i for i in inputs]
        given = attributes.get(op, {})
        nodes.append(helper.make_node(op, inputs, outputs.split(), name=f"{op}_{number}", **given))
    graph = helper.make_graph(
        nodes,
        name,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, out)],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def layers() -> onnx.ModelProto:
    weights = [weight("v", 32, 48), weight("a", 48), weight("w", 48, 10), weight("b", 10)]
    rows = ["Gemm x v a -> h", "Relu h -> r", "MatMul r w -> p", "Add p b -> y"]
    return model("layers", rows, weights, ["batch", 32], ["batch", 10])


def image() -> onnx.ModelProto:
    rows = [
        "Conv x v a -> c",
        "Relu c -> r",
        "Conv r w b -> d",
        "LeakyRelu d -> l",
        "Add l r -> s",
        "AveragePool s -> p",
        "MaxPool s -> q",
        "Sigmoid p -> g",
        "Mul g q -> m",
        "Concat m p -> n",
        "GlobalAveragePool n -> o",
        "Flatten o -> f",
        "Gemm f u t -> z",
        "Softmax z -> y",
    ]
    weights = [weight("v", 8, 3, 3, 3), weight("a", 8), weight("w", 8, 8, 3, 3), weight("b", 8)]
    weights += [weight("u", 16, 5), weight("t", 5)]
    windows = {"kernel_shape": [2, 2], "strides": [2, 2]}
    attributes = {"Conv": {"pads": [1] * 4}, "AveragePool": windows, "MaxPool": windows, "Concat": {"axis": 1}}
    return model("image", rows, weights, ["batch", 3, 8, 8], ["batch", 5], **attributes)


def recurrent() -> onnx.ModelProto:
    rows = ["LSTM x w r b -> h", "Squeeze h one -> s", "MatMul s u -> y"]
    weights = [weight("w", 1, 64, 12), weight("r", 1, 64, 16), weight("b", 1, 128), weight("u", 16, 5)]
    weights.append(numpy_helper.from_array(np.array([1]), "one"))
    return model("recurrent", rows, weights, [7, "batch", 12], [7, "batch", 5], LSTM={"hidden_size": 16})


class Samples(quantization.CalibrationDataReader):
    """Random inputs."""

    def __init__(self, shape: list[int]) -> None:
        self.rows = iter([{"x": _RANDOM.standard_normal(shape).astype(F32)} for _ in range(4)])

    def get_next(self):
        return next(self.rows, None)


def quantized(made: onnx.ModelProto, way: str, folder: Path) -> Path:
    """The model as the quantizer writes it."""
    before, after = folder / "before.onnx", folder / "after.onnx"
    onnx.save(made, before)
    kinds = quantization.QuantType
    kind = kinds.QUInt8 if way.endswith("channels") else kinds.QInt8
    options = {"per_channel": way.endswith("channels"), "weight_type": kind, "reduce_range": True}
    logging.disable(logging.WARNING)
    try:
        if way.startswith("dynamic"):
            quantization.quantize_dynamic(before, after, **options)
        else:
            form = quantization.QuantFormat.QDQ if way.startswith("QDQ") else quantization.QuantFormat.QOperator
            shape = [d.dim_value or 2 for d in made.graph.input[0].type.tensor_type.shape.dim]
            more = {"quant_format": form, "activation_type": kinds.QUInt8}
            quantization.quantize_static(before, after, Samples(shape), **more, **options)
    finally:
        logging.disable(logging.NOTSET)
    return after


def check(made: onnx.ModelProto, way: str, folder: Path) -> set[str]:
    """Compiled once for all batches; at most some steps of a code away. Returns the operators of the file."""
    path = quantized(made, way, folder)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    compiled = tw.compile(path, threads=1)
    assert compiled.save(folder / "saved.tw")
    for batch in (1, 3):
        shape = [d.dim_value or batch for d in made.graph.input[0].type.tensor_type.shape.dim]
        x = _RANDOM.standard_normal(shape).astype(F32)
        want = np.asarray(session.run(None, {"x": x})[0])
        difference = np.abs(compiled(x)[0] - want) / np.abs(want).max()
        assert difference.max() < 0.03 and np.median(difference) < 0.003
    return {node.op_type for node in onnx.load(path).graph.node}


def test_operators_on_codes(tmp_path):
    assert "QGemm" in check(layers(), "QOperator", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["QDQ", "QDQ, channels", "QOperator, channels", "dynamic", "dynamic, channels"])
def test_layers(way, tmp_path):
    check(layers(), way, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("way", ["QDQ", "QOperator", "QOperator, channels", "dynamic, channels"])
def test_images(way, tmp_path):
    found = check(image(), way, tmp_path)
    assert {"QLinearConv", "QLinearConcat", "QLinearSigmoid"} <= found or not way.startswith("QOperator")


@pytest.mark.slow
@pytest.mark.parametrize("way", ["dynamic, channels", "QDQ"])
def test_sequences(way, tmp_path):
    assert ("DynamicQuantizeLSTM" in check(recurrent(), way, tmp_path)) == way.startswith("dynamic")
