# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Small programs for tests of the simulators, written by hand as the algorithms' papers give them."""

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
    Order,
    Place,
    Program,
    Recv,
    Relay,
    Route,
    Send,
    Slot,
    Wait,
)

Y, X, TURN = Dim(0), Dim(1), Dim(2)
#: In a route's source.
P, Q = Dim(0), Dim(1)


def add(left: Expr, right: Expr | int) -> Expr:
    return Binary("+", left, right if not isinstance(right, int) else Const(right))


def times(left: Expr, factor: int) -> Expr:
    return Binary("*", left, Const(factor))


def mod(left: Expr, size: int) -> Expr:
    return Binary("mod", left, Const(size))


def column(at: int) -> tuple[Expr, ...]:
    """For `Cores.zero`: one column."""
    return (add(X, -at),)


def line(
    width: int,
    body: list[Instruction],
    routes: list[Route],
    *,
    size: int = 1,
    dtype: str = "float32",
    slots: int = 1,
    height: int = 1,
    out: str = "v",
) -> Program:
    """Cores in a row with a vector ``v`` each, an input [height, width * size], and a second buffer ``w``."""
    number = np.dtype(dtype)
    return Program(
        name="line",
        height=height,
        width=width,
        buffers=(Buffer("v", (1, size), number, slots), Buffer("w", (1, size), number)),
        routes=tuple(routes),
        inputs=(Place("v", (height, width * size), Slot("v"), (Y, X)),),
        outputs=(Place("out", (height, width * size), Slot(out), (Y, X)),),
        body=tuple(body),
    )


def pass_on(width: int, hops: int, size: int, height: int = 1) -> Program:
    """Column 0 sends to column ``hops``."""
    return line(
        width,
        [
            Send(Cores(zero=column(0)), "r", Slot("v"), "s"),
            Recv(Cores(zero=column(hops)), "r", Slot("w"), "t"),
            Wait(("s", "t")),
        ],
        [Route("r", "x", add(P, -hops))],
        size=size,
        height=height,
    )


def chain(width: int, size: int, dtype: str = "float32", height: int = 1) -> Program:
    """A streaming reduction to the last column: every core between adds what it has."""
    last = width - 1
    between = (add(X, -1), add(times(X, -1), last - 1))
    return line(
        width,
        [
            Send(Cores(zero=column(0)), "r", Slot("v"), "s"),
            Relay(Cores(at_least_zero=between), "r", "r", Slot("v"), "s"),
            Recv(Cores(zero=column(last)), "r", Slot("v"), "s", combine="add"),
            Wait(("s",)),
        ],
        [Route("r", "x", add(P, -1))],
        size=size,
        dtype=dtype,
        height=height,
    )


def star(width: int, size: int) -> Program:
    """All send to column 0, each on a route of its own."""
    routes = [Route(f"r{at}", "x", add(P, at)) for at in range(1, width)]
    sends = [Send(Cores(zero=column(at)), f"r{at}", Slot("v"), "s") for at in range(1, width)]
    takes = [Recv(Cores(zero=column(0)), f"r{at}", Slot("v"), "s", combine="add") for at in range(1, width)]
    return line(width, [*sends, *takes, Wait(("s",))], routes, size=size)


def tree(width: int, size: int) -> Program:
    """A binary tree to column 0: ``width`` is a power of two."""
    routes, body, stride = [], [], 1
    while stride < width:
        name = f"r{stride}"
        routes.append(Route(name, "x", add(P, stride)))
        body += [
            Send(Cores(zero=(mod(add(X, stride), 2 * stride),)), name, Slot("v"), name),
            Recv(Cores(zero=(mod(X, 2 * stride),)), name, Slot("v"), name, combine="add"),
            Wait((name,)),
        ]
        stride *= 2
    return line(width, body, routes, size=size)


def two_phase(width: int, groups: int, size: int) -> Program:
    """Chains to the first core of each group, then a chain of those to column 0 (Near-Optimal Reduce, HPDC 2024)."""
    part = width // groups
    within = mod(X, part)
    behind = add(times(within, -1), part - 2)
    root = Cores(zero=(within,))
    return line(
        width,
        [
            Send(Cores(zero=(add(within, 1 - part),)), "g", Slot("v"), "g"),
            Relay(Cores(at_least_zero=(add(within, -1), behind)), "g", "g", Slot("v"), "g"),
            Recv(root, "g", Slot("v"), "g", combine="add"),
            Wait(("g",)),
            Send(Cores(zero=(add(X, part - width),)), "h", Slot("v"), "h"),
            Relay(
                Cores(at_least_zero=(add(X, -1), add(times(X, -1), width - part - 1)), zero=(within,)),
                "h",
                "h",
                Slot("v"),
                "h",
            ),
            Recv(Cores(zero=(X,)), "h", Slot("v"), "h", combine="add"),
            Wait(("h",)),
        ],
        [Route("g", "x", add(P, 1)), Route("h", "x", add(P, part))],
        size=size,
    )


