# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Accesses of a kernel: which places of which memory each operation reaches along each dimension."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from tilewright.ir.generics import descendants
from tilewright.kernels.bounds.forms import ANY, Form, Forms, slices_of
from tilewright.mlir import ir

#: Operations that lie in a kernel and touch no memory that it is given, whatever their operands are.
_NO_ACCESS = frozenset(
    "memref.dim memref.assume_alignment memref.prefetch memref.cast memref.expand_shape memref.collapse_shape "
    "memref.rank memref.dealloc".split()
)
#: Position of the memory among the operands of operations on single elements, or on tiles.
_MEMORY = {"tile.load": 0, "tile.store": 1, "memref.load": 0, "memref.store": 1, "memref.atomic_rmw": 1}
_PARENTS = ("tile.kernel", "scf.for")
_GREATEST_STEP = 2**32  # of a tile's elements in memory: products with sizes of tiles do not overflow


@dataclass(frozen=True)
class Reach:
    """From where to where an access goes along one dimension, both ends included.

    Attributes:
        dim: of the memory.
        low: the least place.
        highs: bounds of the greatest place; the least of them is it.
        exact: whether the first bound is attained where nothing is masked.
    """

    dim: int
    low: Form
    highs: tuple[Form, ...]
    exact: bool = True


@dataclass(frozen=True)
class Site:
    """One access.

    Attributes:
        op: the operation.
        memory: what it accesses: an argument, or a view.
        reaches: by dimension; none where it reaches all of its memory, as a copy does.
        masked: whether places may be left out in a run.
    """

    op: ir.Operation
    memory: ir.Value
    reaches: tuple[Reach, ...]
    masked: bool = False

    def is_certain(self, forms: Forms) -> bool:
        """Whether each task makes this access: it stands in loops that run, and under no condition."""
        at = self.op
        while at.name != "tile.kernel":
            at = at.parent.operation
            if at.name not in _PARENTS or (at.name == "scf.for" and not forms.runs(at)):
                return False
        return forms.is_made


def sites_of(kernel: ir.Operation, forms: Forms) -> tuple[list[Site], list[ir.Operation]]:
    """The accesses of a kernel, in order, and the operations whose accesses nobody knows."""
    sites, unknown = [], []
    for op in descendants(kernel):
        memories = [value for value in op.operands if isinstance(value.type, ir.MemRefType | ir.UnrankedMemRefType)]
        if any(str(value.type).startswith("!llvm.ptr") for value in op.operands):
            unknown.append(op)
        if not memories or op.name in _NO_ACCESS:
            continue
        if op.name in _MEMORY:
            memory = op.operands[_MEMORY[op.name]]
            if any(abs(step) > _GREATEST_STEP for step in _integers(op, "steps")):
                unknown.append(op)
            sites.append(_tile_site(op, memory, forms) if op.name.startswith("tile.") else _element(op, memory, forms))
        elif op.name == "memref.subview":
            sites.append(_view(op, forms))
        elif op.name in ("tile.copy", "memref.copy") and all(isinstance(m.type, ir.MemRefType) for m in memories):
            sites += [Site(op, memory, ()) for memory in memories]
        else:
            unknown.append(op)
    return sites, unknown


def _element(op: ir.Operation, memory: ir.Value, forms: Forms) -> Site:
    first = _MEMORY[op.name] + 1
    places = [forms.of(value) for value in list(op.operands)[first:]]
    return Site(op, memory, tuple(Reach(dim, place, (place,)) for dim, place in enumerate(places)))


def _view(op: ir.Operation, forms: Forms) -> Site:
    """A view has to lie inside of its memory, whatever is read through it."""
    offsets, sizes, strides = (
        [Form(part) if isinstance(part, int) else forms.of(part) for part in parts] for parts in slices_of(op)
    )
    reaches = []
    for dim, (offset, size, stride) in enumerate(zip(offsets, sizes, strides, strict=True)):
        known = forms.fits(size) and forms.interval(size)[0] >= 0 and not stride.terms
        last = offset.plus(size.plus(-1), stride.constant) if known else forms.unknown()
        down = not stride.terms and stride.constant < 0
        reaches.append(Reach(dim, last if down else offset, (offset if down else last,)))
    masked = any(forms.interval(size)[0] <= 0 for size in sizes)
    return Site(op, op.operands[0], tuple(reaches), masked)


