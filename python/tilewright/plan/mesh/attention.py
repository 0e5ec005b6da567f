# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Attention of one new token over a cache that lies on a mesh (WaferLLM, OSDI 2025, section 4.2).

The query is cut along x and replicated along y, tokens are spread along y. Scores are summed along x; softmax takes its
maximum and its sum along y; products with values are summed along y. Nothing depends on the order of tokens, so that
every policy of the cache gives the same result; a mask says which slots hold tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from tilewright.core.errors import UserError
from tilewright.plan.mesh.allreduce import allreduce
from tilewright.plan.mesh.kv_cache import Cache
from tilewright.plan.mesh.product import ALL
from tilewright.plan.mesh.reduction import Line, Scheme
from tilewright.plan.mesh.terms import X, Y
from tilewright.plan.mesh.writer import Axis, Combine, Kernel, Writer, slot
from tilewright.sim.coremesh.program import Buffer, Cost, Program, Slot


def mask(cache: Cache, length: int) -> np.ndarray:
    """What is added to scores, float32 [height * slots]: 0 where a slot holds one of ``length`` tokens, else -inf."""
    held = [cache.token_at(row, at, length) is not None for row in range(cache.height) for at in range(cache.slots)]
    return np.where(held, np.float32(0), np.float32(-np.inf))


def attend(cache: Cache, scale: float, schemes: tuple[Scheme, Scheme] = (Scheme(), Scheme())) -> Program:
    """A program of inputs ``q`` [features], ``k`` and ``v`` (as `kv_cache.append` has them) and ``mask``.

    Its output ``out`` [features], cut along x on all rows, is in float32, as all sums are.

    Args:
        scale: of scores.
        schemes: of the allreduces along y and along x.
    """
    if any(scheme.kind == "ring" for scheme in schemes):
        raise UserError("Attention sums single numbers along y: take a chain, a tree or a K-tree, not a ring.")
    writer = Writer("attend", cache.height, cache.width)
    part = -(-cache.features // cache.width)
    query = slot(writer.buffer("q", (part,), cache.dtype))
    writer.input("q", (cache.features,), query, (X,), "linear")
    keys, values = (_cached(writer, cache, name, part) for name in ("k", "v"))
    hidden = slot(writer.buffer("mask", (cache.slots,), np.float32))
    writer.input("mask", (cache.height * cache.slots,), hidden, (Y,), "linear")
    scores, peak, total, out = (
        slot(writer.buffer(name, (size,), np.float32))
        for name, size in (("scores", cache.slots), ("peak", 1), ("total", 1), ("out", part))
    )

    def everywhere(axis: Axis, at: Slot, combine: Combine = "add") -> None:
        allreduce([Line(writer, axis, at, combine)], [schemes[0 if axis == "y" else 1]])

    writer.compute(ALL, Scores(scale), (query, *keys), (scores,))
    everywhere("x", scores)
    writer.compute(ALL, Peak(), (scores, hidden), (peak,))
    everywhere("y", peak, "max")
    writer.compute(ALL, Exponentials(), (scores, hidden, peak), (scores, total))
    everywhere("y", total)
    writer.compute(ALL, Weighted(), (scores, *values), (out,))
    everywhere("y", out)
    writer.compute(ALL, Divide(), (out, total), (out,))
    writer.output("out", (cache.features,), out, (X,), "linear")
    return writer.program()


def _cached(writer: Writer, cache: Cache, name: str, part: int) -> list[Slot]:
    home = writer.buffer(name, (1, part), cache.dtype, cache.slots)
    found = [slot(home, at) for at in range(cache.slots)]
    for at, one in enumerate(found):
        writer.input(name, (cache.height * cache.slots, cache.features), one, (Y * cache.slots + at, X), "linear")
    return found


@dataclass(frozen=True)
class Scores(Kernel):
    """``scale * (q . k)`` of each key (reads q [n] and keys, each [1, n]; writes [keys], in float32)."""

    scale: float
    name = "scores"

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """Products are added in the order of n."""
        query, keys = tiles[0].astype(np.float32), np.concatenate(tiles[1:], axis=1).astype(np.float32)
        total = np.zeros(keys.shape[:2], np.float32)
        for at in range(query.shape[1]):
            total = total + keys[:, :, at] * query[:, None, at]
        return (total * np.float32(self.scale),)

    def cost(self, reads: tuple[Buffer, ...], writes: tuple[Buffer, ...]) -> Cost:
        """A vector call over keys per element of q, after zeros, and one to scale; keys are joined first."""
        n, keys = prod(reads[0].shape), prod(writes[0].shape)
        joins = keys > 1
        return Cost(n * keys, n + 2 + joins, 2 * keys + joins * n * keys, 8 * reads[0].dtype.itemsize)


@dataclass(frozen=True)
class Weighted(Kernel):
    """Sum of values by their weights (reads weights [values], and values, each [1, n]; writes [n], in float32)."""

    name = "weighted"

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """In the order of slots."""
        weights, values = tiles[0], np.concatenate(tiles[1:], axis=1).astype(np.float32)
        total = np.zeros(values.shape[::2], np.float32)
        for at in range(weights.shape[1]):
            total = total + weights[:, at, None] * values[:, at]
        return (total,)

    def cost(self, reads: tuple[Buffer, ...], writes: tuple[Buffer, ...]) -> Cost:
        """A vector call over n per value, after zeros; values are joined first."""
        n, values = prod(writes[0].shape), prod(reads[0].shape)
        joins = values > 1
        return Cost(n * values, values + 1 + joins, n + joins * n * values, 8 * reads[0].dtype.itemsize)


@dataclass(frozen=True)
class Peak(Kernel):
    """The largest of masked scores (reads scores and mask, [n]; writes [1])."""

    name = "peak"

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """-inf where all are masked."""
        return ((tiles[0] + tiles[1]).max(axis=1, keepdims=True),)

    def cost(self, reads: tuple[Buffer, ...], writes: tuple[Buffer, ...]) -> Cost:
        """One call to mask, and a step per element."""
        n = prod(reads[0].shape)
        return Cost(0, n + 2, 2 * n + 1, 32)


@dataclass(frozen=True)
class Exponentials(Kernel):
    """``exp(score + mask - peak)`` and their sum, in order (reads scores, mask [n], peak [1]; writes [n], [1])."""

    name = "exponentials"

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """0 where masked."""
        weights = np.exp(tiles[0] + tiles[1] - tiles[2])
        return weights, np.add.accumulate(weights, axis=1)[:, -1:]

    def cost(self, reads: tuple[Buffer, ...], writes: tuple[Buffer, ...]) -> Cost:
        """Four calls to mask, repeat the peak, subtract and exponentiate, and a step of the sum per element."""
        n = prod(reads[0].shape)
        return Cost(0, n + 5, 5 * n + 1, 32)


@dataclass(frozen=True)
class Divide(Kernel):
    """Elements by one number (reads [n] and [1]; writes [n])."""

    name = "divide"

    def __call__(self, *tiles: np.ndarray) -> tuple[np.ndarray, ...]:
        """The quotient; NaN where no token is held."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return (tiles[0] / tiles[1],)

    def cost(self, reads: tuple[Buffer, ...], writes: tuple[Buffer, ...]) -> Cost:
        """A call to repeat the divisor, and one to divide."""
        return Cost(0, 2, 2 * prod(reads[0].shape), 32)