def broadcast(width: int, root: int, size: int, dtype: str = "float32") -> Program:
    """One core's vector to all others of its row, by multicast."""
    others = (add(X, -root - 1),), (add(times(X, -1), root - 1),)
    takes = [Recv(Cores(at_least_zero=side), "r", Slot("v"), "t") for side in others]
    return line(
        width,
        [Send(Cores(zero=column(root)), "r", Slot("v"), "t"), *takes, Wait(("t",))],
        [Route("r", "x", Const(root))],
        size=size,
        dtype=dtype,
    )


def ring_allreduce(width: int, size: int) -> Program:
    """Reduce-scatter and all-gather on the folded ring, chunk by chunk: ``slots`` chunks of ``size`` numbers."""
    chunk = lambda shift: Slot("v", mod(add(add(X, times(TURN, -1)), width * 2 + shift), width))  # noqa: E731
    every = Cores(order="ring")
    rounds = lambda offset, name, combine: Loop(  # noqa: E731
        width - 1,
        (
            Send(every, "r", chunk(offset), name),
            Recv(every, "r", chunk(offset - 1), name, combine=combine),
            Wait((name,)),
        ),
    )
    load = [
        Compute(every, "split", (Slot("w"),), tuple(Slot("v", Const(at)) for at in range(width)), Cost(), _split(width))
    ]
    join = [Compute(every, "join", tuple(Slot("v", Const(at)) for at in range(width)), (Slot("w"),), Cost(), _join)]
    number = np.dtype("float32")
    full = width * size
    return Program(
        "ring_allreduce",
        1,
        width,
        (Buffer("v", (1, size), number, width), Buffer("w", (1, full), number)),
        (Route("r", "x", mod(add(P, width - 1), width), order="ring"),),
        (Place("v", (1, width * full), Slot("w"), (Y, X)),),
        (Place("out", (1, full), Slot("w"), (Const(0), Const(0))),),
        (*load, rounds(0, "a", "add"), rounds(1, "b", None), *join),
    )


def _split(parts: int):
    return lambda whole: tuple(np.split(whole, parts, axis=2))


def _join(*parts: np.ndarray) -> tuple[np.ndarray]:
    return (np.concatenate(parts, axis=2),)


def gemm(
    side: int,
    tile: tuple[int, int, int],
    dtype: str = "float32",
    order: Order = "ring",
    shape: tuple[int, int, int] | None = None,
) -> Program:
    """A product on ``side`` x ``side`` cores by compute-shift rounds; operands are placed skewed.

    ``ring``: MeshGEMM (WaferLLM, OSDI 2025, section 5); ``linear``: Cannon's algorithm.

    Args:
        tile: rows, inner, columns of a core's tiles.
        shape: of the product, all tiles' without.
    """
    m, k, n = tile
    rows, inner, columns = shape or (side * m, side * k, side * n)
    number = np.dtype(dtype)
    every = Cores(order=order)
    going = Cores(at_least_zero=(add(times(TURN, -1), side - 2),), order=order)
    front, back = mod(TURN, 2), mod(add(TURN, 1), 2)
    skew = mod(add(Y, X), side)
    after = mod(add(P, 1), side)
    turn = (
        Send(going, "a", Slot("a", front), "s"),
        Send(going, "b", Slot("b", front), "s"),
        Recv(going, "a", Slot("a", back), "t"),
        Recv(going, "b", Slot("b", back), "t"),
        Compute(
            every,
            "product",
            (Slot("c"), Slot("a", front), Slot("b", front)),
            (Slot("c"),),
            Cost(macs=m * k * n, vector_calls=k * n, dtype_bits=8 * number.itemsize),
            lambda c, a, b: ((c + np.matmul(a, b)).astype(number),),
        ),
        Wait(("s", "t"), overhead="round"),
    )
    return Program(
        "gemm",
        side,
        side,
        (
            Buffer("a", (m, k), number, 2),
            Buffer("b", (k, n), number, 2),
            Buffer("c", (m, n), number),
        ),
        (Route("a", "x", after, order), Route("b", "y", after, order)),
        (
            Place("a", (rows, inner), Slot("a"), (Y, skew), order),
            Place("b", (inner, columns), Slot("b"), (skew, X), order),
        ),
        (Place("c", (rows, columns), Slot("c"), (Y, X), order),),
        (
            Compute(every, "zero", (), (Slot("c"),), Cost(elements=m * n), _zeros(side * side, (m, n), number)),
            Loop(side, turn),
        ),
    )


def _zeros(cores: int, shape: tuple[int, int], dtype: np.dtype):
    return lambda: (np.zeros((cores, *shape), dtype),)
