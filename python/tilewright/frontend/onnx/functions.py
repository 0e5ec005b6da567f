# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Nodes that are functions, of the model or of the standard: their bodies are imported in place of the call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import onnx

from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.load import domain_of, node_domain, versions_of
from tilewright.frontend.onnx.node import Node
from tilewright.frontend.onnx.sequences import TensorList, Value

if TYPE_CHECKING:
    from tilewright.frontend.onnx.scope import Scope

_DEPTH = 64  # of calls within calls


class Functions:
    """The functions of one model, and those of the standard."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._of_model = {(domain_of(f.domain), f.name, f.overload): f for f in model.functions}
        self._depth = 0

    def of_model(self, proto: onnx.NodeProto) -> onnx.FunctionProto | None:
        """The model's own function that a node calls, or None."""
        return self._of_model.get((node_domain(proto), proto.op_type, proto.overload)) if self._of_model else None

    def of_standard(self, node: Node, inputs: Sequence[Value | None]) -> onnx.FunctionProto:
        """The body that the standard gives for a node. Raises UnsupportedError where it gives none."""
        body = standard_body(node.proto, node.version, inputs)
        if body is None:
            node.unsupported("this operator has no lowering, and the standard gives no function body for it")
        return body

    def call(
        self, scope: Scope, node: Node, function: onnx.FunctionProto, inputs: Sequence[Value | None]
    ) -> list[Value | None]:
        """Import a function's body with these arguments. Returns one value per output of the node."""
        if len(inputs) > len(function.input):
            node.wrong(f"{len(inputs)} inputs for a function of {len(function.input)}")
        nodes = with_attributes(function, node.proto)
        versions = {**scope.versions, **versions_of(function.opset_import)}
        outputs = {name: i for i, name in enumerate(function.output)}

        def declared(name: str):
            return node.declared(outputs[name]) if name in outputs else None

        prefix = f"{node.label}/"
        inner = scope.another(nodes, list(function.output), versions=versions, prefix=prefix, declared=declared)
        missing = len(function.input) - len(inputs)
        inner.values = dict(zip(function.input, [*inputs, *[None] * missing], strict=True))
        self._enter(node)
        try:
            inner.run()
        finally:
            self._depth -= 1
        wanted = list(function.output)[: len(node.proto.output)]
        return [inner.value(name, node.label) if node.proto.output[i] else None for i, name in enumerate(wanted)]

    def _enter(self, node: Node) -> None:
        self._depth += 1
        if self._depth > _DEPTH:
            self._depth -= 1
            node.wrong("functions call each other without end")


def standard_body(
    proto: onnx.NodeProto, version: int, inputs: Sequence[Value | None] | None
) -> onnx.FunctionProto | None:
    """The standard's function body of a node.

    Args:
        proto: the node.
        version: of its domain's opset.
        inputs: what it reads; None asks only whether there is a body at all (the answer may then be an empty one).
    """
    try:
        schema = onnx.defs.get_schema(proto.op_type, version, node_domain(proto))
    except onnx.defs.SchemaError:
        return None
    if schema.has_context_dependent_function:
        chosen = _chosen(schema.context_dependent_function_opset_versions, version)
        if inputs is None:
            return onnx.FunctionProto()
        types = [type_of(x).SerializeToString() for x in inputs]
        data = schema.get_context_dependent_function_with_opset_version(chosen, proto.SerializeToString(), types)
    elif schema.has_function:
        data = schema.get_function_with_opset_version(_chosen(schema.function_opset_versions, version))
    else:
        return None
    body = onnx.FunctionProto.FromString(data)
    return body if body.node else None


def _chosen(versions: Sequence[int], wanted: int) -> int:
    return max((v for v in versions if v <= wanted), default=min(versions))


def type_of(x: Value | None) -> onnx.TypeProto:
    """A value's type and shape as ONNX writes them; an empty one for what is absent."""
    if isinstance(x, TensorList):
        item = type_of(x.items[0]) if x.items else onnx.TypeProto()
        return onnx.helper.make_sequence_type_proto(item)
    if not isinstance(x, Tensor):
        return onnx.TypeProto()
    shape = [n if isinstance(n, int) else None for n in x.shape]
    return onnx.helper.make_tensor_type_proto(onnx.helper.np_dtype_to_tensor_dtype(x.dtype), shape)


# Attributes -----------------------------------------------------------------------------------------------------


def with_attributes(function: onnx.FunctionProto, call: onnx.NodeProto) -> list[onnx.NodeProto]:
    """The function's nodes with the call's attributes, or their defaults, in place of references to them."""
    given = {a.name: a for a in function.attribute_proto}
    given.update({a.name: a for a in call.attribute})
    return [_substituted(node, given) for node in function.node]


def _substituted(node: onnx.NodeProto, given: Mapping[str, onnx.AttributeProto]) -> onnx.NodeProto:
    if not any(a.ref_attr_name or a.HasField("g") or a.graphs for a in node.attribute):
        return node
    result = onnx.NodeProto()
    result.CopyFrom(node)
    del result.attribute[:]
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            copy = result.attribute.add()
            copy.CopyFrom(attribute)
            for graph in ([copy.g] if copy.HasField("g") else []) + list(copy.graphs):
                _substitute_graph(graph, given)
        elif attribute.ref_attr_name in given:  # one that nobody gives is absent
            copy = result.attribute.add()
            copy.CopyFrom(given[attribute.ref_attr_name])
            copy.name = attribute.name
    return result


def _substitute_graph(graph: onnx.GraphProto, given: Mapping[str, onnx.AttributeProto]) -> None:
    nodes = [_substituted(node, given) for node in graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
