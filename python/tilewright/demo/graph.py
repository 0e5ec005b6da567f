# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A small builder of ONNX graphs: names every node, keeps weights as initializers, checks the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike
from onnx import TensorProto, helper, numpy_helper

_TYPES = {
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.float64): TensorProto.DOUBLE,
    np.dtype(np.int64): TensorProto.INT64,
    np.dtype(np.int32): TensorProto.INT32,
    np.dtype(np.int8): TensorProto.INT8,
    np.dtype(np.uint8): TensorProto.UINT8,
    np.dtype(np.bool_): TensorProto.BOOL,
}


class GraphBuilder:
    """Collects nodes in order; every method that makes a value returns the value's name.

    Example:
        >>> g = GraphBuilder("mlp")
        >>> x = g.input("x", np.float32, [1, 8])
        >>> y = g.op("Relu", g.op("MatMul", x, g.weight(w)))
        >>> g.output(y, "y", np.float32, [1, 4])
        >>> model = g.model()
    """

    def __init__(self, name: str, opset: int = 17) -> None:
        self.name = name
        self.opset = opset
        self._nodes: list[onnx.NodeProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._initializers: dict[str, onnx.TensorProto] = {}
        self._shared: dict[tuple[str, tuple[int, ...], bytes], str] = {}
        self._scope: list[str] = []
        self._counts: dict[str, int] = {}

    @contextmanager
    def scope(self, name: str) -> Iterator[None]:
        """Prefix the names of what is made inside, as exporters do: /encoder/layer.0/MatMul."""
        self._scope.append(name)
        try:
            yield
        finally:
            self._scope.pop()

    def _unique(self, base: str) -> str:
        path = "/" + "/".join([*self._scope, base])
        count = self._counts.get(path, 0)
        self._counts[path] = count + 1
        return path if count == 0 else f"{path}_{count}"

    def input(self, name: str, dtype: type, shape: Sequence[int | str]) -> str:
        """Declare a graph input; a string in `shape` is a symbolic dimension."""
        self._inputs.append(helper.make_tensor_value_info(name, _TYPES[np.dtype(dtype)], shape))
        return name

    def output(self, value: str, name: str, dtype: type, shape: Sequence[int | str]) -> None:
        """Declare `value` as the graph output called `name`."""
        self._nodes.append(helper.make_node("Identity", [value], [name], name=f"/output/{name}"))
        self._outputs.append(helper.make_tensor_value_info(name, _TYPES[np.dtype(dtype)], shape))

    def weight(self, array: np.ndarray, name: str = "weight") -> str:
        """Add an initializer, named after the current scope."""
        unique = self._unique(name).lstrip("/").replace("/", ".")
        self._initializers[unique] = numpy_helper.from_array(np.ascontiguousarray(array), unique)
        return unique

    def const(self, value: ArrayLike, dtype: type = np.int64) -> str:
        """A small constant; equal constants share one initializer."""
        array = np.asarray(value, dtype=dtype)
        key = (array.dtype.str, array.shape, array.tobytes())
        if key not in self._shared:
            name = f"const_{len(self._shared)}"
            self._initializers[name] = numpy_helper.from_array(array, name)
            self._shared[key] = name
        return self._shared[key]

    def f32(self, value: float) -> str:
        """A scalar float constant."""
        return self.const(value, np.float32)

    def ops(self, kind: str, *inputs: str, outputs: int, **attributes: Any) -> list[str]:
        """Add a node with several outputs."""
        name = self._unique(kind)
        results = [f"{name}_output_{i}" for i in range(outputs)]
        self._nodes.append(helper.make_node(kind, list(inputs), results, name=name, **attributes))
        return results

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one output."""
        return self.ops(kind, *inputs, outputs=1, **attributes)[0]

    def model(self) -> onnx.ModelProto:
        """The finished model. Raises onnx.checker.ValidationError where the graph is malformed."""
        graph = helper.make_graph(
            self._nodes, self.name, self._inputs, self._outputs, list(self._initializers.values())
        )
        opset = [helper.make_opsetid("", self.opset)]
        model = helper.make_model(graph, opset_imports=opset, ir_version=8, producer_name="tilewright.demo")
        onnx.checker.check_model(model)
        return model
