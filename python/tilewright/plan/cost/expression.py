# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""A tensor expression as data: what Roller's rTile is a tile of (section 3.1: "expr").

Loops have an extent and are parallel or reduced; an operand is a tensor whose dimensions are indexed by sums of loops
with constant factors. Nothing here knows the IR, so that tests and other front ends make expressions by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import prod
from typing import Any

#: One dimension's index: (loop, factor) pairs that are added; None where it may be anything.
Index = tuple[tuple[int, int], ...] | None


@dataclass(frozen=True)
class Operand:
    """A tensor that is read or written.

    Attributes:
        shape: its sizes.
        index: one index per dimension.
        bytes: of an element.
        fixed: known at compile time, so that it can be stored in any order for free.
        near: made and read by the same task, whose part of it stays in the L2 cache.
    """

    shape: tuple[int, ...]
    index: tuple[Index, ...]
    bytes: int = 4
    fixed: bool = False
    near: bool = False

    @cached_property
    def loops(self) -> frozenset[int]:
        """The loops that it depends on."""
        return frozenset(d for terms in self.index if terms for d, _ in terms)

    @cached_property
    def walkers(self) -> tuple[int | None, ...]:
        """Per dimension the loop that alone walks it, element by element; None where its index is anything else."""
        alone = (terms[0] if terms is not None and len(terms) == 1 else (None, 0) for terms in self.index)
        return tuple(loop if abs(factor) == 1 else None for loop, factor in alone)

    @cached_property
    def _factors(self) -> dict[int, int]:
        stride, totals = 1, dict.fromkeys(self.loops, 0)
        for size, terms in zip(reversed(self.shape), reversed(self.index), strict=True):
            for loop, factor in terms or ():
                totals[loop] += stride * factor
            stride *= size
        return totals

    @cached_property
    def parts(self) -> dict[tuple, Any]:
        """What is known of its parts, by what was asked: tiles of many schedules touch the same ones."""
        return {}

    def factor(self, loop: int) -> int:
        """Elements between neighbours along a loop, in row-major storage."""
        return self._factors.get(loop, 0)


@dataclass(frozen=True)
class Expression:
    """Loops and operands of one operation, or of a nest of operations that share loops.

    Attributes:
        extents: sizes of the loops.
        reductions: loops that are reduced.
        inputs: tensors read.
        outputs: tensors written.
        macs: fused multiply-adds at each point (1 for a contraction).
        work: other vector instructions at each point.
        tail: vector instructions at each point of the parallel loops (what follows a reduction).
    """

    extents: tuple[int, ...]
    reductions: frozenset[int]
    inputs: tuple[Operand, ...]
    outputs: tuple[Operand, ...]
    macs: int = 0
    work: float = 1.0
    tail: float = 0.0
    names: tuple[str, ...] = field(default=(), compare=False)

    @property
    def rank(self) -> int:
        """Number of loops."""
        return len(self.extents)

    @cached_property
    def known(self) -> dict[tuple, int]:
        """What is known of tiles, by what was asked and their shape: tasks grow through the same ones."""
        return {}

    @cached_property
    def parallel(self) -> tuple[int, ...]:
        """Loops that are not reduced."""
        return tuple(d for d in range(self.rank) if d not in self.reductions)

    @property
    def operands(self) -> tuple[Operand, ...]:
        """Inputs, then outputs."""
        return self.inputs + self.outputs

    @property
    def points(self) -> int:
        """Size of the iteration space."""
        return prod(self.extents)

    @property
    def flops(self) -> float:
        """Arithmetic of the whole: a multiply-add counts as two."""
        tails = prod(self.extents[d] for d in self.parallel)
        return self.points * (2 * self.macs + self.work) + tails * self.tail


def _plain(loops: Sequence[int], extents: Sequence[int], fixed: bool = False) -> Operand:
    return Operand(tuple(extents[d] for d in loops), tuple(((d, 1),) for d in loops), fixed=fixed)


def matmul(m: int, n: int, k: int, fixed: bool = False) -> Expression:
    """C[m, n] += A[m, k] B[k, n]; `fixed`: B is a weight."""
    sizes = (m, n, k)
    inputs = (_plain((0, 2), sizes), _plain((2, 1), sizes, fixed))
    return Expression(sizes, frozenset({2}), inputs, (_plain((0, 1), sizes),), macs=1, work=0.0)


def elementwise(shape: Sequence[int], inputs: int = 1, work: float = 1.0) -> Expression:
    """A map of `inputs` tensors of one shape."""
    loops = range(len(shape))
    operand = _plain(loops, shape)
    return Expression(tuple(shape), frozenset(), (operand,) * inputs, (operand,), work=work)


def reduce(shape: Sequence[int], axes: Sequence[int]) -> Expression:
    """Sums over some axes."""
    kept = [d for d in range(len(shape)) if d not in axes]
    return Expression(
        tuple(shape), frozenset(axes), (_plain(range(len(shape)), shape),), (_plain(kept, shape),), work=1.0
    )


@lru_cache(256)
def fused_axes(expression: Expression) -> tuple[tuple[int, ...], ...]:
    """Loops that every operand walks as one, outermost first: 17 x 11 x 3 is one axis of 561 (section 3.2)."""
    groups: list[tuple[int, ...]] = [(d,) for d in range(expression.rank)]
    d = 0
    while d + 1 < len(groups):
        if _merges(expression, groups[d][-1], groups[d + 1][0]):
            groups[d : d + 2] = [groups[d] + groups[d + 1]]
        else:
            d += 1
    return tuple(groups)


def _merges(expression: Expression, outer: int, inner: int) -> bool:
    """Whether two loops are one: equal kind, and neighbours with the same order in every operand that has either."""
    if (outer in expression.reductions) != (inner in expression.reductions):
        return False
    for operand in expression.operands:
        has = [d in operand.loops for d in (outer, inner)]
        if has == [False, False]:
            continue
        if not all(has) or not _adjacent(operand, outer, inner, expression.extents[inner]):
            return False
    return True


def _adjacent(operand: Operand, outer: int, inner: int, extent: int) -> bool:
    for at in range(len(operand.index) - 1):
        if operand.index[at] == ((outer, 1),) and operand.index[at + 1] == ((inner, 1),):
            others = [i for t, i in enumerate(operand.index) if t not in (at, at + 1)]
            alone = all(i is not None and outer not in dict(i) and inner not in dict(i) for i in others)
            return alone and operand.shape[at + 1] == extent
    return False
