# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What pass `tile-stream-blocks` does; loaded when it runs, as all that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tilewright.core.errors import UserError
from tilewright.ir.generics import create, create_like, descendants, kinds, maker, maps, uses, walk
from tilewright.mlir import ir
from tilewright.passes import located
from tilewright.targets.mesh.attributes import OUTSIDE, STREAMS
from tilewright.targets.mesh.computations import loop_sizes
from tilewright.targets.mesh.images.windows import terms
from tilewright.targets.mesh.slices import places
from tilewright.targets.mesh.streaming.blocks import BLOCKS, Blocks
from tilewright.targets.mesh.streaming.reduced import combined_loops, start_of_part, with_part

_WHY = "blocks pass the edge of the grid one by one"
_OPEN = ir.ShapedType.get_dynamic_size()


class _Member:
    """A computation of a group.

    Attributes:
        loop: the one that is cut.
        size: of that loop; ``count``: of blocks.
        dim: of the result along it; None: the op combines along it, and each block makes a partial result.
    """

    def __init__(self, op: ir.Operation) -> None:
        self.op, self.sizes = op, loop_sizes(op)
        self.blocks = Blocks.of(op, self.sizes)
        first = self.blocks.first()
        assert first is not None
        self.loop, self.size, self.count = first, self.sizes[first], self.blocks.counts[first]
        if kinds(op)[first] and first not in combined_loops(op):
            raise located(_in_order(first), op)
        wanted = ir.AffineDimExpr.get(first)
        self.dim = next((dim for dim, expr in enumerate(maps(op)[-1].results) if expr == wanted), None)

    def reads(self, made: _Member, map_: ir.AffineMap) -> bool:
        """Whether a map of an operand has of another member's result the very block that this makes."""
        if made.dim is None:  # it is whole after the last block
            return False
        used = [dim for dim, expr in enumerate(map_.results) if any(loop == self.loop for loop, _ in _terms(expr))]
        return used == [made.dim] and map_.results[made.dim] == ir.AffineDimExpr.get(self.loop)

    def extent(self, expr: ir.AffineExpr, block: int) -> int:
        """Elements of a dimension that a block of the loop reads, from the first to the last."""
        cut = [block if loop == self.loop else size for loop, size in enumerate(self.sizes)]
        steps = [(1, factor) if loop is None else (cut[loop] - 1, factor) for loop, factor in _terms(expr)]
        return 1 + sum(count * factor for count, factor in steps)


def _in_order(loop: int) -> UserError:
    return UserError(
        f"{BLOCKS} cuts loop d{loop}, along which an op combines in an order of its own: cut loops of the result, or "
        "those of sums, products, maxima and minima"
    )


def _terms(expr: ir.AffineExpr) -> list[tuple[int | None, int]]:
    return terms(expr) or []


class _Group:
    """Computations that share a loop.

    Attributes:
        made: their results, with the member of each.
    """

    def __init__(self, first: _Member) -> None:
        self.members, self.made = [first], {first.op.results[0]: first}

    def take(self, op: ir.Operation) -> bool:
        """Take an op that follows, if it is of the group; False: the group ends before it."""
        if Blocks.has(op):
            member = _Member(op)
            first = self.members[0]
            if (member.size, member.count) == (first.size, first.count) and self._is_alike(member):
                self.members.append(member)
                self.made[op.results[0]] = member
                return True
        return not any(value in self.made for value in _all_read(op))

    def _is_alike(self, member: _Member) -> bool:
        inner = {value for one in descendants(member.op) for value in one.operands}
        if any(value in self.made for value in inner):
            return False
        pairs = zip(member.op.operands, maps(member.op), strict=True)
        return all(value not in self.made or member.reads(self.made[value], map_) for value, map_ in pairs)


def _all_read(op: ir.Operation) -> list[ir.Value]:
    return [*op.operands, *(value for one in descendants(op) for value in one.operands)]


def _group(operations: Sequence[ir.Operation]) -> _Group | None:
    """The first computations that are cut."""
    start = next((at for at, op in enumerate(operations) if Blocks.has(op)), None)
    if start is None:
        return None
    group = _Group(_Member(operations[start]))
    for op in operations[start + 1 :]:
        if not group.take(op):
            break
    return group


