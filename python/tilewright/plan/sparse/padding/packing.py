# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""The packed form: tokens of all sentences behind each other, without padding, put to their places where they meet."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from tilewright.ir.generics import (
    body,
    create,
    create_fill,
    create_generic,
    create_like,
    create_number,
    iterator_types,
    kinds,
    maker,
    maps,
    set_maps,
    uses,
)
from tilewright.ir.views import create_joined, create_split, expansion, groups_of, reassociation
from tilewright.mlir import ir
from tilewright.plan.sparse.dynamic.lower_dynamic import empty
from tilewright.plan.sparse.dynamic.row_lists import gathered, row_list
from tilewright.plan.sparse.padding.live import is_not
from tilewright.plan.sparse.padding.tokens import Step, Tokens


class Packing:
    """Packed forms of values.

    Args:
        tokens: what has to do with tokens.
        live: makes numbers [batch, places], zero at what is left out.
        order: the steps and views that are packed, in order; the list of tokens is made before the first.
        others: whoever else needs no token put to its place.
    """

    def __init__(
        self,
        tokens: Tokens,
        live: Callable[[], ir.Value],
        order: Sequence[ir.Operation],
        others: Collection[ir.Operation] = (),
    ) -> None:
        """List the tokens."""
        self._tokens = tokens
        self._members = {*order, *others}
        first = order[0]
        self._held: dict[ir.Value, ir.Value] = {}
        i32 = ir.IntegerType.get_signless(32)
        total = tokens.sizes[0] * tokens.sizes[1]
        with ir.InsertionPoint(first), first.location:
            self._live = live()
            flat = create_joined(self._live, [[0, 1]])
            found = ir.Operation.create(
                "sparse_tile.index",
                results=[ir.RankedTensorType.get([total], i32), ir.RankedTensorType.get([1], i32)],
                operands=[flat],
                attributes={
                    "unit": ir.DenseI64ArrayAttr.get([1]),
                    "axis": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0),
                },
            )
            self._rows = row_list(found.results[0], found.results[1], total)
            self._places: ir.Value | None = None
            self._numbers: ir.Value | None = None
            self._lengths: ir.Value | None = None
            self._start = self._rows.list.owner.operation

    @property
    def count(self) -> ir.Value:
        """How many tokens there are, an index."""
        return self._rows.count

    def hold(self, value: ir.Value, packed: ir.Value) -> None:
        """Let a value be known packed."""
        self._held[value] = packed

    def lengths(self) -> ir.Value:
        """How many tokens each sentence has, i32."""
        if self._lengths is None:
            i32, rows = ir.IntegerType.get_signless(32), ir.AffineMap.get(2, 0, [ir.AffineDimExpr.get(0)])
            with ir.InsertionPoint.after(self._start), self._start.location:
                none = create_fill(create_number(0, i32), empty([self._tokens.sizes[0]], i32))
                self._lengths = create_generic(
                    [(self._live, ir.AffineMap.get_identity(2))],
                    none,
                    rows,
                    [False, True],
                    lambda e: create("arith.addi", [e[1], create("arith.extui", [is_not(e[0], 0)], i32)], i32),
                )
        return self._lengths

    def pack(self, op: ir.Operation) -> None:
        """Make a step or a view for packed tokens."""
        with ir.InsertionPoint(op), op.location:
            if op in self._tokens.views:
                self._held[op.results[0]] = self._view(op)
            else:
                self._held[op.results[0]] = self._step(self._tokens.steps[op])

    def unpack(self, op: ir.Operation) -> None:
        """Put packed tokens to their places, zeros between, for those that read more than a token."""
        result = op.results[0]
        readers = [(user, at) for user, at in uses(result) if user not in self._members]
        if not readers:
            return
        kind = ir.RankedTensorType(result.type)
        lead = self._tokens.lead(result)
        numbers = self._number_of_places()
        with ir.InsertionPoint.after(self._held[result].owner.operation), op.location:
            whole = gathered(self._held[result], numbers)
            if lead == 2:
                whole = create_split(whole, _groups(kind.rank), list(kind.shape))
        for user, at in readers:
            user.operands[at] = whole

    def of(self, value: ir.Value) -> ir.Value:
        """A value with tokens first, packed."""
        if value not in self._held:
            flat = (
                value
                if self._tokens.lead(value) == 1
                else create_joined(value, _groups(ir.RankedTensorType(value.type).rank))
            )
            self._held[value] = gathered(flat, self._rows.list)
        return self._held[value]

    def _number_of_places(self) -> ir.Value:
        """For each place in all sentences the number of its token, or -1: a gather by these writes each row once."""
        if self._numbers is None:
            with ir.InsertionPoint.after(self._start), self._start.location:
                self._numbers = self._rows.places()
        return self._numbers

    def _of_place(self, value: ir.Value) -> ir.Value:
        """Rows of a value that has places first, for the packed tokens."""
        if self._places is None:
            i32, size = ir.IntegerType.get_signless(32), self._tokens.sizes[1]
            one = ir.AffineMap.get_identity(1)
            with ir.InsertionPoint.after(self._start):
                target = empty([self._rows.count], i32)

                def place(e: list[ir.Value]) -> ir.Value:
                    step = create("arith.constant", [], i32, {"value": ir.IntegerAttr.get(i32, size)})
                    return create("arith.remui", [e[0], step], i32)

                self._places = create_generic([(self._rows.list, one)], target, one, [False], place)
        return gathered(value, self._places)

    def _step(self, step: Step) -> ir.Value:
        op, lead = step.op, len(step.loops)
        operands = [
            {"token": self.of, "place": self._of_place, "": lambda v: v}[read](value)
            for value, read in zip(op.operands, step.reads, strict=False)
        ]
        kind = ir.RankedTensorType(op.results[0].type)
        shape = [ir.ShapedType.get_dynamic_size(), *list(kind.shape)[lead:]]
        result = ir.RankedTensorType.get(shape, kind.element_type)
        made = maker(op.operands[len(op.operands) - 1])
        assert made is not None
        operands.append(create_like(made, result, [self._rows.count]))
        copy = op.clone()
        for at, value in enumerate(operands):
            copy.operands[at] = value
        copy.results[0].set_type(result)
        if lead == 2:
            _join_loops(copy, step)
        return copy.results[0]

    def _view(self, op: ir.Operation) -> ir.Value:
        source, result = op.operands[0], op.results[0]
        value = self.of(source)
        collapses = op.name == "tensor.collapse_shape"
        large = result if not collapses else source
        groups = groups_of(op.attributes["reassociation"])
        lead = self._tokens.lead(large)
        rest = [[d - lead + 1 for d in group] for group in groups if group[0] >= lead]
        if all(len(group) == 1 for group in rest):
            return value
        kind = ir.RankedTensorType(result.type)
        shape = [ir.ShapedType.get_dynamic_size(), *list(kind.shape)[self._tokens.lead(result) :]]
        target = ir.RankedTensorType.get(shape, kind.element_type)
        if collapses:
            return create("tensor.collapse_shape", [value], target, {"reassociation": reassociation([[0], *rest])})
        return create("tensor.expand_shape", [value, self._rows.count], target, expansion([[0], *rest], shape))