# Tiles ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TileParts:
    """The operands and attributes of a `tile.load` or `tile.store`, defaults filled in."""

    offsets: Sequence[ir.Value]
    indices: ir.Value | None
    valid: Sequence[ir.Value]
    shape: Sequence[int]
    dims: Sequence[int]
    steps: Sequence[int]
    along: int
    bounded: Sequence[int]
    interleave: int


def tile_parts(op: ir.Operation) -> TileParts:
    """Read a `tile.load` or `tile.store`."""
    segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    starts = [sum(segments[:i]) for i in range(len(segments))]
    operands = list(op.operands)
    first = 1 if op.name == "tile.load" else 2  # behind the memory
    offsets, indices, valid = (operands[starts[i] : starts[i] + segments[i]] for i in range(first, first + 3))
    kind = (op.results[0] if op.name == "tile.load" else op.operands[0]).type
    shape = list(ir.ShapedType(kind).shape)
    rank = ir.MemRefType(op.operands[_MEMORY[op.name]].type).rank
    dims = _integers(op, "dims") or list(range(rank - len(shape), rank))
    steps = _integers(op, "steps") or [1] * len(shape)
    along = ir.IntegerAttr(op.attributes["along"]).value if "along" in op.attributes else -1
    bounded = _integers(op, "bounded")
    interleaved = _interleave(kind)
    return TileParts(offsets, indices[0] if indices else None, valid, shape, dims, steps, along, bounded, interleaved)


def _integers(op: ir.Operation, name: str) -> list[int]:
    return list(ir.DenseI64ArrayAttr(op.attributes[name])) if name in op.attributes else []


def _interleave(kind: ir.Type) -> int:
    """Rows that alternate in the last dimension of memory; 1 where none do."""
    _, found, text = str(kind).partition("interleave = ")
    return int(text.rstrip(">")) if found else 1


def _tile_site(op: ir.Operation, memory: ir.Value, forms: Forms) -> Site:
    parts = tile_parts(op)
    reaches = []
    for dim, offset in enumerate(parts.offsets):
        if dim in parts.bounded:
            continue
        place = forms.of(offset)
        if parts.interleave > 1 and dim == len(parts.offsets) - 1:
            reaches.append(Reach(dim, place, (place.plus(min(parts.interleave, parts.shape[0]) - 1),)))
        elif dim in parts.dims:
            reaches.append(_along(parts, parts.dims.index(dim), memory, place, forms))
        else:
            reaches.append(Reach(dim, place, (place,)))
    return Site(op, memory, tuple(reaches), bool(parts.valid))


def _along(parts: TileParts, at: int, memory: ir.Value, place: Form, forms: Forms) -> Reach:
    """The reach along dimension `at` of the tile."""
    size, step, dim = parts.shape[at], parts.steps[at], parts.dims[at]
    if at == parts.along:
        low, high = _index_interval(parts.indices)
        if low == -inf:
            unknown = forms.unknown()
            return Reach(dim, unknown, (unknown,), exact=False)
        return Reach(dim, place.plus(int(low)), (place.plus(int(high)),), exact=False)
    if parts.interleave > 1 and at == 0:
        size = -(-size // parts.interleave)
    last = [place.plus((size - 1) * step)]
    if parts.valid:
        bounds = forms.uppers(parts.valid[at])
        # A bound that wraps around lets more through than its form says. One that ends with the memory cannot.
        whole = forms.size(memory, dim)
        bounds = [b for b in bounds if forms.interval(b)[0] >= ANY[0] or not place.plus(b).plus(whole, -1).terms]
        last += [place.plus(bound, step).plus(-step) for bound in bounds]
    if step >= 0:
        return Reach(dim, place, tuple(last) if step else (place,))
    return Reach(dim, last[0], (place,))


def _index_interval(indices: ir.Value | None) -> tuple[float, float]:
    op = None if indices is None or isinstance(indices, ir.BlockArgument) else indices.owner
    if op is not None and op.name == "tile.iota":
        return 0, ir.ShapedType(op.results[0].type).shape[ir.IntegerAttr(op.attributes["dim"]).value] - 1
    return -inf, inf
