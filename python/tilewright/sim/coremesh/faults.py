# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Mistakes put into programs on purpose, one at a time: to measure what checks and simulators catch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from tilewright.sim.coremesh.expressions import Binary, Const, Expr
from tilewright.sim.coremesh.program import Instruction, Loop, Program, Recv, Relay, Send, Slot, Wait

#: What one instruction becomes: none, one, or several.
Change = tuple[Instruction, ...]


@dataclass(frozen=True)
class Fault:
    """A program with one mistake.

    Attributes:
        kind: which mistake, ``where``: in which part of the program.
    """

    kind: str
    where: str
    program: Program


def faults_of(program: Program) -> list[Fault]:
    """All faults of a program whose colors and addresses are assigned, in a fixed order.

    Kinds: a token that a wait forgets; a send, receive or relay that is left out; one on another route; a slot of the
    other parity; a core too many or too few; a receive that stores instead of adding; a source one off; a color that
    another route has, or all places on one color; a buffer with a slot, an element, or bytes of its place less.
    """
    found = []
    for kind, changes in _CHANGES.items():
        for path, instruction in _all(program.body, ()):
            for change in changes(instruction, program):
                where = f"body{''.join(f'[{index}]' for index in path)}"
                found.append(Fault(kind, where, replace(program, body=_with(program.body, path, change))))
    return found + list(_route_faults(program)) + list(_buffer_faults(program))


def _all(body: tuple[Instruction, ...], path: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], Instruction]]:
    for number, instruction in enumerate(body):
        yield (*path, number), instruction
        if isinstance(instruction, Loop):
            yield from _all(instruction.body, (*path, number))


def _with(body: tuple[Instruction, ...], path: tuple[int, ...], change: Change) -> tuple[Instruction, ...]:
    first, *rest = path
    if not rest:
        return (*body[:first], *change, *body[first + 1 :])
    loop = body[first]
    assert isinstance(loop, Loop)
    return (*body[:first], replace(loop, body=_with(loop.body, tuple(rest), change)), *body[first + 1 :])


def _forgotten(instruction: Instruction, _: Program) -> Iterator[Change]:
    if isinstance(instruction, Wait):
        for token in instruction.tokens:
            yield (replace(instruction, tokens=tuple(other for other in instruction.tokens if other != token)),)


def _left_out(instruction: Instruction, _: Program) -> Iterator[Change]:
    if isinstance(instruction, Send | Recv | Relay):
        yield ()


def _rerouted(instruction: Instruction, program: Program) -> Iterator[Change]:
    for route in program.routes:
        if isinstance(instruction, Send | Recv) and route.name != instruction.route:
            yield (replace(instruction, route=route.name),)
        elif isinstance(instruction, Relay) and route.name != instruction.outgoing:
            yield (replace(instruction, outgoing=route.name),)


def _parity(instruction: Instruction, program: Program) -> Iterator[Change]:
    slots = {buffer.name: buffer.slots for buffer in program.buffers}
    if isinstance(instruction, Send | Recv | Relay) and slots[instruction.slot.buffer] > 1:
        yield (replace(instruction, slot=_next(instruction.slot, slots)),)
    reads = getattr(instruction, "reads", ())
    for number, slot in enumerate(reads):
        if slots[slot.buffer] > 1:
            yield (replace(instruction, reads=(*reads[:number], _next(slot, slots), *reads[number + 1 :])),)


def _next(slot: Slot, slots: dict[str, int]) -> Slot:
    return replace(slot, index=Binary("mod", _plus(slot.index, 1), Const(slots[slot.buffer])))


def _wrong_cores(instruction: Instruction, _: Program) -> Iterator[Change]:
    if not isinstance(instruction, Send | Recv | Relay):
        return
    for field in ("at_least_zero", "zero"):
        exprs = getattr(instruction.cores, field)
        for number, expr in enumerate(exprs):
            for off in (1, -1):
                changed = (*exprs[:number], _plus(expr, off), *exprs[number + 1 :])
                yield (replace(instruction, cores=replace(instruction.cores, **{field: changed})),)


def _stored(instruction: Instruction, _: Program) -> Iterator[Change]:
    if isinstance(instruction, Recv) and instruction.combine is not None:
        yield (replace(instruction, combine=None),)


_CHANGES: dict[str, Callable[[Instruction, Program], Iterator[Change]]] = {
    "forgotten token": _forgotten,
    "left out": _left_out,
    "other route": _rerouted,
    "other slot": _parity,
    "other cores": _wrong_cores,
    "stored, not combined": _stored,
}


def _route_faults(program: Program) -> Iterator[Fault]:
    for number, route in enumerate(program.routes):
        for off in (1, -1):
            changed = replace(route, source=_plus(route.source, off))
            yield _rout(program, number, "source one off", f"route '{route.name}' {off:+}", changed)
        for other in program.routes:
            if other.name != route.name and other.colors and other.colors != route.colors:
                colors = tuple(other.colors[index % len(other.colors)] for index in range(len(route.colors)))
                changed = replace(route, colors=colors)
                yield _rout(program, number, "other color", f"route '{route.name}' as '{other.name}'", changed)
        if len(route.colors) > 1:
            changed = replace(route, color=Const(0))
            yield _rout(program, number, "other color", f"route '{route.name}' on one", changed)


def _rout(program: Program, number: int, kind: str, where: str, route) -> Fault:
    routes = (*program.routes[:number], route, *program.routes[number + 1 :])
    return Fault(kind, where, replace(program, routes=routes))


def _buffer_faults(program: Program) -> Iterator[Fault]:
    for number, buffer in enumerate(program.buffers):
        changes = {}
        if buffer.slots > 1:
            changes["a slot less"] = replace(buffer, slots=buffer.slots - 1)
        if buffer.shape and buffer.shape[-1] > 1:
            changes["an element less"] = replace(buffer, shape=(*buffer.shape[:-1], buffer.shape[-1] - 1))
        if buffer.address:
            changes["4 bytes earlier"] = replace(buffer, address=buffer.address - 4)
        for what, changed in changes.items():
            buffers = (*program.buffers[:number], changed, *program.buffers[number + 1 :])
            yield Fault("shrunk buffer", f"'{buffer.name}' {what}", replace(program, buffers=buffers))


def _plus(expr: Expr, number: int) -> Expr:
    return Binary("+", expr, Const(number))
