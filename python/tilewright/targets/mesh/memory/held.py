# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values on the grid: from which program to which each has to be kept, and the bytes that a core needs at each."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from tilewright.core.dtypes import of_mlir
from tilewright.dialects.coremesh import Layout
from tilewright.ir.generics import walk
from tilewright.mlir import ir
from tilewright.targets.mesh.attributes import FIXED
from tilewright.targets.mesh.placement import block_bytes


@dataclass(eq=False)
class Held:
    """A value on the grid.

    Attributes:
        count: bytes of one core.
        spans: first and last place of an op between which it is kept; both outside.
        stays: from call to call, but at the op that makes it.
        made: place of the op that makes it.
        waits: outside between its readers.
        untouched: places of programs that read it where it lies, and leave it there: their own bytes count it.
    """

    op: ir.Operation
    value: ir.Value
    count: int
    spans: list[tuple[float, float]]
    stays: bool
    made: float
    waits: bool = False
    untouched: set[int] = field(default_factory=set)

    def is_beside(self, place: int) -> bool:
        """Whether it is counted beside the program at a place: what `Memory.counts` says of all of them."""
        if place in self.untouched:
            return False
        return (self.stays and place != self.made) or any(first < place < last for first, last in self.spans)


class Places:
    """The place of each op, by what it makes or holds: the hash of an op changes with its operands and attributes."""

    def __init__(self, operations: Sequence[ir.Operation]) -> None:
        self._known: dict[Hashable, float] = {_key(op): at for at, op in enumerate(operations)}

    def __getitem__(self, op: ir.Operation) -> float:
        """The place of an op."""
        return self._known[_key(op)]

    def __setitem__(self, op: ir.Operation, place: float) -> None:
        """Say where a new op is."""
        self._known[_key(op)] = place

    def __contains__(self, op: ir.Operation) -> bool:
        """Whether an op is in a block of the function, or of its loops."""
        return _key(op) in self._known


def _key(op: ir.Operation) -> Hashable:
    if list(op.results):
        return op.results[0]
    held = [block for region in op.regions for block in region.blocks]
    return held[0] if held else ("end", op.block)


class Memory:
    """The bytes that a core needs at each program of a function.

    Attributes:
        operations: in the order of the text, with those of loops; ``places``: the number of each.
        held: the values on the grid; ``unread``: ops that bring some in, and that nothing reads any more.
        at: places of the programs; ``own``: bytes of each program alone; ``needs``: with what is kept beside.
    """

    def __init__(self, operations: Sequence[ir.Operation], peaks: Mapping[int, int]) -> None:
        self.operations = operations
        self.places = Places(operations)
        self.unread: list[ir.Operation] = []
        self.at = np.array(sorted(peaks), dtype=np.int64)
        self.own = np.array([peaks[at] for at in self.at.tolist()], dtype=np.int64)
        self.needs = self.own.copy()
        self.held = list(self._held())
        by_value = {one.value: one for one in self.held}
        for at in self.at.tolist():
            for value in untouched(operations[at]):
                if value in by_value:
                    by_value[value].untouched.add(at)
        for one in self.held:
            self.needs += one.count * self.counts(one)

    def counts(self, one: Held, spans: Sequence[tuple[float, float]] | None = None) -> np.ndarray:
        """By program, whether a value is counted beside it: int64 of 0 and 1."""
        found = np.zeros(len(self.at), dtype=np.int64)
        if one.stays and spans is None:
            found[:] = self.at != one.made
        for first, last in one.spans if spans is None else spans:
            found[np.searchsorted(self.at, first, "right") : np.searchsorted(self.at, last, "left")] = 1
        if one.untouched:
            found[np.searchsorted(self.at, sorted(one.untouched))] = 0
        return found

    def own_of(self, place: int) -> int:
        """Bytes of the program at a place alone."""
        return int(self.own[np.searchsorted(self.at, place)])

    def change(self, one: Held, spans: list[tuple[float, float]], stays: bool = False) -> None:
        """Keep a value from now on between these places alone."""
        self.needs -= one.count * self.counts(one)
        one.spans, one.stays = spans, stays
        self.needs += one.count * self.counts(one)

    def beside(self, at: int) -> list[Held]:
        """The values that are counted beside a program, by its number among these."""
        place = int(self.at[at])
        return [one for one in self.held if one.is_beside(place)]

    def end_of(self, op: ir.Operation) -> float:
        """The place of the last op in a loop or branch; its own for any other."""
        last = self.places[op]
        for region in op.regions:
            for block in region.blocks:
                end = block.operations[len(block.operations) - 1].operation
                if end in self.places:
                    last = max(last, self.end_of(end))
        return last

    def last_read(self, user: ir.Operation, value: ir.Value) -> float:
        """When a user reads a value last: at the end of the outermost loop around it that the value is not in."""
        outer = around(user, home_of(value))
        while user not in self.places:
            user = user.block.owner.operation
        return self.places[user] if outer == user or outer not in self.places else self.end_of(outer)

    def _held(self) -> Iterator[Held]:
        for at, op in enumerate(self.operations):
            inside = [one for region in op.regions for block in region.blocks for one in block.arguments]
            ends = self.end_of(op) if inside or list(op.regions) else at
            for value in [*inside, *op.results] if ends > at or op.results else []:
                if Layout.of(value.type) is not None:
                    made = at if isinstance(value, ir.BlockArgument) else ends
                    last = max((self.last_read(use.owner.operation, value) for use in value.uses), default=made)
                    yield Held(op, value, block_bytes(value.type), [(made, last)], FIXED in op.attributes, made)


def home_of(value: ir.Value) -> ir.Block:
    """The block that a value belongs to."""
    return value.owner if isinstance(value, ir.BlockArgument) else value.owner.operation.block


def around(op: ir.Operation, block: ir.Block) -> ir.Operation:
    """The op of a block that another one is, or is in."""
    while op.block != block:
        op = op.block.owner.operation
    return op


def untouched(program: ir.Operation) -> Iterator[ir.Value]:
    """What a program reads where no other of its buffers lies, and does not overwrite."""
    body = program.regions[0].blocks[0]
    buffers = {ir.StringAttr(op.attributes["sym_name"]).value: op for op in walk(program, "coremesh.buffer")}
    if not all("address" in op.attributes for op in buffers.values()):
        return
    spans = {name: _span(op) for name, op in buffers.items()}
    written = written_buffers(program)
    for op in walk(program, "coremesh.place"):
        name = ir.FlatSymbolRefAttr(op.attributes["buffer"]).value
        first, end = spans[name]
        others = [span for other, span in spans.items() if other != name]
        if name not in written and all(end <= start or stop <= first for start, stop in others):
            yield program.operands[list(body.arguments).index(op.operands[0])]


def written_buffers(program: ir.Operation) -> set[str]:
    """Buffers that a program puts something into."""
    written = {ir.FlatSymbolRefAttr(op.attributes["buffer"]).value for op in walk(program, "coremesh.recv")}
    for op in walk(program, "coremesh.compute"):
        written |= {ir.FlatSymbolRefAttr(one).value for one in ir.ArrayAttr(op.attributes["writes"])}
    return written


def _span(buffer: ir.Operation) -> tuple[int, int]:
    """The first byte of a buffer, and the one behind its last."""
    first = ir.IntegerAttr(buffer.attributes["address"]).value
    kind = ir.RankedTensorType(ir.TypeAttr(buffer.attributes["tile"]).value)
    slots = ir.IntegerAttr(buffer.attributes["slots"]).value if "slots" in buffer.attributes else 1
    return first, first + slots * prod(kind.shape) * of_mlir(str(kind.element_type)).itemsize
