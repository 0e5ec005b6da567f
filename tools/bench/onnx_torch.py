# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An ONNX model as a torch.fx module, for the operators of the benchmarks' models. Runs in the peers' environment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import onnx
import torch
from onnx import numpy_helper

from bench import torch_graph


def convert(model: onnx.ModelProto) -> torch.nn.Module:
    """The model as a module of positional inputs that returns a tuple. Raises NotImplementedError."""
    return torch_graph.module(_graph(model.graph))


def _graph(graph: onnx.GraphProto) -> torch_graph.Graph:
    """A graph, with those inside its nodes. The first two inputs of a loop's body are its number and condition."""
    constants = {t.name: numpy_helper.to_array(t) for t in graph.initializer}
    inputs = [i.name for i in graph.input if i.name not in constants]
    nodes = [
        torch_graph.Node(
            node.op_type, list(node.input), list(node.output), {a.name: _attribute(a) for a in node.attribute}
        )
        for node in graph.node
    ]
    return torch_graph.Graph(inputs, [o.name for o in graph.output], nodes, constants)


def _attribute(attribute: onnx.AttributeProto) -> Any:
    value = onnx.helper.get_attribute_value(attribute)
    if not isinstance(value, onnx.GraphProto):
        return value
    graph = _graph(value)
    return replace(graph, own=len(graph.inputs))
