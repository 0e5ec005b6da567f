# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds mixtures of experts in the form that computes every expert for every token, and gates most of it away.

`out[t, d] = sum over e of gate[t, e] * f(...(act(x[t] @ w1[e]))... @ w2[e])[d]`. The expert and the token are PIT-axes
(SOSP 2023, section 3) of everything between the first product and the sum, so that pairs of them may be visited in any
order, and left out where the gate is zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.ir.generics import body, is_zeros, kinds, maker, maps, terminator
from tilewright.ir.structure import Weights
from tilewright.mlir import ir
from tilewright.normalize.sparsity.known import Known, evaluate
from tilewright.plan.sparse.dynamic.pit_axes import annihilates, pit_axes
from tilewright.plan.sparse.dynamic.tile_body import is_plain

#: Roles of dimensions: the expert, the token, the column, what a product sums over; None: of size one.
E, T, N, K = "e", "t", "n", "k"
Roles = tuple["str | None", ...]


@dataclass(frozen=True)
class Follower:
    """An elementwise step on what an expert makes.

    Attributes:
        op: the `linalg.generic`; the last of all is the sum over experts.
        chained: number of the operand that comes from the step before.
        roles: of the dimensions of each input.
    """

    op: ir.Operation
    chained: int
    roles: tuple[Roles, ...]


@dataclass(frozen=True)
class Stage:
    """A product with a weight per expert, and the steps up to the next one.

    Attributes:
        op: the product.
        weight: [experts, k, n], or [experts, n, k] where `transposed`.
        followers: the steps, the first one first.
    """

    op: ir.Operation
    weight: ir.Value
    transposed: bool
    followers: tuple[Follower, ...]

    @property
    def sizes(self) -> tuple[int, int]:
        """k and n."""
        _, a, b = ir.RankedTensorType(self.weight.type).shape
        return (b, a) if self.transposed else (a, b)


@dataclass(frozen=True)
class Experts:
    """A mixture of experts.

    Attributes:
        tokens: [t, k], what the first product reads.
        gate: [t, e], or [e, t] where `by_expert`.
        stages: its products, the first one first; the last one ends with the sum.
    """

    tokens: ir.Value
    gate: ir.Value
    by_expert: bool
    stages: tuple[Stage, ...]

    @property
    def total(self) -> ir.Operation:
        """The sum over experts."""
        return self.stages[-1].followers[-1].op

    @property
    def operations(self) -> list[ir.Operation]:
        """All that it replaces, in order."""
        return [op for stage in self.stages for op in (stage.op, *(follower.op for follower in stage.followers))]

    @property
    def sizes(self) -> tuple[int, int]:
        """Numbers of experts and tokens."""
        first, second = ir.RankedTensorType(self.gate.type).shape
        return (first, second) if self.by_expert else (second, first)


def find_experts(total: ir.Operation, weights: Weights) -> Experts | None:
    """The mixture of experts that a sum ends; None where it ends none, or one of other steps than kernels have."""
    last = _total(total)
    if last is None:
        return None
    stages: list[Stage] = []
    followers = [last]
    while True:
        made = maker(followers[0].op.operands[followers[0].chained])
        if made is None or not _belongs(made):
            return None
        roles = followers[0].roles[followers[0].chained]
        if not any(kinds(made)):
            step = _follower(made, roles)
            if step is None:
                return None
            followers.insert(0, step)
            continue
        product = _product(made, roles, weights)
        if product is None:
            return None
        stage, read = product
        stages.insert(0, Stage(stage.op, stage.weight, stage.transposed, tuple(followers)))
        if read == (T, K):
            return _gated(tuple(stages), made.operands[0])
        followers = []
        before = maker(made.operands[0])
        if before is None or not _belongs(before) or any(kinds(before)):
            return None
        step = _follower(before, tuple(N if role == K else role for role in read))
        if step is None:
            return None
        followers = [step]


def _belongs(op: ir.Operation) -> bool:
    """Whether it is a generic of known sizes on f32 whose only result has one reader."""
    if op.name != "linalg.generic" or len(op.results) != 1 or len(list(op.results[0].uses)) != 1:
        return False
    kind = ir.RankedTensorType(op.results[0].type)
    return kind.has_static_shape and isinstance(kind.element_type, ir.F32Type)


