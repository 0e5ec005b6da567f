# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What pass `tile-fuse-programs` does; loaded when it runs, as all that it needs."""

from __future__ import annotations

import sys
from math import prod
from typing import Any

from tilewright.ir.generics import body, kinds, maker, maps, uses, walk
from tilewright.ir.target_info import find_device
from tilewright.mlir import ir
from tilewright.sim.coremesh.checks.memory import core_classes
from tilewright.sim.coremesh_ir.read import input_names, output_names, read_program, text_of
from tilewright.targets.mesh.attributes import machine_of

#: Programs in whose result each core has its block, all of which are written.
PRODUCERS = ("local", "meshgemm", "meshgemv", "gemm_t", "allreduce")


class _Tail:
    """An elementwise program with the one whose result it reads.

    Attributes:
        number: of the operand that is made.
        place: of that operand; ``collect``: of the made value.
        compute: what is appended.
    """

    def __init__(self, op: ir.Operation, made: ir.Operation, number: int) -> None:
        self.op, self.made, self.number = op, made, number
        self.place = next(one for one in _named(op, "place") if _argument(one) == number)
        (self.compute,) = _named(op, "compute")
        self.collects = _named(made, "collect")

    @property
    def others(self) -> list[ir.Value]:
        """What it reads besides."""
        return [value for at, value in enumerate(self.op.operands) if at != self.number]

    def fits(self) -> bool:
        """Whether each core finds what is made where it reads it."""
        if len(self.collects) != 1 or len(self.made.results) != 1:
            return False
        (collect,) = self.collects
        buffers, indices = list(collect.attributes["buffers"]), list(collect.attributes["indices"])
        if len(buffers) != 1 or indices[0].value.n_dims:
            return False
        alike = collect.attributes["blocks"][0] == self.place.attributes["block"]
        alike = alike and collect.attributes["order"] == self.place.attributes["order"]
        tiles = _tile(self.made, buffers[0].value), _tile(self.op, self.place.attributes["buffer"].value)
        return alike and tiles[0] == tiles[1] and _is_elementwise(self.compute, self._read())

    def _read(self) -> int:
        """The number of the tile that is made, among those that are read."""
        names = [one.value for one in self.compute.attributes["reads"]]
        return names.index(self.place.attributes["buffer"].value)


def _fuse(tail: _Tail) -> ir.Operation:
    """Both as one program, at the place of the second."""
    op, made = tail.op, tail.made
    names = input_names(made)
    for name in (f"with{number}" for number in range(len(names) + len(tail.others))):
        if len(names) < len(made.operands) + len(tail.others) and name not in names:
            names.append(name)
    attributes = {name: made.attributes[name] for name in ("name", "height", "width")}
    attributes["input_names"] = ir.ArrayAttr.get([ir.StringAttr.get(name) for name in names])
    attributes["output_names"] = ir.ArrayAttr.get([ir.StringAttr.get(name) for name in output_names(made)])
    operands = [*made.operands, *tail.others]
    with ir.InsertionPoint(op), op.location:
        new = ir.Operation.create(
            "coremesh.program", results=[op.results[0].type], operands=operands, attributes=attributes, regions=1
        )
    block = ir.Block.create_at_start(new.regions[0], [value.type for value in operands])
    with ir.InsertionPoint(block):
        _copy(tail, block)
    return new


def _copy(tail: _Tail, block: ir.Block) -> None:
    """What both declare, then what both do; without what leaves the first and enters the second."""
    first, second = tail.made.regions[0].blocks[0], tail.op.regions[0].blocks[0]
    others = iter(list(block.arguments)[len(tail.made.operands) :])
    known = dict(zip(first.arguments, list(block.arguments), strict=False))
    known |= {one: next(others) for number, one in enumerate(second.arguments) if number != tail.number}
    renamed = _renamed(tail, {one.attributes["sym_name"].value for one in _symbols(tail.made)})
    own = tail.place.attributes["buffer"].value
    ends = ("coremesh.collect", "coremesh.yield")
    before = [view.operation for view in first.operations if view.operation.name not in ends]
    after = [view.operation for view in second.operations if view.operation != tail.place]
    after = [op for op in after if op.name != "coremesh.buffer" or op.attributes["sym_name"].value != own]
    declared = ("coremesh.buffer", "coremesh.route", "coremesh.place")
    for is_declared in (True, False):
        for op in before:
            if (op.name in declared) == is_declared:
                _clone(op, known)
        for op in after:
            if (op.name in declared) == is_declared:
                _append(op, tail, known, renamed)


def _append(op: ir.Operation, tail: _Tail, known: dict[ir.Value, ir.Value], renamed: dict[str, str]) -> None:
    """Copy an op of the second program, which reads what is made where it is."""
    copy = _clone(op, known)
    if op.name == "coremesh.compute":
        own, index = tail.place.attributes["buffer"].value, tail.collects[0].attributes["indices"][0]
        pairs = zip(op.attributes["reads"], op.attributes["read_indices"], strict=True)
        indices = [index if name.value == own else other for name, other in pairs]
        copy.attributes["read_indices"] = ir.ArrayAttr.get(indices)
    _rename_symbols(copy, renamed)


def _renamed(tail: _Tail, taken: set[str]) -> dict[str, str]:
    """New names of the second program's buffers; that of what is made is where it is made."""
    found = {tail.place.attributes["buffer"].value: list(tail.collects[0].attributes["buffers"])[0].value}
    for one in _named(tail.op, "buffer"):
        name = one.attributes["sym_name"].value
        if name in found:
            continue
        stem = name.rstrip("0123456789")
        fresh = next(new for new in (f"{stem}{at}" for at in range(len(taken) + 1)) if new not in taken)
        taken.add(fresh)
        found[name] = fresh
    return found


