# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs for meshes to check: products by four algorithms, a reduction by a tree, a chain; small, and of any size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewright.sim.coremesh.expressions import Binary, Const, Dim, Expr
from tilewright.sim.coremesh.program import (
    Buffer,
    Compute,
    Cores,
    Cost,
    Loop,
    Place,
    Program,
    Recv,
    Relay,
    Route,
    Send,
    Slot,
    Wait,
)


@dataclass(frozen=True)
class E:
    """An expression with operators."""

    expr: Expr

    def __add__(self, other):
        return E(Binary("+", self.expr, expr(other)))

    def __sub__(self, other):
        return self + E(Binary("*", expr(other), Const(-1)))

    def __mul__(self, other):
        return E(Binary("*", self.expr, expr(other)))

    def __mod__(self, other):
        return E(Binary("mod", self.expr, expr(other)))

    def __floordiv__(self, other):
        return E(Binary("floordiv", self.expr, expr(other)))


def expr(value) -> Expr:
    return value.expr if isinstance(value, E) else Const(value)


Y, X, L = E(Dim(0)), E(Dim(1)), E(Dim(2))
P, Q = Y, X
F32 = np.dtype(np.float32)
ALL = Cores()


def slot(name, index=0):
    return Slot(name, expr(index))


def at_least(*values, order="linear"):
    return Cores(tuple(expr(value) for value in values), (), order)


def only(*values, order="linear"):
    return Cores((), tuple(expr(value) for value in values), order)


def product(total, left, right):
    return (total + left @ right,)


def zero(*_):
    return (np.float32(0),)


def compute(cores, reads, writes, macs=1, run=product):
    return Compute(cores, "product" if run is product else "zero", reads, writes, Cost(macs=macs), run)


def place(name, n, tile, at, block, order):
    return Place(name, (n * tile, n * tile), at, tuple(expr(index) for index in block), order)


def shifted_gemm(n, order, tile=2, name="gemm"):
    """Cannon (linear) and MeshGEMM (ring) on n x n cores, tiles skewed by the host; the last round shifts nothing."""
    buffers = tuple(Buffer(buffer, (tile, tile), F32, slots) for buffer, slots in (("a", 2), ("b", 2), ("c", 1)))
    routes = tuple(Route(axis, axis, expr((P + 1) % n), order) for axis in "xy")
    moving = at_least(E(Const(n - 2)) - L)
    now, then = L % 2, (L + 1) % 2
    body = []
    for operand, route in (("a", "x"), ("b", "y")):
        body.append(Send(moving, route, slot(operand, now), f"sent {operand}"))
        body.append(Recv(moving, route, slot(operand, then), f"got {operand}"))
    body.append(compute(ALL, (slot("c"), slot("a", now), slot("b", now)), (slot("c"),), tile**3))
    body.append(Wait(("sent a", "got a", "sent b", "got b"), "round"))
    skewed = (Y + X) % n
    inputs = (
        place("a", n, tile, slot("a"), (Y, skewed), order),
        place("b", n, tile, slot("b"), (skewed, X), order),
    )
    outputs = (place("c", n, tile, slot("c"), (Y, X), order),)
    first = compute(ALL, (), (slot("c"),), 0, zero)
    return Program(f"{name} {n}", n, n, buffers, routes, inputs, outputs, (first, Loop(n, tuple(body))))


def mesh_gemm(n, tile=2):
    return shifted_gemm(n, "ring", tile, "meshgemm")


def cannon(n, tile=2):
    return shifted_gemm(n, "linear", tile, "cannon")


