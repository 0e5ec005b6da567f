# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading ONNX models: from a path, bytes or a ModelProto, with external data; symbolic dimensions made static."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
import onnx
from google.protobuf.message import DecodeError

from tilewright.errors import OpenShapesError, UnsupportedError, UserError
from tilewright.runtime.dtypes import from_numpy

from .model import TensorSpec

ModelSource = str | os.PathLike | bytes | onnx.ModelProto
Shapes = Mapping[str, int | Sequence[int]]

_CHECK_BYTES = 1 << 20  # the checker serializes the model: only worth its time without the weights


def load_model(source: ModelSource) -> tuple[onnx.ModelProto, str]:
    """The model and the folder of its external data. Raises UserError for what is not an ONNX model."""
    folder = ""
    if isinstance(source, onnx.ModelProto):
        model = source
    elif isinstance(source, (bytes, bytearray, memoryview)):
        model = _parse(bytes(source), "the bytes given")
    elif isinstance(source, (str, os.PathLike)):
        model, folder = _read(os.fspath(source))
    else:
        raise UserError(f"cannot read a model from {type(source).__name__}; give a path, bytes or an onnx.ModelProto")
    _require_text(model.graph)
    if not model.graph.node and not model.graph.output:
        raise UserError("the ONNX model has an empty graph: no nodes and no outputs")
    return model, folder


def _require_text(graph: onnx.GraphProto) -> None:
    """Protobuf hands out names that are not UTF-8 as bytes."""
    names = [v.name for group in (graph.input, graph.output, graph.initializer) for v in group]
    for node in graph.node:
        names += [node.name, node.op_type, node.domain, *node.input, *node.output, *(a.name for a in node.attribute)]
    damaged = next((n for n in names if isinstance(n, bytes)), None)
    if damaged is not None:
        raise UserError(f"the ONNX model is damaged: the name {damaged!r} is not valid UTF-8")


def _read(path: str) -> tuple[onnx.ModelProto, str]:
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise UserError(f"cannot read the ONNX model {path}: {error.strerror or error}") from error
    return _parse(data, path), os.path.dirname(os.path.abspath(path))


def _parse(data: bytes, what: str) -> onnx.ModelProto:
    model = onnx.ModelProto()
    try:
        model.ParseFromString(data)
    except DecodeError as error:
        raise UserError(f"{what}: not an ONNX model ({error}); is the file truncated?") from error
    if not model.HasField("graph"):
        raise UserError(f"{what}: not an ONNX model (no graph in it)")
    return model


def check_model(model: onnx.ModelProto) -> None:
    """Run onnx.checker on the graph without large initializers. Raises UserError with the checker's message."""
    light = onnx.ModelProto()
    light.CopyFrom(model if _light(model) else _without_weights(model))
    for value in (*light.graph.input, *light.graph.output):  # what types leave open follows from shapes= and the nodes
        if value.type.WhichOneof("value") in (None, "tensor_type"):
            kind = value.type.tensor_type
            kind.elem_type = kind.elem_type or onnx.TensorProto.FLOAT
            kind.shape.SetInParent()
    try:
        onnx.checker.check_model(light)
    except (onnx.checker.ValidationError, UnicodeDecodeError) as error:
        text = " ".join(str(error).split("==> Context")[0].split())
        raise UserError(f"the ONNX model is invalid: {text or 'the checker refuses it'}") from error


def _light(model: onnx.ModelProto) -> bool:
    weights = model.graph.initializer
    return all(not t.external_data for t in weights) and sum(len(t.raw_data) for t in weights) < _CHECK_BYTES


def _without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    light = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions)
    graph = model.graph
    light.graph.name = graph.name
    light.graph.node.extend(graph.node)
    light.graph.input.extend(graph.input)
    light.graph.output.extend(graph.output)
    given = {i.name for i in graph.input}
    for tensor in graph.initializer:  # stand-ins: the checker wants every name to be defined
        if tensor.name not in given:
            info = onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims))
            light.graph.input.append(info)
    return light


def initializer_array(tensor: onnx.TensorProto, folder: str) -> np.ndarray:
    """The elements of an initializer, read from `folder` where they are external."""
    try:
        return onnx.numpy_helper.to_array(tensor, folder)
    except (OSError, ValueError, KeyError, TypeError, onnx.checker.ValidationError) as error:
        kind = f"element type {tensor.data_type}, shape {list(tensor.dims)}"
        raise UserError(f"initializer {tensor.name}: cannot read its data ({kind}): {error}") from error


def graph_initializers(graph: onnx.GraphProto, folder: str) -> Iterator[tuple[str, np.ndarray]]:
    """Names and elements of a graph's initializers; sparse ones are made dense."""
    for tensor in graph.initializer:
        yield tensor.name, initializer_array(tensor, folder)
    for sparse in graph.sparse_initializer:
        yield sparse.values.name, dense_array(sparse, folder)


