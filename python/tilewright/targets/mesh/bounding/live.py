# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A tensor as large as it may become, and how much of it counts in a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.ir.generics import create, create_number
from tilewright.mlir import ir

#: A number that is known, or one that the host has in a run.
Size = int | ir.Value
OPEN = ir.ShapedType.get_dynamic_size()
_LISTS = ("offsets", "sizes", "strides")


@dataclass(frozen=True, eq=False)
class Live:
    """What stands for a tensor whose sizes a run brings: one of known sizes, which begins with its elements.

    Attributes:
        value: of known sizes. What lies behind the elements that count may be any number.
        sizes: of what counts, per dimension.
    """

    value: ir.Value
    sizes: tuple[Size, ...]

    @property
    def shape(self) -> list[int]:
        """Of all elements."""
        return list(ir.RankedTensorType(self.value.type).shape)

    @property
    def is_open(self) -> bool:
        """Whether a run brings a size."""
        return any(isinstance(size, ir.Value) for size in self.sizes)


@dataclass(frozen=True, eq=False)
class Part:
    """Where a slice lies, per dimension of the whole tensor."""

    offsets: tuple[Size, ...]
    sizes: tuple[Size, ...]
    strides: tuple[Size, ...]

    @classmethod
    def of(cls, op: ir.Operation, first: int) -> Part:
        """Of a slice whose numbers are operands from the first one on."""
        values = iter(list(op.operands)[first:])
        lists = [list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in _LISTS]
        return cls(*(tuple(next(values) if one == OPEN else one for one in own) for own in lists))


def of_shape(kind: ir.Type, shape: Sequence[int]) -> ir.RankedTensorType:
    """A type with other sizes."""
    return ir.RankedTensorType.get(list(shape), ir.RankedTensorType(kind).element_type)


def as_value(size: Size) -> ir.Value:
    """A number for the host."""
    return create_number(size, ir.IndexType.get()) if isinstance(size, int) else size


def fitted(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """The first elements of a tensor, as many as a shape has; behind them anything."""
    own = list(ir.RankedTensorType(value.type).shape)
    least = [min(pair) for pair in zip(own, shape, strict=True)]
    if least != own:
        value = create("tensor.extract_slice", [value], of_shape(value.type, least), _static(least, [1]))
    if least == list(shape):
        return value
    target = create("tensor.empty", [], of_shape(value.type, shape))
    return create("tensor.insert_slice", [value, target], target.type, _static(least, [1, 1]))


def opened(live: Live, kind: ir.Type) -> ir.Value:
    """What counts, as a tensor of a type with a run's sizes."""
    sizes = [OPEN if isinstance(size, ir.Value) else size for size in live.sizes]
    values = [size for size in live.sizes if isinstance(size, ir.Value)]
    attributes = _static(sizes, [1]) | _segments([1, 0, len(values), 0])
    part = create("tensor.extract_slice", [live.value, *values], of_shape(live.value.type, sizes), attributes)
    return part if part.type == kind else create("tensor.cast", [part], kind)


def filled(value: ir.Value, shape: Sequence[int]) -> ir.Value:
    """A tensor of a run's sizes at the beginning of one of known sizes."""
    index = ir.IndexType.get()
    own = list(ir.RankedTensorType(value.type).shape)
    sizes = [create("tensor.dim", [value, as_value(at)], index) for at, size in enumerate(own) if size == OPEN]
    target = create("tensor.empty", [], of_shape(value.type, shape))
    attributes = _static(own, [1, 1]) | _segments([1, 1, 0, len(sizes), 0])
    return create("tensor.insert_slice", [value, target, *sizes], target.type, attributes)


def static_slice(value: ir.Value, kind: ir.Type, lists: Sequence[Sequence[int]]) -> ir.Value:
    """A slice whose offsets, sizes and strides are known."""
    attributes = {f"static_{name}": ir.DenseI64ArrayAttr.get(own) for name, own in zip(_LISTS, lists, strict=True)}
    return create("tensor.extract_slice", [value], kind, attributes | _segments([1, 0, 0, 0]))


def _static(sizes: Sequence[int], tensors: Sequence[int]) -> dict[str, ir.Attribute]:
    """Of a slice from the first element on."""
    lists = ([0] * len(sizes), sizes, [1] * len(sizes))
    attributes = {f"static_{name}": ir.DenseI64ArrayAttr.get(own) for name, own in zip(_LISTS, lists, strict=True)}
    return attributes | _segments([*tensors, 0, 0, 0])


def _segments(counts: Sequence[int]) -> dict[str, ir.Attribute]:
    return {"operandSegmentSizes": ir.DenseI32ArrayAttr.get(counts)}
