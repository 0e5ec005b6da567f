# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which of ONNX's rules a node breaks: asked where an operator's function stumbles over its inputs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
import onnx

from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.functions import type_of
from tilewright.frontend.onnx.inference import InferenceFailed, inferred
from tilewright.frontend.onnx.load import node_domain, subgraphs_of
from tilewright.frontend.onnx.sequences import TensorList, Value

_KNOWN_ELEMENTS = 64
_OPTIONAL = onnx.defs.OpSchema.FormalParameterOption.Optional


def broken_rule(proto: onnx.NodeProto, version: int, inputs: Sequence[Value | None]) -> str:
    """What is wrong with the node's inputs by ONNX's own description of the operator; "" where that accepts them."""
    try:
        schema = onnx.defs.get_schema(proto.op_type, version, node_domain(proto))
    except onnx.defs.SchemaError:
        return ""
    return _missing(schema, inputs) or _mistyped(schema, inputs) or _misshapen(proto, version, inputs)


def _mistyped(schema: onnx.defs.OpSchema, inputs: Sequence[Value | None]) -> str:
    """The first input of an element type that the operator does not take; "" where there is none."""
    formals = schema.inputs
    for i, x in enumerate(inputs if formals else ()):
        formal = formals[min(i, len(formals) - 1)]
        types = _dtypes(formal.types)
        if isinstance(x, TensorList) and types:
            return f"the input {formal.name} is a sequence, and the operator takes a tensor"
        if isinstance(x, Tensor) and types and x.dtype not in types:
            return f"the input {formal.name} is of type {x.dtype}, which the operator does not take"
    return ""


def _dtypes(types: Iterable[str]) -> frozenset[np.dtype]:
    """Element types of an input; none where it may be something else than a tensor."""
    names = [re.fullmatch(r"(?:optional\()?tensor\((\w+)\)+", text) for text in types]
    if not all(names):
        return frozenset()
    numbers = [onnx.TensorProto.DataType.Value(match[1].upper()) for match in names if match]
    return frozenset(onnx.helper.tensor_dtype_to_np_dtype(n) for n in numbers)


def _missing(schema: onnx.defs.OpSchema, inputs: Sequence[Value | None]) -> str:
    """The first input that the operator needs and the node does not have."""
    for i in range(max(len(inputs), schema.min_input) if schema.inputs else 0):
        formal = schema.inputs[min(i, len(schema.inputs) - 1)]
        if formal.option != _OPTIONAL and (i >= len(inputs) or inputs[i] is None):
            return f"the input {formal.name} is missing"
    return f"{len(inputs)} inputs instead of at most {schema.max_input}" if len(inputs) > schema.max_input else ""


def _misshapen(proto: onnx.NodeProto, version: int, inputs: Sequence[Value | None]) -> str:
    """What ONNX's shape inference says of the inputs' shapes and values."""
    if subgraphs_of(proto) or any(isinstance(x, TensorList) for x in inputs):
        return ""
    graph = onnx.GraphProto(name="node", node=[proto], output=[onnx.ValueInfoProto(name=n) for n in proto.output if n])
    seen: set[str] = set()
    for name, x in zip(proto.input, inputs, strict=False):
        if isinstance(x, Tensor) and name and name not in seen:
            seen.add(name)
            graph.input.append(onnx.ValueInfoProto(name=name, type=type_of(x)))
            if x.is_known and x.size <= _KNOWN_ELEMENTS:
                graph.initializer.append(onnx.numpy_helper.from_array(x.numpy(), name))
    imports = [onnx.helper.make_opsetid(node_domain(proto), version)]
    try:
        inferred(onnx.ModelProto(ir_version=10, graph=graph, opset_import=imports), strict=True, values=True)
    except (InferenceFailed, ValueError) as error:
        return str(error)
    return ""
