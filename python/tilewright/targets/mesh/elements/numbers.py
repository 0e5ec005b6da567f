# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Tensors of a few numbers of which the host alone reads elements: it computes these as it does its other numbers.

Sizes, places and counts come from models as tensors; were they computed on the grid, the host would wait for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from tilewright.ir.constants import integer_constant
from tilewright.ir.generics import (
    ancestors,
    body,
    create,
    create_number,
    has_regions,
    kinds,
    maps,
    operations_of,
    uses,
    walk,
)
from tilewright.ir.views import RESHAPES
from tilewright.mlir import ir
from tilewright.targets.mesh.attributes import ELEMENT
from tilewright.targets.mesh.bodies.captures import PICK, index_loop
from tilewright.targets.mesh.control.loops import CONTROL

#: Elements that a tensor of such numbers has at most.
_MOST = 16


def open_numbers(function: ir.Operation) -> None:
    """Compute elements that are read alone, from elements of what a generic reads."""
    for op in reversed(walk(function, "linalg.generic")):
        places = _read_places(op)
        if places is None:
            continue
        for user, place in places:
            with ir.InsertionPoint(user), user.location:
                user.results[0].replace_all_uses_with(_element(op, place))
            user.erase()
        _erase(op)


def _erase(op: ir.Operation) -> None:
    """An op that nothing reads, and reshapes of what it made."""
    for user, _ in uses(op.results[0]):
        _erase(user)
    op.erase()


def is_for_cores(op: ir.Operation) -> bool:
    """Whether what picks an element stands where cores compute: in a body, or in a loop that writes elements."""
    above = list(ancestors(op))
    if any(one.name == "linalg.generic" for one in above):
        return True
    loops = [one for one in above if one.name in CONTROL]
    return bool(loops) and bool(walk(loops[-1], ELEMENT))


def _read_places(op: ir.Operation) -> list[tuple[ir.Operation, list[int]]] | None:
    """Who reads elements of a generic's result, and which; None where it is not one of a few numbers."""
    if len(op.results) != 1 or any(kinds(op)) or not all(_is_small(value) for value in op.results):
        return None
    if not all(map_.is_projected_permutation for map_ in maps(op)[-1:]) or not all(map(_is_plain, maps(op))):
        return None
    if list(body(op).arguments[len(op.operands) - 1].uses) or has_regions(op):
        return None
    found = []
    for user, number in _readers(op.results[0]):
        place = [integer_constant(index) for index in list(user.operands)[1:]]
        known = [one for one in place if one is not None]
        if user.name != PICK or number != 0 or is_for_cores(user) or len(known) < len(place):
            return None
        found.append((user, known if _count(op.results[0]) > 1 else [0] * len(maps(op)[-1].results)))
    return found or None


def _readers(value: ir.Value) -> Iterator[tuple[ir.Operation, int]]:
    """Who reads a tensor; the only element of one in any shape."""
    for user, number in uses(value):
        if user.name in RESHAPES and _count(value) == 1:
            yield from _readers(user.results[0])
        else:
            yield user, number


def _is_small(value: ir.Value) -> bool:
    return ir.RankedTensorType(value.type).has_static_shape and _count(value) <= _MOST


def _count(value: ir.Value) -> int:
    return prod(ir.RankedTensorType(value.type).shape)


def _is_plain(map_: ir.AffineMap) -> bool:
    return all(isinstance(one, ir.AffineDimExpr | ir.AffineConstantExpr) for one in map_.results)


def _element(op: ir.Operation, place: list[int]) -> ir.Value:
    """What a generic makes at a place, at the current insertion point."""
    at = {ir.AffineDimExpr(one).position: index for one, index in zip(maps(op)[-1].results, place, strict=True)}
    known: dict[ir.Value, ir.Value] = {}
    for value, map_, argument in zip(list(op.operands)[:-1], maps(op), body(op).arguments, strict=False):
        known[argument] = _read(value, map_, at)
    *steps, last = operations_of(body(op))
    for step in steps:
        loop = index_loop(step.results[0]) if step.name == "linalg.index" else None
        if loop is not None:
            known[step.results[0]] = create_number(at[loop], ir.IndexType.get())
            continue
        copy = step.clone()
        for number, operand in enumerate(step.operands):
            copy.operands[number] = known.get(operand, operand)
        known.update(zip(step.results, copy.results, strict=True))
    return known.get(last.operands[0], last.operands[0])


def _read(value: ir.Value, map_: ir.AffineMap, at: dict[int, int]) -> ir.Value:
    """The element of an operand, which may be a number itself."""
    if not isinstance(value.type, ir.RankedTensorType):
        return value
    index = ir.IndexType.get()
    places = [
        at[ir.AffineDimExpr(one).position] if isinstance(one, ir.AffineDimExpr) else ir.AffineConstantExpr(one).value
        for one in map_.results
    ]
    indices = [create_number(place, index) for place in places]
    return create(PICK, [value, *indices], ir.RankedTensorType(value.type).element_type)
