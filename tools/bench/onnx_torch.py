# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""An ONNX model as a torch.fx module, for the operators of the benchmarks' models. Runs in the peers' environment."""

from __future__ import annotations

import onnx
import torch
from onnx import numpy_helper

from bench import torch_graph


def convert(model: onnx.ModelProto) -> torch.nn.Module:
    """The model as a module of positional inputs that returns a tuple. Raises NotImplementedError."""
    constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    return torch_graph.module(
        torch_graph.Graph(
            [i.name for i in model.graph.input if i.name not in constants],
            [o.name for o in model.graph.output],
            [
                torch_graph.Node(
                    node.op_type,
                    list(node.input),
                    list(node.output),
                    {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute},
                )
                for node in model.graph.node
            ],
            constants,
        )
    )
