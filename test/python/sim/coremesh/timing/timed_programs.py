# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small programs with one or two wavelets per cycle of theory: collectives on a line, products on a square."""

from __future__ import annotations

import numpy as np

from tilewright.sim.coremesh.expressions import Binary, Const, Dim, Expr
from tilewright.sim.coremesh.program import (
    Buffer,
    Compute,
    Cores,
    Cost,
    Instruction,
    Loop,
    Program,
    Recv,
    Relay,
    Route,
    Send,
    Slot,
    Wait,
)

Y, X, K = Dim(0), Dim(1), Dim(2)
P = Dim(0)  # position along a route


def plus(left: Expr, right: int | Expr) -> Expr:
    return Binary("+", left, right if isinstance(right, (Const, Dim, Binary)) else Const(right))


def minus(left: int | Expr, right: Expr) -> Expr:
    whole = left if isinstance(left, (Const, Dim, Binary)) else Const(left)
    return Binary("+", whole, Binary("*", right, Const(-1)))


def mod(left: Expr, right: int) -> Expr:
    return Binary("mod", left, Const(right))


def is_(where: Expr, value: int) -> Cores:
    return Cores(zero=(plus(where, -value),))


def between(where: Expr, low: int, high: int) -> Cores:
    """Low and high included."""
    return Cores(at_least_zero=(plus(where, -low), minus(high, where)))


def program(
    height: int, width: int, wavelets: int | dict[str, int], routes: list[Route], body: list[Instruction]
) -> Program:
    """Buffers of f32, one number a wavelet."""
    sizes = {"v": wavelets} if isinstance(wavelets, int) else wavelets
    buffers = tuple(Buffer(name, (size,), np.dtype("float32"), 2) for name, size in sizes.items())
    return Program("small", height, width, buffers, tuple(routes), (), (), tuple(body))


def line(axis: str, length: int) -> tuple[int, int]:
    return (1, length) if axis == "x" else (length, 1)


def place(axis: str) -> Dim:
    return X if axis == "x" else Y


V = Slot("v")
ALL = Cores()


def message(axis: str, length: int, wavelets: int, source: int, target: int) -> Program:
    """One message along a line."""
    at = place(axis)
    return program(
        *line(axis, length),
        wavelets,
        [Route("r", axis, Const(source))],
        [Send(is_(at, source), "r", V, "s"), Recv(is_(at, target), "r", V, "t"), Wait(("s", "t"))],
    )


def chain(axis: str, length: int, wavelets: int, others: int = 1) -> Program:
    """Reduce to position 0, streaming through all; on each of the lines across."""
    at = place(axis)
    size = (others, length) if axis == "x" else (length, others)
    body = [
        Send(is_(at, length - 1), "r", V, "s"),
        Relay(between(at, 1, length - 2), "r", "r", V, "s"),
        Recv(is_(at, 0), "r", V, "s", "add"),
        Wait(("s",)),
    ]
    return program(*size, wavelets, [Route("r", axis, plus(P, 1))], body)


def alternating_chain(axis: str, length: int, wavelets: int) -> Program:
    """The same on two routes in turn, as where a core cannot listen and send on one: relays feed each other."""
    at = place(axis)
    names = ["even", "odd"]
    odd = mod(at, 2)
    inner = between(at, 1, length - 2)
    last = (length - 1) % 2
    body: list[Instruction] = []
    for parity in (0, 1):  # of who listens
        there = names[1 - parity]
        who = Cores(inner.at_least_zero, (plus(odd, -parity),))
        body.append(Relay(who, names[parity], there, V, "s"))
    body += [
        Recv(is_(at, 0), "even", V, "s", "add"),
        Send(is_(at, length - 1), names[1 - last], V, "s"),
        Wait(("s",)),
    ]
    return program(*line(axis, length), wavelets, [Route(name, axis, plus(P, 1)) for name in names], body)


