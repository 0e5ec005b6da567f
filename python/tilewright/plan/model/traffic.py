# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What a group of operations moves and holds when tasks compute it tile by tile: the analyses of Welder.

`propagate`, `footprint` and `traffic` are Propagate, MemFootprint and MemTraffic of Welder (Shi et al., OSDI 2023,
section 4): a tile of the last operation determines, backwards through the indexing maps, the box of iterations of each
other one, the tiles that it reads from outside, and what must be held in between.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, prod

from tilewright.ir.structure import Access, LinalgOp, index_constant, index_terms, sizes_of
from tilewright.mlir import ir
from tilewright.plan.model.bestfit import Request, pack

Box = tuple[int, ...]


#: Bytes of a line of memory.
LINE_BYTES = 64
#: Tasks that a few cores share evenly.
_ENOUGH_TASKS = 8
#: Tensors of fewer L2 caches' bytes stay near: the largest cache serves other cores too, but has room for them.
_STREAMED_L2S = 16


@dataclass(frozen=True)
class Levels:
    """Capacities and rates of the memory that tiles move through. Rates are bytes per nanosecond of one core.

    A task with products takes the first number of `blocks` of its rows that fits, `steps` at a time of a loop that runs
    in blocks. With `chains`, a softmax that can run in such a loop does, whatever tasks read again: scores stay in
    registers. Other products are not fused into fewer than `tasks`.
    """

    l2_bytes: int
    l3_bytes: int
    l2_rate: float
    l3_rate: float
    memory_rate: float
    blocks: tuple[int, ...] = (64, 32, 16)
    steps: int = 256
    chains: bool = False
    tasks: int = _ENOUGH_TASKS

    def home_rate(self, size: int) -> float:
        """The rate at which a whole tensor is read again: from the cache that holds it, or from memory."""
        return self.l3_rate if 2 * size <= self.l3_bytes else self.memory_rate


def element(access: Access) -> str:
    """The element type of an operand, as text."""
    return str(ir.RankedTensorType(access.value.type).element_type)