def summa(n, tile=2, gather=False):
    """SUMMA on n x n cores: in round k column k and row k broadcast; all-gather keeps all panels, then multiplies."""
    panels = n if gather else 2
    buffers = (
        *(Buffer(name, (tile, tile), F32) for name in "abc"),
        *(Buffer(f"{name} panel", (tile, tile), F32, panels) for name in "ab"),
    )
    routes = tuple(Route(axis, axis, expr(E(Dim(2)))) for axis in "xy")
    keep = L if gather else L % 2
    body = []
    for operand, route, where in (("a", "x", X), ("b", "y", Y)):
        panel = slot(f"{operand} panel", keep)
        others = at_least((where - L) % n - 1) if n > 1 else at_least(-1)
        body += [
            Send(only(where - L), route, slot(operand), f"sent {operand}"),
            Recv(others, route, panel, f"got {operand}"),
            compute(only(where - L), (slot(operand),), (panel,), 0, lambda tile: (tile,)),
        ]
    body.append(Wait(("sent a", "got a", "sent b", "got b"), "round"))
    multiply = compute(ALL, (slot("c"), slot("a panel", keep), slot("b panel", keep)), (slot("c"),), tile**3)
    first = compute(ALL, (), (slot("c"),), 0, zero)
    loops = (Loop(n, tuple(body)), Loop(n, (multiply,))) if gather else (Loop(n, (*body, multiply)),)
    blocks = {name: place(name, n, tile, slot(name), (Y, X), "linear") for name in "abc"}
    name = "allgather" if gather else "summa"
    return Program(f"{name} {n}", n, n, buffers, routes, (blocks["a"], blocks["b"]), (blocks["c"],), (first, *loops))


def all_gather(n, tile=2):
    return summa(n, tile, gather=True)


def chain(n, height=1, length=4):
    """Each core adds its vector to what comes from the left and sends it on; the last one has the sum."""
    buffers = (Buffer("v", (1, length), F32),)
    route = Route("east", "x", expr(P - 1))
    body = (
        Send(only(X), "east", slot("v"), "t"),
        Relay(Cores((expr(X - 1), expr(E(Const(n - 2)) - X))), "east", "east", slot("v"), "t"),
        Recv(only(X - (n - 1)), "east", slot("v"), "t", "add"),
        Wait(("t",), "collective"),
    )
    where = Place("v", (height, n * length), slot("v"), (expr(Y), expr(X)))
    return Program(f"chain {n}", height, n, buffers, (route,), (where,), (where,), body)


def two_phase(n, groups, height=1, length=4):
    """All-reduce along x: in each group two chains to its middle, then two along the middles, then a broadcast.

    WaferLLM's K-tree with K = 2. ``groups`` divides n; each group and the row of groups have three members or more.
    """
    size = n // groups
    root = size // 2
    top = (groups // 2) * size + root
    inner, group = X % size, X // size
    buffers = (Buffer("v", (1, length), F32),)
    routes = (
        Route("east", "x", expr(P - 1)),
        Route("west", "x", expr(P + 1)),
        Route("far east", "x", expr(P - size)),
        Route("far west", "x", expr(P + size)),
        Route("all", "x", Const(top)),
    )

    def phase(member, last, middle, here, east, west):
        """Chains east and west to the middle, among the cores for which ``here`` is 0."""
        zero = (expr(here),)
        up = E(Const(middle - 1)) - member
        down = E(Const(last - 1)) - member
        return (
            Send(Cores((), (expr(member), *zero)), east, slot("v"), "t"),
            Send(Cores((), (expr(member - last), *zero)), west, slot("v"), "t"),
            Relay(Cores((expr(member - 1), expr(up)), zero), east, east, slot("v"), "t"),
            Relay(Cores((expr(member - (middle + 1)), expr(down)), zero), west, west, slot("v"), "t"),
            Recv(Cores((), (expr(member - middle), *zero)), east, slot("v"), "t", "add"),
            Recv(Cores((), (expr(member - middle), *zero)), west, slot("v"), "t", "add"),
            Wait(("t",)),
        )

    body = (
        *phase(inner, size - 1, root, E(Const(0)), "east", "west"),
        *phase(group, groups - 1, groups // 2, inner - root, "far east", "far west"),
        Send(only(X - top), "all", slot("v"), "t"),
        Recv(at_least((X - top) % n - 1), "all", slot("v"), "t"),
        Wait(("t",), "collective"),
    )
    where = Place("v", (height, n * length), slot("v"), (expr(Y), expr(X)))
    return Program(f"twophase {n}", height, n, buffers, routes, (where,), (where,), body)
