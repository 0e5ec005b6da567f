# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where the keys and values of tokens lie on a mesh, and how one more is appended: concat, shift, round robin.

A token's slice of keys (or values) is cut along x; tokens are spread along y. Row 0 is the top one.

- ``concat``: new tokens go to the last row, which is full first: capacity c, what one core can hold.
- ``shift``: rows hold tokens by age, the top row the oldest. A new token lands in the last row; each row that holds as
  many as the one above hands its oldest one up, one hop, all rows at once. So rows differ by one token at most, order
  stays, and capacity is c times the number of rows (WaferLLM, OSDI 2025, section 4.3).
- ``round_robin``: token t goes to row t mod rows: balanced without a shift, but neighbours in time are not neighbours
  in memory; what depends on positions must ask `token_at`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from tilewright.core.errors import UserError
from tilewright.plan.mesh.kernels import Store
from tilewright.plan.mesh.terms import P, X, Y, at_least, equal, less
from tilewright.plan.mesh.writer import Writer, cores, slot
from tilewright.sim.coremesh.program import Program

Policy = Literal["concat", "shift", "round_robin"]


def capacity(policy: Policy, rows: int, free_bytes: int, token_bytes: int) -> int:
    """Tokens that fit a column of cores.

    Args:
        free_bytes: of each core; ``token_bytes``: of one token's slice in one core.
    """
    return free_bytes // token_bytes if policy == "concat" else rows * free_bytes // token_bytes


