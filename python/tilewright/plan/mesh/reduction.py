# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reductions along lines of cores: star, chain, tree, two phases, two-way K-tree; each ends in one root per line.

All lines of an axis work side by side. Chains add as the vector streams through a core: nothing is stored on the way.

Sources: WaferLLM (OSDI 2025, section 6) for the two-way K-tree; "Near-Optimal Wafer-Scale Reduce" (HPDC 2024) for the
others and for the model of their cost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from tilewright.core.errors import UserError
from tilewright.plan.mesh.terms import Condition, P, Term, X, Y, equal, less, term
from tilewright.plan.mesh.writer import Axis, Combine, Overhead, Writer, cores
from tilewright.sim.coremesh.program import Slot

Kind = Literal["star", "chain", "tree", "two_phase", "k_tree", "ring"]


@dataclass(frozen=True)
class Scheme:
    """How a line of cores reduces.

    Attributes:
        kind: which algorithm.
        levels: of a K-tree: K.
        groups: how many groups each level but the last makes of what is left; by default all levels are equally long.
    """

    kind: Kind = "k_tree"
    levels: int = 2
    groups: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            raise UserError(f"There is no reduction '{self.kind}': it is one of {', '.join(get_args(Kind))}.")
        if self.levels < 1:
            raise UserError(f"A K-tree has at least one level, and this one {self.levels}.")
        if self.groups and len(self.groups) != self.chain_levels - 1:
            raise UserError(
                f"A {self.kind} of {self.chain_levels} levels needs {self.chain_levels - 1} numbers of groups, and has "
                f"{list(self.groups)}: the last level is one group."
            )

    def __str__(self) -> str:
        """As the dialect writes it."""
        levels = f" k {self.levels}" if self.kind == "k_tree" else ""
        return f"{self.kind}{levels}" + (f" groups {list(self.groups)}" if self.groups else "")

    @property
    def chain_levels(self) -> int:
        """Levels of chains: those of a K-tree, two of two phases, else one."""
        return {"k_tree": self.levels, "two_phase": 2}.get(self.kind, 1)

    @property
    def two_way(self) -> bool:
        """Whether chains run towards a core in the middle, from both sides."""
        return self.kind == "k_tree"

    def counts(self, length: int) -> list[int]:
        """Cores that take part in each level of chains, then 1.

        Raises:
            UserError: groups that are more than what is to be grouped, or that leave groups of one core beside larger.
        """
        counts = [length]
        for level in range(1, self.chain_levels):
            even = max(1, round(length ** ((self.chain_levels - level) / self.chain_levels)))
            even = even if 2 * even <= counts[-1] else counts[-1] // 2 or 1
            counts.append(self.groups[level - 1] if self.groups else even)
        counts.append(1)
        for before, count in zip(counts, counts[1:], strict=False):
            if count < 1 or (count != before and 2 * count > before):
                raise UserError(
                    f"{before} cores cannot be cut into {count} groups of two or more cores. Ask for at most "
                    f"{max(1, before // 2)} groups, or for {before}."
                )
        return counts


@dataclass(frozen=True)
class Line:
    """What is reduced: a slot of each core, along an axis.

    Attributes:
        at: the slot; the root's holds the result.
    """

    writer: Writer
    axis: Axis
    at: Slot
    combine: Combine = "add"

    @property
    def length(self) -> int:
        """Cores of each line."""
        return self.writer.length(self.axis)

    @property
    def place(self) -> Term:
        """A core's place on its line."""
        return X if self.axis == "x" else Y


def reduce_line(line: Line, scheme: Scheme, overhead: Overhead = "collective") -> int:
    """Write the reduction of each line into one of its cores. Returns the place of that root.

    Raises:
        UserError: a scheme that has no root (ring), or whose groups do not fit the line.
    """
    if scheme.kind == "ring":
        raise UserError("A ring leaves a part of the result in every core, and has no root: use it to reduce for all.")
    if line.length == 1:
        return 0
    if scheme.kind == "star":
        return _star(line, overhead)
    if scheme.kind == "tree":
        return _tree(line, overhead)
    return _chains(line, scheme, overhead)


def broadcast_line(line: Line, root: int, overhead: Overhead = "collective") -> None:
    """Write a multicast of the root's slot to all cores of each line, in both directions at once."""
    if line.length == 1:
        return
    if not 0 <= root < line.length:
        raise UserError(f"A line of {line.length} cores has no core {root} to send to the others.")
    route = line.writer.route(f"{line.axis}_broadcast", line.axis, root)
    here = cores(equal(line.place, root))
    tokens = [line.writer.send(here, route, line.at)]
    for side in (less(line.place, root), less(root, line.place)):
        tokens.append(line.writer.recv(cores(side), route, line.at))
    line.writer.wait(tokens, overhead)


def _star(line: Line, overhead: Overhead) -> int:
    """All send to the first, which takes them in the order of their places."""
    with line.writer.loop(line.length - 2) as turn:
        line.writer.wait(_to_first(line, turn + 1))
    line.writer.wait(_to_first(line, term(line.length - 1)), overhead)
    return 0


