# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model with the weights of its products in 4 bits, as ONNX Runtime's quantizer writes it (MatMulNBits)."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

_BLOCK = 32


def quantized(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy whose products with weights [inputs, outputs] read codes of 4 bits, with a scale for each 32 inputs."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    weights = {tensor.name: tensor for tensor in copy.graph.initializer}
    nodes = []
    for node in copy.graph.node:
        tensor = weights.get(node.input[1]) if node.op_type == "MatMul" else None
        if tensor is None or len(tensor.dims) != 2 or tensor.dims[0] % _BLOCK:
            nodes.append(node)
            continue
        codes, scales = _codes(numpy_helper.to_array(tensor))
        names = [f"{tensor.name}.codes", f"{tensor.name}.scales"]
        if names[0] not in weights:
            for name, array in zip(names, (codes, scales), strict=True):
                weights[name] = numpy_helper.from_array(array, name)
        sizes = {"K": tensor.dims[0], "N": tensor.dims[1], "bits": 4, "block_size": _BLOCK}
        inputs = [node.input[0], *names]
        nodes.append(
            helper.make_node("MatMulNBits", inputs, list(node.output), node.name, domain="com.microsoft", **sizes)
        )
    read = {name for node in nodes for name in node.input}
    del copy.graph.node[:], copy.graph.initializer[:]
    copy.graph.node.extend(nodes)
    copy.graph.initializer.extend(tensor for name, tensor in weights.items() if name in read)
    copy.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return copy


def _codes(weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes [outputs, blocks, 16], two in a byte, and scales [outputs * blocks]: a weight is (code - 8) * scale."""
    blocks = weight.T.reshape(weight.shape[1], -1, _BLOCK)
    scales = np.abs(blocks).max(-1) / 7
    codes = np.clip(np.rint(blocks / np.where(scales == 0, 1, scales)[..., None]) + 8, 0, 15).astype(np.uint8)
    return codes[..., ::2] | codes[..., 1::2] << 4, scales.reshape(-1).astype(np.float32)
