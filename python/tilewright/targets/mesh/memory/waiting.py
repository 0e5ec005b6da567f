# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Values that wait outside of the grid between their readers: out through its edge once, in again before each reader.

Readers share what has come in as long as all that runs between them fits beside it; a loop does that reads a value in
each turn, if all of it fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tilewright.ir.diagnostics import remark
from tilewright.ir.generics import create, uses
from tilewright.mlir import ir
from tilewright.targets.mesh.attributes import FIXED, STREAMED
from tilewright.targets.mesh.memory.held import Held, Memory, around, home_of

_ASSEMBLE, _DISTRIBUTE = "coremesh.assemble", "coremesh.distribute"
#: An op that reads a value, and the number of its operand.
_Use = tuple[ir.Operation, int]


@dataclass(eq=False)
class _Group:
    """Ops of one block that read what has come in once.

    Attributes:
        first: op of the block before which it comes in.
        last: the place up to which it is kept.
        read: by the readers, which are these ops or in them.
    """

    first: ir.Operation
    last: float
    read: list[_Use] = field(default_factory=list)


def can_wait(one: Held) -> bool:
    """Whether a value may go out: one that an op makes, rather than one that a loop hands on."""
    return not isinstance(one.value, ir.BlockArgument) and not one.stays


def next_read(one: Held, memory: Memory, at: int) -> float:
    """The place behind a program where a value is read again."""
    here = int(memory.at[at])
    reads = (memory.places[user] for user, _ in uses(one.value))
    return min((place for place in reads if place > here), default=len(memory.operations))


def wait_outside(one: Held, memory: Memory, room: int) -> None:
    """Let a value wait outside wherever it does not fit beside what runs.

    Args:
        room: bytes that a core has for all.
    """
    memory.change(one, [])
    one.waits = True
    home, source = home_of(one.value), _outside(one, memory)
    found = [use for use in uses(one.value) if use[0].name != _ASSEMBLE or use[0].results[0] != source]
    groups = list(_groups(home, found, one, memory, room))
    times = "once" if len(groups) == 1 else f"{len(groups)} times"
    remark(
        one.op, f"{one.count} bytes a core wait outside, to come in {times}: they do not fit beside what runs before"
    )
    for number, group in enumerate(groups):
        is_next = number == 0 and group.first.block == home
        if is_next and _fits(one, (one.made, group.last), memory, room):
            memory.change(one, [(one.made, group.last)])
        else:
            memory.held.append(_bring_in(one, group, source, memory))
    if one.op.name == _DISTRIBUTE and not list(one.value.uses):
        memory.unread.append(one.op)


def _outside(one: Held, memory: Memory) -> ir.Value:
    """The value as a tensor outside of the grid."""
    if one.op.name == _DISTRIBUTE:
        return one.op.operands[0]
    home = home_of(one.value)
    made = [user for user, _ in uses(one.value) if user.name == _ASSEMBLE and user.block == home]
    if made:
        made[0].move_after(one.op)
    else:
        with ir.InsertionPoint.after(one.op), one.op.location:
            kind = ir.RankedTensorType(one.value.type)
            plain = ir.RankedTensorType.get(kind.shape, kind.element_type)
            made = [create(_ASSEMBLE, [one.value], plain).owner.operation]
    memory.places[made[0]] = one.made + 0.5
    return made[0].results[0]


def _bring_in(one: Held, group: _Group, source: ir.Value, memory: Memory) -> Held:
    """The value as it comes in before its first reader of a group."""
    kept = {name: ir.UnitAttr.get() for name in (FIXED,) if name in one.op.attributes}
    attributes = {**kept, STREAMED: ir.UnitAttr.get()} if kept else None
    with ir.InsertionPoint(group.first), one.op.location:
        value = create(_DISTRIBUTE, [source], one.value.type, attributes)
    for user, number in group.read:
        user.operands[number] = value
    made = memory.places[group.first] - 0.5
    op = value.owner.operation
    memory.places[op] = made
    new = Held(op, value, one.count, [], stays=False, made=made, waits=True, untouched=one.untouched)
    memory.change(new, [(made, group.last)])
    return new


def _groups(block: ir.Block, found: list[_Use], one: Held, memory: Memory, room: int) -> Iterator[_Group]:
    """Readers in a block, in order: each as large as fits."""
    units: dict[ir.Operation, list[_Use]] = {}
    for use in sorted(found, key=lambda use: memory.places[use[0]]):
        units.setdefault(around(use[0], block), []).append(use)
    group: _Group | None = None
    for unit, own in units.items():
        is_inside = any(user != unit for user, _ in own)
        last = memory.end_of(unit) if is_inside else memory.places[unit]
        begin = memory.places[unit] - 0.5
        if group is not None and _fits(one, (memory.places[group.first] - 0.5, last), memory, room):
            group.last, group.read = last, group.read + own
            continue
        if group is not None:
            yield group
        group = None
        if is_inside and not _fits(one, (begin, last), memory, room):
            yield from _inside(unit, own, one, memory, room)
        else:
            group = _Group(unit, last, own)
    if group is not None:
        yield group


def _inside(unit: ir.Operation, own: list[_Use], one: Held, memory: Memory, room: int) -> Iterator[_Group]:
    """Readers in a loop or branch, and the op itself."""
    direct = [use for use in own if use[0] == unit]
    if direct:
        yield _Group(unit, memory.places[unit], direct)
    for region in unit.regions:
        for block in region.blocks:
            mine = [use for use in own if use not in direct and _is_in(use[0], block)]
            yield from _groups(block, mine, one, memory, room)


def _is_in(op: ir.Operation, block: ir.Block) -> bool:
    while op.block != block:
        above = op.block.owner.operation
        if above.name == "func.func":
            return False
        op = above
    return True


def _fits(one: Held, span: tuple[float, float], memory: Memory, room: int) -> bool:
    """Whether a value fits beside all that runs between two places."""
    beside = memory.counts(one, [span]) * one.count
    return bool(((memory.needs + beside <= room) | (beside == 0)).all())
