# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the operations of the `sparse_tile` dialect mean: encoded tensors are :class:`Encoded`, others arrays."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tilewright.core.errors import UserError
from tilewright.dialects.sparse_tile.encoded import Encoded
from tilewright.dialects.sparse_tile.formats import Format
from tilewright.dialects.sparse_tile.patterns import in_units
from tilewright.dialects.sparse_tile.tesa import Tesa
from tilewright.mlir import ir
from tilewright.reference import types
from tilewright.reference.errors import InterpreterError
from tilewright.reference.program import Node
from tilewright.reference.registry import handles


def _op(name: str) -> Any:
    """Register a handler; what a codec refuses is undefined behaviour of the program."""

    def register(handler: Any) -> Any:
        @handles(f"sparse_tile.{name}")
        @functools.wraps(handler)
        def checked(frame: Any, node: Node, *operands: Any) -> Any:
            try:
                return handler(node, *operands)
            except UserError as error:
                raise InterpreterError(f"sparse_tile.{name}: {error}") from None

        return checked

    return register


def _tesa(node: Node) -> Tesa:
    """The encoding of the op's result."""
    return node.once("tesa", lambda: Tesa.of(node.result_type()))


def dense(value: Any) -> np.ndarray:
    """A tensor's elements, encoded or not."""
    return value.dense() if isinstance(value, Encoded) else value


@_op("pack")
def pack(node: Node, source: np.ndarray) -> Encoded:
    """The tensor, held by its pattern."""
    return Encoded.pack(source, _tesa(node))


@_op("unpack")
def unpack(_node: Node, source: Encoded) -> np.ndarray:
    """The sum of the regions."""
    return source.dense()


@_op("parts")
def parts(_node: Node, source: Encoded) -> Any:
    """The arrays that hold the tensor; bytes have no sign."""
    held = [part.view(np.int8) if part.dtype == np.uint8 else part for part in source.parts]
    return held if len(held) > 1 else held[0]


@_op("assemble")
def assemble(node: Node, *held: np.ndarray) -> Encoded:
    """The tensor that the arrays hold; they must be sound."""
    dtype, shape = types.dtype_of(node.result_type()), types.shape_of(node.result_type())
    if types.DYNAMIC in shape and {region.pattern.kind for region in _tesa(node).regions} <= {"dense", "dynamic"}:
        shape = held[0].shape
    if types.DYNAMIC in shape:
        raise InterpreterError("sparse_tile.assemble: a result of open sizes cannot be told from its parts")
    result = Encoded(_tesa(node), shape, dtype, tuple(held))
    result.dense()  # tells parts that do not fit
    return result


@_op("quantize")
def quantize(node: Node, source: Any, scales: np.ndarray, zero_points: np.ndarray | None = None) -> Encoded:
    """Elements rounded to codes."""
    (region,) = _tesa(node).regions
    assert region.format
    plain = source if isinstance(source, Encoded) else Encoded.pack(source, Tesa.one(region.pattern))
    return plain.quantize(region.format, scales, zero_points)


@_op("dequantize")
def dequantize(node: Node, source: Encoded) -> Any:
    """Elements of codes; an array where the result has no encoding."""
    result = source.dequantize()
    return result if _tesa(node) else result.dense()


@_op("decode")
def decode(node: Node, code: Any, *numbers: Any) -> Any:
    """The number that a code stands for."""
    format, zero, scale = node.once("format", lambda: _decoding(node))
    at = iter(numbers)
    zero, scale = (np.asarray(next(at)) if held else None for held in (zero, scale))
    codes = np.asarray(code)
    shape = np.broadcast_shapes(*(a.shape for a in (codes, zero, scale) if a is not None))
    zero, scale = (None if a is None else np.broadcast_to(a, shape) for a in (zero, scale))
    dtype = types.dtype_of(node.result_type())
    format = replace(format, group=(1,) * len(shape))  # a number of its own for each code
    return format.dequantize(np.broadcast_to(codes, shape), scale, zero, dtype)[()]


