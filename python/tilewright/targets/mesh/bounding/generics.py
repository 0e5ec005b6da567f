# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Computations over a run's sizes: over the largest ones, where what does not count does no harm."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from tilewright.core.dtypes import of_mlir
from tilewright.ir.constants import integer_constant
from tilewright.ir.diagnostics import remark
from tilewright.ir.generics import (
    body,
    create,
    create_generic,
    create_number,
    create_zero,
    has_regions,
    kinds,
    maker,
    maps,
    operations_of,
)
from tilewright.ir.ranges import Ranges
from tilewright.mlir import ir
from tilewright.sim.coremesh.combinations import Combine, identity
from tilewright.targets.mesh.bodies.captures import PICK, index_loop
from tilewright.targets.mesh.bodies.copies import DIVISIONS, inside, not_zero
from tilewright.targets.mesh.bounding.live import Live, Size, fitted
from tilewright.targets.mesh.bounding.pieces import below
from tilewright.targets.mesh.computations import dims, factors_of, how_of

#: So many points are computed in any case, and this many times as many as there are elements.
_POINTS, _FACTOR = 1 << 14, 16
Lives = Callable[[ir.Value], Live | None]


def bounded_generic(op: ir.Operation, live: Lives, ranges: Ranges) -> Live | None:
    """What a generic makes of tensors of the largest sizes; None where it is not known how."""
    if len(op.results) != 1 or not all(_is_simple(map_) for map_ in maps(op)) or None in dims(maps(op)[-1]):
        return None
    if has_regions(op):
        return None  # what is in these would need guards, too
    operands = [live(value) if isinstance(value.type, ir.RankedTensorType) else None for value in op.operands]
    given = [one for one in operands if one is not None]
    tables = {inner.operands[0]: live(inner.operands[0]) for inner in operations_of(body(op)) if inner.name == PICK}
    if len(given) < len(operands) or None in tables.values():
        return None
    loops = _loops(op, given)
    largest = {loop: cap for loop, (cap, _) in loops.items()}
    if _is_wasteful(op, largest, [one for one in tables.values() if one is not None]):
        return None
    open_ = {loop: size for loop, (_, size) in loops.items() if isinstance(size, ir.Value)}
    summed = {loop: size for loop, size in open_.items() if kinds(op)[loop]}
    values = [_cut(one, map_, largest) for one, map_ in zip(given, maps(op), strict=True)]
    is_product = factors_of(op) is not None
    how = None if is_product or not summed else _combination(op)
    if summed and not is_product and how is None:
        return None
    if is_product:
        values[:2] = [_zeroed(value, map_, summed) for value, map_ in zip(values[:2], maps(op), strict=False)]
    made = _copy(op, values, {value: one.value for value, one in tables.items() if one is not None})
    if open_:
        _guard(made, largest, ranges)
    if how is not None:
        _leave_out(made, summed, how)
    sizes = tuple(loops[loop][1] for loop in dims(maps(op)[-1]) if loop is not None)
    return Live(made.results[0], sizes)


def _is_wasteful(op: ir.Operation, largest: dict[int, int], tables: list[Live]) -> bool:
    """Whether many more points would be computed than there are elements to read or make."""
    points = prod(largest.values())
    made = prod(largest[loop] for loop in dims(maps(op)[-1]) if loop is not None)
    wasteful = points > max(_POINTS, _FACTOR * max([made, *(prod(one.shape) for one in tables)]))
    if wasteful and tables:
        remark(op, f"outside of the grid: cores would compute {points:,} points, as sizes are those of a run")
    return wasteful and bool(tables)


def _is_simple(map_: ir.AffineMap) -> bool:
    found = [loop for loop in dims(map_) if loop is not None]
    plain = all(isinstance(one, ir.AffineDimExpr | ir.AffineConstantExpr) for one in map_.results)
    return plain and len({*found}) == len(found)


