# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A program and a machine as the words that libtwmesh reads (`lib/Sim/CoreMesh/Timing/Model.cpp`).

Times are in ticks: cycles, or thousandths of them where the machine has costs that are no whole cycles.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from tilewright.core.errors import UserError
from tilewright.sim.coremesh.expressions import Binary, Dim, Expr
from tilewright.sim.coremesh.machine import Machine
from tilewright.sim.coremesh.program import (
    Compute,
    Cores,
    Instruction,
    Loop,
    Program,
    Recv,
    Relay,
    Send,
    Wait,
)

_EXPRESSIONS = {"+": 2, "*": 3, "mod": 4, "floordiv": 5}
_TOPOLOGIES = {"mesh": 0, "torus": 1, "exchange": 2}
#: Synchronisations, by the number that libtwmesh has for them.
SYNCS = {"dataflow": 0, "rendezvous": 1, "lockstep": 2}
_DIRECTIONS = {"east": (0, 1), "west": (0, -1), "south": (1, 0), "north": (-1, 0)}
#: Instructions after which a timing is given up, unless told otherwise; those of loops count in each turn.
LIMIT = 10_000_000
#: Ticks of a cycle where costs are no whole cycles.
FINE = 1000


class Writer:
    """Writes the words of a program on a machine.

    Attributes:
        scale: ticks of a cycle.
    """

    def __init__(self, program: Program, machine: Machine) -> None:
        self.program, self.machine = program, machine
        over = machine.overheads
        fine = (over.round, over.collective, over.vector_call, over.per_mac, over.communication)
        whole = all(float(one).is_integer() for one in fine) and not machine.mesh.packet_rates
        self.scale = 1 if whole else FINE
        self._routes = {route.name: number for number, route in enumerate(program.routes)}
        self._buffers = {buffer.name: buffer for buffer in program.buffers}
        self._tokens: dict[str, int] = {}

    def write(self, sync: str, entries: int | None, share: bool, period: bool, limit: int = LIMIT) -> np.ndarray:
        """All words.

        Args:
            sync: of `Sync`.
            entries: wavelets that the fabric holds per hop; None: any number.
            share: compute rows that are alike once.
            period: leave loops early that repeat.
            limit: instructions after which it is an error.

        Raises:
            UserError: something in the program has no meaning.
        """
        body = self._body(self.program.body)
        config = self._config(sync, entries, share, period, limit)
        counts = [len(self._tokens), len(self._buffers)]
        return np.array([*config, *self._route_words(), *counts, *body], dtype=np.int64)

    def _config(self, sync: str, entries: int | None, share: bool, period: bool, limit: int) -> list[int]:
        if sync not in SYNCS:
            raise UserError(f"there is no synchronisation '{sync}': use one of {', '.join(SYNCS)}")
        if entries is not None and entries < 0:
            raise UserError(f"fabric_entries is {entries}: give the wavelets that the fabric holds per hop, or None")
        if not 1 <= limit < 2**63:
            raise UserError(f"limit is {limit} instructions: give 1 or more")
        program, mesh = self.program, self.machine.mesh
        if program.height > mesh.height or program.width > mesh.width:
            raise UserError(
                f"program '{program.name}' takes {program.height} x {program.width} cores, and machine "
                f"'{self.machine.name}' has {mesh.height} x {mesh.width}: use a smaller grid"
            )
        fixed = 2 * mesh.ramp_cycles + mesh.stage_cycles + mesh.base_cycles
        dead = [core for core in mesh.dead_cores if core[0] < program.height and core[1] < program.width]
        links = [link for link in self._dead_links() if link[0] < program.height and link[1] < program.width]
        return [
            program.height,
            program.width,
            _TOPOLOGIES[mesh.topology],
            self._moving(mesh.alpha_cycles),
            self._moving(fixed),
            self._moving(1),
            mesh.queue_depth + mesh.ramp_cycles - 1,
            SYNCS[sync],
            -1 if entries is None else entries,
            int(share),
            int(period),
            limit,
            2 if mesh.routing == "packets" else -1,
            len(dead),
            *(number for core in dead for number in core),
            len(links),
            *(number for link in links for number in link),
        ]

    def _dead_links(self) -> list[tuple[int, int, int]]:
        """Links that are dead, and those to and from dead cores: (y, x, direction)."""
        mesh, names = self.machine.mesh, list(_DIRECTIONS)
        links = {(y, x, names.index(direction)) for y, x, direction in mesh.dead_links}
        opposite = {0: 1, 1: 0, 2: 3, 3: 2}
        for y, x in mesh.dead_cores:
            for number, (down, right) in enumerate(_DIRECTIONS.values()):
                links.add((y, x, number))
                neighbour = ((y + down) % mesh.height, (x + right) % mesh.width)
                links.add((*neighbour, opposite[number]))
        return sorted(links)

    def _route_words(self) -> list[int]:
        words = [len(self.program.routes)]
        for route in self.program.routes:
            words += [int(route.axis == "x"), int(route.order == "ring"), *expression(route.source)]
        return words

    def _body(self, body: tuple[Instruction, ...]) -> list[int]:
        words = [len(body)]
        for instruction in body:
            words += self._instruction(instruction)
        return words

    def _instruction(self, one: Instruction) -> list[int]:
        if isinstance(one, Loop):
            return [5, one.count, *self._body(one.body)]
        if isinstance(one, Wait):
            over = {"": 0.0, "round": self.machine.overheads.round, "collective": self.machine.overheads.collective}
            return [4, len(one.tokens), *map(self._token, one.tokens), self._ticks(over[one.overhead])]
        if isinstance(one, Compute):
            return [0, *cores(one.cores), self._ticks(self.machine.kernel_cycles(one.cost))]
        count = self._bytes(one.slot.buffer)
        ticks = self._moving(self.machine.message_cycles(count))
        ticks = max(ticks, self._ticks(self._combining(one)))
        wavelets = math.ceil(count / self.machine.mesh.link_bytes_per_cycle)
        incoming = {Send: -1, Recv: getattr(one, "route", ""), Relay: getattr(one, "incoming", "")}[type(one)]
        outgoing = {Send: getattr(one, "route", ""), Recv: -1, Relay: getattr(one, "outgoing", "")}[type(one)]
        number = {Send: 1, Recv: 2, Relay: 3}[type(one)]
        routes = [route if route == -1 else self._route(route) for route in (incoming, outgoing)]
        combines = getattr(one, "combine", None) is not None and isinstance(one, Recv)
        into = list(self._buffers).index(one.slot.buffer) if combines else -1
        return [number, *cores(one.cores), ticks, *routes, self._token(one.token), wavelets, into]

    def _combining(self, one: Instruction) -> float:
        """Cycles of combinations in software: of f64, which no message outruns."""
        if not isinstance(one, Recv | Relay) or one.combine is None or one.slot.buffer not in self._buffers:
            return 0.0
        return self.machine.combining_cycles(self._buffers[one.slot.buffer])

    def _bytes(self, name: str) -> int:
        if name not in self._buffers:
            raise UserError(f"program '{self.program.name}' has no buffer '{name}': it has {', '.join(self._buffers)}")
        buffer = self._buffers[name]
        return math.prod(buffer.shape) * buffer.dtype.itemsize

    def _route(self, name: object) -> int:
        if name not in self._routes:
            raise UserError(f"program '{self.program.name}' has no route '{name}': it has {', '.join(self._routes)}")
        return self._routes[str(name)]

    def _token(self, name: str) -> int:
        return self._tokens.setdefault(name, len(self._tokens))

    def _ticks(self, cycles: float | Fraction) -> int:
        return round(cycles * self.scale)

    def _moving(self, cycles: float | Fraction) -> int:
        return round(cycles * self.machine.overheads.communication * self.scale)


def expression(expr: Expr) -> list[int]:
    """The words of an expression, operations before their operands."""
    words: list[int] = []
    left = [expr]
    while left:
        one = left.pop()
        if isinstance(one, Binary):
            words.append(_EXPRESSIONS[one.op])
            left.append(one.right)
            left.append(one.left)
        elif isinstance(one, Dim):
            words += (1, one.index)
        else:
            words += (0, one.value)
    return words


def cores(which: Cores) -> list[int]:
    """The words of a set of cores."""
    words = [int(which.order == "ring")]
    for expressions in (which.at_least_zero, which.zero):
        words += [len(expressions), *(word for one in expressions for word in expression(one))]
    return words
