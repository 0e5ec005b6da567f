# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The inputs of a graph: symbolic dimensions, sequences and optionals resolved by `shapes`, or left symbolic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx

from tilewright.core.dtypes import from_numpy
from tilewright.core.errors import OpenShapesError, UnsupportedError, UserError
from tilewright.frontend.model import Symbol, TensorSpec

# By name: the size of a symbolic dimension or its range (low, high), the whole shape of an input, a shape per tensor of
# a sequence, or None for an optional that holds nothing.
Shapes = Mapping[str, "int | Sequence[int] | Sequence[Sequence[int]] | None"]


@dataclass(frozen=True)
class Input:
    """An input of the graph and the tensors that stand for it.

    Attributes:
        name: of the graph's input.
        kind: "tensor", "sequence" (a tensor x[i] for each of its own), or "absent": an optional that holds nothing.
        specs: its tensors.
        dtype: of its elements.
    """

    name: str
    kind: str
    specs: tuple[TensorSpec, ...]
    dtype: np.dtype


def graph_inputs(model: onnx.ModelProto, shapes: Shapes | None, symbolic: bool = False) -> list[Input]:
    """The graph's inputs. Those with an initializer are constants.

    Args:
        model: the model.
        shapes: see Shapes.
        symbolic: dimensions without a size become Symbols.

    Raises:
        OpenShapesError: a dimension is neither static nor in `shapes`, and not symbolic.
        UserError: `shapes` does not fit.
        UnsupportedError: a sequence without a length, or a map.
    """
    known = {t.name for t in model.graph.initializer} | {t.values.name for t in model.graph.sparse_initializer}
    infos = [i for i in model.graph.input if i.name not in known]
    reader = _Reader(dict(shapes or {}), symbolic)
    inputs = [reader.input(i) for i in infos]
    unknown = sorted(set(reader.shapes) - reader.used)
    if unknown:
        raise UserError(_no_such_name(unknown, infos))
    if reader.missing:
        error = OpenShapesError(_open_message(reader))
        if all(i.kind == "tensor" for i in inputs):
            rows = zip(infos, inputs, strict=True)
            error.inputs = tuple((i.name, from_numpy(x.dtype), _declared(i)) for i, x in rows)
        raise error
    return inputs


def _open_message(reader: _Reader) -> str:
    examples = sorted(reader.examples.items())
    given = ", ".join(f'"{name}": {value}' for name, value in examples)
    words = " ".join(f"--shape {name}={str(value).strip('[]').replace(' ', '')}" for name, value in examples)
    where = "; ".join(reader.missing)
    return f"dimensions without a size: {where}. Fix them with shapes={{{given}}} (in a command: {words})"


def _no_such_name(unknown: Sequence[str], infos: Sequence[onnx.ValueInfoProto]) -> str:
    text = f"shapes names {', '.join(unknown)}, which is no symbolic dimension and no input of this model"
    symbols = sorted({d for i in infos for d in _declared(i) or () if isinstance(d, str)})
    known = [f"its dimensions are {', '.join(symbols)}"] if symbols else []
    known += [f"its inputs {', '.join(i.name for i in infos)}"] if infos else []
    return f"{text}; {', '.join(known)}" if known else text


def _tensor_type(kind: onnx.TypeProto) -> onnx.TypeProto.Tensor:
    """The type of a tensor, or of the tensor that an optional holds."""
    return _tensor_type(kind.optional_type.elem_type) if kind.HasField("optional_type") else kind.tensor_type


def _sequence_type(kind: onnx.TypeProto) -> onnx.TypeProto.Tensor | None:
    """The type of the tensors in a sequence, or in the sequence that an optional holds; None for other types."""
    if kind.HasField("optional_type"):
        return _sequence_type(kind.optional_type.elem_type)
    if kind.HasField("sequence_type") and kind.sequence_type.elem_type.HasField("tensor_type"):
        return kind.sequence_type.elem_type.tensor_type
    return None