@dataclass(frozen=True)
class Cache:
    """A cache of one tensor, [tokens, width of a token], on a grid.

    Attributes:
        slots: tokens that a core has memory for.
        features: of one token, cut along x.
    """

    policy: Policy
    height: int
    width: int
    slots: int
    features: int
    dtype: Any = np.float32

    def __post_init__(self) -> None:
        if self.policy not in get_args(Policy):
            raise UserError(f"There is no policy '{self.policy}' for caches: it is one of {get_args(Policy)}.")
        if min(self.height, self.width, self.slots, self.features) < 1:
            raise UserError("A cache needs cores, slots and features: all of them 1 or more.")

    @property
    def tokens(self) -> int:
        """Tokens that fit."""
        return self.slots if self.policy == "concat" else self.slots * self.height

    def first(self, row: int, length: int) -> int:
        """The oldest token of a row, of ``length`` tokens that lie by age; of the row behind the last: ``length``."""
        if self.policy == "concat":
            return 0 if row < self.height else length
        return row * (length // self.height) + min(row, length % self.height)

    def token_at(self, row: int, at: int, length: int) -> int | None:
        """Which token lies in a slot of a row's cores when there are ``length``; None: none does."""
        if self.policy == "round_robin":
            token = at * self.height + row
            return token if token < length else None
        if self.policy == "concat":
            return at if row == self.height - 1 and at < length else None
        first, end = self.first(row, length), self.first(row + 1, length)
        token = first + (at - first) % self.slots
        return token if token < end else None


def append(cache: Cache, length: int, count: int = 1) -> Program:
    """A program that appends tokens to a cache of ``length`` tokens.

    Inputs ``cache`` [height * slots, features] (slot s of row y is row ``y * slots + s``) and ``new``
    [count, features], which arrives in the last row; output ``cache``, alike.

    Raises:
        UserError: the cache has no room.
    """
    _check(cache, length, count)
    writer = Writer(f"kv_{cache.policy}", cache.height, cache.width)
    tile = (1, -(-cache.features // cache.width))
    home = writer.buffer("cache", tile, cache.dtype, cache.slots)
    fresh = writer.buffer("new", tile, cache.dtype, count)
    for put in (writer.input, writer.output):
        for at in range(cache.slots):
            shape = (cache.height * cache.slots, cache.features)
            put("cache", shape, slot(home, at), (Y * cache.slots + at, X), "linear")
    for number in range(count):
        nowhere = (cache.height - 1 - Y) * count  # rows above the last have blocks behind the tensor: padding
        writer.input("new", (count, cache.features), slot(fresh, number), (nowhere + number, X), "linear")
        _STEPS[cache.policy](writer, cache, (home, fresh), length + number, number)
    return writer.program()


def append_to(writer: Writer, cache: Cache, home: str, fresh: str, length: int) -> None:
    """Write how one token's slice, which lies in the last row at least, joins ``length`` others.

    Args:
        home, fresh: buffers of the cache and of the slice.

    Raises:
        UserError: the cache has no room.
    """
    _check(cache, length, 1)
    _STEPS[cache.policy](writer, cache, (home, fresh), length, 0)


def _check(cache: Cache, length: int, count: int) -> None:
    if length + count > cache.tokens:
        raise UserError(
            f"A cache of {cache.height} x {cache.width} cores with {cache.slots} slots each holds {cache.tokens} "
            f"tokens under '{cache.policy}'; {length} + {count} do not fit."
            + (" Policy 'shift' would use all rows." if cache.policy == "concat" else " Use more rows of cores.")
        )


def _concat(writer: Writer, cache: Cache, buffers: tuple[str, str], length: int, number: int) -> None:
    home, fresh = buffers
    last = cores(equal(Y, cache.height - 1))
    writer.compute(last, Store(), (slot(fresh, number),), (slot(home, length),))


def _round_robin(writer: Writer, cache: Cache, buffers: tuple[str, str], length: int, number: int) -> None:
    """The token takes the way from the last row to its own."""
    home, fresh = buffers
    row, at = length % cache.height, length // cache.height
    target = cores(equal(Y, row))
    if row == cache.height - 1:
        writer.compute(target, Store(), (slot(fresh, number),), (slot(home, at),))
        return
    route = writer.route(f"y_to_{row}", "y", cache.height - 1)
    tokens = [
        writer.send(cores(equal(Y, cache.height - 1)), route, slot(fresh, number)),
        writer.recv(target, route, slot(home, at)),
    ]
    writer.wait(tokens, "round")


def _shift(writer: Writer, cache: Cache, buffers: tuple[str, str], length: int, number: int) -> None:
    """Rows below the first that is not fuller than the last hand their oldest token up, and the last takes the new one.

    Token t lies in slot t mod slots of its row, whichever row that is: tokens of a row follow each other.
    """
    home, fresh = buffers
    each, row = divmod(length, cache.height)  # rows above `row` hold one more than `each`, the others `each`
    if row < cache.height - 1 and each:
        oldest = Y * each + row
        route = writer.route("y_up", "y", P + 1)
        tokens = [
            writer.send(cores(at_least(Y, row + 1)), route, slot(home, oldest % cache.slots)),
            writer.recv(
                cores(at_least(Y, row), less(Y, cache.height - 1)), route, slot(home, (oldest + each) % cache.slots)
            ),
        ]
        writer.wait(tokens, "round")
    if each or row == cache.height - 1:
        target = cores(equal(Y, cache.height - 1))
        writer.compute(target, Store(), (slot(fresh, number),), (slot(home, length % cache.slots),))
        return
    _pass_up(writer, cache, buffers, length, number)


def _pass_up(writer: Writer, cache: Cache, buffers: tuple[str, str], length: int, number: int) -> None:
    """Rows that hold nothing hand the new token on, one hop at a time, to the first of them."""
    home, fresh = buffers
    route = writer.route("y_up", "y", P + 1)
    for row in range(cache.height - 1, length, -1):
        last = row - 1 == length
        target = slot(home, length % cache.slots) if last else slot(fresh, number)
        tokens = [
            writer.send(cores(equal(Y, row)), route, slot(fresh, number)),
            writer.recv(cores(equal(Y, row - 1)), route, target),
        ]
        writer.wait(tokens, "round")


_STEPS = {"concat": _concat, "shift": _shift, "round_robin": _round_robin}
