# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bytes that a kernel moves at each level of memory, from its text.

The grid and the loops of a kernel are one loop nest whose innermost parts load and store. The footprint of a loop is
the bytes that all its iterations touch: those of each access, times the trips of the loops that its offsets depend on.
A cache keeps what fits: a loop whose footprint fits moves it once; one whose body fits moves what its iterations do not
share; any other moves what its body moves, again in each iteration (Roller, OSDI 2022, section 3.3, and Welder, OSDI
2023, section 3.2, count the traffic of tiles this way).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

from tilewright.core.dtypes import NAMES, item_bytes, name_of_mlir
from tilewright.ir.constants import trip_count
from tilewright.mlir import ir

_TILES = {"tile.load": 0, "tile.store": 1}  # the position of the memref; offsets come after it
_SCALARS = {"memref.load": 0, "memref.store": 1}
_COPIES = ("tile.copy", "memref.copy")
_VIEWS = ("memref.subview", "memref.cast", "memref.expand_shape", "memref.collapse_shape", "memref.reinterpret_cast")


@dataclass
class Access:
    """One load or store: where to, how many bytes at once, and which loops its place depends on."""

    memory: Any
    bytes: int
    loops: frozenset[int]
    stores: bool = False


@dataclass
class Loop:
    """A loop with what is in it; the kernel's body is a loop of one trip."""

    number: int
    trips: int
    accesses: list[Access] = field(default_factory=list)
    inner: list[Loop] = field(default_factory=list)


class _Reader:
    """Builds the loop nest of a kernel."""

    def __init__(self, kernel: Any, grid: Sequence[int | None]) -> None:
        block = kernel.operation.regions[0].blocks[0]
        self._depends: dict[Any, frozenset[int]] = {}
        self._count = 0
        self.sizes: dict[Any, int] = {}
        arguments = list(block.arguments)
        inputs = arguments[: len(arguments) - len(grid)]
        self._depends.update((value, frozenset()) for value in inputs)
        self.root = loop = self._loop(1)
        for value, bound in zip(arguments[len(inputs) :], grid, strict=True):
            outer, loop = loop, self._loop(1 if bound is None else bound)
            outer.inner.append(loop)
            self._depends[value] = frozenset({loop.number})
        self._block(block, loop)

    def _loop(self, trips: int) -> Loop:
        self._count += 1
        return Loop(self._count, trips)

    def _block(self, block: Any, loop: Loop) -> None:
        for view in block.operations:
            op = view.operation
            if op.name == "scf.for":
                self._for(op, loop)
            else:
                loop.accesses += self._accesses(op)
                for inner in (b for region in op.regions for b in region.blocks):
                    self._depends.update((value, frozenset({loop.number})) for value in inner.arguments)
                    self._block(inner, loop)

    def _for(self, op: Any, outer: Loop) -> None:
        trips = trip_count(op)
        loop = self._loop(1 if trips is None else trips)
        outer.inner.append(loop)
        block = op.regions[0].blocks[0]
        self._depends.update((value, frozenset({loop.number})) for value in block.arguments)
        self._block(block, loop)

    def _accesses(self, op: Any) -> Iterator[Access]:
        if op.name in _TILES:
            memory, *offsets = list(op.operands)[_TILES[op.name] :]
            tile = op.results[0] if op.name == "tile.load" else op.operands[0]
            yield self._access(memory, tile.type, offsets, op.name == "tile.store")
        elif op.name in _SCALARS:
            memory, *offsets = list(op.operands)[_SCALARS[op.name] :]
            yield self._access(memory, ir.MemRefType(memory.type).element_type, offsets, op.name == "memref.store")
        elif op.name in _COPIES:
            for i, value in enumerate(list(op.operands)[:2]):
                if isinstance(value.type, ir.MemRefType):
                    yield self._access(value, value.type, [], i == 1)

    def _access(self, memory: Any, moved: Any, offsets: Sequence[Any], stores: bool) -> Access:
        loops: frozenset[int] = frozenset().union(*(self._loops(value) for value in offsets))
        while not isinstance(memory.owner, ir.Block) and memory.owner.name in _VIEWS:
            loops |= frozenset().union(*(self._loops(value) for value in list(memory.owner.operands)[1:]))
            memory = memory.owner.operands[0]
        self.sizes.setdefault(memory, type_bytes(memory.type))
        return Access(memory, type_bytes(moved), loops, stores)

    def _loops(self, value: Any) -> frozenset[int]:
        """The loops that a value changes with."""
        if value not in self._depends:
            owner = value.owner
            inputs = [] if isinstance(owner, ir.Block) else list(owner.operands)
            self._depends[value] = frozenset().union(*(self._loops(operand) for operand in inputs))
        return self._depends[value]


