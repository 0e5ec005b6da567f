# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Codes of a byte that stand for numbers, by scales and zero points: ONNX's QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.core.dtypes import named
from tilewright.core.errors import UserError
from tilewright.dialects.sparse_tile.formats import Format
from tilewright.fractal.mode import current
from tilewright.fractal.types import TensorType, dtype_of, is_number, type_of
from tilewright.fractal.where import public

_CODES = ("i8", "u8", "f8e4m3fn", "f8e5m2")
_FLOATS = ("f32", "f16", "bf16")


@public
def dequantize(codes: Any, scale: Any, zero: Any = None, dtype: Any = "f32") -> Any:
    """(codes - zero) * scale, computed in f32.

    Weights that a program holds stay codes: whoever multiplies them widens them, or multiplies bytes.

    Args:
        codes: a tensor of i8, u8, f8e4m3fn or f8e5m2.
        scale: floats: a number, or a tensor whose sizes, counted from the right, divide those of the codes; neighbours
            share a scale.
        zero: zero points of the type of the codes, as many as scales or one; integers alone have any.
        dtype: of the result, a float.

    Raises:
        UserError: types or sizes are others.
    """
    mode = current()
    codes, result = mode.as_value(codes), dtype_of(dtype)
    format, numbers = _format(codes, _code_name(_tensor(codes, "codes").dtype), scale, zero)
    _float(result, "the result")
    return mode.dequantize(codes, format, numbers, result)


@public
def quantize(x: Any, scale: Any, zero: Any = None, dtype: Any = "i8") -> Any:
    """saturate(round(x / scale) + zero), halves to even, NaN to the least code.

    Args:
        x: a tensor of f32, f16 or bf16.
        scale: positive floats, as of :func:`dequantize`.
        zero: zero points of the type of the codes.
        dtype: of the codes.

    Raises:
        UserError: types or sizes are others.
    """
    mode = current()
    x = mode.as_value(x)
    _float(_tensor(x, "x").dtype, "x")
    format, numbers = _format(x, _code_name(dtype_of(dtype)), scale, zero)
    return mode.quantize(x, format, numbers)


def _tensor(value: Any, what: str) -> TensorType:
    kind = type_of(value)
    if not isinstance(kind, TensorType):
        raise UserError(f"{what} is a tensor, found {kind}")
    if not kind.shape:
        raise UserError(f"{what} has one dimension or more, found a number")
    return kind


def _code_name(dtype: np.dtype) -> str:
    name = named(dtype.name) or str(dtype)
    if name not in _CODES:
        raise UserError(f"codes are of {', '.join(_CODES)}, found {name}: ft.cast makes numbers of other integers")
    return name


def _float(dtype: np.dtype, what: str) -> str:
    name = named(dtype.name) or str(dtype)
    if name not in _FLOATS:
        raise UserError(f"{what} is of {', '.join(_FLOATS)}, found {name}")
    return name


def _format(x: Any, codes: str, scale: Any, zero: Any) -> tuple[Format, list[Any]]:
    """How codes stand for elements of `x`; scales and zero points with its dimensions."""
    shape = type_of(x).shape
    scale = _number(scale, np.dtype(np.float32))
    given = [scale]
    if zero is not None:
        given.append(_number(zero, Format(codes).held))
    scales = _float(_parameter(scale, "the scale").dtype, "the scale")
    zeros = None if zero is None else _code_name(_parameter(given[1], "the zero point").dtype)
    if zeros not in (None, codes):
        raise UserError(f"zero points are of the type of the codes, {codes}, found {zeros}")
    sizes = [_sizes(type_of(v).shape, shape) for v in given]
    common = [max(column) for column in zip(*sizes, strict=True)]
    group = tuple(None if n == 1 else whole // n for n, whole in zip(common, shape, strict=True))
    format = Format(codes, scales, zeros, group if any(group) else ())
    return format, [_spread(v, known, common) for v, known in zip(given, sizes, strict=True)]


def _number(value: Any, dtype: np.dtype) -> Any:
    if is_number(value):
        if dtype.kind in "iu" and not (np.isfinite(value) and value == int(value) and _holds(dtype, int(value))):
            raise UserError(f"the zero point {value} is none of the codes ({dtype})")
        return np.asarray(value, dtype)
    return np.asarray(value) if isinstance(value, np.ndarray | np.generic) else current().as_value(value)


def _holds(dtype: np.dtype, value: int) -> bool:
    return np.iinfo(dtype).min <= value <= np.iinfo(dtype).max


def _parameter(value: Any, what: str) -> TensorType:
    kind = type_of(value)
    if not isinstance(kind, TensorType):
        raise UserError(f"{what} is a number or a tensor, found {kind}")
    return kind


def _sizes(given: Sequence[int], shape: Sequence[int]) -> list[int]:
    """Sizes of scales with as many dimensions as the tensor."""
    sizes = [1] * (len(shape) - len(given)) + list(given)
    if len(sizes) != len(shape) or any(n == 0 or whole % n for n, whole in zip(sizes, shape, strict=True)):
        raise UserError(
            f"{list(given)} scales or zero points for a tensor {list(shape)}: sizes counted from the right divide the "
            "tensor's, so that as many neighbours share one"
        )
    return sizes


def _spread(value: Any, sizes: Sequence[int], common: Sequence[int]) -> Any:
    """A scale or zero point of these sizes, one for each group."""
    if list(sizes) == list(common):
        return value if list(type_of(value).shape) == list(common) else value.reshape(tuple(common))
    if any(n not in (1, whole) for n, whole in zip(sizes, common, strict=True)):
        raise UserError(f"there are {list(sizes)} and {list(common)} scales and zero points: as many, or one")
    if not isinstance(value, np.ndarray):
        raise UserError(
            f"there are {list(sizes)} and {list(common)} scales and zero points, some of them known in the run only: "
            "as many of both"
        )
    return np.broadcast_to(value.reshape(tuple(sizes)), tuple(common)).copy()
