# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs of any element type and opset, with graphs inside nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import helper

from tilewright.demo.graph import GraphBuilder

Value = tuple[str, np.typing.DTypeLike, Sequence[int | str]]  # name, type, shape


class Graph(GraphBuilder):
    """A builder whose inputs and outputs may be of any type, and whose graph may be a node's attribute."""

    _around: Graph | None = None

    def input(self, name: str, dtype: np.typing.DTypeLike, shape: Sequence[int | str]) -> str:
        """Declare a graph input."""
        self._inputs.append(_declared((name, dtype, shape)))
        return name

    def output(self, value: str, name: str, dtype: np.typing.DTypeLike, shape: Sequence[int | str]) -> None:
        """Declare `value` as the graph output called `name`."""
        self._nodes.append(helper.make_node("Identity", [value], [name], name=f"/output/{self.name}/{name}"))
        self._outputs.append(_declared((name, dtype, shape)))

    def inner(self, name: str) -> Graph:
        """A builder for a graph inside one of this graph's nodes; it sees the names around it."""
        graph = Graph(name, self.opset)
        graph._scope, graph._around = [*self._scope, name], self
        return graph

    def const(self, value: ArrayLike, dtype: type = np.int64) -> str:
        """A small constant, which the outermost graph holds: names inside may hide none of those around."""
        return super().const(value, dtype) if self._around is None else self._around.const(value, dtype)

    def as_attribute(self) -> onnx.GraphProto:
        """The finished graph, for a node."""
        weights = list(self._initializers.values())
        return helper.make_graph(self._nodes, self.name, self._inputs, self._outputs, weights)

    def model(self) -> onnx.ModelProto:
        """The finished model, of the IR version that its opset came with. Raises where the graph is malformed."""
        opset = [helper.make_opsetid("", self.opset)]
        version = 8 if self.opset < 19 else 9 if self.opset < 21 else 10 if self.opset < 23 else 11
        producer = "tilewright.test"
        model = helper.make_model(self.as_attribute(), opset_imports=opset, ir_version=version, producer_name=producer)
        onnx.checker.check_model(model, full_check=True)
        return model


def _declared(value: Value) -> onnx.ValueInfoProto:
    name, dtype, shape = value
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), shape)
