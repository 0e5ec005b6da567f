# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Operands read at sums of loops, as diagonals and reversed ones, become tensors of which bodies pick elements.

So does a tensor that is changed in place: it is read, and another one made. Windows that cores read with what
neighbours have are left as they are (`images`).
"""

from __future__ import annotations

from tilewright.ir.generics import body, create, create_generic, create_number, create_repeated, kinds, maps, walk
from tilewright.mlir import ir
from tilewright.targets.mesh.attributes import Fixed
from tilewright.targets.mesh.bodies.captures import PICK, Captures, captures
from tilewright.targets.mesh.bodies.copies import Copy, counted
from tilewright.targets.mesh.computations import dims, loop_sizes
from tilewright.targets.mesh.elementwise import yielded
from tilewright.targets.mesh.images.windows import Terms, terms, windows


def open_reads(function: ir.Operation) -> None:
    """Rewrite the generics of a function that read so."""
    fixed = Fixed()
    for op in walk(function, "linalg.generic"):
        if _changes_in_place(op) and not fixed.of(op):
            op = _as_read(op)
        computed = [number for number in range(len(op.operands) - 1) if _is_computed(maps(op)[number])]
        if computed and not fixed.of(op) and _can_open(op, computed):
            with ir.InsertionPoint(op), op.location:
                op.results[0].replace_all_uses_with(_opened(op, computed))
            op.erase()


def _changes_in_place(op: ir.Operation) -> bool:
    """Whether each point of the loops makes its element of the one that lies there."""
    if len(op.results) != 1 or any(kinds(op)) or not list(body(op).arguments[len(op.operands) - 1].uses):
        return False
    return maps(op)[-1].is_permutation and all(_has_elements(value) for value in op.operands)


def _as_read(op: ir.Operation) -> ir.Operation:
    """A generic that reads what it changed, and makes a tensor of its own."""
    *inputs, target = zip(op.operands, maps(op), strict=True)
    with ir.InsertionPoint(op), op.location:
        place = create("tensor.empty", [], target[0].type)
        made = create_generic(
            [*inputs, target], place, target[1], kinds(op), lambda elements: create_repeated(op, elements[:-1])
        )
    op.results[0].replace_all_uses_with(made)
    op.erase()
    return made.owner.operation


def _is_computed(read: ir.AffineMap) -> bool:
    """Whether an operand is read at computed indices, or at one index twice."""
    loops = dims(read)
    plain = all(isinstance(one, ir.AffineDimExpr | ir.AffineConstantExpr) for one in read.results)
    known = [loop for loop in loops if loop is not None]
    return not plain or len({*known}) < len(known)


def _can_open(op: ir.Operation, computed: list[int]) -> bool:
    """Whether sizes of loops and elements stay known, and nothing else does better."""
    if (
        len(op.results) != 1
        or not all(_has_elements(value) for value in op.operands)
        or not isinstance(windows(op), str)
    ):
        return False
    if any(terms(one) is None for number in computed for one in maps(op)[number].results):
        return False
    kept = {loop for number, read in enumerate(maps(op)) if number not in computed for loop in dims(read)}
    around = captures(op, loop_sizes(op))
    return (
        {*range(maps(op)[0].n_dims)} <= kept and isinstance(around, Captures) and not (around.tables or around.numbers)
    )


def _has_elements(value: ir.Value) -> bool:
    if not isinstance(value.type, ir.RankedTensorType):
        return False
    kind = ir.RankedTensorType(value.type)
    return kind.has_static_shape and 0 not in kind.shape


def _opened(op: ir.Operation, computed: list[int]) -> ir.Value:
    reads = [pair for number, pair in enumerate(zip(op.operands, maps(op), strict=True)) if number not in computed]
    *inputs, (target, written) = reads

    def step(given: list[ir.Value]) -> ir.Value:
        elements, rest = [], iter(given)
        for number, value in enumerate(op.operands):
            elements.append(_picked(value, maps(op)[number]) if number in computed else next(rest))
        return Copy(op, elements).value(yielded(op))

    return create_generic(inputs, target, written, kinds(op), step)


def _picked(value: ir.Value, read: ir.AffineMap) -> ir.Value:
    indices = [_index(found) for one in read.results if (found := terms(one)) is not None]
    return create(PICK, [value, *indices], ir.RankedTensorType(value.type).element_type)


def _index(found: Terms) -> ir.Value:
    """A sum of loops with factors; a loop alone as it is, so that an axis may split it."""
    index, total = ir.IndexType.get(), None
    for loop, factor in found:
        part = create_number(factor, index) if loop is None else counted(loop)
        if loop is not None and factor != 1:
            part = create("arith.muli", [part, create_number(factor, index)], index)
        total = part if total is None else create("arith.addi", [total, part], index)
    return create_number(0, index) if total is None else total
