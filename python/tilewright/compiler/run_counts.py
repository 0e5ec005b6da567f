# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What one call of a module costs as it stands: launches, steps inside launches, bytes from and to memory.

It is counted of @main, at any layer, so that the report can tell what each phase and pass gains. Before there are
kernels, each operation that computes is a launch of its own, as in a framework that runs operators one by one; behind
`tile-form-groups` each outermost group is one, and behind `tile-groups-to-kernels` each `tile.launch`. What a kernel
launches itself, or a program of a CPU places, is a step: no launch, but units meet behind it.

Bytes are those that a launch touches, each once (MemTraffic of Welder, Shi et al., OSDI 2023, section 4, with one tile
that is the whole): all of its operands, of a table that it gathers from one element for each iteration, and its
results. What is read again within a launch is the caches' concern: `kernel_traffic.py` counts it. Views cost nothing,
nor does `tensor.insert_slice`, which becomes the place where its maker writes, nor zeros that sums begin with.

A loop whose trips are not constant and a size that a run brings count as one: `open` says so, and all numbers are then
lower bounds. Of a branch the side that moves more counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tilewright.compiler.kernel_statistics import generic_operations, location_of
from tilewright.compiler.kernel_traffic import touched_bytes
from tilewright.compiler.run_bytes import FREE, VIEWS, bytes_of, bytes_read, is_list, is_open, lengths_of, nested
from tilewright.ir import decisions
from tilewright.ir.constants import integer_constant, trip_count
from tilewright.ir.units import kernel_of, symbol_of
from tilewright.mlir import ir

_LARGEST = 8  # launches that the report names for each phase

_LISTS = ("fractal.map", "fractal.scan", "fractal.fold", "fractal.reduce", "fractal.filter")
_COPIES = frozenset({"fractal.gather", "fractal.join", "fractal.scatter"})  # other accesses are views


@dataclass(frozen=True)
class Piece:
    """Launches of one place in a module, or steps inside a launch.

    Attributes:
        name: of the kernel, or of the operation and where it comes from.
        times: how often one call runs it.
        within: the kernel whose launches it is a step of; empty: it is a launch itself.
        read, written: bytes, each time.
        holds: other pieces are its steps.
        operations: of floats, each time; counted where they are asked for.
    """

    name: str
    times: int
    within: str
    read: int
    written: int
    holds: bool = False
    operations: int = 0


@dataclass
class Counts:
    """All pieces of one call; `open`: some loop or size is not known and counts as one."""

    pieces: list[Piece] = field(default_factory=list)
    open: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Plain values: sums, and the pieces that move most, largest first."""
        steps = [piece for piece in self.pieces if piece.within]
        launches = [piece for piece in self.pieces if not piece.within]
        merged: dict[str, list[int]] = {}
        for piece in self.pieces:
            entry = merged.setdefault(piece.name, [0, 0, 0])
            for i, number in enumerate((1, piece.read, piece.written)):
                entry[i] += piece.times * number
        ordered = sorted(merged.items(), key=lambda item: -(item[1][1] + item[1][2]))
        return {
            "launches": sum(piece.times for piece in launches),
            "steps": sum(piece.times for piece in steps),
            "read": sum(piece.times * piece.read for piece in self.pieces),
            "written": sum(piece.times * piece.written for piece in self.pieces),
            "open": self.open,
            "holders": {piece.name: piece.times for piece in launches if piece.holds},
            "largest": [[name, *numbers] for name, numbers in ordered[:_LARGEST] if any(numbers[1:])],
        }


def met(before: dict[str, Any] | None, meetings: Mapping[str, int]) -> dict[str, Any] | None:
    """Counts of a module whose kernels are code: those before it, and how often blocks meet in a call.

    Args:
        before: counts of the last module that had launches.
        meetings: in one launch of each kernel that has some.
    """
    if before is None:
        return None
    times = sum(before["holders"].get(name, 1) * count for name, count in meetings.items())
    return {**before, "meetings": times}


def alike(some: Mapping[str, Any], others: Mapping[str, Any] | None) -> bool:
    """Whether two modules cost a call the same, whatever their kernels are called."""
    told = ("launches", "steps", "read", "written")
    return others is not None and all(some[name] == others[name] for name in told)


def counts(module: ir.Module) -> dict[str, Any] | None:
    """The counts of a module's @main as plain values; None where it has none."""
    found = count(module)
    return None if found is None else found.as_dict()


def count(module: ir.Module, operations: bool = False) -> Counts | None:
    """Count a module's @main, with the operations of its loop nests if asked; None where it has none."""
    bodies = {symbol_of(op): op.operation for op in module.body.operations}
    main = bodies.get("main")
    if main is None or not main.regions or not len(main.regions[0].blocks):
        return None
    counter = _Counter(bodies, operations)
    counter.block(main.regions[0].blocks[0], 1, within="")
    return counter.counts


