# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Moves what follows a branch into both of its sides, where it meets the product that it belongs to in registers."""

from __future__ import annotations

from tilewright.ir.generics import kinds, maker
from tilewright.ir.structure import captured
from tilewright.ir.views import RESHAPES
from tilewright.mlir import ir


def sink_users(branch: ir.Operation) -> ir.Operation:
    """Move elementwise operations and views that are the only users of an `scf.if` with one result into its regions.

    Where a region ends in an `scf.if` again, they go on into its regions.

    Returns:
        The `scf.if` that stands in its place.
    """
    user = _only_user(branch)
    while user is not None and _can_sink(user, branch):
        branch = _sink(user, branch)
        user = _only_user(branch)
    for region in branch.regions:
        for op in region.blocks[0].operations:
            if op.operation.name == "scf.if" and len(op.operation.results) == 1:
                sink_users(op.operation)
                break
    return branch


def _only_user(branch: ir.Operation) -> ir.Operation | None:
    uses = list(branch.results[0].uses)
    if len(uses) != 1 or uses[0].owner.operation.block != branch.block:
        return None
    return uses[0].owner.operation


def _can_sink(user: ir.Operation, branch: ir.Operation) -> bool:
    """Whether it makes one tensor, element by element, of this and of what is there before the branch."""
    if len(user.results) != 1 or not _is_simple(user):
        return False
    order = {op.operation: at for at, op in enumerate(branch.block.operations)}
    needed = [value for value in [*user.operands, *captured(user)] if value != branch.results[0]]
    makers = [maker(value) for value in needed]
    return all(
        one is None or one.block != branch.block or order[one] < order[branch] or _is_empty(one) for one in makers
    )


def _is_simple(user: ir.Operation) -> bool:
    if user.name in RESHAPES:
        return True
    return user.name == "linalg.generic" and not any(kinds(user))


def _is_empty(op: ir.Operation) -> bool:
    return op.name == "tensor.empty" and not op.operands


def _sink(user: ir.Operation, branch: ir.Operation) -> ir.Operation:
    for region in branch.regions:
        block = region.blocks[0]
        end = block.operations[len(block.operations) - 1].operation
        with ir.InsertionPoint(end):
            copy = user.clone()
        for at, operand in enumerate(user.operands):
            made = maker(operand)
            if operand == branch.results[0]:
                copy.operands[at] = end.operands[0]
            elif made is not None and _is_empty(made):
                copy.operands[at] = made.clone(ip=ir.InsertionPoint(copy)).results[0]
        end.operands[0] = copy.results[0]
    with ir.InsertionPoint(branch), branch.location:
        final = ir.Operation.create("scf.if", [user.results[0].type], [branch.operands[0]], regions=2)
    for source, target in zip(branch.regions, final.regions, strict=True):
        source.blocks[0].append_to(target)
    user.results[0].replace_all_uses_with(final.results[0])
    user.erase()
    branch.erase()
    return final