@functools.cache
def element_bytes(text: str) -> int:
    """Bytes of a scalar type by its text; what is no number counts as 4."""
    name = name_of_mlir(text)
    return item_bytes(name) if name in NAMES else 4


def type_bytes(kind: Any) -> int:
    """Bytes of a value of a shaped or scalar type; a size that is not known counts as 1."""
    if not isinstance(kind, ir.ShapedType):
        return element_bytes(str(kind))
    shaped = ir.ShapedType(kind)
    total = type_bytes(shaped.element_type)
    for i in range(shaped.rank):
        total *= 1 if shaped.is_dynamic_dim(i) else shaped.get_dim_size(i)
    return total


class _Counter:
    """Footprints and traffic of one nest for one capacity."""

    def __init__(self, sizes: Mapping[Any, int], capacity: int) -> None:
        self._sizes = sizes
        self._capacity = capacity

    def footprint(self, loop: Loop) -> dict[Any, int]:
        """Bytes of each memory that one whole run of the loop touches."""
        return self._capped(self._spread(loop, loop.trips))

    def _spread(self, loop: Loop, trips: int) -> dict[Any, int]:
        total: dict[Any, int] = {}
        for memory, bytes_, loops in _leaves(loop):
            total[memory] = total.get(memory, 0) + bytes_ * (trips if loop.number in loops else 1)
        return total

    def _capped(self, found: dict[Any, int]) -> dict[Any, int]:
        return {memory: min(bytes_, max(self._sizes[memory], 1)) for memory, bytes_ in found.items()}

    def traffic(self, loop: Loop) -> int:
        """Bytes that one whole run of the loop moves into the cache and out of it."""
        whole = sum(self.footprint(loop).values())
        if whole <= self._capacity:
            return whole
        body = sum(self._capped(self._spread(loop, 1)).values())
        if body <= self._capacity:
            return sum(self._spread(loop, loop.trips).values())
        direct = sum(access.bytes for access in loop.accesses)
        return loop.trips * (direct + sum(self.traffic(inner) for inner in loop.inner))


def _leaves(loop: Loop) -> Iterator[tuple[Any, int, frozenset[int]]]:
    """Accesses of one iteration: memory, bytes over all inner loops that they depend on, loops that they depend on."""
    for access in loop.accesses:
        yield access.memory, access.bytes, access.loops
    for inner in loop.inner:
        for memory, bytes_, loops in _leaves(inner):
            yield memory, bytes_ * (inner.trips if inner.number in loops else 1), loops


def kernel_traffic(kernel: Any, grid: Sequence[int | None], caches: Sequence[tuple[str, int]]) -> dict[str, int]:
    """Bytes moved from and to each level in one launch, nearest first: what the levels above it do not hold.

    Args:
        kernel: a `tile.kernel`.
        grid: its bounds; None where one is not known, which counts as 1.
        caches: (name, bytes) of each level below the registers, nearest first.
    """
    reader = _Reader(kernel, grid)
    above = [0, *(bytes_ for _, bytes_ in caches)]
    return {
        name: _Counter(reader.sizes, capacity).traffic(reader.root)
        for (name, _), capacity in zip(caches, above, strict=False)
    }


def touched_bytes(kernel: Any, grid: Sequence[int | None]) -> tuple[int, int]:
    """Bytes that one launch reads and writes, each once, of what is not its own: memory that it allocates is not.

    Args:
        kernel: a `tile.kernel`.
        grid: its bounds; None where one is not known, which counts as 1.
    """
    reader = _Reader(kernel, grid)
    moved = {False: {}, True: {}}
    for access, times in _spread(reader.root):
        if isinstance(access.memory.owner, ir.Block):
            found = moved[access.stores]
            found[access.memory] = found.get(access.memory, 0) + access.bytes * times
    read, written = (
        sum(min(bytes_, max(reader.sizes[memory], 1)) for memory, bytes_ in found.items()) for found in moved.values()
    )
    return read, written


def _spread(loop: Loop, outer: tuple[Loop, ...] = ()) -> Iterator[tuple[Access, int]]:
    """All accesses, and how many places each has: trips of the loops that they change with."""
    around = (*outer, loop)
    for access in loop.accesses:
        yield access, prod(each.trips for each in around if each.number in access.loops)
    for inner in loop.inner:
        yield from _spread(inner, around)