def element_bytes(value: ir.Value) -> int:
    """Bytes of an element as stored."""
    return max(getattr(ir.RankedTensorType(value.type).element_type, "width", 64) // 8, 1)


def tensor_bytes(value: ir.Value) -> int:
    """Bytes of a whole tensor."""
    return prod(sizes_of(value)) * element_bytes(value)


def region(access: Access, box: Box) -> Box:
    """Sizes of the part of a tensor that `access` touches over a box of iterations: the interval of each expression.

    Where an expression is not linear, the whole dimension (an upper bound).
    """
    return hull([access], box)


def hull(accesses: Sequence[Access], box: Box) -> Box:
    """Sizes of the smallest part of a tensor that holds what all `accesses` to it touch over a box of iterations."""
    sizes = []
    for at, extent in enumerate(sizes_of(accesses[0].value)):
        spans = [_interval(access.map.results[at], box) for access in accesses]
        known = [span for span in spans if span is not None]
        whole = len(known) < len(spans)
        sizes.append(extent if whole else min(max(s[1] for s in known) - min(s[0] for s in known) + 1, extent))
    return tuple(sizes)


def _interval(expr: ir.AffineExpr, box: Box) -> tuple[int, int] | None:
    """First and last value of an index expression over a box of iterations at the origin; None if it is not linear."""
    terms = index_terms(expr)
    if terms is None:
        return None
    start = index_constant(expr)
    reach = [c * (box[d] - 1) for d, c in terms.items()]
    return start + sum(r for r in reach if r < 0), start + sum(r for r in reach if r > 0)


def propagate(ops: Sequence[LinalgOp], tile: Mapping[int, int]) -> dict[LinalgOp, Box]:
    """The box of each operation of a group that one tile of the last one needs.

    Args:
        ops: the group in program order.
        tile: sizes per loop of the last operation; loops that it does not name are whole.

    Returns:
        sizes per loop of all operations that the last one needs.
    """
    boxes: dict[LinalgOp, list[int]] = {}
    last = ops[-1]
    boxes[last] = [tile.get(d, e) for d, e in enumerate(last.extents)]
    makers = {op.result: op for op in ops}
    for op in reversed(ops):
        if op not in boxes:
            continue
        box = tuple(boxes[op])
        for value, accesses in _by_value(op).items():
            maker = makers.get(value)
            if maker is None or maker is op:
                continue
            need = list(maker.extents)
            for loop, size in zip(maker.output.dims, hull(accesses, box), strict=True):
                if loop is not None:
                    need[loop] = size
            known = boxes.get(maker)
            boxes[maker] = need if known is None else [max(a, b) for a, b in zip(known, need, strict=True)]
    return {op: tuple(box) for op, box in boxes.items()}


def _by_value(op: LinalgOp) -> dict[ir.Value, list[Access]]:
    """How an operation reads each of its inputs."""
    found: dict[ir.Value, list[Access]] = {}
    for access in op.inputs:
        found.setdefault(access.value, []).append(access)
    return found


@dataclass(frozen=True)
class Reads:
    """A tensor from outside a group: bytes of it per task, in all, over all tasks, and with whole cache lines."""

    tile: int
    whole: int
    moved: int
    lines: int


def tiles(ops: Sequence[LinalgOp], tile: Mapping[int, int]) -> int:
    """Number of tasks that cover the last operation."""
    last = ops[-1]
    return prod(ceil(last.extents[d] / t) for d, t in tile.items() if d in last.parallel)


def boundary(ops: Sequence[LinalgOp], tile: Mapping[int, int]) -> dict[ir.Value, Reads]:
    """What each task of a group reads from outside it."""
    boxes, count = propagate(ops, tile), tiles(ops, tile)
    inside = {op.result for op in ops}
    found: dict[ir.Value, Reads] = {}
    for op in boxes:
        for value, accesses in _by_value(op).items():
            if value in inside:
                continue
            part = hull(accesses, boxes[op])
            size, lines = prod(part) * element_bytes(value), _line_bytes(value, part)
            known = found.get(value)
            if known:
                size, lines = max(size, known.tile), max(lines, known.lines // count)
            found[value] = Reads(size, tensor_bytes(value), size * count, lines * count)
    return found


def _line_bytes(value: ir.Value, part: Box) -> int:
    """Bytes of the cache lines that a part of a tensor lies in; whole rows share those at their ends."""
    width, extents = element_bytes(value), sizes_of(value)
    if not part or part[-1] == extents[-1]:
        return prod(part) * width
    return prod(part[:-1]) * min(ceil(part[-1] * width / LINE_BYTES) * LINE_BYTES, extents[-1] * width)


def traffic(ops: Sequence[LinalgOp], tile: Mapping[int, int], results: Sequence[ir.Value] | None = None) -> int:
    """Bytes that all tasks of a group read from and write to what is outside it.

    Args:
        ops: the group in program order.
        tile: sizes per loop of the last operation that a task covers.
        results: which tensors are written for others; by default that of the last operation.
    """
    written = [ops[-1].result] if results is None else results
    return sum(r.moved for r in boundary(ops, tile).values()) + sum(tensor_bytes(v) for v in written)


def footprint(
    ops: Sequence[LinalgOp],
    tile: Mapping[int, int],
    in_registers: Collection[LinalgOp] = (),
    cut: Mapping[LinalgOp, tuple[int, int]] | None = None,
) -> int:
    """Bytes of the tiles that a task holds between operations, placed by best fit in program order.

    Tensors from outside are streamed: a slice of them at a time, which caches hold. Nor does it hold results of the
    operations `in_registers`, which meet their readers there. `cut` names loops that run in blocks, and their sizes.
    """
    boxes = propagate(ops, tile)
    for op, (loop, size) in (cut or {}).items():
        if op in boxes:
            boxes[op] = tuple(min(s, size) if d == loop else s for d, s in enumerate(boxes[op]))
    last_read: dict[LinalgOp, int] = {}
    makers = {op.result: op for op in ops}
    for position, op in enumerate(ops):
        for access in op.inputs:
            maker = makers.get(access.value)
            if maker is not None:
                last_read[maker] = position
    requests = []
    for position, op in enumerate(ops):
        if op in last_read and op in boxes and op not in in_registers:
            size = prod(region(op.output, boxes[op])) * element_bytes(op.result)
            requests.append(Request(position, last_read[op], size))
    return pack(requests).bytes


def moving_time(ops: Sequence[LinalgOp], tile: Mapping[int, int], results: Sequence[ir.Value], levels: Levels) -> float:
    """Nanoseconds that the traffic of a group takes.

    The first read of a tensor and its writing go at the rate of the level that holds it whole. Tasks that follow each
    other find again in L2 what is at most half of it and the same for both.
    """
    total = sum(tensor_bytes(v) / levels.home_rate(tensor_bytes(v)) for v in results)
    for reads in boundary(ops, tile).values():
        rate = levels.home_rate(reads.whole)
        again = levels.l2_rate if 2 * reads.tile <= levels.l2_bytes else rate
        total += min(reads.whole, reads.moved) / rate + max(reads.moved - reads.whole, 0) / again
    return total


def is_streamed(value: ir.Value, levels: Levels, read_bytes: int = 0) -> bool:
    """Whether a large tensor is written faster past the caches, a later read included.

    A store that misses reads the line and writes it back later; one past the caches writes memory only, and a reader
    then finds the bytes there.

    Args:
        value: the tensor.
        levels: the machine's.
        read_bytes: bytes that its makers read meanwhile; a cache that shall hold the tensor holds them, too.
    """
    size = tensor_bytes(value)
    if size < _STREAMED_L2S * levels.l2_bytes:
        return False
    home = levels.home_rate(size + read_bytes)
    read = any(use.owner.operation.name == "linalg.generic" for use in value.uses)
    cached = size * (3 if read else 2) / home
    return size * (2 if read else 1) / levels.memory_rate < cached