class _Counter:
    def __init__(self, bodies: dict[str, ir.Operation], operations: bool) -> None:
        self._bodies = bodies
        self._operations = operations
        self._moved: dict[Any, tuple[int, int]] = {}
        self._holds: dict[str, bool] = {}
        self.counts = Counts()

    def block(self, block: ir.Block, times: int, within: str) -> None:
        """Count what a block runs."""
        for view in block.operations:
            self._op(view.operation, times, within)

    def _op(self, op: ir.Operation, times: int, within: str) -> None:
        visit = _VISITS.get(op.name)
        if visit is not None:
            visit(self, op, times, within)
        elif op.name.startswith("fractal."):
            if op.name in _COPIES:
                self._add(op, times, within)
        elif op.name.startswith(("scf.", "cf.", "arith.", "math.", "index.")):
            self._inside(op, times, within)
        elif op.name not in VIEWS and op.name not in FREE:
            self._add(op, times, within)

    def _inside(self, op: ir.Operation, times: int, within: str) -> None:
        for region in op.regions:
            for block in region.blocks:
                self.block(block, times, within)

    def _add(self, op: ir.Operation, times: int, within: str) -> None:
        if not any(isinstance(value.type, ir.ShapedType) or is_list(value) for value in (*op.operands, *op.results)):
            return
        self.counts.open |= any(is_open(value) for value in (*op.operands, *op.results))
        read, written = bytes_read(op), sum(map(bytes_of, op.results))
        if op.name == "memref.copy":
            read, written = (bytes_of(value) for value in op.operands)
        work = generic_operations(op) if self._operations and op.name == "linalg.generic" else 0
        self.counts.pieces.append(Piece(_name(op), times, within, read, written, operations=work))

    # Loops ------------------------------------------------------------------------------------------------------------

    def _for(self, op: ir.Operation, times: int, within: str) -> None:
        self._loop(op, times, within, trip_count(op))

    def _while(self, op: ir.Operation, times: int, within: str) -> None:
        self._loop(op, times, within, None)

    def _list(self, op: ir.Operation, times: int, within: str) -> None:
        found = [lengths_of(value) for value in (*op.operands, *op.results) if is_list(value)]
        known = [lengths[0] for lengths in found if lengths and lengths[0] >= 0]
        listed = lengths_of(op.operands[len(op.results)]) if op.name in ("fractal.scan", "fractal.fold") else ()
        trips = next((n for n in listed[:1] if n >= 0), None) if listed else next(iter(known), None)
        self._loop(op, times, within, trips)

    def _recurse(self, op: ir.Operation, times: int, within: str) -> None:
        """Leaves, then nodes: one row of `children` for each."""
        rows = ir.RankedTensorType(op.operands[0].type)
        nodes = None if rows.is_dynamic_dim(0) else rows.get_dim_size(0)
        self._loop(op, times, within, nodes)

    def _loop(self, op: ir.Operation, times: int, within: str, trips: int | None) -> None:
        self.counts.open |= trips is None
        self._inside(op, times * (1 if trips is None else trips), within)

    def _if(self, op: ir.Operation, times: int, within: str) -> None:
        """The side that moves more."""
        sides: list[list[Piece]] = []
        before = self.counts.pieces
        for region in op.regions:
            self.counts.pieces = []
            for block in region.blocks:
                self.block(block, times, within)
            sides.append(self.counts.pieces)
        chosen = max(sides, key=lambda side: sum(p.times * (p.read + p.written) for p in side), default=[])
        self.counts.pieces = before + chosen

    # Launches ---------------------------------------------------------------------------------------------------------

    def _launch(self, op: ir.Operation, times: int, within: str) -> None:
        name = kernel_of(op)
        body = self._bodies.get(name)
        if body is None:
            self._add(op, times, within)
            return
        block = body.regions[0].blocks[0]
        if name not in self._holds:  # equal layers launch one kernel again and again
            self._holds[name] = any(inner.name in _STEPS for inner in nested(block))
        if self._holds[name]:
            self.counts.pieces.append(Piece(name, times, within, 0, 0, holds=True))
            self.block(block, times, within=name)
            return
        operands, rank = list(op.operands), body.attributes["grid_rank"].value
        self._kernel(name, tuple(map(integer_constant, operands[:rank])), operands[rank:], times, within)

    def _place(self, op: ir.Operation, times: int, within: str) -> None:
        """Tasks of a kernel on one unit; who has the first of them counts for all."""
        if op.attributes["tasks"][0] == 0:
            self._kernel(kernel_of(op), tuple(op.attributes["grid"]), list(op.operands), times, within)

    def _kernel(self, name: str, grid: tuple[int | None, ...], operands: list[Any], times: int, within: str) -> None:
        self.counts.open |= None in grid or any(map(is_open, operands))
        if (name, grid) not in self._moved:
            self._moved[name, grid] = touched_bytes(self._bodies[name], grid)
        self.counts.pieces.append(Piece(name, times, within, *self._moved[name, grid]))


_STEPS = ("tile.launch", "tile.place")


_VISITS: dict[str, Any] = {
    "scf.for": _Counter._for,
    "scf.while": _Counter._while,
    "scf.if": _Counter._if,
    "tile.launch": _Counter._launch,
    "tile.place": _Counter._place,
    "fractal.recurse": _Counter._recurse,
    **{name: _Counter._list for name in _LISTS},
}


def _name(op: ir.Operation) -> str:
    """A group's kernel; else the operation, and where in the model it comes from."""
    if op.name == "tile.group" and decisions.KERNEL.on(op):
        return str(op.attributes[decisions.KERNEL]).strip('"')
    place = location_of(op)
    return f"{op.name} {place}" if place else op.name
