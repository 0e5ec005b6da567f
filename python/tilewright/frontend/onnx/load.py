# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading ONNX models: from a path, bytes or a ModelProto, with external data; initializers as arrays."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

import numpy as np
import onnx
from google.protobuf.message import DecodeError

from tilewright.core.errors import UnsupportedError, UserError
from tilewright.dialects.sparse_tile.converters import onnx_places
from tilewright.frontend.builder.limits import check_known
from tilewright.frontend.onnx.blocked_files import with_plain_filters

ModelSource = str | os.PathLike | bytes | onnx.ModelProto

_NEWEST = (1 << 31) - 1  # an opset version that ONNX's own functions take
#: operators that ONNX Runtime and tf2onnx (see ops/math/tensorflow.py) have in the standard's domain, below an opset
#: version from which the standard has them
_FOREIGN = {"LayerNormalization": 17, "SimplifiedLayerNormalization": _NEWEST, "Erfc": _NEWEST}
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
    _require_text(model)
    if not model.graph.node and not model.graph.output:
        raise UserError("the ONNX model has an empty graph: no nodes and no outputs")
    return with_plain_filters(model, folder), folder


def _require_text(model: onnx.ModelProto) -> None:
    """Protobuf hands out names that are not UTF-8 as bytes."""
    names: list[str | bytes] = [o.domain for o in model.opset_import]
    _collect_names(model.graph, names)
    for function in model.functions:
        names += [function.name, function.domain, function.overload, *function.input, *function.output]
        names += [*function.attribute, *(a.name for a in function.attribute_proto)]
        names += [o.domain for o in function.opset_import]
        _collect_node_names(function.node, names)
    damaged = next((n for n in names if isinstance(n, bytes)), None)
    if damaged is not None:
        raise UserError(f"the ONNX model is damaged: the name {damaged!r} is not valid UTF-8")


def _collect_names(graph: onnx.GraphProto, names: list[str | bytes]) -> None:
    values = (*graph.input, *graph.output, *graph.value_info, *graph.initializer)
    names += [graph.name, *(v.name for v in values)]
    for value in (*graph.input, *graph.output, *graph.value_info):
        names += [d.dim_param for d in value.type.tensor_type.shape.dim]
    _collect_node_names(graph.node, names)


def _collect_node_names(nodes: Iterable[onnx.NodeProto], names: list[str | bytes]) -> None:
    for node in nodes:
        names += [node.name, node.op_type, node.domain, node.overload, *node.input, *node.output]
        names += [n for a in node.attribute for n in (a.name, a.ref_attr_name)]
        for graph in subgraphs_of(node):
            _collect_names(graph, names)


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
    light.ir_version = min(max(light.ir_version, 4), onnx.IR_VERSION)  # which rules the file follows, not what it means
    if not light.opset_import:
        light.opset_import.add(version=1)
    _disguise(light)
    for value in (*light.graph.input, *light.graph.output):  # what types leave open follows from shapes= and the nodes
        if value.type.WhichOneof("value") in (None, "tensor_type"):
            kind = value.type.tensor_type
            kind.elem_type = kind.elem_type or onnx.TensorProto.FLOAT
            kind.shape.SetInParent()
    try:
        _check_all(light)
    except (onnx.checker.ValidationError, ValueError) as error:  # it parses the file again, more strictly
        text = " ".join(str(error).split("==> Context")[0].split())
        raise UserError(f"the ONNX model is invalid: {text or 'the checker refuses it'}") from error


def _disguise(model: onnx.ModelProto) -> None:
    """Give operators that others define in the standard's domain another one, which the checker lets pass."""
    version = versions_of(model.opset_import).get("", 1)
    nodes = [n for n in all_nodes(model.graph) if node_domain(n) == "" and version < _FOREIGN.get(n.op_type, 0)]
    for node in nodes:
        node.domain = "com.microsoft"
    if nodes and "com.microsoft" not in versions_of(model.opset_import):
        model.opset_import.add(domain="com.microsoft", version=1)


