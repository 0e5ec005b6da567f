# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Slices and reshapes of a run's sizes as computations of elements, each of which is picked where it lies."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.ir.generics import create, create_generic, create_number
from tilewright.mlir import ir
from tilewright.targets.mesh.bodies.captures import PICK
from tilewright.targets.mesh.bodies.copies import counted, inside
from tilewright.targets.mesh.bounding.live import Live, Part, Size, as_value, of_shape

_SLT, _SGE = 2, 5
_OPS = {"add": "arith.addi", "sub": "arith.subi", "mul": "arith.muli", "div": "arith.divsi", "rem": "arith.remsi"}


def arith(name: str, left: Size, right: Size) -> Size:
    """A sum, difference, product, quotient or remainder; of known numbers a known one."""
    if name == "mul" and 0 in (left, right):
        return 0
    if (right == 0 and name in ("add", "sub")) or (right == 1 and name in ("mul", "div")):
        return left
    if isinstance(left, int) and isinstance(right, int):
        return {"add": left + right, "sub": left - right, "mul": left * right}[name]
    if (left == 0 and name == "add") or (left == 1 and name == "mul"):
        return right
    return create(_OPS[name], [as_value(left), as_value(right)], ir.IndexType.get())


def product_of(sizes: Sequence[Size]) -> Size:
    """All of them multiplied."""
    total: Size = 1
    for size in sizes:
        total = arith("mul", total, size)
    return total


def picked(source: ir.Value, shape: Sequence[int], places: Callable[[list[ir.Value]], list[Size]]) -> ir.Value:
    """A tensor whose elements lie elsewhere in another one.

    Args:
        places: where in the source, of where in the result. Outside of the source the nearest is read.
    """
    whole = ir.RankedTensorType(source.type)

    def step(_: list[ir.Value]) -> ir.Value:
        indices = [counted(loop) for loop in range(len(shape))]
        found = [
            _nearest(place, size, dict(zip(indices, shape, strict=True)))
            for place, size in zip(places(indices), whole.shape, strict=True)
        ]
        return create(PICK, [source, *found], whole.element_type)

    target = create("tensor.empty", [], of_shape(source.type, shape))
    return create_generic([], target, ir.AffineMap.get_identity(len(shape)), [False] * len(shape), step)


def cut(source: ir.Value, part: Part, kept: Sequence[int], shape: Sequence[int]) -> ir.Value:
    """A slice whose place a run brings."""

    def places(indices: list[ir.Value]) -> list[Size]:
        at = dict(zip(kept, indices, strict=True))
        return [
            arith("add", arith("mul", at[dim], part.strides[dim]), offset) if dim in at else offset
            for dim, offset in enumerate(part.offsets)
        ]

    return picked(source, shape, places)


def put(small: Live, large: ir.Value, part: Part, kept: Sequence[int]) -> ir.Value:
    """A tensor with another one of a run's sizes put in, element beside element."""
    rank, same = len(part.offsets), ir.AffineMap.get_identity(len(part.offsets))
    truth = ir.IntegerType.get_signless(1)
    ends = [arith("add", *pair) for pair in zip(part.offsets, part.sizes, strict=True)]

    def step(elements: list[ir.Value]) -> ir.Value:
        holds: ir.Value | None = None
        places = []
        for dim, (offset, end) in enumerate(zip(part.offsets, ends, strict=True)):
            index = counted(dim)
            tests = [(_SLT, end)] + ([(_SGE, offset)] if offset != 0 else [])
            for predicate, bound in tests:
                test = compared(predicate, index, bound)
                holds = test if holds is None else create("arith.andi", [holds, test], truth)
            if dim in kept:
                largest = small.shape[kept.index(dim)]
                places.append(inside(as_value(arith("sub", index, offset)), largest))
        element = create(PICK, [small.value, *places], elements[0].type)
        return element if holds is None else create("arith.select", [holds, element, elements[0]], element.type)

    target = create("tensor.empty", [], large.type)
    return create_generic([(large, same)], target, same, [False] * rank, step)


def compared(predicate: int, left: ir.Value, right: Size) -> ir.Value:
    """A comparison of indices."""
    chosen = {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), predicate)}
    return create("arith.cmpi", [left, as_value(right)], ir.IntegerType.get_signless(1), chosen)


def below(loop: int, size: Size) -> ir.Value:
    """Whether the index of a loop counts."""
    return compared(_SLT, counted(loop), size)


def at_least_one(sizes: Sequence[Size]) -> list[Size]:
    """Sizes to divide by: of what is empty no element counts."""
    index = ir.IndexType.get()
    return [
        max(size, 1) if isinstance(size, int) else create("arith.maxsi", [size, as_value(1)], index) for size in sizes
    ]


def split_places(index: Size, sizes: Sequence[Size]) -> list[Size]:
    """Where an element lies in a tensor, of where it lies among all of its elements."""
    places: list[Size] = []
    for size in reversed(sizes[1:]):
        places.append(arith("rem", index, size) if size != 1 else 0)
        index = arith("div", index, size)
    return [index, *reversed(places)] if sizes else []


def joined_place(indices: Sequence[Size], sizes: Sequence[Size]) -> Size:
    """Where an element lies among all of a tensor, of where it lies in it."""
    place: Size = 0
    for index, size in zip(indices, sizes, strict=True):
        place = arith("add", arith("mul", place, size), index)
    return place


def _nearest(place: Size, size: int, within: dict[ir.Value, int]) -> ir.Value:
    """An index of a dimension; a loop alone that ends there is left as it is, so that an axis may split it."""
    if isinstance(place, int):
        return create_number(min(max(place, 0), size - 1), ir.IndexType.get())
    return place if within.get(place, size + 1) <= size else inside(place, size)
