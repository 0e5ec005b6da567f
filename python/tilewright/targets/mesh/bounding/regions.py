# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Loops and branches that hand on tensors of a run's sizes, which stay the same on the way, or are one of two."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.ir.generics import ancestors, create, maker, terminator
from tilewright.mlir import ir
from tilewright.targets.mesh.attributes import ELEMENT
from tilewright.targets.mesh.bounding.live import OPEN, Live, Size, as_value, filled, fitted, of_shape
from tilewright.targets.mesh.control.loops import Carried, carried

if TYPE_CHECKING:
    from tilewright.targets.mesh.bounding.bound_sizes_rewrite import _Bounder

#: A size by name: a number, a value, or a dimension of a tensor of which nothing else is known.
_Name = int | ir.Value | tuple[ir.Value, int]
#: The operand that has the sizes of the result.
_LIKE = {ELEMENT: 1, "tensor.cast": 0, "tensor.insert_slice": 1, "arith.select": 1, "linalg.fill": 1}


@dataclass(frozen=True, eq=False)
class _Kind:
    """The type of what is carried, of known sizes, and what of it counts."""

    type: ir.RankedTensorType
    sizes: tuple[Size, ...]


class Regions:
    """Types of what loops and branches carry, and what feeds it."""

    def __init__(self, bounder: _Bounder) -> None:
        self._bounder = bounder
        self._entered: list[ir.Operation] = []  # a list: an op's hash changes with its operands
        self._names: dict[ir.Value, tuple[_Name, ...]] = {}
        self._assumed: list[tuple[ir.Value, ir.Value]] = []  # arguments, and what the end of an iteration feeds them
        self._around = bounder.function

    def enter(self, op: ir.Operation) -> list[tuple[Carried, _Kind]]:
        """Give what is carried the largest sizes, where these are the same for all that feeds it. Returns what has."""
        found = []
        for group in carried(op):
            kind = group.type
            if isinstance(kind, ir.RankedTensorType) and OPEN in ir.RankedTensorType(kind).shape:
                same = self._sizes(op, group)
                if same is not None:
                    found.append((group, same))
        self._entered.append(op)
        self.feed(op, found)
        for group, same in found:
            for value in group.values:
                self._bounder.kinds[value] = value.type
                value.set_type(same.type)
                self._bounder.known[value] = Live(value, same.sizes)
        return found

    def feed(self, end: ir.Operation, found: list[tuple[Carried, _Kind]]) -> None:
        """Let a loop or branch, or the end of one of its blocks, feed what is carried."""
        fed: set[int] = set()
        for group, same in found:
            for user, number in group.feeds:
                if user == end:
                    end.operands[number] = self._fed(end.operands[number], same.type)
                    fed.add(number)
        for number, value in enumerate(end.operands):
            if number not in fed and value in self._bounder.known:
                end.operands[number] = self._bounder.opened(value)

    def _fed(self, value: ir.Value, kind: ir.RankedTensorType) -> ir.Value:
        own = self._bounder.live(value)
        return filled(value, kind.shape) if own is None else fitted(own.value, kind.shape)

    def _sizes(self, op: ir.Operation, group: Carried) -> _Kind | None:
        """The sizes of all that feeds a group."""
        self._around = op
        apart: set[ir.Value] = set()
        while True:
            sizes = self._assuming(apart, op, group)
            broken = {value for value, other in self._assumed if self._of(value) != self._of(other)}
            if not broken:
                break
            apart |= broken
        if sizes is None or any(
            isinstance(size, tuple) or (isinstance(size, ir.Value) and _is_inside(size, op)) for size in sizes
        ):
            return None
        plain = [size for size in sizes if not isinstance(size, tuple)]
        found = self._bounder.capacity(op, plain, ir.RankedTensorType(group.type).element_type)
        if found is None:
            return None
        return _Kind(of_shape(group.type, [most for most, _ in found]), tuple(size for _, size in found))

    def _assuming(self, apart: set[ir.Value], op: ir.Operation, group: Carried) -> tuple[_Name, ...] | None:
        """The same, if all arguments but these keep the sizes that they begin with."""
        self._names = {value: _unknown(value) for value in apart}
        self._assumed.clear()
        feeds = [self._of(user.operands[number]) for user, number in group.feeds]
        if op.name == "scf.if":
            return self._joined(op, *feeds)
        return feeds[0] if len({*feeds}) == 1 else None

    def _of(self, value: ir.Value) -> tuple[_Name, ...]:
        if value not in self._names:
            unknown = _unknown(value)
            self._names[value] = unknown  # in case it is asked for on the way
            is_known = ir.RankedTensorType(value.type).has_static_shape
            self._names[value] = unknown if is_known else self._found(value) or unknown
        return self._names[value]

    def _found(self, value: ir.Value) -> tuple[_Name, ...] | None:
        if value in self._bounder.known:
            return self._bounder.known[value].sizes
        made = maker(value)
        if made is None:
            return self._argument(ir.BlockArgument(value))
        if made.name == "tensor.empty":
            values = iter(made.operands)
            return tuple(next(values) if size == OPEN else size for size in ir.RankedTensorType(value.type).shape)
        if made.name in _LIKE:
            return self._of(made.operands[_LIKE[made.name]])
        number = list(made.results).index(value)
        if made.name == "linalg.generic":
            return self._of(made.operands[len(made.operands) - len(made.results) + number])
        if made.name == "scf.for":
            return self._same(made.operands[3 + number], terminator(made.regions[0]).operands[number])
        if made.name == "scf.if":
            return self._joined(made, *(self._of(terminator(region).operands[number]) for region in made.regions))
        return None

    def _joined(
        self, branch: ir.Operation, one: tuple[_Name, ...], other: tuple[_Name, ...]
    ) -> tuple[_Name, ...] | None:
        """The sizes of what a branch gives: those of one way or of the other, if both are known before."""
        sizes: list[_Name] = []
        for pair in zip(one, other, strict=True):
            if pair[0] == pair[1]:
                sizes.append(pair[0])
                continue
            if any(isinstance(size, tuple) for size in pair):
                return None
            values = [branch.operands[0], *(as_value(size) for size in pair if not isinstance(size, tuple))]
            if any(_is_inside(value, self._around) for value in values):
                return None
            sizes.append(create("arith.select", values, ir.IndexType.get()))
        return tuple(sizes)

    def _argument(self, value: ir.BlockArgument) -> tuple[_Name, ...] | None:
        """As the first of what is carried, which is so if what an iteration feeds is: that is noted to be asked for."""
        loop, at = value.owner.owner.operation, value.arg_number
        if loop in self._entered:
            return None
        if loop.name == "scf.for":
            self._assumed.append((value, terminator(loop.regions[0]).operands[at - 1]))
            return self._of(loop.operands[2 + at])
        if loop.name != "scf.while":
            return None
        if value.owner != loop.regions[0].blocks[0]:
            return self._of(terminator(loop.regions[0]).operands[1 + at])
        self._assumed.append((value, terminator(loop.regions[1]).operands[at]))
        return self._of(loop.operands[at])

    def _same(self, one: ir.Value, other: ir.Value) -> tuple[_Name, ...] | None:
        found = self._of(one)
        return found if found == self._of(other) else None


def _unknown(value: ir.Value) -> tuple[_Name, ...]:
    """Its own dimensions, where its type says no number."""
    shape = ir.RankedTensorType(value.type).shape
    return tuple((value, dim) if size == OPEN else size for dim, size in enumerate(shape))


def _is_inside(value: ir.Value, op: ir.Operation) -> bool:
    owner = value.owner.owner.operation if isinstance(value, ir.BlockArgument) else value.owner.operation
    if isinstance(value, ir.BlockArgument) and owner == op:
        return True
    return op in ancestors(owner)