def _rename_symbols(op: ir.Operation, renamed: dict[str, str]) -> None:
    if "sym_name" in op.attributes:
        op.attributes["sym_name"] = ir.StringAttr.get(renamed[op.attributes["sym_name"].value])
    if "buffer" in op.attributes:
        op.attributes["buffer"] = ir.FlatSymbolRefAttr.get(renamed[op.attributes["buffer"].value])
    for many in ("reads", "writes", "buffers"):
        if many in op.attributes:
            refs = [ir.FlatSymbolRefAttr.get(renamed[one.value]) for one in op.attributes[many]]
            op.attributes[many] = ir.ArrayAttr.get(refs)


def _clone(op: ir.Operation, known: dict[ir.Value, ir.Value]) -> ir.Operation:
    """A copy that reads copies, in its regions, too."""
    copy = op.clone().operation

    def visit(inner: ir.Operation) -> ir.WalkResult:
        for at, operand in enumerate(inner.operands):
            if operand in known:
                inner.operands[at] = known[operand]
        return ir.WalkResult.ADVANCE

    copy.walk(visit)
    known.update(zip(op.results, copy.results, strict=True))
    return copy


def _is_elementwise(compute: ir.Operation, read: int) -> bool:
    """Whether each element is made of the one at its place of a tile: what pads blocks makes padding alone."""
    inside = [view.operation for view in body(compute).operations]
    generics = [one for one in inside if one.name == "linalg.generic"]
    plain = all(one.name in ("linalg.generic", "tensor.empty", "arith.constant", "coremesh.yield") for one in inside)
    if not plain or len(generics) != 1 or any(kinds(generics[0])):
        return False
    (op,) = generics
    numbers = [at for at, value in enumerate(op.operands) if value == body(compute).arguments[read]]
    return numbers != [] and all(maps(op)[at] == maps(op)[-1] for at in numbers) and maps(op)[-1].is_permutation


def _named(op: ir.Operation, name: str) -> list[ir.Operation]:
    """Ops of a program of this name."""
    block = op.regions[0].blocks[0]
    return [view.operation for view in block.operations if view.operation.name == f"coremesh.{name}"]


def _symbols(op: ir.Operation) -> list[ir.Operation]:
    return [*_named(op, "buffer"), *_named(op, "route")]


def _argument(place: ir.Operation) -> int:
    return ir.BlockArgument(place.operands[0]).arg_number


def _tile(op: ir.Operation, name: str) -> ir.Attribute:
    return next(one.attributes["tile"] for one in _named(op, "buffer") if one.attributes["sym_name"].value == name)


def _tail(op: ir.Operation, before: ir.Operation | None) -> _Tail | None:
    """What an op is, if it is elementwise and the program before it makes an operand."""
    if before is None or op.attributes["name"].value != "local" or before.attributes["name"].value not in PRODUCERS:
        return None
    if any(op.attributes[name] != before.attributes[name] for name in ("height", "width")):
        return None
    makers = [maker(value) for value in op.operands]
    numbers = [at for at, made in enumerate(makers) if made is not None and made == before]
    if len(numbers) != 1 or len(list(uses(before.results[0]))) != 1 or len(_named(op, "compute")) != 1:
        return None
    places = [one for one in _named(op, "place") if _argument(one) == numbers[0]]
    found = _Tail(op, before, numbers[0]) if len(places) == 1 else None
    return found if found is not None and found.fits() else None


class _Peaks(dict[str, int]):
    """Bytes of the fullest core of programs, by their text: layers alike are counted once."""

    def of(self, op: ir.Operation) -> int:
        """Of one program."""
        key = text_of(op)
        if key not in self:
            self[key] = core_classes(read_program(op))[0].peak
        return self[key]


def _visit(block: ir.Block, peaks: _Peaks, room: int) -> None:
    before: ir.Operation | None = None
    for view in list(block.operations):
        op = view.operation
        if op.name != "coremesh.program":
            before = None if any(op.regions) else before
            continue
        tail = _tail(op, before)
        if tail is not None and before is not None:
            new = _fuse(tail)
            apart = max(peaks.of(before), peaks.of(op))
            if peaks.of(new) <= max(peaks.of(before) + _beside(tail), peaks.of(op)) and peaks.of(new) <= max(
                apart, room
            ):
                for user, number in uses(op.results[0]):
                    user.operands[number] = new.results[0]
                op.erase()
                before.erase()
                op = new
            else:
                new.erase()
        before = op


def _beside(tail: _Tail) -> int:
    """Bytes of what the second program reads besides, which lies there while the first one runs."""
    buffers = {buffer.name: buffer for buffer in read_program(tail.op).buffers}
    names = [one.attributes["buffer"].value for one in _named(tail.op, "place") if _argument(one) != tail.number]
    return sum(prod(buffers[name].shape) * buffers[name].dtype.itemsize for name in names)


def rewrite(options: Any, op: ir.Operation) -> None:
    """Visit all blocks that hold programs."""
    blocks = dict.fromkeys(found.block for found in walk(op, "coremesh.program"))
    peaks, room = _Peaks(), _room(op)
    for block in blocks:
        _visit(block, peaks, room)


def _room(op: ir.Operation) -> int:
    """Bytes of a core of the machine that is compiled for, if any is."""
    if find_device(op) is None:
        return sys.maxsize
    machine = machine_of(op)
    return machine.sram_bytes - machine.mesh.code_bytes
