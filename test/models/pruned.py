# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pruned models: whole heads and channels drawn at random, or any pattern by magnitude; their dense twins."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper

import tilewright as tw

#: What stands in for zeros where a dense twin is wanted: too small to be seen in a result, and no denormal number.
TINY = 1e-15


def _zero(tensor: onnx.TensorProto, indices: np.ndarray) -> None:
    """Put zeros in the place of slices along the first axis."""
    array = numpy_helper.to_array(tensor).copy()
    array[indices] = 0
    tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))


def _drawn(random: np.random.Generator, count: int, part: float) -> np.ndarray:
    return random.permutation(count)[: round(count * part)]


def prune_encoder(model: onnx.ModelProto, part: float, heads: int, seed: int = 0) -> onnx.ModelProto:
    """Zeros for a part of the heads, and of the channels between both products of a layer, of an encoder of `bert.py`.

    Only rows of what reads them are zero (`attention.output.dense`, `output.dense`): what makes them keeps its numbers.
    """
    random = np.random.default_rng(seed)
    for tensor in model.graph.initializer:
        if tensor.name.endswith("attention.output.dense"):
            rows = np.arange(tensor.dims[0]).reshape(heads, -1)
            _zero(tensor, rows[_drawn(random, heads, part)].reshape(-1))
        elif tensor.name.endswith("output.dense"):
            _zero(tensor, _drawn(random, tensor.dims[0], part))
    return model


def prune_channels(model: onnx.ModelProto, part: float, seed: int = 0) -> onnx.ModelProto:
    """Zeros for a part of the channels that each convolution makes: its filters, and what normalizes them."""
    random = np.random.default_rng(seed)
    weights = {tensor.name: tensor for tensor in model.graph.initializer}
    norms = {node.input[0]: node for node in model.graph.node if node.op_type == "BatchNormalization"}
    for node in model.graph.node:
        norm = norms.get(node.output[0])
        if node.op_type != "Conv" or norm is None:
            continue
        dead = _drawn(random, weights[node.input[1]].dims[0], part)
        for name in (node.input[1], norm.input[1], norm.input[2]):
            _zero(weights[name], dead)
    return model


def pruned(model: onnx.ModelProto, pattern: str) -> onnx.ModelProto:
    """The model with a pattern of `tw.sparsify`, by magnitude, in the layers that are pruned by default."""
    return tw.sparsify(model, pattern, measure=False).model


def filled(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy whose weights of f32 hold no zeros but `TINY` numbers: the same results, and nothing that can be left out.

    Scalars and weights of other types stay as they are.
    """
    twin = onnx.ModelProto()
    twin.CopyFrom(model)
    for tensor in twin.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT and len(tensor.dims) > 0:
            tensor.CopyFrom(numpy_helper.from_array(filled_array(numpy_helper.to_array(tensor)), tensor.name))
    return twin


def filled_array(array: np.ndarray) -> np.ndarray:
    """An array of floats with `TINY` in place of zeros; any other array as it is."""
    return np.where(array == 0, np.float32(TINY), array) if array.dtype == np.float32 else array