def all_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of a graph, and after each one those of its subgraphs."""
    for node in graph.node:
        yield node
        for inner in subgraphs_of(node):
            yield from all_nodes(inner)


def _check_all(model: onnx.ModelProto) -> None:
    try:
        onnx.checker.check_model(model)
    except onnx.checker.ValidationError as error:
        if "Opset import for domain" not in str(error):
            raise
        # The checker wants functions to use the model's opset versions, which the standard does not ask for.
        for function in model.functions:
            context = onnx.checker.C.CheckerContext()
            context.ir_version = model.ir_version
            context.opset_imports = {o.domain: o.version for o in function.opset_import}
            onnx.checker.check_function(function, context)
        del model.functions[:]
        onnx.checker.check_model(model)


def _light(model: onnx.ModelProto) -> bool:
    weights = model.graph.initializer
    if model.graph.sparse_initializer:  # `dense_array` checks them, and says more
        return False
    return all(not t.external_data for t in weights) and sum(t.ByteSize() for t in weights) < _CHECK_BYTES


def _without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    light = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions)
    graph = model.graph
    light.graph.name = graph.name
    light.graph.node.extend(graph.node)
    light.graph.input.extend(graph.input)
    light.graph.output.extend(graph.output)
    given = {i.name for i in graph.input}
    weights = [(t.name, t.data_type, t.dims) for t in graph.initializer]
    weights += [(s.values.name, s.values.data_type, s.dims) for s in graph.sparse_initializer]
    for name, kind, dims in weights:  # stand-ins: the checker wants every name to be defined
        if name not in given:
            light.graph.input.append(onnx.helper.make_tensor_value_info(name, kind, list(dims)))
    return light


def initializer_array(tensor: onnx.TensorProto, folder: str) -> np.ndarray:
    """The elements of an initializer, read from `folder` where they are external."""
    try:
        array = onnx.numpy_helper.to_array(tensor, folder)
    except (OSError, ValueError, KeyError, TypeError, onnx.checker.ValidationError) as error:
        kind = f"element type {tensor.data_type}, shape {list(tensor.dims)}"
        what = f"initializer {tensor.name}" if tensor.name else "a tensor"
        raise UserError(f"{what}: cannot read its data ({kind}): {error}") from error
    if array.dtype == object:
        raise UnsupportedError(f"initializer {tensor.name} holds strings, which have no lowering")
    return array


def graph_initializers(graph: onnx.GraphProto, folder: str) -> Iterator[tuple[str, np.ndarray]]:
    """Names and elements of a graph's initializers; sparse ones are made dense."""
    for tensor in graph.initializer:
        yield tensor.name, initializer_array(tensor, folder)
    for sparse in graph.sparse_initializer:
        yield sparse.values.name, dense_array(sparse, folder)


def dense_array(sparse: onnx.SparseTensorProto, folder: str = "") -> np.ndarray:
    """All elements of a sparse tensor.

    Raises:
        UserError: its indices are out of range, out of order or not as many as its values.
        UnsupportedError: it has too many elements.
    """
    values = initializer_array(sparse.values, folder)
    indices = initializer_array(sparse.indices, folder)
    places = onnx_places(sparse.values.name, tuple(sparse.dims), values.shape, indices)
    check_known(*sparse.dims)
    result = np.zeros(tuple(sparse.dims), values.dtype)
    result.reshape(-1)[places] = values
    return result


def subgraphs_of(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """The graphs among a node's attributes."""
    graphs = [a.g for a in node.attribute if a.HasField("g")]
    return graphs + [g for a in node.attribute if a.type == onnx.AttributeProto.GRAPHS for g in a.graphs]


def node_domain(node: onnx.NodeProto) -> str:
    """A node's domain; the standard's is ''."""
    return domain_of(node.domain)


def domain_of(name: str) -> str:
    """A domain's name; the standard's is ''."""
    return "" if name == "ai.onnx" else name


def versions_of(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    """Opset version by domain."""
    imports = list(imports)
    strange = next((o for o in imports if not 0 <= o.version <= _NEWEST), None)
    if strange is not None:
        raise UserError(f"the model asks for version {strange.version} of the operators of {strange.domain or 'ONNX'}")
    return {domain_of(o.domain): o.version for o in imports}


def opset_versions(model: onnx.ModelProto) -> dict[str, int]:
    """Opset version by domain, the standard's included."""
    return {"": 1, **versions_of(model.opset_import)}
