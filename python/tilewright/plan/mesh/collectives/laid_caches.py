# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A token appended to a cache that lies on a mesh, of a known length: `coremesh.kv_append` as a program.

All rows of cores have the token (its layout does not split along y), so that only a shift sends anything: the oldest
token of each row that is handed up, one hop (WaferLLM, OSDI 2025, section 4.3).
"""

from __future__ import annotations

import numpy as np

from tilewright.core.errors import UnsupportedError, UserError
from tilewright.dialects.coremesh import Split
from tilewright.plan.mesh.collectives.layouts import Laid, received
from tilewright.plan.mesh.kernels import AsRow, Fill, PutAt
from tilewright.plan.mesh.kv_cache import Policy
from tilewright.plan.mesh.product import ALL
from tilewright.plan.mesh.tables import line_expr
from tilewright.plan.mesh.terms import P, Term, Y, at_least, equal, less
from tilewright.plan.mesh.writer import Writer, cores, slot
from tilewright.sim.coremesh.program import Program


def append_row(row: Laid, cache: Laid, policy: Policy, length: int) -> Program:
    """A cache of ``length`` tokens takes one more; inputs ``row`` and ``cache``, output ``y``, as their layouts say.

    Token t of a cache that shifts lies in slot t mod slots of its row of cores. Rows of such a cache that hold no token
    yet come out as zeros; where they are in memory has no meaning.

    Raises:
        UserError: the cache has no room.
    """
    if not 0 <= length < cache.shape[0]:
        raise UserError(
            f"A cache of {cache.shape[0]} tokens that holds {length} cannot take another: make its type larger."
        )
    writer = Writer(f"kv_{policy}", cache.height, cache.width)
    rest, order = row.blocks(), cache.order
    fresh = received(writer, "row", row)
    slots = _table(cache, policy, length).shape[1]
    home = writer.buffer("cache", (1, *row.tile), cache.dtype, slots)

    def put(count: int, output: bool) -> None:
        table = _table(cache, policy, count)
        if not output:  # rows that hold no token lie in what is free
            free = np.argwhere(table == cache.shape[0])[: cache.shape[0] - count] if policy == "shift" else []
            for number, place in enumerate(free):
                table[tuple(place)] = count + number
        for at in range(slots):
            block = [Term(line_expr(table[:, at], 0)), *rest]
            (writer.output if output else writer.input)(
                "y" if output else "cache", cache.shape, slot(home, at), block, order
            )

    put(length, output=False)
    if policy == "shift":
        _hand_up(writer, cache, home, length)
    place, at = (int(index) for index in np.argwhere(_table(cache, policy, length + 1) == length)[0])
    writer.compute(cores(equal(Y, place), order=order), AsRow(), (fresh,), (slot(home, at),))
    put(length + 1, output=True)
    if policy == "shift" and length + 1 < cache.shape[0]:
        zeros = slot(writer.buffer("none", (1, *row.tile), cache.dtype))
        writer.compute(ALL, Fill((1, *row.tile), cache.dtype), (), (zeros,))
        for first in range(length + 1, cache.shape[0], cache.height):
            writer.output("y", cache.shape, zeros, (Y + first, *rest), order)
    return writer.program()


def append_anywhere(row: Laid, cache: Laid, policy: Policy) -> Program:
    """The same for a length that a run brings: inputs ``row``, ``cache`` and ``length`` [1], output ``y``.

    Each core compares the length with the numbers of the tokens that it has room for: nothing is sent.

    Raises:
        UnsupportedError: the cache shifts: where its tokens lie depends on how many there are.
    """
    if policy == "shift":
        raise UnsupportedError(
            "The length of a cache that shifts is a number of the run, and where its tokens lie depends on it: a mesh "
            "has one program per length. Make it a constant (one function per length, or a loop that is unrolled), or "
            "append by `round_robin`, which balances rows as well."
        )
    writer = Writer(f"kv_{policy}", cache.height, cache.width)
    rest, order, table = row.blocks(), cache.order, _table(cache, policy, 0)
    fresh = received(writer, "row", row)
    home = writer.buffer("cache", (1, *row.tile), cache.dtype, table.shape[1])
    places = [[Term(line_expr(column, 0)), *rest] for column in table.T]
    for at, block in enumerate(places):
        writer.input("cache", cache.shape, slot(home, at), block, order)
    length, first = (slot(writer.buffer(name, (1,), np.int32)) for name in ("length", "first"))
    writer.input("length", (1,), length, (0,), order)
    for place in range(cache.height):
        kernel = Fill((1,), np.dtype(np.int32), int(table[place, 0]))
        writer.compute(cores(equal(Y, place), order=order), kernel, (), (first,))
    step = cache.height if policy == "round_robin" else 1
    for at, block in enumerate(places):
        here = slot(home, at)
        writer.compute(ALL, PutAt(at * step), (fresh, here, first, length), (here,))
        writer.output("y", cache.shape, here, block, order)
    return writer.program()


def _table(cache: Laid, policy: Policy, count: int) -> np.ndarray:
    """The token in each slot of each row of cores, int64 [rows, slots]; as many as there are at most: none."""
    split, rows, most = cache.splits[0], cache.height, cache.shape[0]
    assert split is not None and split.axis == "y", "verified"
    slots = np.arange(cache.tile[0])
    place = np.arange(rows)[:, None]
    if policy == "round_robin":
        return np.minimum(slots * rows + place, most)
    if policy == "concat":
        starts, sizes = _blocks(split, rows, cache)
        at = np.arange(max(sizes))
        return np.minimum(np.where(at < sizes[:, None], starts[:, None] + at, most), most)
    each, more = divmod(count, rows)
    first = place * each + np.minimum(place, more)
    token = first + (slots - first) % len(slots)
    return np.where(token < first + each + (place < more), token, most)


def _blocks(split: Split, rows: int, cache: Laid) -> tuple[np.ndarray, np.ndarray]:
    """First token and number of tokens of each row of cores."""
    if split.skew:
        raise UnsupportedError("A cache whose tokens are skewed has no program: split them in blocks, `y`.")
    if len(split.blocks) > 1:
        sizes = np.array(split.blocks)
        return np.concatenate([[0], np.cumsum(sizes)[:-1]]), sizes
    sizes = np.full(rows, cache.tile[0])
    return (np.arange(rows) + split.rotate) % rows * cache.tile[0], sizes


def _hand_up(writer: Writer, cache: Laid, home: str, length: int) -> None:
    """Rows below the first that is not fuller than the last hand their oldest token up, all at once."""
    rows, slots, order = cache.height, cache.tile[0], cache.order
    each, row = divmod(length, rows)  # rows above `row` hold one more than `each`, the others `each`
    if not each or row == rows - 1:
        return
    oldest = Y * each + row
    route = writer.route("y_up", "y", P + 1, order)
    tokens = [
        writer.send(cores(at_least(Y, row + 1), order=order), route, slot(home, oldest % slots)),
        writer.recv(
            cores(at_least(Y, row), less(Y, rows - 1), order=order), route, slot(home, (oldest + each) % slots)
        ),
    ]
    writer.wait(tokens, "round")
