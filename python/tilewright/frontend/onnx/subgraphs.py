# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Graphs inside nodes: branches and loop bodies, as functions from values to values."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import onnx

from tilewright.core.errors import UnsupportedError
from tilewright.frontend.builder.tensor import Tensor
from tilewright.frontend.onnx.branches import Diverging
from tilewright.frontend.onnx.load import graph_initializers
from tilewright.frontend.onnx.sequences import Lost, Value

if TYPE_CHECKING:
    from tilewright.frontend.onnx.scope import Scope


class Subgraph:
    """A graph attribute of a node. Its body sees the names around it; it may be imported several times.

    Args:
        scope: where its node is.
        graph: its inputs, nodes and outputs.
        where: the node, for messages.
    """

    def __init__(self, scope: Scope, graph: onnx.GraphProto, where: str) -> None:
        self._scope = scope
        self._graph = graph
        self._where = where
        self.inputs = [i.name for i in graph.input]
        self.outputs = [o.name for o in graph.output]

    def __call__(self, *values: Value | None) -> list[Value | None]:
        """Import the body with these inputs. Returns its outputs."""
        try:
            return self.inline(*values)
        except Diverging as error:  # what would follow is outside of the body
            raise error.plain() from error

    def inline(self, *values: Value | None) -> list[Value | None]:
        """The same, where what follows the node can follow in each branch of a choice too (see Diverging)."""
        outer = self._scope
        prefix = f"{self._where}/"
        inner = outer.another(self._graph.node, self.outputs, outer=outer, prefix=prefix, declared=outer.declared)
        inner.values = dict(zip(self.inputs, values, strict=False))
        for name, x in self._weights.items():
            inner.values.setdefault(name, x)
        inner.run()
        results = [inner.value(name, self._where) for name in self.outputs]
        if any(isinstance(x, Lost) for x in results):
            raise UnsupportedError(f"the body {self._graph.name} has nodes that cannot be imported")
        return results

    @cached_property
    def _weights(self) -> dict[str, Tensor]:
        """Bound once: every import of the body shares the arrays, hence the globals."""
        return {n: Tensor.known(x) for n, x in graph_initializers(self._graph, self._scope.session.folder)}

    def passes_through(self, output: int, input_: int) -> bool:
        """Whether an output is one of the inputs, whatever happens."""
        makers = {name: node for node in self._graph.node for name in node.output}
        name = self.outputs[output]
        while name in makers and makers[name].op_type == "Identity":
            name = makers[name].input[0]
        return name == self.inputs[input_]
