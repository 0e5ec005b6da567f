# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where tokens of a sentence meet (attention): which operations run sentence by sentence, on real tokens alone.

They have a loop over sentences and loops over places, sums over places among them in which padding changes nothing.
All that they need is packed, and what they make for tokens only packed tokens read.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from tilewright.devices.device import Device
from tilewright.ir.generics import kinds, loops_of, maker, maps, place_of, positions, uses
from tilewright.ir.structure import captured
from tilewright.mlir import ir
from tilewright.plan.sparse.padding.demanded import Roles, demanded_roles, loop_roles
from tilewright.plan.sparse.padding.tokens import BATCH, PLACE, Tokens, asks

#: Launches that a sentence may cost, in parts of its time when it has no padding.
_LAUNCHES = 0.1
#: Places whose queries are a task.
_TASK = 64
_NOT_SURE = "padding is not surely hidden from them, or they ask at which place a token is"


class Loops(NamedTuple):
    """The loop over sentences, if there are several, and those over places."""

    sentence: int | None
    places: tuple[int, ...]


@dataclass(frozen=True)
class Meeting:
    """Operations that run sentence by sentence.

    Attributes:
        ops: generics, in order.
        loops: of each.
        inputs: what they read that has tokens first, and is made by none of them.
        results: what they make that has tokens first, and others read.
        roles: of the dimensions of values.
    """

    ops: tuple[ir.Operation, ...]
    loops: dict[ir.Operation, Loops]
    inputs: tuple[ir.Value, ...]
    results: tuple[ir.Value, ...]
    roles: Roles


def find_meetings(
    tokens: Tokens,
    members: Set[ir.Operation],
    after: Set[ir.Operation],
    kept: Set[tuple[ir.Operation, int]],
    device: Device,
) -> tuple[list[Meeting], list[str]]:
    """What runs sentence by sentence; and why other operations where tokens meet, and packed ones read, do not.

    Args:
        tokens: what has to do with tokens.
        members: operations that are packed.
        after: those of them that follow from products: nothing has their results in another form.
        kept: loops over places in which padding leaves the accumulator as it came.
        device: that runs them.
    """
    roles = demanded_roles(tokens)
    meeting = list(_meeting(tokens, members, roles))
    fit = {op: loops for op in meeting if (loops := _loops(op, roles, kept, tokens.sizes[0] == 1))}
    follow = _following(fit, after)
    while unfit := {op for op in fit if not _is_closed(tokens, op, members, fit, op in follow)}:
        fit = {op: loops for op, loops in fit.items() if op not in unfit}
    found, told = [], [_NOT_SURE for op in meeting if op not in fit and _is_product(op, loop_roles(op, roles))]
    for ops in _connected([op for op in fit if op in follow]):
        if not any(len(fit[op].places) > 1 for op in ops):
            continue
        one = _meeting_of(tokens, _with_makers(ops, fit), fit, roles, follow)
        why = _why_not(one, members, device)
        if why is None:
            found.append(one)
        else:
            told.append(why)
    return found, told


def _following(fit: Iterable[ir.Operation], after: Set[ir.Operation]) -> set[ir.Operation]:
    """Operations that depend on products of tokens. Others, such as what makes a mask, each meeting has for itself."""
    found: set[ir.Operation] = set()
    for op in fit:
        if any(maker(value) in after or maker(value) in found for value in list(op.operands)[:-1]):
            found.add(op)
    return found


def _with_makers(ops: list[ir.Operation], fit: Mapping[ir.Operation, Loops]) -> list[ir.Operation]:
    """Operations with those that they need, in order."""
    needed = set(ops)
    for op in reversed(list(fit)):
        if op in needed:
            needed |= {made for value in list(op.operands)[:-1] if (made := maker(value)) in fit}
    return [op for op in fit if op in needed]


def _meeting(tokens: Tokens, members: Set[ir.Operation], known: Roles) -> Iterator[ir.Operation]:
    """Generics with a loop over sentences, if there are several, and over places that are no steps of tokens."""
    needed = {PLACE} if tokens.sizes[0] == 1 else {BATCH, PLACE}
    for op in tokens.block.operations:
        one = op.operation
        if one.name == "linalg.generic" and len(one.results) == 1 and one not in members and one not in tokens.steps:
            if needed <= set(loop_roles(one, known).values()):
                yield one


def _is_product(op: ir.Operation, roles: Mapping[int, str]) -> bool:
    """Whether places meet places in an operation that sums."""
    return any(kinds(op)) and list(roles.values()).count(PLACE) > 1


def _loops(op: ir.Operation, known: Roles, kept: Set[tuple[ir.Operation, int]], lone: bool) -> Loops | None:
    """The loop over sentences and those over places; None where the operation needs all places."""
    roles = loop_roles(op, known)
    sentences = [loop for loop, role in roles.items() if role == BATCH]
    places = tuple(sorted(loop for loop, role in roles.items() if role == PLACE))
    reduces = kinds(op)
    if len(sentences) > 1 or (not sentences and not lone) or len(sentences) + len(places) != len(roles):
        return None
    if any(reduces[loop] for loop in sentences) or any(reduces[d] and (op, d) not in kept for d in places):
        return None
    return Loops(next(iter(sentences), None), places) if _is_plain(op, known, roles) else None