def _decoding(node: Node) -> tuple[Format, bool, bool]:
    """The format of a `decode`, and whether it has a zero point and a scale."""
    op = node.op
    _, zero, scale = ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"])
    whole = "u8" if "is_unsigned" in op.attributes else "i8"
    name = "f8e4m3fn" if isinstance(op.operands[0].type, ir.FloatType) else whole
    return Format(name, "f32", "f32" if zero else None), bool(zero), bool(scale)


@_op("index")
def index(node: Node, source: Any) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of the live micro-tiles along the axis, ascending (one of the orders that arrival allows), and counts."""
    unit, axis = types.integers(node.attribute("unit")), node.op.attributes["axis"].value
    array = dense(source)
    blocks = in_units(array, unit)
    live = (blocks != 0).any(axis=tuple(range(1, blocks.ndim, 2)))
    numbers = np.arange(live.shape[axis], dtype=np.int32).reshape([-1 if d == axis else 1 for d in range(live.ndim)])
    order = np.argsort(~live, axis=axis, kind="stable")
    found = np.take_along_axis(np.where(live, numbers, np.int32(-1)), order, axis=axis)
    return found.astype(np.int32), live.sum(axis=axis, keepdims=True).astype(np.int32)


@_op("gather")
def gather(node: Node, source: Any, indices: np.ndarray) -> np.ndarray:
    """Slices side by side, zeros for -1."""
    axis, array = node.op.attributes["axis"].value, dense(source)
    _check_indices(indices, array.shape[axis], once=False)
    picked = np.take(array, np.maximum(indices, 0), axis=axis)
    return np.where(_along(indices >= 0, axis, array.ndim), picked, np.zeros((), array.dtype))


@_op("scatter")
def scatter(node: Node, source: np.ndarray, init: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Slices back at their places, those of -1 nowhere."""
    axis, add = node.op.attributes["axis"].value, node.attribute("accumulate") is not None
    _check_indices(indices, init.shape[axis], once=not add)
    result = np.moveaxis(init.copy(), axis, 0)
    slices = np.moveaxis(source, axis, 0)[indices >= 0]
    if add:
        np.add.at(result, indices[indices >= 0], slices)
    else:
        result[indices[indices >= 0]] = slices
    return np.ascontiguousarray(np.moveaxis(result, 0, axis))


@_op("matmul")
def matmul(_node: Node, a: Any, b: Any, c: np.ndarray) -> np.ndarray:
    """a @ b + c over what the encodings keep, summed in f32 at least and rounded once."""
    wide = np.float64 if c.dtype == np.float64 else np.float32
    left, right = (dense(x).astype(wide) for x in (a, b))
    if np.isfinite(left).all() and np.isfinite(right).all():
        return (left @ right + c.astype(wide)).astype(c.dtype)
    total = c.astype(wide)
    keeps_a, keeps_b = (x.kept() if isinstance(x, Encoded) else np.ones(x.shape, bool) for x in (a, b))
    for k in range(left.shape[1]):  # a zero that is not held meets no infinity
        held = keeps_a[:, k, None] & keeps_b[None, k]
        total += np.where(held, left[:, k, None] * right[None, k], 0)
    return total.astype(c.dtype)


def _along(values: np.ndarray, axis: int, rank: int) -> np.ndarray:
    return values.reshape([-1 if dim == axis else 1 for dim in range(rank)])


def _check_indices(indices: Sequence[int] | np.ndarray, size: int, once: bool) -> None:
    """UserError for an index that is no slice, or that occurs twice where each may occur once."""
    array = np.asarray(indices)
    wrong = np.flatnonzero((array < -1) | (array >= size))
    if len(wrong):
        raise UserError(f"index {array[wrong[0]]} at {wrong[0]} is none of {size} slices, nor -1")
    found, counts = np.unique(array[array >= 0], return_counts=True)
    if once and (counts > 1).any():
        raise UserError(f"index {found[counts > 1][0]} occurs twice: only accumulate adds slices up")