def _loops(op: ir.Operation, given: list[Live]) -> dict[int, tuple[int, Size]]:
    """Of each loop the largest size and the run's: all operands have the same, so the least bound holds for all."""
    found: dict[int, tuple[int, Size]] = {}
    for one, map_ in zip(given, maps(op), strict=True):
        for loop, cap, size in zip(dims(map_), one.shape, one.sizes, strict=True):
            if loop is None:
                continue
            before = found.get(loop, (cap, size))
            known = [each for each in (size, before[1]) if isinstance(each, int)]
            found[loop] = (known[0], known[0]) if known else (min(cap, before[0]), before[1])
    return found


def _cut(one: Live, map_: ir.AffineMap, largest: dict[int, int]) -> ir.Value:
    pairs = zip(dims(map_), one.shape, strict=True)
    return fitted(one.value, [size if loop is None else largest[loop] for loop, size in pairs])


def _copy(op: ir.Operation, values: list[ir.Value], tables: dict[ir.Value, ir.Value]) -> ir.Operation:
    made = op.clone()
    for number, value in enumerate(values):
        made.operands[number] = value
    for inner in operations_of(body(made)):
        if inner.name == PICK:
            inner.operands[0] = tables[inner.operands[0]]
    made.results[0].set_type(values[-1].type)
    return made


def _combination(op: ir.Operation) -> Combine | None:
    """How a body combines its old element with one that the old one has no part in."""
    steps = operations_of(body(op))
    last, own = maker(steps[-1].operands[0]), body(op).arguments[len(op.operands) - 1]
    if last is None or own not in last.operands or len(list(own.uses)) != 1:
        return None
    return how_of(last)


def _leave_out(made: ir.Operation, summed: dict[int, Size], how: Combine) -> None:
    """Combine with what changes nothing, where an element does not count."""
    last = maker(operations_of(body(made))[-1].operands[0])
    assert last is not None
    own = body(made).arguments[len(made.operands) - 1]
    number = next(at for at, value in enumerate(last.operands) if value != own)
    with ir.InsertionPoint(last):
        kind = last.operands[number].type
        neutral = create_number(identity(how, of_mlir(str(kind))), kind)
        last.operands[number] = create("arith.select", [_counts(summed), last.operands[number], neutral], kind)


def _zeroed(value: ir.Value, map_: ir.AffineMap, summed: dict[int, Size]) -> ir.Value:
    """A factor with zeros where elements do not count."""
    own = {dim: summed[loop] for dim, loop in enumerate(dims(map_)) if loop in summed}
    if not own:
        return value
    rank = len(map_.results)
    same, target = ir.AffineMap.get_identity(rank), create("tensor.empty", [], value.type)

    def step(elements: list[ir.Value]) -> ir.Value:
        kind = elements[0].type
        return create("arith.select", [_counts(own), elements[0], create_zero(kind)], kind)

    return create_generic([(value, same)], target, same, [False] * rank, step)


def _counts(sizes: dict[int, Size]) -> ir.Value:
    """Whether all of these loops are within a run's sizes."""
    tests = [below(loop, size) for loop, size in sizes.items()]
    total = tests[0]
    for test in tests[1:]:
        total = create("arith.andi", [total, test], total.type)
    return total


def _guard(made: ir.Operation, largest: dict[int, int], ranges: Ranges) -> None:
    """Give indices and divisors a meaning where elements do not count: those are computed, too, of any numbers."""
    inner = operations_of(body(made))
    for step in inner:
        loop = index_loop(step.results[0]) if step.name == "linalg.index" else None
        if loop is not None:
            ranges.known[step.results[0]] = (0, largest[loop] - 1)
    for step in inner:
        with ir.InsertionPoint(step):
            if step.name == PICK:
                _guard_pick(step, ranges)
            elif step.name in DIVISIONS and integer_constant(step.operands[1]) in (None, 0):
                step.operands[1] = not_zero(step.operands[1])


def _guard_pick(step: ir.Operation, ranges: Ranges) -> None:
    shape = ir.RankedTensorType(step.operands[0].type).shape
    for dim, size in enumerate(shape):
        index = step.operands[1 + dim]
        found = ranges.of(index)
        if found is None or found[0] < 0 or found[1] >= size:
            step.operands[1 + dim] = inside(index, size)