def _is_plain(op: ir.Operation, known: Roles, roles: Mapping[int, str]) -> bool:
    """Whether an operation is the same for fewer places, whichever these are."""
    if place_of(op) is None or asks(op, list(roles)) or any(known.get(value) for value in captured(op)):
        return False
    reads = zip([*list(op.operands)[:-1], op.results[0]], maps(op), strict=True)
    plain = all(_reads_so(known.get(value, ()), access, roles) for value, access in reads)
    return plain and maps(op)[-1].is_projected_permutation


def _reads_so(own: Sequence[str], access: ir.AffineMap, roles: Mapping[int, str]) -> bool:
    """Whether loops over sentences and places index the dimensions of a value that are these, and no others."""
    padded = [*own, *[""] * (len(access.results) - len(own))]
    for role, expr in zip(padded, access.results, strict=True):
        bare = isinstance(expr, ir.AffineDimExpr)
        if (role and not (bare and roles.get(expr.position) == role)) or (not role and loops_of(expr) & set(roles)):
            return False
    return True


def _is_closed(
    tokens: Tokens, op: ir.Operation, members: Set[ir.Operation], fit: Container[ir.Operation], follows: bool
) -> bool:
    """Whether what an operation reads can be had packed, and nothing reads its result otherwise."""
    for value in list(op.operands)[:-1]:
        if any(tokens.roles.get(value, ())) and maker(value) not in fit and not tokens.lead(value):
            return False
    tells = tokens.lead(op.results[0]) > 0
    return not follows or all(user in fit or (tells and user in members) for user, _ in uses(op.results[0]))


def _connected(ops: list[ir.Operation]) -> list[list[ir.Operation]]:
    """Operations that read each other's results, together, each in order."""
    number = {op: at for at, op in enumerate(ops)}
    groups: dict[ir.Operation, list[ir.Operation]] = {}
    for op in ops:
        before = [groups[made] for value in list(op.operands)[:-1] if (made := maker(value)) in groups]
        joined = sorted({op, *(one for group in before for one in group)}, key=number.__getitem__)
        for one in joined:
            groups[one] = joined
    return list({id(group): group for group in groups.values()}.values())


def _meeting_of(
    tokens: Tokens,
    ops: list[ir.Operation],
    fit: Mapping[ir.Operation, Loops],
    roles: Roles,
    follow: Set[ir.Operation],
) -> Meeting:
    own = set(ops)
    reads = [value for op in ops for value in list(op.operands)[:-1] if any(tokens.roles.get(value, ()))]
    inputs = dict.fromkeys(value for value in reads if maker(value) not in own)
    told = [op.results[0] for op in ops if op in follow]
    results = [value for value in told if any(user not in own for user, _ in uses(value))]
    return Meeting(tuple(ops), {op: fit[op] for op in ops}, tuple(inputs), tuple(results), roles)


def _why_not(meeting: Meeting, members: Set[ir.Operation], device: Device) -> str | None:
    """Why operations that could run sentence by sentence do not."""
    last = meeting.ops[-1]
    readers = [user for value in meeting.results for user, _ in uses(value) if user in members]
    if any(user.is_before_in_block(last) for user in readers):
        return "packed operations stand among them"
    products = [op for op in meeting.ops if len(meeting.loops[op].places) > 1 and any(kinds(op))]
    if not products:
        return "no sum is among them"
    tasks = min(_tasks(op, meeting.loops[op]) for op in products)
    if tasks < device.units.count:
        return f"a sentence has {tasks} tasks for {device.units.count} cores"
    seconds = 2 * sum(_points(op, meeting.loops[op]) for op in products) / device.units.peak_of("f32")
    if device.rate("program.launch") > _LAUNCHES * seconds / device.units.count:
        return f"a sentence takes {seconds * 1e6:.1f} us, too short for a launch of its own"
    return None


def _extents(op: ir.Operation) -> list[int]:
    """The extents of loops that index a dimension alone; 1 of others."""
    found = [1] * len(kinds(op))
    for value, access in zip(op.operands, maps(op), strict=True):
        for size, expr in zip(ir.RankedTensorType(value.type).shape, access.results, strict=True):
            if isinstance(expr, ir.AffineDimExpr):
                found[expr.position] = size
    return found


def _points(op: ir.Operation, loops: Loops) -> int:
    """The points of one whole sentence."""
    return prod(extent for d, extent in enumerate(_extents(op)) if d != loops.sentence)


def _tasks(op: ir.Operation, loops: Loops) -> int:
    """How many tasks one whole sentence is, at least."""
    extents = _extents(op)
    rest = [extents[d] for d in positions(maps(op)[-1]) if d != loops.sentence and d not in loops.places]
    return -(-extents[loops.places[0]] // _TASK) * prod(rest)
