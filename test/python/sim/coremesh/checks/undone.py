# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs undone core by core with plain integers: what the checks must agree with on small grids."""

from __future__ import annotations

from collections import defaultdict
from itertools import product

import numpy as np
from small_programs import ALL, F32, E, at_least, expr, slot

from tilewright.sim.coremesh.expressions import Const, Dim
from tilewright.sim.coremesh.program import Buffer, Compute, Cost, Loop, Place, Program, Recv, Relay, Route, Send, Wait


def ring_walk(n):
    """The folded ring, walked neighbour by neighbour as the table of the reference says it (mesh.md, 2.2)."""
    if n < 3:
        return list(range(n))
    send = {i: i + 2 if i % 2 == 0 else i - 2 for i in range(n)}
    send[1] = 0
    send[n - 1 if n % 2 else n - 2] = n - 2 if n % 2 else n - 1
    walk = [0]
    while len(walk) < n:
        walk.append(send[walk[-1]])
    return walk


def steps(body, loops=()):
    for instruction in body:
        if isinstance(instruction, Loop):
            for turn in range(instruction.count):
                yield from steps(instruction.body, (*loops, turn))
        else:
            yield instruction, loops


def counted(n, place, order):
    return ring_walk(n).index(place) if order == "ring" else place


def takes_part(program, cores, y, x, loops):
    dims = (counted(program.height, y, cores.order), counted(program.width, x, cores.order), *loops)
    return all(e(dims) >= 0 for e in cores.at_least_zero) and all(e(dims) == 0 for e in cores.zero)


def receptions(program):
    """(instruction, loops, route, line, source, destination) of each message that a core takes, in order."""
    routes = {route.name: route for route in program.routes}
    for instruction, loops in steps(program.body):
        if not isinstance(instruction, Recv | Relay):
            continue
        route = routes[instruction.incoming if isinstance(instruction, Relay) else instruction.route]
        for y, x in product(range(program.height), range(program.width)):
            if takes_part(program, instruction.cores, y, x, loops):
                (p, np_), (q, nq) = ((x, program.width), (y, program.height))[:: 1 if route.axis == "x" else -1]
                source = route.source((counted(np_, p, route.order), counted(nq, q, route.order), *loops))
                source = ring_walk(np_)[source] if route.order == "ring" else source
                yield instruction, loops, route, q, source, p


def flows(program):
    """{(axis, line, route, source): destinations}."""
    found = {}
    for _, _, route, line, source, destination in receptions(program):
        found.setdefault((route.axis, line, route.name, source), set()).add(destination)
    return found


def random_expr(rng, length, loop):
    """A source that lies on the line, of many kinds."""
    shift, step = int(rng.integers(length)), int(rng.integers(1, length + 1))
    kinds = [
        (E(Dim(0)) + shift) % length,
        (E(Dim(0)) // step) * step,
        E(Const(shift)),
        (E(Dim(0)) + E(Dim(1)) + shift) % length,
        (E(Dim(1)) * step + shift) % length,
    ]
    if loop:
        kinds += [(E(Dim(2)) * step + shift) % length, (E(Dim(0)) + E(Dim(2)) + shift) % length]
    return expr(kinds[rng.integers(len(kinds))])


def random_cores(rng, height, width, loop):
    order = ("linear", "ring")[rng.integers(2)]
    kinds = [
        at_least(E(Dim(0)) * int(rng.integers(-1, 2)) + int(rng.integers(height + 1)), order=order),
        at_least((E(Dim(0)) + E(Dim(1)) + int(rng.integers(5))) % 3 - 1, order=order),
        at_least(E(Dim(1)) * int(rng.integers(-1, 2)) + int(rng.integers(width + 1)), order=order),
        ALL,
    ]
    if loop:
        kinds.append(at_least(E(Dim(0)) - E(Dim(2)), order=order))
    return kinds[rng.integers(len(kinds))]


def random_receivers(seed, routes=3):
    """A program of random routes and receivers; nobody sends: for what asks for routes alone."""
    rng = np.random.default_rng(seed)
    height, width = (int(n) for n in rng.integers(1, 9, 2))
    made, outside, inside = [], [], []
    for number in range(routes):
        axis, loop = "xy"[rng.integers(2)], bool(rng.integers(2))
        length = width if axis == "x" else height
        source, order = random_expr(rng, length, loop), ("linear", "ring")[rng.integers(2)]
        made.append(Route(f"r{number}", axis, source, order))
        recv = Recv(random_cores(rng, height, width, loop), f"r{number}", slot("v"), "t")
        (inside if loop else outside).append(recv)
    body = (*outside, Loop(int(rng.integers(1, 4)), tuple(inside)))
    return Program(f"random {seed}", height, width, (Buffer("v", (3,), F32),), tuple(made), (), (), body)


def random_memory(seed):
    """A program of two cores that fills and uses buffers in loops; transfers have no partner."""
    rng = np.random.default_rng(seed)
    names = "abcde"
    buffers = tuple(Buffer(n, (int(rng.integers(1, 9)),), F32, int(rng.choice([1, 1, 2]))) for n in names)
    slots = {one.name: one.slots for one in buffers}

    def one(loop):
        name = str(rng.choice(list(names)))
        at = slot(name, E(Dim(2)) % 2 if loop and slots[name] > 1 else 0)
        cores = ALL if rng.integers(2) else at_least(E(Dim(1)) - 1)
        kind = rng.integers(6)
        if kind == 0:
            return Send(cores, "r", at, f"t{rng.integers(3)}")
        if kind == 1:
            return Recv(cores, "r", at, f"t{rng.integers(3)}", None if rng.integers(2) else "add")
        if kind == 2:
            return Wait((f"t{rng.integers(3)}",))
        other = slot(str(rng.choice([n for n in names if n != name])))
        return Compute(cores, "c", (at,) if kind != 3 else (), (other,) if kind != 4 else (), Cost(), product)

    body = []
    for _ in range(int(rng.integers(2, 5))):
        inside = tuple(one(True) for _ in range(int(rng.integers(1, 5))))
        body += [one(False), Loop(int(rng.integers(0, 4)), inside), one(False)]
    held = tuple(Place(n, (1, 8), slot(n), (Dim(0), Dim(1))) for n in names if rng.integers(4) == 0)
    return Program(f"memory {seed}", 1, 2, buffers, (), held, held[:1], tuple(body))


def mixtures(program, routes=None):
    """Routers where a color carries two routes, or two sources of one route of which none of both moves."""
    heard = [r for r in receptions(program) if routes is None or r[2].name in routes]
    sources = defaultdict(set)
    for _, _, route, line, source, destination in heard:
        sources[route.name, line, destination].add(source)
    users = defaultdict(set)
    for _, _, route, line, source, destination in heard:
        color = route.colors[route.color((destination, line))]
        flow = "moving" if len(sources[route.name, line, destination]) > 1 else source
        for place in range(min(source, destination), max(source, destination) + 1):
            core = (line, place) if route.axis == "x" else (place, line)
            users[core, color].add((route.axis, route.name, line, flow))
    return {where: who for where, who in users.items() if len(who) > 1}
