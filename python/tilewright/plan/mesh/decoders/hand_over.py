# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A token's vector goes from the region of cores of one stage to that of the next, which stands beside or below it.

The vector is cut along y and replicated along x (`decode_layer`). Beside: the column at the border sends to all columns
of the next region at once. Below: each row of cores sends its part down a column of its own, so that no link carries
two parts where regions are square, and from there to both sides.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

from tilewright.core.errors import UserError
from tilewright.plan.mesh.terms import P, Q, X, Y, at_least, differ, equal, less
from tilewright.plan.mesh.writer import Writer, cores, slot
from tilewright.sim.coremesh.program import Program

#: Where the next region stands.
Way = Literal["right", "left", "down"]


def hand_over(width: int, region: tuple[int, int], way: Way, dtype: Any) -> Program:
    """A program on both regions; its input ``x`` [width] is in the first, its output ``x`` in the second.

    Args:
        width: of the vector.
        region: rows and columns of cores of each.

    Raises:
        UserError: a size is less than 1, or there is no such way.
    """
    if min(width, *region) < 1 or way not in get_args(Way):
        raise UserError(
            f"A vector of {width} numbers cannot be handed from {region[0]} x {region[1]} cores '{way}': sizes are 1 "
            f"or more, and ways are {', '.join(get_args(Way))}."
        )
    rows, columns = region
    down = way == "down"
    writer = Writer(f"hand_{way}", rows * (1 + down), columns * (2 - down))
    size = -(-width // rows)
    start, end = (slot(writer.buffer(name, (size,), dtype)) for name in ("x", "arrived"))
    # 0 in the first region, 1 in the second; blocks behind the last are of nobody.
    second = Y // rows if down else X // columns if way == "right" else (2 * columns - 1 - X) // columns
    row = Y % rows if down else Y
    writer.input("x", (width,), start, (row + second * rows,), "linear")
    if down:
        _down(writer, region, start, end)
    else:
        border = columns - 1 if way == "right" else columns
        route = writer.route(f"x_{way}", "x", border)
        takes = at_least(X, columns) if way == "right" else less(X, columns)
        tokens = [
            writer.send(cores(equal(X, border)), route, start),
            writer.recv(cores(takes), route, end),
        ]
        writer.wait(tokens, "collective")
    writer.output("x", (width,), end, (row + (1 - second) * rows,), "linear")
    return writer.program()


def _down(writer: Writer, region: tuple[int, int], start: Any, end: Any) -> None:
    rows, columns = region
    fall = writer.route("y_down", "y", P - rows)
    mine = equal((Y % rows - X) % columns, 0)
    tokens = [
        writer.send(cores(mine, less(Y, rows)), fall, start),
        writer.recv(cores(mine, at_least(Y, rows)), fall, end),
    ]
    writer.wait(tokens, "collective")
    if columns == 1:
        return
    spread = writer.route("x_spread", "x", Q % rows % columns)
    others = differ(X, Y % rows % columns, columns)
    tokens = [
        writer.send(cores(mine, at_least(Y, rows)), spread, end),
        writer.recv(cores(others, at_least(Y, rows)), spread, end),
    ]
    writer.wait(tokens, "collective")
