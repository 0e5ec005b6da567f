# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""MLIR types and attributes as NumPy dtypes, shapes and values.

A tensor, memref or tile is an ``np.ndarray`` (a memref is written in place, and views share memory); a scalar is a
NumPy scalar; ``index`` is int64; ``i1`` is bool; signless integers are held as signed ones.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.core.dtypes import of_mlir
from tilewright.core.errors import UnsupportedError
from tilewright.mlir import ir
from tilewright.reference.errors import InterpreterError

DYNAMIC = ir.ShapedType.get_dynamic_size()


def shaped(type_: ir.Type) -> ir.ShapedType | None:
    """Return a tensor, memref, vector or tile type as a ShapedType; None for others."""
    if isinstance(type_, ir.ShapedType):
        return type_
    try:
        return ir.ShapedType(type_)
    except ValueError:
        return None


def dtype_of(type_: ir.Type) -> np.dtype:
    """Return the dtype of a scalar type, or of the elements of a shaped one.

    Raises:
        InterpreterError: the element type has no NumPy form.
    """
    array = shaped(type_)
    try:
        return of_mlir(str(type_ if array is None else array.element_type))
    except UnsupportedError as error:
        raise InterpreterError(str(error)) from None


def shape_of(type_: ir.Type) -> tuple[int, ...]:
    """Return the shape of a shaped type; a dynamic size is ``DYNAMIC``, a scalar's shape is ()."""
    array = shaped(type_)
    return () if array is None else tuple(array.shape)


def is_float(dtype: np.dtype) -> bool:
    """True for every real float dtype, those of ml_dtypes included."""
    return "float" in dtype.name


def poison(dtype: np.dtype) -> Any:
    """The value of memory that nobody wrote: NaN, so that a use of it shows, or an unlikely integer."""
    if is_float(dtype) or dtype.kind == "c":
        return np.asarray(np.nan).astype(dtype)[()]
    return dtype.type(0 if dtype.itemsize == 1 else 7777 if dtype.kind == "u" else -7777)


def uninitialised(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return a fresh array of ``shape`` full of poison."""
    return np.full(shape, poison(dtype), dtype)


def constant(attribute: ir.Attribute) -> Any:
    """Return the value of a constant attribute: a NumPy scalar, or an array (read-only when it is a splat).

    Raises:
        InterpreterError: the kind of attribute is not a plain constant.
    """
    if isinstance(attribute, ir.DenseElementsAttr):
        return _dense(attribute)
    if isinstance(attribute, (ir.FloatAttr, ir.IntegerAttr, ir.BoolAttr)):
        return _wrap(attribute.value, dtype_of(attribute.type))
    raise InterpreterError(f"not a plain constant: {attribute}")


def _wrap(value: Any, dtype: np.dtype) -> Any:
    """Make ``value`` a scalar of ``dtype``; an integer is taken modulo its width."""
    if is_float(dtype):
        return np.asarray(float(value), np.float64).astype(dtype)[()]
    if dtype == np.bool_:
        return np.bool_(bool(value))
    return np.asarray(int(value) & 0xFFFFFFFFFFFFFFFF, np.uint64).astype(dtype)[()]


def _dense(attribute: ir.DenseElementsAttr) -> np.ndarray:
    dtype, shape = dtype_of(attribute.type), shape_of(attribute.type)
    if attribute.is_splat:
        return np.broadcast_to(_wrap(attribute.get_splat_value().value, dtype), shape)
    if dtype.isbuiltin == 1 and dtype.kind != "c":
        return np.array(memoryview(attribute)).astype(dtype, copy=False)  # pyright: ignore[reportArgumentType]
    return _from_text(str(attribute), dtype).reshape(shape)  # the bindings do not read these element types


def _from_text(text: str, dtype: np.dtype) -> np.ndarray:
    """Read the elements of a printed ``dense<...>``: a list of numbers, or a string of hexadecimal bytes."""
    body = text[text.index("<") + 1 : text.rindex(">", 0, text.rindex(":"))]
    if body.startswith('"0x'):
        return np.frombuffer(bytes.fromhex(body[3:-1]), dtype)
    words = re.findall(r"[^\[\],\s]+", body)
    numbers = np.array([0.0 if word.startswith("0x") else float(word) for word in words]).astype(dtype)
    bits = numbers.view(f"u{dtype.itemsize}")
    for i, word in enumerate(words):
        if word.startswith("0x"):  # what is not finite
            bits[i] = int(word, 16)
    return numbers


def complex_constant(text: str, type_: ir.Type) -> np.ndarray:
    """Return the value of a printed constant ``... dense<...> : type`` of complex elements, which have no bindings."""
    dtype = dtype_of(type_)
    pairs = text[text.index("dense<") :].replace("(", "[").replace(")", "]")
    flat = _from_text(pairs, np.dtype(f"f{dtype.itemsize // 2}")).view(dtype)
    return np.broadcast_to(flat[0], shape_of(type_)) if flat.size == 1 else flat.reshape(shape_of(type_))


def strided(array: np.ndarray, shape: Sequence[int], strides: Sequence[int], writeable: bool = True) -> np.ndarray:
    """Return a view of ``array`` from its first element with ``strides`` in bytes."""
    plain = array.view(np.uint8) if array.dtype.itemsize == 1 else array  # NumPy does not know some of ml_dtypes' types
    view = np.lib.stride_tricks.as_strided(plain, shape, strides, writeable=writeable)
    return view.view(array.dtype)


def integers(attribute: ir.Attribute | None) -> list[int]:
    """Return the integers of a dense i64 array attribute, or of an array of integer attributes."""
    if attribute is None:
        return []
    if isinstance(attribute, ir.ArrayAttr):
        return [item.value for item in attribute]
    return list(attribute)


def fill_dynamic(static: list[int], dynamic: tuple[Any, ...]) -> list[int]:
    """Replace each dynamic marker of ``static`` by the next value of ``dynamic``."""
    values = iter(dynamic)
    return [int(next(values)) if size == DYNAMIC else size for size in static]
