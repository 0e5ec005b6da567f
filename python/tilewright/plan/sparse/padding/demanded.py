# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which dimensions are places since all that reads them says so: a mask that is the same for all queries has them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tilewright.ir.generics import maps, uses
from tilewright.mlir import ir
from tilewright.plan.sparse.padding.tokens import BOTH, NONE, PLACE, Tokens

Roles = Mapping[ir.Value, Sequence[str]]


def demanded_roles(tokens: Tokens) -> Roles:
    """The roles of dimensions, with those that readers alone tell."""
    lone = tokens.sizes[0] == 1  # the tokens of one sentence are its places
    roles: dict[ir.Value, Sequence[str]] = {
        value: tuple(PLACE if lone and role == BOTH else role for role in own) for value, own in tokens.roles.items()
    }
    for op in reversed([one.operation for one in tokens.block.operations]):
        if op.name != "linalg.generic" or len(op.results) != 1 or not any(roles.get(op.results[0], ())):
            continue
        if op in tokens.steps:  # packed by rows: its other dimensions stay whole, such as scores of products
            continue
        result = op.results[0]
        own = list(roles[result])
        readers = list(uses(result))
        for dim, role in enumerate(own):
            if role == NONE and readers and all(_reads_place(user, at, dim, roles) for user, at in readers):
                own[dim] = PLACE
        roles[result] = tuple(own)
    return roles


def loop_roles(op: ir.Operation, roles: Roles) -> dict[int, str]:
    """The role of each loop of a generic that has one; none where dimensions differ."""
    found: dict[int, set[str]] = {}
    for loop, role in _indexed(op, roles):
        found.setdefault(loop, set()).add(role)
    return {loop: next(iter(told)) for loop, told in found.items() if len(told) == 1}


def _indexed(op: ir.Operation, roles: Roles) -> Iterator[tuple[int, str]]:
    """Loops with the roles of dimensions that they alone index, of operands and the result."""
    values = [*list(op.operands)[:-1], op.results[0]]
    for value, access in zip(values, maps(op), strict=True):
        for role, expr in zip(roles.get(value, ()), access.results, strict=False):
            if role and isinstance(expr, ir.AffineDimExpr):
                yield expr.position, role


def _reads_place(user: ir.Operation, at: int, dim: int, roles: Roles) -> bool:
    """Whether a generic reads a dimension along a loop over places."""
    if user.name != "linalg.generic" or len(user.results) != 1 or at + 1 == len(user.operands):
        return False
    expr = maps(user)[at].results[dim]
    return isinstance(expr, ir.AffineDimExpr) and loop_roles(user, roles).get(expr.position) == PLACE
