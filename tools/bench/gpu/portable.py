# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A model in a form that travels without its weights, to a machine without ONNX.

Weights become inputs of the model: their bytes do not travel, both sides of a comparison get the same ones, made there
from a description. (A model in use has them as constants, which the compiler may fold and pack; what that leaves out
stands in tools/rationale/gpu_suite.md.) Batch normalization is folded into the convolution before it first, as the
compiler would do with constants. The graph itself becomes JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from tilewright.core.dtypes import from_numpy

#: Smaller constants travel with the graph.
_INLINE = 64


@dataclass
class Portable:
    """A model with open weights.

    Attributes:
        model: to be compiled.
        graph: its operators, inputs and small constants, for JSON.
        tensors: of each input, in order: name, dtype, shape, and how it is filled.
        weights: arrays of inputs that are filled from a file (real weights), by name.
    """

    model: onnx.ModelProto
    graph: dict[str, Any]
    tensors: list[dict[str, Any]]
    weights: dict[str, np.ndarray] = field(default_factory=dict)


def portable(model: onnx.ModelProto, inputs: Mapping[str, np.ndarray], keep_weights: bool) -> Portable:
    """Open a model's weights.

    Args:
        model: a graph without graphs inside.
        inputs: values for its inputs; integers travel as they are.
        keep_weights: whether weights are filled with their own values, else with random ones of their distribution.
    """
    model = folded(model)
    graph, constants = model.graph, _constants(model)
    opened = {name for name, array in constants.items() if _is_weight(array)}
    tensors = [_described(name, array) for name, array in inputs.items()]
    weights: dict[str, np.ndarray] = {}
    for name in [t.name for t in graph.initializer if t.name in opened]:
        array = constants[name]
        graph.input.append(helper.make_tensor_value_info(name, _onnx_kind(array), array.shape))
        tensors.append({**_described(name, array), "weight": True})
        if keep_weights:
            weights[name] = array
            tensors[-1]["fill"] = {"kind": "file"}
    kept = [t for t in graph.initializer if t.name not in opened]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    return Portable(model, _json(model, {n: a for n, a in constants.items() if n not in opened}), tensors, weights)


def folded(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy with each BatchNormalization of a convolution's result folded into its filter and bias."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    constants = _constants(copy)
    users: dict[str, list[onnx.NodeProto]] = {}
    for node in copy.graph.node:
        for name in node.input:
            users.setdefault(name, []).append(node)
    for conv in [node for node in copy.graph.node if node.op_type == "Conv"]:
        after = users.get(conv.output[0], [])
        if len(after) == 1 and after[0].op_type == "BatchNormalization" and conv.input[1] in constants:
            _fold(copy.graph, conv, after[0], constants)
    used = {name for node in copy.graph.node for name in node.input}
    kept = [t for t in copy.graph.initializer if t.name in used]
    del copy.graph.initializer[:]
    copy.graph.initializer.extend(kept)
    return copy


def _fold(graph: onnx.GraphProto, conv: onnx.NodeProto, norm: onnx.NodeProto, constants: dict[str, np.ndarray]) -> None:
    scale, shift, mean, variance = (constants[name].astype(np.float64) for name in norm.input[1:5])
    epsilon = next((a.f for a in norm.attribute if a.name == "epsilon"), 1e-5)
    factor = scale / np.sqrt(variance + epsilon)
    filters = constants[conv.input[1]]
    bias = constants[conv.input[2]].astype(np.float64) if len(conv.input) > 2 else 0.0
    shape = (-1, *[1] * (filters.ndim - 1))
    changed = {
        f"{conv.output[0]}.filters": (filters * factor.reshape(shape)).astype(filters.dtype),
        f"{conv.output[0]}.bias": ((bias - mean) * factor + shift).astype(filters.dtype),
    }
    graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in changed.items())
    constants.update(changed)
    del conv.input[1:]
    conv.input.extend(changed)
    conv.output[0] = norm.output[0]
    graph.node.remove(norm)


def _constants(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    return {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}


def _is_weight(array: np.ndarray) -> bool:
    return array.size > _INLINE and _is_float(array)


def _is_float(array: np.ndarray) -> bool:
    return from_numpy(array.dtype).lstrip("b").startswith("f")


def _onnx_kind(array: np.ndarray) -> int:
    return helper.np_dtype_to_tensor_dtype(array.dtype)


def _described(name: str, array: np.ndarray) -> dict[str, Any]:
    fill = _distribution(array) if _is_float(array) else {"kind": "values", "values": array.reshape(-1).tolist()}
    return {"name": name, "dtype": from_numpy(array.dtype), "shape": list(array.shape), "fill": fill}


def _distribution(array: np.ndarray) -> dict[str, Any]:
    """How random values like an array's are drawn; an array of one value, spread out, stands for activations."""
    if not any(array.strides):
        return {"kind": "normal", "mean": 0.0, "std": 1.0}
    wide = array.astype(np.float32)
    low, high = float(wide.min()), float(wide.max())
    if low > 0:  # scales and variances stay positive
        return {"kind": "uniform", "low": low, "high": high}
    return {"kind": "normal", "mean": float(wide.mean()), "std": float(wide.std())}


def _json(model: onnx.ModelProto, constants: Mapping[str, np.ndarray]) -> dict[str, Any]:
    graph = model.graph
    return {
        "inputs": [i.name for i in graph.input],
        "outputs": [_declared(o) for o in graph.output],
        "nodes": [
            {
                "op": node.op_type,
                "inputs": list(node.input),
                "outputs": list(node.output),
                "attributes": {a.name: _plain(helper.get_attribute_value(a)) for a in node.attribute},
            }
            for node in graph.node
        ],
        "constants": {
            name: {
                "dtype": from_numpy(array.dtype),
                "shape": list(array.shape),
                "values": (array.astype(np.float32) if _is_float(array) else array).reshape(-1).tolist(),
            }
            for name, array in constants.items()
        },
    }


def _declared(value: onnx.ValueInfoProto) -> dict[str, Any]:
    kind = value.type.tensor_type
    dtype = from_numpy(helper.tensor_dtype_to_np_dtype(kind.elem_type))
    return {"name": value.name, "dtype": dtype, "shape": [d.dim_value for d in kind.shape.dim]}


def _plain(value: Any) -> Any:
    """An attribute as JSON has it."""
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, onnx.TensorProto | onnx.GraphProto):
        raise NotImplementedError("tensors and graphs as attributes do not travel")
    return [_plain(v) for v in value] if isinstance(value, list | tuple) else value