class _Reader:
    def __init__(self, shapes: dict, symbolic: bool) -> None:
        self.shapes = shapes
        self.symbolic = symbolic
        self.used: set[str] = set()
        self.missing: list[str] = []
        self.examples: dict[str, int | list[int]] = {}  # how to give what is missing

    def input(self, info: onnx.ValueInfoProto) -> Input:
        """One input."""
        kind = info.type
        sequence = _sequence_type(kind)
        tensor = _tensor_type(kind) if sequence is None else sequence
        if not (tensor.elem_type or kind.HasField("tensor_type")):
            raise UnsupportedError(f"input {info.name} is neither a tensor nor a sequence of tensors")
        dtype = _dtype(info.name, tensor.elem_type)
        if kind.HasField("optional_type") and info.name in self.shapes and self.shapes[info.name] is None:
            self.used.add(info.name)
            return Input(info.name, "absent", (), dtype)
        if sequence is not None:
            return Input(info.name, "sequence", self._sequence(info.name, sequence, dtype), dtype)
        return Input(info.name, "tensor", (self._tensor(info.name, tensor, dtype),), dtype)

    def _sequence(self, name: str, kind: onnx.TypeProto.Tensor, dtype: np.dtype) -> tuple[TensorSpec, ...]:
        given = self.shapes.get(name)
        if not isinstance(given, Sequence) or not all(isinstance(s, Sequence) for s in given):
            example = f'shapes={{"{name}": [[2, 3], [2, 3]]}}'
            raise UnsupportedError(
                f"input {name} is a sequence, whose length must be known: give its tensors' shapes, as in {example}"
            )
        self.used.add(name)
        dims = list(kind.shape.dim) if kind.HasField("shape") else None
        rows = enumerate(given)
        return tuple(
            TensorSpec(f"{name}[{i}]", dtype, _whole_shape(f"{name}[{i}]", s, dims, self.shapes)) for i, s in rows
        )

    def _tensor(self, name: str, kind: onnx.TypeProto.Tensor, dtype: np.dtype) -> TensorSpec:
        dims = list(kind.shape.dim) if kind.HasField("shape") else None
        given = self.shapes.get(name)
        if isinstance(given, Sequence):
            self.used |= {name, *(d.dim_param for d in dims or ())}
            return TensorSpec(name, dtype, _whole_shape(name, given, dims, self.shapes))
        if dims is None:
            self.missing.append(f"{name} (its shape is unknown: give the whole shape)")
            self.examples[name] = [2, 3]
            return TensorSpec(name, dtype, ())
        sizes = tuple(self._size(name, axis, dim) for axis, dim in enumerate(dims))
        if self.symbolic:
            return TensorSpec(name, dtype, tuple(0 if n is None else n for n in sizes))
        symbols = [d.dim_param for d, n in zip(dims, sizes, strict=True) if n is None]
        if all(symbols):
            self.examples.update(dict.fromkeys(symbols, 1))
        else:
            self.examples[name] = [1 if n is None else n for n in sizes]
        return TensorSpec(name, dtype, tuple(n if isinstance(n, int) else 0 for n in sizes))

    def _size(self, name: str, axis: int, dim: onnx.TensorShapeProto.Dimension) -> int | Symbol | None:
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            return dim.dim_value
        symbol = dim.dim_param
        given = self.shapes.get(symbol)
        if symbol and isinstance(given, int):
            self.used.add(symbol)
            if given < 0:
                raise UserError(f"shapes gives {symbol} the size {given}; sizes are not negative")
            return given
        low, high = 0, None
        if symbol and isinstance(given, Sequence):
            self.used.add(symbol)
            low, high = _range(symbol, given)
        if self.symbolic:
            return Symbol(symbol or f"{name}[{axis}]", low, high)
        unnamed = f"{name} (dimension {axis} has no name: give the whole shape)"
        self.missing.append(f"{symbol} (dimension {axis} of {name})" if symbol else unnamed)
        return None


def _range(symbol: str, given: Sequence) -> tuple[int, int]:
    if len(given) != 2 or not all(isinstance(n, int) for n in given) or not 0 <= given[0] <= given[1]:
        raise UserError(f"shapes gives {symbol} {list(given)}: a size, or its range (low, high), is needed")
    return given[0], given[1]


def _declared(info: onnx.ValueInfoProto) -> tuple[int | str | None, ...] | None:
    """The dimensions as the model gives them: sizes, names, None for what has neither; None for an open rank."""
    kind = _tensor_type(info.type)
    if not kind.HasField("shape"):
        return None
    fixed = [
        (d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else d.dim_param or None) for d in kind.shape.dim
    ]
    return tuple(fixed)


def _whole_shape(name: str, given: Sequence, dims: list | None, sizes: Mapping[str, object]) -> tuple[int, ...]:
    """The shape given for an input; it must fit the declared dimensions, and the sizes given for their names."""
    try:
        shape = tuple(int(n) for n in given)
    except (TypeError, ValueError) as error:
        raise UserError(f"shapes gives {name} {list(given)}, which is no shape") from error
    if dims is None:
        return shape
    named = [n if isinstance(n := sizes.get(d.dim_param), int) else None for d in dims]
    fixed = [d.dim_value if d.HasField("dim_value") else n for d, n in zip(dims, named, strict=True)]
    if len(fixed) != len(shape) or any(f not in (None, n) for f, n in zip(fixed, shape, strict=True)):
        declared = ", ".join(d.dim_param or "?" if f is None else str(f) for f, d in zip(fixed, dims, strict=True))
        raise UserError(f"shapes gives {name} the shape {list(shape)}, but the model declares [{declared}]")
    return shape


def _dtype(name: str, number: int) -> np.dtype:
    if number == onnx.TensorProto.STRING:
        raise UnsupportedError(f"input {name} holds strings, which have no lowering")
    try:
        return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number))
    except (KeyError, ValueError) as error:
        raise UserError(f"input {name} has the unknown element type {number}") from error