def dense_array(sparse: onnx.SparseTensorProto, folder: str = "") -> np.ndarray:
    """All elements of a sparse tensor."""
    values = initializer_array(sparse.values, folder)
    indices = initializer_array(sparse.indices, folder)
    result = np.zeros(tuple(sparse.dims), values.dtype)
    try:
        if indices.ndim == 2:
            result[tuple(indices.T)] = values
        else:
            result.reshape(-1)[indices] = values
    except (IndexError, ValueError) as error:
        shape = list(sparse.dims)
        raise UserError(f"sparse initializer {sparse.values.name}: its indices do not fit shape {shape}") from error
    return result


def node_domain(node: onnx.NodeProto) -> str:
    """A node's domain; the standard's is ''."""
    return domain_of(node.domain)


def domain_of(name: str) -> str:
    """A domain's name; the standard's is ''."""
    return "" if name == "ai.onnx" else name


def versions_of(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """Opset version by domain."""
    return {domain_of(o.domain): o.version for o in imports}


def opset_versions(model: onnx.ModelProto) -> dict[str, int]:
    """Opset version by domain, the standard's included."""
    return {"": 1, **versions_of(model.opset_import)}


def input_specs(model: onnx.ModelProto, shapes: Shapes | None) -> list[TensorSpec]:
    """Static signature of the graph's inputs.

    Args:
        shapes: sizes of symbolic dimensions by name, or whole shapes by input name.

    Raises:
        UserError: a dimension is neither static nor in `shapes`, or `shapes` does not fit.
    """
    shapes = dict(shapes or {})
    known = {t.name for t in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in known]
    missing: list[str] = []
    used: set[str] = set()
    specs = [_input_spec(i, shapes, used, missing) for i in inputs]
    if missing:
        names = sorted({m.split(" ")[0] for m in missing})
        example = ", ".join(f'"{n}": 1' for n in names)
        error = OpenShapesError(f"dimensions without a size: {'; '.join(missing)}. Fix them with shapes={{{example}}}")
        error.inputs = tuple((i.name, from_numpy(_dtype(i)), _declared(i)) for i in inputs)
        raise error
    unknown = sorted(set(shapes) - used)
    if unknown:
        raise UserError(f"shapes names {', '.join(unknown)}, which is no symbolic dimension and no input of this model")
    return specs


def _input_spec(info: onnx.ValueInfoProto, shapes: dict, used: set[str], missing: list[str]) -> TensorSpec:
    if not info.type.HasField("tensor_type"):
        raise UnsupportedError(f"input {info.name} is not a tensor (sequences, maps and optionals are not supported)")
    kind = info.type.tensor_type
    dims = list(kind.shape.dim) if kind.HasField("shape") else None
    given = shapes.get(info.name)
    if given is not None and not isinstance(given, int):
        used.add(info.name)
        return TensorSpec(info.name, _dtype(info), _whole_shape(info.name, given, dims))
    if dims is None:
        missing.append(f"{info.name} (its shape is unknown: give the whole shape)")
        return TensorSpec(info.name, _dtype(info), ())
    sizes = [_size(info.name, axis, dim, shapes, used, missing) for axis, dim in enumerate(dims)]
    return TensorSpec(info.name, _dtype(info), tuple(sizes))


def _declared(info: onnx.ValueInfoProto) -> tuple[int | str | None, ...] | None:
    """The dimensions as the model gives them: sizes, names, None for what has neither; None for an open rank."""
    kind = info.type.tensor_type
    if not kind.HasField("shape"):
        return None
    fixed = [
        (d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else d.dim_param or None) for d in kind.shape.dim
    ]
    return tuple(fixed)


def _whole_shape(name: str, given: Sequence[int], dims: list | None) -> tuple[int, ...]:
    shape = tuple(int(n) for n in given)
    fixed = (
        [d.dim_value if d.HasField("dim_value") else None for d in dims] if dims is not None else [None] * len(shape)
    )
    if len(fixed) != len(shape) or any(f not in (None, n) for f, n in zip(fixed, shape, strict=True)):
        declared = [f if f is not None else "?" for f in fixed]
        raise UserError(f"shapes gives {name} the shape {list(shape)}, but the model declares {declared}")
    return shape


def _size(name: str, axis: int, dim, shapes: dict, used: set[str], missing: list[str]) -> int:
    if dim.HasField("dim_value") and dim.dim_value >= 0:
        return dim.dim_value
    symbol = dim.dim_param
    if symbol and isinstance(shapes.get(symbol), int):
        used.add(symbol)
        if shapes[symbol] < 0:
            raise UserError(f"shapes gives {symbol} the size {shapes[symbol]}; sizes are not negative")
        return shapes[symbol]
    missing.append(f"{symbol} (dimension {axis} of {name})" if symbol else f"{name} (dimension {axis} has no name)")
    return 0


def _dtype(info: onnx.ValueInfoProto) -> np.dtype:
    number = info.type.tensor_type.elem_type
    try:
        return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number))
    except (KeyError, ValueError) as error:
        raise UserError(f"input {info.name} has the unknown element type {number}") from error