def star(axis: str, length: int, wavelets: int) -> Program:
    """Reduce to position 0, which receives from one after the other, the nearest first."""
    at = place(axis)
    who = Cores(zero=(minus(plus(K, 1), at),))
    body = [
        Loop(length - 1, (Send(who, "r", V, "s"), Recv(is_(at, 0), "r", V, "t", "add"))),
        Wait(("s", "t")),
    ]
    return program(*line(axis, length), wavelets, [Route("r", axis, plus(K, 1))], body)


def tree(axis: str, levels: int, wavelets: int) -> Program:
    """Reduce to position 0 in pairs, of distance 1, 2, 4, ..."""
    at, routes, body = place(axis), [], []
    for level in range(levels):
        step = 1 << level
        senders = Cores(zero=(plus(mod(at, 2 * step), -step),))
        receivers = Cores(zero=(mod(at, 2 * step),))
        routes.append(Route(f"r{level}", axis, plus(P, step)))
        body += [
            Send(senders, f"r{level}", V, "s"),
            Recv(receivers, f"r{level}", V, "t", "add"),
            Wait(("s", "t")),
        ]
    return program(*line(axis, 1 << levels), wavelets, routes, body)


def two_phase(axis: str, groups: int, size: int, wavelets: int) -> Program:
    """Chains in groups, then a chain of the groups' first cores."""
    at = place(axis)
    inside = mod(at, size)
    root = Cores(zero=(inside,))
    middle = Cores(at_least_zero=(plus(at, -1), minus(size * (groups - 1) - 1, at)), zero=(inside,))
    body = [
        Send(is_(inside, size - 1), "near", V, "s"),
        Relay(between(inside, 1, size - 2), "near", "near", V, "s"),
        Recv(root, "near", V, "t", "add"),
        Wait(("s", "t")),
        Send(is_(at, size * (groups - 1)), "far", V, "s"),
        Relay(middle, "far", "far", V, "s"),
        Recv(is_(at, 0), "far", V, "t", "add"),
        Wait(("s", "t")),
    ]
    routes = [Route("near", axis, plus(P, 1)), Route("far", axis, plus(P, size))]
    return program(*line(axis, groups * size), wavelets, routes, body)


def broadcast(axis: str, length: int, wavelets: int, root: int = 0) -> Program:
    at = place(axis)
    others = Cores(at_least_zero=(plus(Binary("*", plus(at, -root), plus(at, -root)), -1),))
    body = [Send(is_(at, root), "r", V, "s"), Recv(others, "r", V, "t"), Wait(("s", "t"))]
    return program(*line(axis, length), wavelets, [Route("r", axis, Const(root))], body)


def broadcast_2d(height: int, width: int, wavelets: int) -> Program:
    """Along the first row, then down all columns, as it arrives."""
    routes = [Route("row", "x", Const(0)), Route("down", "y", Const(0))]
    body = [
        Send(Cores(zero=(Y, X)), "row", V, "s"),
        Recv(Cores(zero=(Y,), at_least_zero=(plus(X, -1),)), "row", V, "t"),
        Wait(("s", "t")),
        Send(Cores(zero=(Y,)), "down", V, "s"),
        Recv(Cores(at_least_zero=(plus(Y, -1),)), "down", V, "t"),
        Wait(("s", "t")),
    ]
    return program(height, width, wavelets, routes, body)


def ring_allreduce(axis: str, length: int, part: int) -> Program:
    """Reduce-scatter, then all-gather, of `length` parts, on a line closed by one long link."""
    body = []
    for combine in ("add", None):
        round_ = (Send(ALL, "r", V, "s"), Recv(ALL, "r", V, "t", combine), Wait(("s", "t")))
        body.append(Loop(length - 1, round_))
    return program(*line(axis, length), part, [Route("r", axis, mod(plus(P, -1), length))], body)


