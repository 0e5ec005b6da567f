# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Math on leaf tensors: NumPy's functions on arrays, ops while a program is traced."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.dialects.fractal.values import Lists
from tilewright.fractal.elementwise import TABLE
from tilewright.fractal.tracing.values import ListValue, TensorValue
from tilewright.fractal.types import ListType, dtype_of, is_number, number_dtype, type_of
from tilewright.fractal.where import public


def _tracer(values: Sequence[Any]) -> Any:
    """Who traces one of the values, None where all are NumPy's.

    Raises:
        UserError: one is a list.
    """
    for value in values:
        if isinstance(value, ListValue | Lists):
            raise UserError(f"it takes tensors, found {type_of(value)}: ft.map applies it to the elements")
    return next((value.tracer for value in values if isinstance(value, TensorValue)), None)


def _elementwise(name: str, *values: Any) -> Any:
    tracer = _tracer(values)
    return TABLE[name].eager(*values) if tracer is None else tracer.elementwise(name, values)


@public
def exp(x: Any) -> Any:
    """The exponential function."""
    return _elementwise("exp", x)


@public
def log(x: Any) -> Any:
    """The natural logarithm."""
    return _elementwise("log", x)


@public
def sqrt(x: Any) -> Any:
    """The square root."""
    return _elementwise("sqrt", x)


@public
def tanh(x: Any) -> Any:
    """The hyperbolic tangent."""
    return _elementwise("tanh", x)


@public
def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))."""
    return _elementwise("sigmoid", x)


@public
def relu(x: Any) -> Any:
    """x where it is positive, else 0."""
    return _elementwise("relu", x)


@public
def abs(x: Any) -> Any:
    """The magnitude."""
    return _elementwise("absolute", x)


@public
def maximum(x: Any, y: Any) -> Any:
    """The larger of two elements."""
    return _elementwise("maximum", x, y)


@public
def minimum(x: Any, y: Any) -> Any:
    """The smaller of two elements."""
    return _elementwise("minimum", x, y)


@public
def where(condition: Any, x: Any, y: Any) -> Any:
    """x where the condition holds, else y."""
    tracer = _tracer((condition, x, y))
    if tracer is not None:
        return tracer.where(condition, x, y)
    if is_number(x) and is_number(y):
        x, y = np.asarray([x, y], number_dtype(x, y))
    return np.where(condition, x, y)


@public
def cast(x: Any, dtype: Any) -> Any:
    """Another element type, by our name (`"f16"`) or NumPy's."""
    tracer = _tracer((x,))
    return np.asarray(x).astype(dtype_of(dtype)) if tracer is None else tracer.cast(x, dtype_of(dtype))


Axis = int | tuple[int, ...] | None


def _reduce(name: str, x: Any, axis: Axis, keepdims: bool) -> Any:
    tracer = _tracer((x,))
    if tracer is None:
        return np.asarray(getattr(np, name)(x, axis=axis, keepdims=keepdims))
    return tracer.reduce_axes(name, x, axis, keepdims)


@public
def sum(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """The sum along some dimensions, or of all elements."""
    return _reduce("sum", x, axis, keepdims)


@public
def max(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """The largest element along some dimensions, or of all; `maximum` compares two tensors."""
    return _reduce("max", x, axis, keepdims)


@public
def min(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """The smallest element along some dimensions, or of all; `minimum` compares two tensors."""
    return _reduce("min", x, axis, keepdims)


@public
def mean(x: Any, axis: Axis = None, keepdims: bool = False) -> Any:
    """The mean along some dimensions, or of all elements."""
    total = _reduce("sum", x, axis, keepdims)
    return total / (np.prod(np.shape(x) if _tracer((x,)) is None else x.shape) / np.prod(total.shape)).item()


@public
def rowmax(x: Any) -> Any:
    """The largest element of each row (the last dimension), which keeps a dimension of size 1."""
    return _reduce("max", x, -1, True)


@public
def rowsum(x: Any) -> Any:
    """The sum of each row (the last dimension), which keeps a dimension of size 1."""
    return _reduce("sum", x, -1, True)


@public
def softmax(x: Any, axis: int = -1) -> Any:
    """Exponentials that add up to one along a dimension; the largest element is subtracted first."""
    exps = _elementwise("exp", x - _reduce("max", x, axis, True))
    return exps / _reduce("sum", exps, axis, True)


@public
def transpose(x: Any, axes: Sequence[int] | None = None) -> Any:
    """Dimensions in another order, by default the reverse."""
    tracer = _tracer((x,))
    return np.transpose(x, axes) if tracer is None else tracer.transpose(x, axes)


@public
def reshape(x: Any, shape: Sequence[int] | int) -> Any:
    """The same elements in row-major order with other sizes, of which one may be -1."""
    tracer = _tracer((x,))
    return np.reshape(x, shape) if tracer is None else tracer.reshape(x, shape)


@public
def concat(values: Any, axis: int = 0) -> Any:
    """Tensors side by side along a dimension: a tuple, a Python list, or a list (of one level)."""
    if isinstance(values, ListValue | Lists):
        kind = type_of(values)
        if not isinstance(kind, ListType) or kind.depth != 1 or not isinstance(kind.lengths[0], int):
            raise UserError(f"it takes one list of a known length, found {kind}")
        if axis == 0 and kind.leaf.shape:
            rows, *inner = kind.leaf.shape
            return values.array().reshape(kind.lengths[0] * rows, *inner)
        values = [values[i] for i in range(kind.lengths[0])]
    values = list(values)
    tracer = _tracer(values)
    return np.concatenate(values, axis) if tracer is None else tracer.concat(values, axis)


cat = concat


@public
def zeros(*shape: Any, dtype: Any = "f32") -> np.ndarray:
    """A tensor of zeros: ``zeros(1, 512)``."""
    return np.zeros(_shape(shape), dtype_of(dtype))


@public
def full(shape: Any, value: float, dtype: Any = "f32") -> np.ndarray:
    """A tensor of one number: ``full((1, 512), 0.5)``."""
    return np.full(_shape((shape,)), value, dtype_of(dtype))


def _shape(shape: tuple) -> tuple[int, ...]:
    sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
    if not all(isinstance(size, int) for size in sizes):
        raise UserError(f"the shape {sizes} has a size that is no number: leaves have static shapes")
    return tuple(sizes)
