# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model in f32 as ONNX Runtime's tools quantize it."""

from __future__ import annotations

import logging
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from ._inputs import random_inputs


class _Inputs:
    """Two sets of random inputs, to calibrate with."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._sets = iter([random_inputs(model, seed=seed) for seed in (1, 2)])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._sets, None)


def quantized_by(model: onnx.ModelProto, way: str) -> onnx.ModelProto:
    """A copy of `model` with bytes in its products.

    Args:
        model: in f32, with sizes that are known.
        way: `static` (QuantizeLinear and DequantizeLinear around everything, or products alone where there is no
            convolution; bytes of weights per channel) or `dynamic`
            (DynamicQuantizeLinear and MatMulInteger).
    """
    from onnxruntime.quantization import CalibrationDataReader, QuantType, quantize_dynamic, quantize_static

    class Reader(_Inputs, CalibrationDataReader):
        pass

    logging.getLogger().setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder:
        plain, done = Path(folder) / "plain.onnx", Path(folder) / "done.onnx"
        plain.write_bytes(model.SerializeToString())
        if way == "dynamic":
            quantize_dynamic(plain, done, weight_type=QuantType.QInt8)
        elif way == "static":
            types = dict(activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8)
            # Without images there are masks, whose steps of 39 would leave nothing of what they are added to.
            images = any(node.op_type == "Conv" for node in model.graph.node)
            kinds = None if images else ["MatMul", "Gemm"]
            quantize_static(plain, done, Reader(model), per_channel=True, op_types_to_quantize=kinds, **types)
        else:
            raise ValueError(f"quantized_by: way must be 'static' or 'dynamic', got {way!r}")
        return onnx.load(done)


def blocked(model: onnx.ModelProto, kind: str = "int4", block: int = 32) -> onnx.ModelProto:
    """A copy of `model` whose constant operands of MatMul are small integers with a scale for each `block` of a column.

    Args:
        model: of opset 21 or later.
        kind: `int4` or `int8`.
        block: rows of a weight that share scales; weights whose rows are no multiple of it stay.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    graph, nodes = copy.graph, list[onnx.NodeProto]()
    weights = {t.name: t for t in graph.initializer}
    levels, number = (7, onnx.TensorProto.INT4) if kind == "int4" else (127, onnx.TensorProto.INT8)
    for node in list(graph.node):
        found = weights.get(node.input[1]) if node.op_type == "MatMul" else None
        if found is not None and len(found.dims) == 2 and not found.dims[0] % block:
            array = numpy_helper.to_array(found)
            parts = array.reshape(-1, block, array.shape[1])
            scales = np.maximum(np.abs(parts).max(1) / np.float32(levels), np.float32(1e-8))
            steps = np.rint(parts / scales[:, None]).astype(np.int8).reshape(array.shape)
            name = found.name
            graph.initializer.remove(found)
            graph.initializer.append(helper.make_tensor(f"{name}.steps", number, steps.shape, steps.flatten()))
            graph.initializer.append(numpy_helper.from_array(scales.astype(np.float32), f"{name}.scales"))
            inputs = [f"{name}.steps", f"{name}.scales"]
            nodes.append(helper.make_node("DequantizeLinear", inputs, [name], f"/{name}", axis=0, block_size=block))
        nodes.append(node)
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.checker.check_model(copy)
    return copy
