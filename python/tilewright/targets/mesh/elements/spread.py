# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Along which axes the loops of a generic lie that is elementwise or reduces, and whether the grid is to do it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import permutations
from math import prod

from tilewright.core.dtypes import of_mlir
from tilewright.ir.generics import maps, uses
from tilewright.ir.views import RESHAPES
from tilewright.mlir import ir
from tilewright.targets.mesh.bodies.captures import PICK, Captures, captures
from tilewright.targets.mesh.computations import INTEGERS, Elementwise, Reduction, dims, loop_sizes
from tilewright.targets.mesh.control.loops import READERS
from tilewright.targets.mesh.elements.numbers import is_for_cores
from tilewright.targets.mesh.elements.rows import gather, rows_loops

Axes = tuple[str, ...]

#: So many integers, places to pick from mostly, each core makes for itself: sooner than it would be sent them.
_COPIED = 64


def spread(op: ir.Operation, axes: Mapping[ir.Value, Axes], wanted: Callable[[ir.Value], Axes | None]) -> list[str]:
    """The axis along each loop: as most of what is read lies, else along the last ones.

    Args:
        axes: how values on the grid lie.
        wanted: how a reader wants a result to lie.
    """
    sizes = loop_sizes(op)
    best: dict[int, str] = {}
    for value, loops in _reads(op, sizes):
        if value in axes:
            pairs = zip(loops, axes[value], strict=True)
            known = {loop: axis.partition(" ")[0] for loop, axis in pairs if loop is not None}
            best = max(best, known, key=_split_most)
    if not any(best.values()) and _is_integer(op.results[0]) and prod(sizes) <= _COPIED:
        return [""] * len(sizes)
    like = None if best else wanted(op.results[0])
    if like is not None:
        pairs = zip(dims(maps(op)[-1]), like, strict=True)
        best = {loop: axis for loop, axis in pairs if loop is not None}
    loops = [best.get(loop, "") for loop in range(len(sizes))]
    open_ = [loop for loop, size in enumerate(sizes) if loop not in best and size > 1]
    free = [axis for axis in ("x", "y") if axis not in loops]
    if len(free) == 2 and len(open_) == 1:
        free = ["y"]  # a vector, as products expect it
    for loop, axis in zip(reversed(open_), free, strict=False):
        loops[loop] = axis
    return loops


def fitting(
    op: ir.Operation, loops: list[str], side: int, few: int, room_of: Callable[[ir.Operation], int]
) -> list[str]:
    """The axes along loops; where blocks outgrow a core's memory so, those with which they are smallest.

    Args:
        few: bytes for which no one needs to ask.
        room_of: bytes of a core that are free for an op.
    """
    least = _need(op, loops, side)
    if least <= few or least <= room_of(op):
        return loops
    for y, x in permutations(range(len(loops)), 2):
        other = ["y" if loop == y else "x" if loop == x else "" for loop in range(len(loops))]
        need = _need(op, other, side)
        if need < least:
            loops, least = other, need
    return loops


def _need(op: ir.Operation, loops: list[str], side: int) -> int:
    """Bytes of a core's blocks of what an op reads and makes."""
    sizes = loop_sizes(op)
    blocks = [(op.results[0], dims(maps(op)[-1])), *_reads(op, sizes)]
    return sum(_bytes(value, [loop is not None and bool(loops[loop]) for loop in own], side) for value, own in blocks)


def left_outside(
    op: ir.Operation, found: Elementwise | Reduction, side: int, room_of: Callable[[ir.Operation], int]
) -> str:
    """Why a computation that cores could do is left to the host; empty where they do it.

    Args:
        side: cores along each side of the grid.
        room_of: bytes of a core that are free for an op; asked where it picks elements, as all values are counted.
    """
    if _is_integer(op.results[0]) and not _is_read_on_grid(op.results[0]):
        return "the host alone reads these numbers"
    sizes = loop_sizes(op)
    if isinstance(found, Reduction) and found.bare:
        need = prod(sizes) * of_mlir(str(ir.RankedTensorType(op.results[0].type).element_type)).itemsize
        if need > room_of(op):
            return (
                f"none of its inputs has all of its elements, which are {need:,} bytes; a core has {room_of(op):,} free"
            )
    return table_outgrows(op, side, room_of)


def table_outgrows(op: ir.Operation, side: int, room_of: Callable[[ir.Operation], int]) -> str:
    """Why cores cannot hold what an op picks elements from, whole or split; empty where they can."""
    around = captures(op, loop_sizes(op))
    if isinstance(around, str) or not around.tables:
        return ""
    parts, room = table_bytes(around, side), room_of(op)
    if parts > room and not is_by_rows(op, side, room):
        return f"a core would hold {parts:,} bytes of what elements are picked from; it has {room:,} free"
    return ""


def is_by_rows(op: ir.Operation, side: int, room: int) -> bool:
    """Whether what is picked is split, as no core could hold all that it may pick, but its part of it."""
    around, found = captures(op, loop_sizes(op)), gather(op)
    if isinstance(around, str) or found is None or table_bytes(around, side) <= room:
        return False
    return found.bytes(rows_loops(op, found), side) <= room


def table_bytes(around: Captures, side: int) -> int:
    """Bytes of a core that holds all that it may pick, with one axis to split what loops count."""
    open_ = [(one.value, [loop is not None for loop in one.loops]) for one in around.tables]
    return sum(_bytes(value, _longest(value, split), side) for value, split in open_)


def _reads(op: ir.Operation, sizes: list[int]) -> Iterator[tuple[ir.Value, list[int | None]]]:
    """What is read, with the loop along each dimension."""
    for value, map_ in zip(op.operands, maps(op)[:-1], strict=False):
        yield value, dims(map_)
    around = captures(op, sizes)
    if isinstance(around, Captures):
        for table in around.tables:
            yield table.value, list(table.loops)


def _split_most(known: dict[int, str]) -> tuple[int, int]:
    return sum(map(bool, known.values())), len(known)


def _is_integer(value: ir.Value) -> bool:
    return str(ir.RankedTensorType(value.type).element_type) in INTEGERS


def _is_read_on_grid(value: ir.Value) -> bool:
    """Whether not only the host reads integers: those that decide what runs it would have to collect."""
    users = list(_readers(value))
    if any(user.name == PICK and is_for_cores(user) for user in users):
        return True
    if prod(ir.RankedTensorType(value.type).shape) == 1 and not any(user.name == "linalg.generic" for user in users):
        return any(user.name == "func.return" for user in users)
    return any(user.name in READERS or user.parent.operation.name == "linalg.generic" for user in users)


def _readers(value: ir.Value) -> Iterator[ir.Operation]:
    """Who reads a tensor, in whatever shape."""
    for user, _ in uses(value):
        if user.name in RESHAPES:
            yield from _readers(user.results[0])
        else:
            yield user


def _bytes(value: ir.Value, split: list[bool], side: int) -> int:
    kind = ir.RankedTensorType(value.type)
    parts = [-(-size // side) if is_split else size for size, is_split in zip(kind.shape, split, strict=True)]
    return prod(parts) * of_mlir(str(kind.element_type)).itemsize


def _longest(value: ir.Value, split: list[bool]) -> list[bool]:
    """The longest of the dimensions alone that an axis may split."""
    shape = ir.RankedTensorType(value.type).shape
    longest = max((dim for dim, is_split in enumerate(split) if is_split), key=lambda dim: shape[dim], default=None)
    return [dim == longest for dim in range(len(split))]
