# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a model says about the shapes of its values, and what ONNX's own shape inference adds to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import onnx

from tilewright.frontend.onnx.inference import InferenceFailed, inferred
from tilewright.frontend.onnx.load import all_nodes, subgraphs_of
from tilewright.frontend.onnx.signature import Input

DeclaredShape = tuple[int | None, ...]

_KEPT_ELEMENTS = 1 << 10  # larger initializers do not take part in shape inference: no shape is as long

_NO_DOMAIN = "tilewright.not.inferred"

_PROPAGATED = 1 << 20  # elements of vectors whose values shape inference may follow


@dataclass(frozen=True)
class DeclaredType:
    """Element type (ONNX's number, 0 where it is open) and shape."""

    number: int
    shape: DeclaredShape | None


class Declared:
    """Declared and inferred types by name; found when first asked for, since few models need them.

    Args:
        model: the model.
        inputs: its inputs with static shapes.
        sizes: sizes of symbolic dimensions by name.
    """

    def __init__(self, model: onnx.ModelProto, inputs: Sequence[Input], sizes: Mapping[str, object]) -> None:
        self._model = model
        self._inputs = inputs
        self._sizes = {name: n for name, n in sizes.items() if isinstance(n, int)}

    def shape(self, name: str) -> DeclaredShape | None:
        """The shape of a value, None for each size that is not known; None where not even the rank is."""
        found = self.type(name)
        return None if found is None else found.shape

    def type(self, name: str) -> DeclaredType | None:
        """Element type and shape of a tensor; None where nothing is said of it."""
        return self._types.get(name)

    @cached_property
    def _types(self) -> dict[str, DeclaredType]:
        found: dict[str, DeclaredType] = {}
        self._collect(self._model.graph, found)
        self._collect(_inferred(self._model, self._inputs).graph, found)
        return found

    def _collect(self, graph: onnx.GraphProto, found: dict[str, DeclaredType]) -> None:
        """Add what a graph says; names of different subgraphs that do not agree lose their shapes."""
        for info in (*graph.value_info, *graph.output):
            if info.type.HasField("tensor_type"):
                kind = info.type.tensor_type
                shape = tuple(self._size(d) for d in kind.shape.dim) if kind.HasField("shape") else None
                known = found.get(info.name)
                number = kind.elem_type or (known.number if known else 0)
                found[info.name] = DeclaredType(number, _merged(known.shape, shape) if known else shape)
        for node in graph.node:
            for inner in subgraphs_of(node):
                self._collect(inner, found)

    def _size(self, dim: onnx.TensorShapeProto.Dimension) -> int | None:
        if dim.HasField("dim_value"):
            return dim.dim_value if dim.dim_value >= 0 else None
        return self._sizes.get(dim.dim_param)


def _merged(a: DeclaredShape | None, b: DeclaredShape | None) -> DeclaredShape | None:
    """Both together; None where they contradict each other."""
    if a is None or b is None:
        return b if a is None else a
    if len(a) != len(b) or any(None not in (m, n) and m != n for m, n in zip(a, b, strict=True)):
        return None
    return tuple(n if m is None else m for m, n in zip(a, b, strict=True))


def _inferred(model: onnx.ModelProto, inputs: Sequence[Input]) -> onnx.ModelProto:
    light = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions)
    light.graph.name = model.graph.name
    light.graph.node.extend(model.graph.node)
    _hide_mistaken(light)
    light.graph.output.extend(model.graph.output)
    light.graph.value_info.extend(model.graph.value_info)
    types = {i.name: i for i in model.graph.input}
    for x in inputs:
        kind = onnx.helper.np_dtype_to_tensor_dtype(x.dtype)
        plain = types[x.name].type.HasField("tensor_type")
        shape = [n if isinstance(n, int) else n.name for n in x.specs[0].shape] if plain else []
        light.graph.input.append(_value(x.name, kind, shape) if plain else types[x.name])
    for tensor in model.graph.initializer:
        if prod(tensor.dims) <= _KEPT_ELEMENTS and not tensor.external_data:
            light.graph.initializer.append(tensor)
        else:
            light.graph.input.append(_value(tensor.name, tensor.data_type, tensor.dims))
    for sparse in model.graph.sparse_initializer:
        light.graph.input.append(_value(sparse.values.name, sparse.values.data_type, sparse.dims))
    return _inferred_values(_inferred_shapes(light, values=False))


def _hide_mistaken(model: onnx.ModelProto) -> None:
    """Give Attention with scores another domain: ONNX takes open sizes in their shape to be 0."""
    found = [n for n in all_nodes(model.graph) if n.op_type == "Attention" and len(n.output) > 3]
    for node in found:
        node.domain = _NO_DOMAIN
    if found:
        model.opset_import.add(domain=_NO_DOMAIN, version=1)


def _inferred_values(model: onnx.ModelProto) -> onnx.ModelProto:
    """More shapes, from the values of vectors: inference has an entry for each element, known or not."""
    graph = model.graph
    shapes = (x.type.tensor_type for x in (*graph.input, *graph.output, *graph.value_info))
    return _inferred_shapes(model, values=True) if all(_length(s) <= _PROPAGATED for s in shapes) else model


def _inferred_shapes(model: onnx.ModelProto, values: bool) -> onnx.ModelProto:
    try:
        return inferred(model, strict=False, values=values)
    except (InferenceFailed, ValueError):
        return model  # inference is a help, not a judge


def _length(kind: onnx.TypeProto.Tensor) -> int:
    """The number of elements of a vector; 0 for anything else."""
    return kind.shape.dim[0].dim_value if len(kind.shape.dim) == 1 else 0


def _value(name: str, kind: int, shape: Sequence[int | str]) -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info(name, kind, list(shape))