def shifts(
    height: int,
    width: int,
    wavelets: int | tuple[int, int],
    macs: int = 0,
    folded: bool = True,
    rounds: int = 0,
    calls: int = 0,
    bits: int = 32,
) -> Program:
    """Rounds of MeshGEMM (folded) or Cannon: tiles of `wavelets` go round along both axes beside `macs`."""
    body = product("", height, width, folded, Cost(macs, calls, 0, bits))
    a, b = wavelets if isinstance(wavelets, tuple) else (wavelets, wavelets)
    order = "ring" if folded else "linear"
    routes = [Route("a", "x", mod(plus(P, -1), width), order), Route("b", "y", mod(plus(P, -1), height), order)]
    return program(height, width, {"a": a, "b": b}, routes, [Loop(rounds or max(height, width), body)])


def product(name: str, height: int, width: int, folded: bool, cost: Cost) -> tuple[Instruction, ...]:
    """One round: buffers `a` and `b` with the name behind them go round on routes `a` and `b`."""
    here, there = mod(K, 2), mod(plus(K, 1), 2)
    body: list[Instruction] = []
    for one, length in (("a", width), ("b", height)):
        if length > 1:
            body.append(Send(ALL, one, Slot(one + name, here), "s"))
            body.append(Recv(ALL, one, Slot(one + name, there), "r"))
    body += [Compute(ALL, "product", (), (), cost, tuple), Wait(("s", "r"), "round")]
    return tuple(body)


def k_tree(axis: str, length: int, groups: int, buffer: str, overhead: str = "collective") -> list[Instruction]:
    """Allreduce of MeshGEMV, K = 2: chains from both ends to the middle of each group, then to the middle group's,
    then a broadcast. Routes: of `k_tree_routes`."""
    at, size = place(axis), length // groups
    inside, group, middle, top = mod(at, size), Binary("floordiv", at, Const(size)), size // 2, groups // 2
    body: list[Instruction] = []

    def reduce(way: str, where: Expr, low: int, high: int, end: int, roots: tuple[Expr, ...]) -> None:
        """From `end` to beside the root, between low and high; then into the root."""
        if low > high:
            return
        first = Cores(zero=(plus(where, -end), *roots))
        rest = [low, high]
        rest[0 if end == low else 1] += 1 if end == low else -1
        relays = Cores(at_least_zero=(plus(where, -rest[0]), minus(rest[1], where)), zero=roots)
        route = f"{axis}{way}"
        body.extend([Send(first, route, Slot(buffer), "s"), Relay(relays, route, route, Slot(buffer), "s")])

    reduce("near_up", inside, 0, middle - 1, 0, ())
    reduce("near_down", inside, middle + 1, size - 1, size - 1, ())
    root = Cores(zero=(plus(inside, -middle),))
    for way, there in (("near_up", middle > 0), ("near_down", middle < size - 1)):
        if there:
            body.append(Recv(root, f"{axis}{way}", Slot(buffer), "t", "add"))
    body.append(Wait(("s", "t")))
    roots = (plus(inside, -middle),)
    reduce("far_up", group, 0, top - 1, 0, roots)
    reduce("far_down", group, top + 1, groups - 1, groups - 1, roots)
    root = Cores(zero=(plus(at, -(top * size + middle)),))
    for way, there in (("far_up", top > 0), ("far_down", top < groups - 1)):
        if there:
            body.append(Recv(root, f"{axis}{way}", Slot(buffer), "t", "add"))
    body.append(Wait(("s", "t")))
    off = plus(at, -(top * size + middle))
    body += [
        Send(root, f"{axis}out", Slot(buffer), "s"),
        Recv(Cores(at_least_zero=(plus(Binary("*", off, off), -1),)), f"{axis}out", Slot(buffer), "t"),
        Wait(("s", "t"), overhead),
    ]
    return body


def k_tree_routes(axis: str, length: int, groups: int) -> list[Route]:
    size = length // groups
    root = groups // 2 * size + size // 2
    return [
        Route(f"{axis}near_up", axis, plus(P, -1)),
        Route(f"{axis}near_down", axis, plus(P, 1)),
        Route(f"{axis}far_up", axis, plus(P, -size)),
        Route(f"{axis}far_down", axis, plus(P, size)),
        Route(f"{axis}out", axis, Const(root)),
    ]