def _groups(rank: int) -> list[list[int]]:
    return [[0, 1], *([d] for d in range(2, rank))]


def _join_loops(op: ir.Operation, step: Step) -> None:
    """One loop over tokens in the place of the two over batch and place."""
    batch, place = step.loops
    joined = []
    for access, read in zip(maps(op), (*step.reads, "token"), strict=True):
        results = list(access.results)
        if read == "token":
            del results[1]
        elif read == "place":
            results[0] = ir.AffineDimExpr.get(batch)
        joined.append(results)
    drop_loop(op, place, joined)


def drop_loop(op: ir.Operation, loop: int, reads: Sequence[Sequence[ir.AffineExpr]]) -> None:
    """Take a loop away that no expression of `reads`, the new ones of each map over the old loops, needs."""
    reduces = kinds(op)
    kept = [d for d in range(len(reduces)) if d != loop]
    new = [
        ir.AffineDimExpr.get(kept.index(d)) if d != loop else ir.AffineConstantExpr.get(0) for d in range(len(reduces))
    ]
    into = ir.AffineMap.get(len(kept), 0, new)
    set_maps(op, [ir.AffineMap.get(len(kept), 0, [e.compose(into) for e in exprs]) for exprs in reads])
    op.attributes["iterator_types"] = iterator_types([reduces[d] for d in kept])
    for inner in body(op).operations:
        if inner.operation.name == "linalg.index":
            at = ir.IntegerAttr(inner.operation.attributes["dim"])
            inner.operation.attributes["dim"] = ir.IntegerAttr.get(at.type, kept.index(at.value))