class _Loop:
    """The loop that a group becomes.

    Attributes:
        offset: of a block, in iterations of what is cut.
    """

    def __init__(self, group: _Group) -> None:
        self.group, first = group, group.members[0]
        self.block, self.last = first.blocks.block(first.loop), group.members[-1].op
        self.size, self.count = first.size, first.count
        if any(member.dim is None for member in group.members):  # no element may count twice: the rest is apart
            self.count = self.size // self.block
        inside = {member.op for member in group.members}
        self.out = [value for value in group.made if any(user not in inside for user, _ in uses(value))]

    def write(self) -> ir.Block:
        """Write it, in place of the ops. Returns its body."""
        kinds_ = [value.type for value in self.out]
        with ir.InsertionPoint.after(self.last), self.last.location:
            bounds = [_index(0), _index(self.count), _index(1)]
            starts = [self._start(value) for value in self.out]
            op = ir.Operation.create(
                "scf.for",
                results=kinds_,
                operands=[*bounds, *starts],
                attributes={STREAMS: ir.UnitAttr.get()},
                regions=1,
            )
        block = ir.Block.create_at_start(op.regions[0], [ir.IndexType.get(), *kinds_])
        with ir.InsertionPoint(block), self.last.location:
            self.offset = create("arith.muli", [block.arguments[0], _index(self.block)], ir.IndexType.get())
            if self.block * self.count > self.size:
                self.offset = create("arith.minsi", [self.offset, _index(self.size - self.block)], ir.IndexType.get())
            ir.Operation.create("scf.yield", operands=self._fill(list(block.arguments)[1:]))
        made = list(op.results)
        if self.block * self.count < self.size:
            with ir.InsertionPoint.after(op), self.last.location:
                self.offset, self.block = _index(self.block * self.count), self.size - self.block * self.count
                made = self._fill(made)
        for value, new in zip(self.out, made, strict=True):
            value.replace_all_uses_with(new)
        for member in reversed(self.group.members):
            member.op.erase()
        return block

    def _start(self, value: ir.Value) -> ir.Value:
        member = self.group.made[value]
        return create("tensor.empty", [], value.type) if member.dim is not None else list(member.op.operands)[-1]

    def _fill(self, wholes: Sequence[ir.Value]) -> list[ir.Value]:
        """Write what one block takes, at the current insertion point. Returns the results with what it makes."""
        known: dict[ir.Value, ir.Value] = {}
        for member in self.group.members:
            with member.op.location:
                known[member.op.results[0]] = self._member(member, known)
        made = []
        for value, whole in zip(self.out, wholes, strict=True):
            member = self.group.made[value]
            with member.op.location:
                if member.dim is None:
                    made.append(with_part(member.op, whole, known[value]))
                else:
                    made.append(self._put(known[value], whole, member.dim))
        return made

    def _member(self, member: _Member, known: dict[ir.Value, ir.Value]) -> ir.Value:
        old = member.op
        operands = [self._operand(member, number, known) for number in range(len(old.operands))]
        new = old.clone().operation
        for number, value in enumerate(operands):
            new.operands[number] = value
        new.results[0].set_type(operands[-1].type)
        for one in walk(new, "linalg.index"):
            if ir.IntegerAttr(one.attributes["dim"]).value == member.loop:
                self._shift(one)
        member.blocks.with_count(member.loop, 1).write(new)
        return new.results[0]

    def _shift(self, index: ir.Operation) -> None:
        """Count a loop's index from the begin of the whole."""
        readers = list(uses(index.results[0]))
        with ir.InsertionPoint.after(index), index.location:
            moved = create("arith.addi", [index.results[0], self.offset], index.results[0].type)
        for user, number in readers:
            user.operands[number] = moved

    def _operand(self, member: _Member, number: int, known: dict[ir.Value, ir.Value]) -> ir.Value:
        value, map_ = member.op.operands[number], maps(member.op)[number]
        if value in known:
            return known[value]
        if member.dim is None and number == len(member.op.operands) - 1:
            return start_of_part(member.op)
        parts = {}
        for dim, expr in enumerate(map_.results):
            factor = sum(factor for loop, factor in _terms(expr) if loop == member.loop)
            if factor:
                parts[dim] = (factor, member.extent(expr, self.block))
        if not parts:
            return value
        kind, made = ir.RankedTensorType(value.type), maker(value)
        shape = [parts[dim][1] if dim in parts else size for dim, size in enumerate(kind.shape)]
        result = ir.RankedTensorType.get(shape, kind.element_type)
        if made is not None and made.name in ("tensor.empty", "linalg.fill"):
            return create_like(made, result)
        return self._cut(value, result, {dim: factor for dim, (factor, _) in parts.items()})

    def _cut(self, value: ir.Value, result: ir.RankedTensorType, factors: dict[int, int]) -> ir.Value:
        index = ir.IndexType.get()
        offsets = [
            self.offset if factor == 1 else create("arith.muli", [self.offset, _index(factor)], index)
            for factor in factors.values()
        ]
        numbers = [_OPEN if dim in factors else 0 for dim in range(result.rank)]
        attributes = places(numbers, list(result.shape), [1, len(offsets), 0, 0]) | {OUTSIDE: ir.StringAttr.get(_WHY)}
        return create("tensor.extract_slice", [value, *offsets], result, attributes)

    def _put(self, part: ir.Value, whole: ir.Value, dim: int) -> ir.Value:
        kind = ir.RankedTensorType(part.type)
        numbers = [_OPEN if at == dim else 0 for at in range(kind.rank)]
        attributes = places(numbers, list(kind.shape), [1, 1, 1, 0, 0]) | {OUTSIDE: ir.StringAttr.get(_WHY)}
        return create("tensor.insert_slice", [part, whole, self.offset], whole.type, attributes)


def _index(number: int) -> ir.Value:
    index = ir.IndexType.get()
    return create("arith.constant", [], index, {"value": ir.IntegerAttr.get(index, number)})


def _visit(block: ir.Block) -> None:
    while True:
        group = _group([view.operation for view in block.operations])
        if group is None:
            return
        _visit(_Loop(group).write())


def rewrite(options: Any, op: ir.Operation) -> None:
    """Visit the functions."""
    for function in walk(op, "func.func"):
        for block in function.regions[0].blocks:
            _visit(block)