def _to_first(line: Line, sender: Term) -> list[str]:
    route = line.writer.route(f"{line.axis}_star", line.axis, sender)
    return [
        line.writer.send(cores(equal(line.place, sender)), route, line.at),
        line.writer.recv(cores(equal(line.place, 0)), route, line.at, line.combine),
    ]


def _tree(line: Line, overhead: Overhead) -> int:
    """In step s, cores at odd multiples of 2^s send to those at even ones below."""
    distance = 1
    while distance < line.length:
        route = line.writer.route(f"{line.axis}_tree{distance}", line.axis, P + distance)
        phase = line.place % (2 * distance)
        tokens = [
            line.writer.send(cores(equal(phase, distance)), route, line.at),
            line.writer.recv(
                cores(equal(phase, 0), less(line.place + distance, line.length)), route, line.at, line.combine
            ),
        ]
        distance *= 2
        line.writer.wait(tokens, overhead if distance >= line.length else "")
    return 0


def _chains(line: Line, scheme: Scheme, overhead: Overhead) -> int:
    """Levels of chains: roots of one level are the members of the next."""
    counts = scheme.counts(line.length)
    levels = [(members, groups) for members, groups in zip(counts, counts[1:], strict=False) if groups < members]
    outer: list[Level] = []
    for number, (members, groups) in enumerate(levels):
        level = Level(line, members, groups, scheme.two_way, tuple(outer))
        tokens = level.start()
        line.writer.wait(tokens, overhead if number == len(levels) - 1 else "")
        outer.append(level)
    return root_place(scheme, line.length)


def root_place(scheme: Scheme, length: int) -> int:
    """Where the result of a reduction along a line is.

    Raises:
        UserError: groups that do not fit the line.
    """
    place, counts = 0, scheme.counts(length) if scheme.two_way else [length, 1]
    for members, groups in reversed(list(zip(counts, counts[1:], strict=False))):
        place = (2 * place + 1) * members // (2 * groups) if scheme.two_way else 0
    return place


@dataclass(frozen=True)
class Level:
    """Groups of cores next to each other, each with chains towards its root.

    Member i of n belongs to group ``ceil((i + 1) G / n) - 1`` of G: sizes differ by one at most. The root is the middle
    of its group, or its first. One route leads to the right, one to the left; a core that relays receives and sends on
    the same, which takes two colors that alternate.

    Attributes:
        members, groups: how many.
        outer: levels before, whose roots the members are.
    """

    line: Line
    members: int
    groups: int
    two_way: bool
    outer: tuple[Level, ...]

    def start(self) -> list[str]:
        """Start the chains of all groups. Returns tokens."""
        index = self.index(self.line.place)
        group = self.group(index)
        first, root, last = self._first(group), self.root(group), self._first(group + 1) - 1
        tokens = self._chain("left", equal(index, last), less(index, last), less(root, index))
        tokens.append(self._hear("left", less(root, last)))
        if self.two_way:  # the longer side, whose sum comes last
            tokens += self._chain("right", equal(index, first), less(first, index), less(index, root))
            tokens.append(self._hear("right", less(first, root)))
        return tokens

    def _chain(self, way: str, end: Condition, inner: Condition, side: Condition) -> list[str]:
        """On one side of the root, the last of the group sends, those between relay."""
        route, member = self._route(way), self._member(self.line.place)
        ends, relays = cores(*member, end, side), cores(*member, inner, side)
        return [
            self.line.writer.send(ends, route, self.line.at),
            self.line.writer.relay(relays, route, route, self.line.at, self.line.combine),
        ]

    def _hear(self, way: str, exists: Condition) -> str:
        """The root combines what comes from one side, if there is one."""
        index = self.index(self.line.place)
        who = cores(*self._member(self.line.place), equal(index, self.root(self.group(index))), exists)
        return self.line.writer.recv(who, self._route(way), self.line.at, self.line.combine)

    def index(self, place: Term) -> Term:
        """Which member of this level a core at this place is, if it is one."""
        for level in self.outer:
            place = level.group(place)
        return place

    def position(self, member: Term) -> Term:
        """The place of a member on its line."""
        for level in reversed(self.outer):
            member = level.root(member)
        return member

    def _member(self, place: Term) -> list[Condition]:
        """That a core is the root of its group in all levels before."""
        conditions, index = [], place
        for level in self.outer:
            group = level.group(index)
            conditions.append(equal(index, level.root(group)))
            index = group
        return conditions

    def group(self, index: Term) -> Term:
        """The group of a member."""
        return ((index + 1) * self.groups - 1) // self.members

    def _first(self, group: Term) -> Term:
        return group * self.members // self.groups

    def root(self, group: Term) -> Term:
        """The member that is the root of a group."""
        return (group * 2 + 1) * self.members // (2 * self.groups) if self.two_way else self._first(group)

    def _route(self, way: str) -> str:
        """To the next member on the right, from that on the left, or the reverse."""
        source = self.position(self.index(P) + (-1 if way == "right" else 1))
        return self.line.writer.route(f"{self.line.axis}_{way}{len(self.outer) or ''}", self.line.axis, source)
