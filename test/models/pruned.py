# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Coarse pruning of models: whole heads and channels of their weights are zero, drawn at random."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper


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
