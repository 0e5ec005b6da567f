# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bytes that stand for numbers: scale, zero point, and what moves them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.ir.generics import create
from tilewright.mlir import ir

#: Dimensions that a tensor is indexed by; None stands for index 0.
Dims = tuple[int | None, ...]


@dataclass(frozen=True)
class Scale:
    """A scale: a number, or a tensor with the dimensions of the bytes that it is indexed by."""

    number: float = 1.0
    tensor: ir.Value | None = None
    dims: Dims = ()


@dataclass(frozen=True)
class Zero:
    """A zero point: a number, and maybe a tensor of i8 or i32, with the dimensions that it is indexed by, added."""

    number: int = 0
    tensor: ir.Value | None = None
    unsigned: bool = False
    dims: Dims = ()

    def __bool__(self) -> bool:
        """Whether there is something to correct."""
        return self.tensor is not None or self.number != 0

    def moved(self, by: int) -> Zero:
        """The zero point of bytes to which `by` was added."""
        return replace(self, number=self.number + by)


@dataclass(frozen=True)
class Move:
    """An operation that only moves elements, or puts them between zeros; an elementwise one reads them by a map."""

    op: ir.Operation
    reads: ir.AffineMap | None = None


def indexed_by(of: Scale | Zero) -> frozenset[int]:
    """The dimensions that a scale or a zero point depends on."""
    return frozenset(d for d in of.dims if d is not None)


@dataclass(frozen=True)
class Bytes:
    """A tensor of bytes that stands for (byte - zero) * scale, after the moves of its elements (`byte_moves.py`).

    Floats stand for themselves, with the zero point and the scale that are given if none is.
    """

    tensor: ir.Value
    unsigned: bool
    zero: Zero = Zero()
    scale: Scale = Scale()
    moves: tuple[Move, ...] = ()


def _type(name: str) -> ir.Type:
    if name[0] == "i":
        return ir.IntegerType.get_signless(int(name[1:]))
    return ir.BF16Type.get() if name == "bf16" else ir.F32Type.get()


def number(value: float, kind: str) -> ir.Value:
    """A constant of type `i8`, `i32`, `f32` or `bf16`, at the current insertion point."""
    element = _type(kind)
    attribute = ir.IntegerAttr.get(element, int(value)) if kind[0] == "i" else ir.FloatAttr.get(element, float(value))
    return create("arith.constant", [], element, {"value": attribute})


def element_name(value: ir.Value) -> str:
    """The element type of a tensor, as text."""
    return str(ir.RankedTensorType(value.type).element_type)


def empty(shape: Sequence[int], kind: str) -> ir.Value:
    """tensor.empty of that element type."""
    return create("tensor.empty", [], ir.RankedTensorType.get(shape, _type(kind)))


def empty_as(sizes: Sequence[tuple[ir.Value, int]], kind: str) -> ir.Value:
    """tensor.empty of that element type, with the sizes of dimensions of tensors; some may be known in the run only."""
    shape = [ir.RankedTensorType(value.type).shape[t] for value, t in sizes]
    index = ir.IndexType.get()

    def size(value: ir.Value, t: int) -> ir.Value:
        at = create("arith.constant", [], index, {"value": ir.IntegerAttr.get(index, t)})
        return create("tensor.dim", [value, at], index)

    unknown = [size(*one) for one, known in zip(sizes, shape, strict=True) if known < 0]
    return create("tensor.empty", unknown, ir.RankedTensorType.get(shape, _type(kind)))


def extend(value: ir.Value, unsigned: bool) -> ir.Value:
    """A byte as i32."""
    return create("arith.extui" if unsigned else "arith.extsi", [value], _type("i32"))
