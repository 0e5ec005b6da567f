# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Runs a program core by core in NumPy: as slow as it is plain. What is undefined or raced for raises."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import numpy as np

from tilewright.plan.mesh.ring import logical, physical
from tilewright.sim.coremesh.program import Compute, Cores, Loop, Place, Program, Recv, Relay, Send, Slot, Wait

COMBINE = {"add": np.add, "max": np.maximum}


class Walk:
    """One run. Channels are FIFOs from one core to another on one route."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.routes = {route.name: route for route in program.routes}
        self.memory: dict[tuple[int, int, str, int], np.ndarray] = {}
        self.busy: defaultdict[tuple[int, int, str, int], int] = defaultdict(int)
        self.channels: defaultdict[tuple[Any, ...], list[np.ndarray]] = defaultdict(list)
        self.sent: defaultdict[str, set[int]] = defaultdict(set)  # distances in hops, by route

    def place(self, name: str, value: np.ndarray) -> None:
        for one in self.program.inputs:
            if one.name == name:
                assert one.shape == value.shape
                for core in self.cores():
                    self.memory[self.key(core, one.slot, (), one.order)] = self.block(one, core, value).copy()

    def collect(self, name: str) -> np.ndarray:
        places = [one for one in self.program.outputs if one.name == name]
        whole: dict[tuple[int, ...], np.ndarray] = {}
        for one in places:
            for core in self.cores():
                tile = self.memory[self.key(core, one.slot, (), one.order)]
                index = tuple(int(expr(self.at(core, one.order))) for expr in one.block)
                if index in whole:
                    np.testing.assert_array_equal(tile, whole[index])  # replicated: equal
                whole[index] = tile
        shape = tile.shape
        counts = [max(index[d] for index in whole) + 1 for d in range(len(shape))]
        out = np.zeros([count * size for count, size in zip(counts, shape, strict=True)], tile.dtype)
        for index, value in whole.items():
            out[tuple(slice(i * s, (i + 1) * s) for i, s in zip(index, shape, strict=True))] = value
        return out[tuple(slice(0, size) for size in places[0].shape)]

    def run(self) -> None:
        states = [_Core(self, core) for core in self.cores()]
        moving = True
        while moving:
            moving = any([state.advance() for state in states])
        stuck = [state.core for state in states if not state.done]
        assert not stuck, f"deadlock: {stuck}"
        assert not any(self.channels.values()), "sent and never received"

    def cores(self) -> Iterator[tuple[int, int]]:
        yield from np.ndindex(self.program.height, self.program.width)

    def at(self, core: tuple[int, int], order: str) -> tuple[int, int]:
        y, x = core
        if order == "linear":
            return core
        return logical(y, self.program.height), logical(x, self.program.width)

    def key(self, core: tuple[int, int], slot: Slot, loops: tuple[int, ...], order: str) -> tuple[int, int, str, int]:
        index = int(slot.index((*self.at(core, order), *loops)))
        count = next(buffer.slots for buffer in self.program.buffers if buffer.name == slot.buffer)
        assert 0 <= index < count, (slot, index)
        return (*core, slot.buffer, index)

    def takes_part(self, core: tuple[int, int], who: Cores, loops: tuple[int, ...]) -> bool:
        dims = (*self.at(core, who.order), *loops)
        return all(expr(dims) >= 0 for expr in who.at_least_zero) and all(expr(dims) == 0 for expr in who.zero)

    def source(self, name: str, core: tuple[int, int], loops: tuple[int, ...]) -> tuple[int, int] | None:
        route = self.routes[name]
        y, x = self.at(core, route.order)
        along, across = (x, y) if route.axis == "x" else (y, x)
        length = self.program.width if route.axis == "x" else self.program.height
        place = int(route.source((along, across, *loops)))
        if not 0 <= place < length:
            return None
        place = place if route.order == "linear" else physical(place, length)
        return (core[0], place) if route.axis == "x" else (place, core[1])

    def block(self, one: Place, core: tuple[int, int], value: np.ndarray) -> np.ndarray:
        shape = next(buffer.shape for buffer in self.program.buffers if buffer.name == one.slot.buffer)
        dtype = next(buffer.dtype for buffer in self.program.buffers if buffer.name == one.slot.buffer)
        index = [int(expr(self.at(core, one.order))) for expr in one.block]
        cut = value[tuple(slice(i * size, (i + 1) * size) for i, size in zip(index, shape, strict=True))]
        tile = np.zeros(shape, dtype)
        tile[tuple(slice(0, size) for size in cut.shape)] = cut
        return tile

    def receivers(self, route: str, core: tuple[int, int], loops: tuple[int, ...]) -> list[tuple[int, int]]:
        """Cores whose source this is, and that receive on the route in this program at these indices."""
        y, x = core
        line = [(y, i) for i in range(self.program.width)] if self.routes[route].axis == "x" else None
        line = line or [(i, x) for i in range(self.program.height)]
        found = [c for c in line if self.source(route, c, loops) == core and self.receives(route, c, loops)]
        assert found, f"{core} sends on {route} at {loops} to nobody"
        return found

    def receives(self, route: str, core: tuple[int, int], loops: tuple[int, ...]) -> bool:
        def search(body: Any) -> bool:
            for one in body:
                if isinstance(one, Loop):
                    if search(one.body):
                        return True
                elif isinstance(one, Recv | Relay):
                    name = one.route if isinstance(one, Recv) else one.incoming
                    try:
                        if name == route and self.takes_part(core, one.cores, loops):
                            return True
                    except IndexError:  # of another loop nest
                        continue
            return False

        return search(self.program.body)


class _Core:
    """One core: its own place in the program, and what it started and has not finished."""

    def __init__(self, walk: Walk, core: tuple[int, int]) -> None:
        self.walk, self.core = walk, core
        self.pending: list[tuple[Any, tuple[int, ...]]] = []
        self.script = self.steps(walk.program.body, ())
        self.waiting: tuple[str, ...] | None = None
        self.done = False

    def steps(self, body: Any, loops: tuple[int, ...]) -> Iterator[tuple[Any, tuple[int, ...]]]:
        for one in body:
            if isinstance(one, Loop):
                for turn in range(one.count):
                    yield from self.steps(one.body, (*loops, turn))
            else:
                yield one, loops

    def advance(self) -> bool:
        """Do what can be done. Returns whether anything was."""
        moved = self.receive()
        while not self.done:
            if self.waiting and any(one.token in self.waiting for one, _ in self.pending):
                break
            self.waiting = None
            step = next(self.script, None)
            if step is None:
                self.done = not self.pending
                break
            self.start(*step)
            moved = True
        return moved

    def start(self, one: Any, loops: tuple[int, ...]) -> None:
        walk, core = self.walk, self.core
        if isinstance(one, Wait):
            self.waiting = one.tokens
        elif walk.takes_part(core, one.cores, loops):
            if isinstance(one, Compute):
                self.compute(one, loops)
            elif isinstance(one, Send):
                self.send(one.route, self.read(one.slot, loops, one.cores.order), loops)
            else:
                key = walk.key(core, one.slot, loops, one.cores.order)
                if isinstance(one, Recv):
                    walk.busy[key] += 1
                self.pending.append((one, loops))

    def compute(self, one: Compute, loops: tuple[int, ...]) -> None:
        tiles = [self.read(slot, loops, one.cores.order)[None] for slot in one.reads]
        for slot, value in zip(one.writes, one.run(*tiles), strict=True):
            key = self.walk.key(self.core, slot, loops, one.cores.order)
            assert not self.walk.busy[key], f"race: {self.core} writes {key}"
            self.walk.memory[key] = np.array(value[0])

    def read(self, slot: Slot, loops: tuple[int, ...], order: str) -> np.ndarray:
        key = self.walk.key(self.core, slot, loops, order)
        assert not self.walk.busy[key], f"race: {self.core} reads {key}"
        assert key in self.walk.memory, f"undefined: {self.core} reads {key}"
        return self.walk.memory[key].copy()

    def send(self, route: str, value: np.ndarray, loops: tuple[int, ...]) -> None:
        for other in self.walk.receivers(route, self.core, loops):
            self.walk.sent[route].add(abs(other[0] - self.core[0]) + abs(other[1] - self.core[1]))
            self.walk.channels[route, self.core, other].append(value)

    def receive(self) -> bool:
        """Finish what waits for data that are there, per route and per slot in order."""
        moved, blocked = False, set()
        for item in list(self.pending):
            one, loops = item
            route = one.route if isinstance(one, Recv) else one.incoming
            source = self.walk.source(route, self.core, loops)
            key = self.walk.key(self.core, one.slot, loops, one.cores.order)
            channel = self.walk.channels[route, source, self.core]
            held = {(route, source), key} if isinstance(one, Recv) else {(route, source), one.outgoing}
            if channel and not held & blocked:
                self.finish(one, key, channel.pop(0), loops)
                self.pending.remove(item)
                moved = True
            else:
                blocked |= held
        return moved

    def finish(self, one: Any, key: tuple[int, int, str, int], value: np.ndarray, loops: tuple[int, ...]) -> None:
        memory = self.walk.memory
        if isinstance(one, Relay):
            self.send(one.outgoing, COMBINE[one.combine](value, memory[key]).astype(value.dtype), loops)
            return
        memory[key] = COMBINE[one.combine](memory[key], value).astype(value.dtype) if one.combine else value
        self.walk.busy[key] -= 1


def run(program: Program, **inputs: np.ndarray) -> Walk:
    """Run a program on inputs."""
    walk = Walk(program)
    for name, value in inputs.items():
        walk.place(name, value)
    walk.run()
    return walk