def _total(op: ir.Operation) -> Follower | None:
    """The sum over experts: one loop is summed over, and the result's dimensions are the token and the column."""
    if op.name != "linalg.generic" or len(op.results) != 1 or sum(kinds(op)) != 1:
        return None
    written = [_loop(expr) for expr in maps(op)[-1].results]
    if len(written) != 2 or None in written or len(pit_axes(op)) != 3 or len(kinds(op)) != 3:
        return None
    block = body(op)
    accumulator = list(block.arguments)[-1]
    end = maker(terminator(op.regions[0]).operands[0])
    if end is None or end.name != "arith.addf" or not is_plain(block) or accumulator not in list(end.operands):
        return None
    loops = {kinds(op).index(True): E, written[0]: T, written[1]: N}
    return _step(op, {loop: role for loop, role in loops.items() if loop is not None})


def _follower(op: ir.Operation, roles: Roles) -> Follower | None:
    """An elementwise operation whose result has these roles."""
    written = [_loop(expr) for expr in maps(op)[-1].results]
    if None in written or len(pit_axes(op)) != len(written) or not is_plain(body(op), list(body(op).arguments)[-1]):
        return None
    return _step(op, {loop: role for loop, role in zip(written, roles, strict=True) if loop is not None and role})


def _step(op: ir.Operation, loops: dict[int, str]) -> Follower | None:
    inputs = maps(op)[:-1]
    roles = [_roles(access, loops) for access in inputs]
    known = [one for one in roles if one is not None]
    if len(known) != len(roles) or not all(_is_f32(value) for value in op.operands):
        return None
    for at, one in enumerate(known):
        made = maker(op.operands[at])
        if sorted(role or "" for role in one) == [E, N, T] and made is not None and _belongs(made):
            return Follower(op, at, tuple(known))
    return None


def _is_f32(value: ir.Value) -> bool:
    return isinstance(ir.RankedTensorType(value.type).element_type, ir.F32Type)


def _roles(access: ir.AffineMap, loops: dict[int, str]) -> Roles | None:
    found: list[str | None] = []
    for expr in access.results:
        loop = _loop(expr)
        if loop is not None and loop in loops:
            found.append(loops[loop])
        elif isinstance(expr, ir.AffineConstantExpr) and expr.value == 0:
            found.append(None)
        else:
            return None
    return tuple(found)


def _loop(expr: ir.AffineExpr) -> int | None:
    return expr.position if isinstance(expr, ir.AffineDimExpr) else None


def _product(op: ir.Operation, roles: Roles, weights: Weights) -> tuple[Stage, Roles] | None:
    """A product with a weight per expert, and the roles of what it reads."""
    if len(op.operands) != 3 or sum(kinds(op)) != 1 or len(kinds(op)) != 4 or not is_zeros(op.operands[2]):
        return None
    written = [_loop(expr) for expr in maps(op)[-1].results]
    loops = {loop: role for loop, role in zip(written, roles, strict=True) if loop is not None and role}
    loops[kinds(op).index(True)] = K
    read, held = (_roles(access, loops) for access in maps(op)[:2])
    weight = op.operands[1]
    fits = read in ((T, K), (E, T, K)) and held in ((E, K, N), (E, N, K))
    names = [inner.operation.name for inner in body(op).operations]
    if not fits or not read or names != ["arith.mulf", "arith.addf", "linalg.yield"] or not weights.only(weight):
        return None
    if not all(_is_f32(value) for value in op.operands):
        return None
    return Stage(op, weight, held == (E, N, K), ()), read


def _gated(stages: Sequence[Stage], tokens: ir.Value) -> Experts | None:
    """With the operand whose zeros make the sum leave a pair of an expert and a token out."""
    followers = stages[-1].followers
    for at, follower in enumerate(followers):
        for number, roles in enumerate(follower.roles):
            if roles in ((T, E), (E, T)) and _absorbs(followers[at:], number):
                return Experts(tokens, follower.op.operands[number], roles == (E, T), tuple(stages))
    return None


def _absorbs(followers: Sequence[Follower], number: int) -> bool:
    """Whether a zero of the first step's operand adds nothing to the sum that is the last step."""
    *steps, last = followers
    for step in steps:
        if not _is_zero_where(step.op, number):
            return False
        number = followers[followers.index(step) + 1].chained
    return annihilates(last.op, number)


def _is_zero_where(op: ir.Operation, operand: int) -> bool:
    known = [
        Known.all(np.zeros(1, np.float32)) if at == operand else Known.nothing(1, np.dtype(np.float32))
        for at in range(len(op.operands))
    ]
    return bool(evaluate(body(op), known, {}, 1)[0].zero[0])
