# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Slices, casts and reshapes of tensors that are as large as they may become."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tilewright.ir.generics import create
from tilewright.mlir import ir
from tilewright.targets.mesh.bounding import pieces
from tilewright.targets.mesh.bounding.live import OPEN, Live, Part, Size, fitted, of_shape, static_slice
from tilewright.targets.mesh.control.loops import kept_dims

if TYPE_CHECKING:
    from tilewright.targets.mesh.bounding.bound_sizes_rewrite import _Bounder


class Views:
    """What stands for the results of views; None where it is not known how."""

    def __init__(self, bounder: _Bounder) -> None:
        self._bounder = bounder

    def cast(self, op: ir.Operation) -> Live | None:
        """A size that becomes known, or is forgotten."""
        live = self._bounder.live(op.operands[0])
        if live is None:
            return None
        shape = ir.RankedTensorType(op.results[0].type).shape
        least = [most if size == OPEN else size for size, most in zip(shape, live.shape, strict=True)]
        sizes = tuple(own if size == OPEN else size for size, own in zip(shape, live.sizes, strict=True))
        return Live(fitted(live.value, least), sizes)

    def slice(self, op: ir.Operation) -> Live | None:
        """A part: cut out where it is known where it begins, else picked element by element."""
        live, kind = self._bounder.live(op.operands[0]), ir.RankedTensorType(op.results[0].type)
        if live is None or not (live.is_open or not kind.has_static_shape):
            return None
        part, kept = Part.of(op, 1), kept_dims(list(ir.DenseI64ArrayAttr(op.attributes["static_sizes"])), kind.shape)
        limits = [_behind(*each) for each in zip(part.offsets, part.strides, live.shape, strict=True)]
        found = self._bounder.capacity(op, part.sizes, kind.element_type, limits)
        if found is None or len(kept) < kind.rank:
            return None
        most = [size for size, _ in found]
        sizes = tuple(found[dim][1] for dim in kept)
        result = of_shape(kind, [most[dim] for dim in kept])
        if all(isinstance(one, int) for one in (*part.offsets, *part.strides)):
            if any(size > limit for size, limit in zip(most, limits, strict=True)):
                return None  # a run would say that it does not fit
            lists = [[int(one) for one in own] for own in (part.offsets, most, part.strides)]
            return Live(static_slice(live.value, result, lists), sizes)
        return Live(pieces.cut(live.value, part, kept, result.shape), sizes)

    def put(self, op: ir.Operation) -> Live | None:
        """A part put into a tensor."""
        small, large = (self._bounder.live(value) for value in list(op.operands)[:2])
        if small is None or large is None or not (small.is_open or large.is_open):
            return None
        part = Part.of(op, 2)
        if not small.is_open and all(isinstance(size, int) for size in part.sizes):
            made = op.clone()
            made.operands[0], made.operands[1] = small.value, large.value
            made.results[0].set_type(large.value.type)
            return Live(made.results[0], large.sizes)
        sizes = list(ir.DenseI64ArrayAttr(op.attributes["static_sizes"]))
        kept = kept_dims(sizes, ir.RankedTensorType(op.operands[0].type).shape)
        if len(kept) < len(small.shape) or any(one != 1 for one in part.strides):
            return None
        return Live(pieces.put(small, large.value, part, kept), large.sizes)

    def collapsed(self, op: ir.Operation) -> Live | None:
        """Dimensions that become one: seen so where the outermost alone is open, else picked."""
        live = self._bounder.live(op.operands[0])
        if live is None:
            return None
        groups = _groups(op)
        totals = [pieces.product_of([live.sizes[dim] for dim in group]) for group in groups]
        shape = [_product(live.shape, group) for group in groups]
        sizes = tuple(totals)
        if all(isinstance(live.sizes[dim], int) for group in groups for dim in group[1:]):
            kind = of_shape(live.value.type, shape)
            attributes = {"reassociation": op.attributes["reassociation"]}
            return Live(create("tensor.collapse_shape", [live.value], kind, attributes), sizes)
        within = [pieces.at_least_one([live.sizes[dim] for dim in group]) for group in groups]

        def places(indices: list[ir.Value]) -> list[Size]:
            found = [pieces.split_places(index, own) for index, own in zip(indices, within, strict=True)]
            return [place for own in found for place in own]

        return Live(pieces.picked(live.value, shape, places), sizes)

    def expanded(self, op: ir.Operation) -> Live | None:
        """A dimension that becomes several: elements are picked where these lie in it."""
        live, kind = self._bounder.live(op.operands[0]), ir.RankedTensorType(op.results[0].type)
        if live is None:
            return None
        values = iter(list(op.operands)[1:])
        static = list(ir.DenseI64ArrayAttr(op.attributes["static_output_shape"]))
        wanted = [next(values) if size == OPEN else size for size in static]
        groups = _groups(op)
        limits = [
            max(1, whole // _known([wanted[dim] for dim in group]))
            for whole, group in zip(live.shape, groups, strict=True)
            for _ in group
        ]
        found = self._bounder.capacity(op, wanted, kind.element_type, limits)
        if found is None:
            return None
        most, sizes = [size for size, _ in found], [size for _, size in found]
        if all(isinstance(sizes[dim], int) for group in groups for dim in group[1:]):
            source = fitted(live.value, [_product(most, group) for group in groups])
            attributes = {
                "reassociation": op.attributes["reassociation"],
                "static_output_shape": ir.DenseI64ArrayAttr.get(most),
            }
            return Live(create("tensor.expand_shape", [source], of_shape(kind, most), attributes), tuple(sizes))

        def places(indices: list[ir.Value]) -> list[Size]:
            return [
                pieces.joined_place([indices[dim] for dim in group], [sizes[dim] for dim in group]) for group in groups
            ]

        return Live(pieces.picked(live.value, most, places), tuple(sizes))


def _groups(op: ir.Operation) -> list[list[int]]:
    return [
        [ir.IntegerAttr(dim).value for dim in ir.ArrayAttr(one)] for one in ir.ArrayAttr(op.attributes["reassociation"])
    ]


def _product(shape: Sequence[int], group: Sequence[int]) -> int:
    total = 1
    for dim in group:
        total *= shape[dim]
    return total


def _known(sizes: Sequence[Size]) -> int:
    """The product of those that are known."""
    total = 1
    for size in sizes:
        total *= size if isinstance(size, int) and size > 0 else 1
    return total


def _behind(offset: Size, stride: Size, whole: int) -> int:
    """How many elements a part can have at most."""
    first, by = (offset, stride) if isinstance(offset, int) and isinstance(stride, int) else (0, 1)
    return max(0, -(-(whole - first) // by))
