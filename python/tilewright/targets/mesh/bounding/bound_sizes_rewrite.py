# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What pass `tile-bound-sizes` does; loaded when it runs, as all that it needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import zip_longest
from math import prod
from typing import Any

from tilewright.core.dtypes import of_mlir
from tilewright.ir.asserted_ranges import AssertedRanges
from tilewright.ir.constants import integer_constant
from tilewright.ir.diagnostics import remark
from tilewright.ir.generics import create, create_fill, create_zero, descendants, operations_of, terminator, uses, walk
from tilewright.mlir import ir
from tilewright.targets.mesh.attributes import ELEMENT, machine_of
from tilewright.targets.mesh.bounding.generics import bounded_generic
from tilewright.targets.mesh.bounding.live import OPEN, Live, Size, as_value, fitted, of_shape, opened
from tilewright.targets.mesh.bounding.regions import Regions
from tilewright.targets.mesh.bounding.views import Views
from tilewright.targets.mesh.computations import KINDS

_ENDS = ("scf.yield", "scf.condition")
_REGIONS = ("scf.for", "scf.while", "scf.if")


class _Bounder:
    """Rewrites a function op by op, in order.

    Attributes:
        known: what stands for tensors of a run's sizes.
        kinds: types that values had which stand for themselves since.
        old: ops that something stands for.
    """

    def __init__(self, function: ir.Operation) -> None:
        self.function, self.known, self.old = function, {}, []
        self.known: dict[ir.Value, Live]
        self.kinds: dict[ir.Value, ir.Type] = {}
        self.old: list[ir.Operation]
        self.ranges, self.depth = AssertedRanges(), 0
        machine = machine_of(function)
        self.room = machine.sram_bytes * machine.mesh.height * machine.mesh.width
        self.views, self.regions = Views(self), Regions(self)
        self.handlers: dict[str, Callable[[ir.Operation], Live | None]] = {
            "tensor.empty": self._empty,
            "linalg.fill": self._fill,
            "linalg.generic": self._generic,
            ELEMENT: self._inserted,
            "arith.select": self._selected,
            "tensor.cast": self.views.cast,
            "tensor.extract_slice": self.views.slice,
            "tensor.insert_slice": self.views.put,
            "tensor.collapse_shape": self.views.collapsed,
            "tensor.expand_shape": self.views.expanded,
        }

    def rewrite(self) -> None:
        self._visit(self.function.regions[0].blocks[0])
        for op in reversed(self.old):
            if not any(list(value.uses) for value in op.results):
                op.erase()

    def live(self, value: ir.Value) -> Live | None:
        """What stands for a tensor; None where that is not known."""
        if value in self.known:
            return self.known[value]
        kind = ir.RankedTensorType(value.type)
        return Live(value, tuple(kind.shape)) if kind.has_static_shape and 0 not in kind.shape else None

    def capacity(
        self, op: ir.Operation, sizes: Sequence[Size], element: ir.Type, limits: Sequence[int] = ()
    ) -> list[tuple[int, Size]] | None:
        """The largest of each size, with the size: known where there is one alone. None where there is no bound.

        Args:
            limits: what an op says of its sizes besides.
        """
        found: list[tuple[int, Size]] = []
        for size, limit in zip_longest(sizes, limits, fillvalue=self.room):
            low, high = (size, size) if isinstance(size, int) else self.ranges.of(size) or (0, self.room)
            high = min(high, limit) if isinstance(size, ir.Value) else high
            if isinstance(size, ir.Value) and limit < self.room and not self.depth:
                self.ranges.is_at_most(size, limit)
            if high < 1:
                return None
            found.append((high, high if low == high else size))
        why = self._why_not([most for most, _ in found], element)
        if why:
            remark(op, f"outside of the grid: {why}")
            return None
        return found

    def _why_not(self, shape: list[int], element: ir.Type) -> str:
        """Why cores cannot hold a tensor that may become so large; empty where they can."""
        if str(element) not in KINDS:
            return f"cores compute with {', '.join(KINDS)}, not {element}"
        unknown = next((dim for dim, size in enumerate(shape) if size >= self.room), None)
        if unknown is not None:
            return f"a run brings the size of dimension {unknown}, and nothing says how large it may be"
        count = prod(shape) * of_mlir(str(element)).itemsize
        if count <= self.room:
            return ""
        text = "x".join([*map(str, shape), str(element)])
        return f"it may become {text}, which are {count:,} bytes, and all cores together have {self.room:,}"

    # Ops ----------------------------------------------------------------------------------------------------------

    def _visit(self, block: ir.Block) -> None:
        for op in operations_of(block):
            if op.name == "cf.assert" and not self.depth:
                self.ranges.learn(op)
            with ir.InsertionPoint(op), op.location:
                self._bound(op)

    def _bound(self, op: ir.Operation) -> None:
        if op.name in _REGIONS:
            self._enter(op)
        elif op.name in _ENDS or not self._is_concerned(op):
            return
        elif op.name == "tensor.dim":
            self._dim(op)
        elif op.name == "tensor.extract" and op.operands[0] in self.known:
            op.operands[0] = self.known[op.operands[0]].value
        elif op.name in self.handlers and (made := self.handlers[op.name](op)) is not None:
            self._stands_for(op, made)
        else:
            self.open_operands([op, *descendants(op)])

    def _stands_for(self, op: ir.Operation, made: Live) -> None:
        self.old.append(op)
        result = op.results[0]
        if ir.RankedTensorType(result.type).has_static_shape:
            whole = fitted(made.value, ir.RankedTensorType(result.type).shape)
            if whole in self.known:  # of which readers would want what counts
                whole = create("tensor.cast", [whole], whole.type)
            result.replace_all_uses_with(whole)
        else:
            self.known[result] = made

    def open_operands(self, ops: Sequence[ir.Operation]) -> None:
        """Let ops that are left as they are read tensors of a run's sizes."""
        for op in ops:
            for number, value in enumerate(op.operands):
                if value in self.known:
                    op.operands[number] = self.opened(value)

    def opened(self, value: ir.Value) -> ir.Value:
        """What counts of a tensor, of the type that it had."""
        return opened(self.known[value], self.kinds.get(value, value.type))

    def _is_concerned(self, op: ir.Operation) -> bool:
        values = [*op.operands, *op.results]
        if op.name == "linalg.generic":
            values += [value for inner in descendants(op) for value in inner.operands]
        return any(_is_open(value.type) or value in self.known for value in values)

    def _enter(self, op: ir.Operation) -> None:
        found = self.regions.enter(op)
        self.depth += 1
        for region in op.regions:
            for block in region.blocks:
                self._visit(block)
                end = terminator(region)
                with ir.InsertionPoint(end):
                    self.regions.feed(end, found)
        self.depth -= 1

    def _dim(self, op: ir.Operation) -> None:
        dim, live = integer_constant(op.operands[1]), self.known.get(op.operands[0])
        if dim is not None and live is not None:
            op.results[0].replace_all_uses_with(as_value(live.sizes[dim]))
            self.old.append(op)
        else:
            self.open_operands([op])

    def _empty(self, op: ir.Operation) -> Live | None:
        kind, values = ir.RankedTensorType(op.results[0].type), iter(op.operands)
        found = self.capacity(op, [next(values) if size == OPEN else size for size in kind.shape], kind.element_type)
        if found is None:
            return None
        place = create("tensor.empty", [], of_shape(kind, [most for most, _ in found]))
        if any(not _is_overwritten(user) for user, _ in uses(op.results[0])):
            place = create_fill(create_zero(kind.element_type), place)  # elements may be read that nothing wrote
        return Live(place, tuple(size for _, size in found))

    def _fill(self, op: ir.Operation) -> Live | None:
        live = self.live(op.operands[1])
        if live is None:
            return None
        place = create("tensor.empty", [], live.value.type)
        return Live(create_fill(op.operands[0], place), live.sizes)

    def _generic(self, op: ir.Operation) -> Live | None:
        return bounded_generic(op, self.live, self.ranges)

    def _inserted(self, op: ir.Operation) -> Live | None:
        live = self.live(op.operands[1])
        if live is None:
            return None
        operands = [op.operands[0], live.value, *list(op.operands)[2:]]
        return Live(create(ELEMENT, operands, live.value.type), live.sizes)

    def _selected(self, op: ir.Operation) -> Live | None:
        ways = [self.live(value) for value in list(op.operands)[1:]]
        if isinstance(op.operands[0].type, ir.RankedTensorType):
            return None
        first, second = ways
        if first is None or second is None or first.sizes != second.sizes or first.shape != second.shape:
            return None
        return Live(create("arith.select", [op.operands[0], first.value, second.value], first.value.type), first.sizes)


def _is_open(kind: ir.Type) -> bool:
    return isinstance(kind, ir.RankedTensorType) and not ir.RankedTensorType(kind).has_static_shape


def _is_overwritten(user: ir.Operation) -> bool:
    """Whether an op writes all of an empty tensor."""
    return user.name in ("linalg.fill", "linalg.generic")


def rewrite(options: Any, op: ir.Operation) -> None:
    """Visit the functions that have tensors of a run's sizes."""
    for function in walk(op, "func.func"):
        values = (value for inner in descendants(function) for value in inner.results)
        if any(_is_open(value.type) for value in values):
            _Bounder(function).rewrite()
