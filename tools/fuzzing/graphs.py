# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A random graph under construction: values with type and shape, which operators of `families.py` are applied to."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSETS = (22, 22, 24, 26)
SIZES = (0, 1, 1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 32, 33, 64, 65)
LARGEST = 4096  # elements of a value: the reference is slow
FLOATS = (TensorProto.FLOAT, TensorProto.FLOAT, TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16)
FLOATS += (TensorProto.BFLOAT16,)
SIGNED = (TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64)
UNSIGNED = (TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64)
BOOL = TensorProto.BOOL


Types = dict[str, tuple[int, tuple[int, ...]]]


class Misfit(Exception):
    """An operator cannot be applied to the values at hand; another one is tried."""


@dataclass(frozen=True)
class Value:
    """A tensor of the graph.

    Attributes:
        name: in the graph.
        dtype: TensorProto's number.
        shape: its sizes.
        exact: its elements do not depend on how sums are ordered or functions approximated.
        given: it is an input or a constant: its elements are in [-8, 8].
    """

    name: str
    dtype: int
    shape: tuple[int, ...]
    exact: bool = True
    given: bool = False

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)


class Graph:
    """Values so far, and the choices; `apply` adds a node."""

    def __init__(self, choose: random.Random) -> None:
        self.choose = choose
        self.values: list[Value] = []
        self.nodes: list[onnx.NodeProto] = []
        self.inputs: list[Value] = []
        self.constants: list[onnx.TensorProto] = []
        self.parameters: dict[str, onnx.TensorProto] = {}
        self.results: list[onnx.ValueInfoProto] = []
        self.opset = choose.choice(OPSETS)
        self._used: set[str] = set()
        self._data = np.random.default_rng(choose.randrange(1 << 32))

    # Values -------------------------------------------------------------------------------------------------------

    def shape(self, low: int = 0, high: int = 4) -> tuple[int, ...]:
        """A shape of `low` to `high` dimensions and at most LARGEST elements."""
        while True:
            shape = tuple(self.choose.choice(SIZES) for _ in range(self.choose.randint(low, high)))
            if prod(shape) <= LARGEST:
                return shape

    def new(self, dtype: int, shape: Sequence[int]) -> Value:
        """A new input, or (one in four) a constant."""
        if prod(shape) > LARGEST:
            raise Misfit
        if self.choose.random() < 0.25:
            return self.constant(random_array(self._data, dtype, shape), dtype)
        value = Value(f"x{len(self.inputs)}", dtype, tuple(shape), given=True)
        self.inputs.append(value)
        self.values.append(value)
        return value

    def constant(self, array: Any, dtype: int | None = None) -> Value:
        """A constant; it is no candidate for `pick`."""
        array = np.asarray(array)
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return Value(name, dtype or self.constants[-1].data_type, array.shape, given=True)

    def array(self, dtype: int, shape: Sequence[int]) -> np.ndarray:
        """Random numbers, for a constant that is computed from them."""
        return random_array(self._data, dtype, shape)

    def parameter(self, array: Any) -> Value:
        """A constant, or (one in seven) an input that holds these values: the compiler does not know them."""
        array = np.asarray(array)
        if self.choose.random() < 0.86:
            return self.constant(array)
        name = f"p{len(self.parameters)}"
        self.parameters[name] = numpy_helper.from_array(array, name)
        return Value(name, self.parameters[name].data_type, array.shape, given=True)

    def ints(self, values: Sequence[int]) -> Value:
        """A parameter of int64."""
        return self.parameter(np.array(list(values), np.int64))

    def pick(self, dtypes: Sequence[int], fits: Callable[[Value], bool] = lambda value: True, low: int = 0) -> Value:
        """A value of one of these types: one of those so far, or a new one."""
        found = [v for v in self.values if v.dtype in dtypes and v.rank >= low and fits(v)]
        if found and self.choose.random() < 0.8:
            return self.choose.choice(found)
        value = self.new(self.choose.choice(list(dtypes)), self.shape(low, max(4, low)))
        if not fits(value):
            raise Misfit
        return value

    def like(self, value: Value, shape: Sequence[int] | None = None) -> Value:
        """A value of the same type that broadcasts with `value`; of the given shape, where given."""
        shape = self.broadcastable(value.shape) if shape is None else tuple(shape)
        found = [v for v in self.values if v.dtype == value.dtype and v.shape == shape]
        return self.choose.choice(found) if found and self.choose.random() < 0.5 else self.new(value.dtype, shape)

    def broadcastable(self, shape: Sequence[int]) -> tuple[int, ...]:
        """A shape that broadcasts with another."""
        kept = [n if self.choose.random() < 0.7 else 1 for n in shape]
        return tuple(kept[self.choose.randint(0, len(kept)) if self.choose.random() < 0.3 else 0 :])

    def axis(self, value: Value) -> int:
        """An axis, negative or not."""
        if value.rank == 0:
            raise Misfit
        return self.choose.randrange(-value.rank, value.rank)

    # Nodes --------------------------------------------------------------------------------------------------------

    def apply(
        self, kind: str, inputs: Sequence[Value | None], *, outputs: int = 1, exact: bool, **attributes: Any
    ) -> list[Value]:
        """Add a node; its results' types are those that ONNX infers."""
        given = [v for v in inputs if v is not None]
        node = self._node(kind, [v.name if v else "" for v in inputs], outputs, attributes)
        types = self._infer(node, inputs)
        if any(None in shape for _, shape in types.values()):
            raise Misfit
        return self.add(node, types, exact and all(v.exact for v in given))

    def open(self, kind: str, inputs: Sequence[Value | str], **attributes: Any) -> str:
        """Add a node whose result has sizes that depend on data: a name, for `close`, not for `pick`."""
        values = [v if isinstance(v, Value) else None for v in inputs]
        _require_types(onnx.defs.get_schema(kind, self.opset, ""), values)
        node = self._node(kind, [v.name if isinstance(v, Value) else v for v in inputs], 1, attributes)
        self.nodes.append(node)
        self._used |= set(node.input)
        return node.output[0]

    def close(self, name: str, dtype: int, rank: int) -> None:
        """The result of `open` is a result of the program."""
        self.results.append(helper.make_tensor_value_info(name, dtype, [None] * rank))

    def add(self, node: onnx.NodeProto, types: Types, exact: bool) -> list[Value]:
        """Add a node whose results have the given types."""
        self.nodes.append(node)
        self._used |= set(node.input)
        values = [Value(name, *types[name], exact=exact) for name in node.output]
        self.values += values
        return values

    def use(self, *values: Value) -> None:
        """Bodies of nodes read these."""
        self._used |= {v.name for v in values}

    def _node(self, kind: str, inputs: Sequence[str], outputs: int, attributes: dict[str, Any]) -> onnx.NodeProto:
        names = [f"v{len(self.values)}_{len(self.nodes)}_{i}" for i in range(outputs)]
        attributes = {name: value for name, value in attributes.items() if value != []}
        return helper.make_node(kind, inputs, names, **attributes)

    def _infer(self, node: onnx.NodeProto, inputs: Sequence[Value | None]) -> Types:
        try:
            schema = onnx.defs.get_schema(node.op_type, self.opset, "")
        except onnx.defs.SchemaError as error:
            raise Misfit from error
        _require_types(schema, inputs)
        types = {v.name: helper.make_tensor_type_proto(v.dtype, v.shape) for v in inputs if v is not None}
        data = {t.name: t for t in (*self.constants, *self.parameters.values()) if t.name in types}
        try:
            found = onnx.shape_inference.infer_node_outputs(
                schema, node, types, data, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=10
            )
        except onnx.shape_inference.InferenceError as error:
            raise Misfit from error
        result = {}
        for name in node.output:
            kind = found[name].tensor_type if name in found else None
            if kind is None or not kind.HasField("shape"):
                raise Misfit
            shape = tuple(d.dim_value if d.HasField("dim_value") else None for d in kind.shape.dim)
            if prod(n or 0 for n in shape) > 4 * LARGEST or any(n is not None and n < 0 for n in shape):
                raise Misfit
            result[name] = (kind.elem_type, shape)
        return result

    def model(self, seed: int) -> onnx.ModelProto:
        """The graph; what nothing reads is an output."""
        info = helper.make_tensor_value_info
        outputs = [v for v in self.values if v.name not in self._used and not v.given]
        inputs = [info(v.name, v.dtype, v.shape) for v in self.inputs if v.name in self._used]
        for name, tensor in self.parameters.items():
            if name in self._used:
                held = json.dumps(numpy_helper.to_array(tensor).tolist())
                inputs.append(info(name, tensor.data_type, tensor.dims, doc_string=held))
        graph = helper.make_graph(
            self.nodes,
            "program",
            inputs,
            [*(info(v.name, v.dtype, v.shape) for v in outputs), *self.results],
            [t for t in self.constants if t.name in self._used],
        )
        opsets = [helper.make_opsetid("", self.opset)]
        version = helper.find_min_ir_version_for(opsets)
        return helper.make_model(graph, opset_imports=opsets, ir_version=version, doc_string=str(seed))


def _require_types(schema: onnx.defs.OpSchema, inputs: Sequence[Value | None]) -> None:
    """The operator takes values of these types."""
    for i, value in enumerate(inputs):
        if value is not None:
            formal = schema.inputs[min(i, len(schema.inputs) - 1)]
            if f"tensor({TensorProto.DataType.Name(value.dtype).lower()})" not in formal.types:
                raise Misfit


def random_array(data: np.random.Generator, dtype: int, shape: Sequence[int]) -> np.ndarray:
    """Numbers in [-8, 8], those of small integer types fewer; bool at random."""
    kind = helper.tensor_dtype_to_np_dtype(dtype)
    if dtype == BOOL:
        return data.integers(0, 2, shape).astype(bool)
    if dtype in UNSIGNED:
        return data.integers(0, 9, shape).astype(kind)
    if dtype in SIGNED:
        return data.integers(-8, 9, shape).astype(kind)
    return (data.standard_normal(shape) * 2).clip(-8, 8).astype(kind)
