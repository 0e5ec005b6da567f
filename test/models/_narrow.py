# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model in f32 as exporters write it with half weights: everything of a 16-bit float type."""

from __future__ import annotations

from collections.abc import Iterator

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def narrowed(model: onnx.ModelProto, floats: str) -> onnx.ModelProto:
    """A copy of `model` whose f32 inputs, results, weights, constants and casts are of type `floats`.

    Numbers out of the type's range (the very negative ones of masks) become its largest ones.

    Args:
        model: a graph, possibly with graphs inside, without functions.
        floats: a NumPy or ml_dtypes name: float16, bfloat16.
    """
    dtype = np.dtype(getattr(ml_dtypes, floats, floats))
    kind = helper.np_dtype_to_tensor_dtype(dtype)
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for graph in _graphs(copy.graph):
        for tensor in graph.initializer:
            _narrow(tensor, dtype)
        for value in [*graph.input, *graph.output, *graph.value_info]:
            if value.type.tensor_type.elem_type == TensorProto.FLOAT:
                value.type.tensor_type.elem_type = kind
        for node in graph.node:
            _narrow_attributes(node, dtype, kind)
    onnx.checker.check_model(copy)
    return copy


def _graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    yield graph
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _graphs(attribute.g)


def _narrow(tensor: onnx.TensorProto, dtype: np.dtype) -> None:
    if tensor.data_type == TensorProto.FLOAT:
        limits, name = ml_dtypes.finfo(dtype), tensor.name
        array = np.clip(numpy_helper.to_array(tensor), float(limits.min), float(limits.max)).astype(dtype)
        tensor.CopyFrom(numpy_helper.from_array(array, name))


def _narrow_attributes(node: onnx.NodeProto, dtype: np.dtype, kind: int) -> None:
    for attribute in node.attribute:
        if attribute.type == onnx.AttributeProto.TENSOR:
            _narrow(attribute.t, dtype)
        elif attribute.name in ("to", "dtype") and attribute.i == TensorProto.FLOAT:
            attribute.i = kind
