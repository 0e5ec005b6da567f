# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which operations work token by token: they read, of all that has tokens, only the token whose result they make.

Dimensions of values get roles: the batch, the place in the sentence, or both in one. They begin at inputs as large as
the mask, and follow loops: a loop along which an operand has a role has it, and so has the result along this loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.ir.generics import body, kinds, loops_of, maker, maps, place_of, positions
from tilewright.ir.structure import captured
from tilewright.ir.views import RESHAPES, groups_of
from tilewright.mlir import ir

BATCH, PLACE, BOTH, NONE = "batch", "place", "both", ""
#: Roles of a value's first dimensions whose rows are tokens.
LEADS = ((BATCH, PLACE), (BOTH,))

Roles = tuple[str, ...]


@dataclass(frozen=True)
class Step:
    """A generic that works token by token.

    Attributes:
        op: the generic.
        loops: its loops over tokens: of batch and place, or of both in one.
        reads: for each input "token" (its first dimensions are those loops), "place" (its first is the place alone) or
            "" (it has nothing to do with tokens).
        product: whether it is a sum of products with something that has nothing to do with tokens.
    """

    op: ir.Operation
    loops: tuple[int, ...]
    reads: tuple[str, ...]
    product: bool


class Tokens:
    """What a function's operations have to do with tokens.

    Attributes:
        block: what was looked at.
        sizes: of the batch, and of the longest sentence.
        roles: of the dimensions of values.
        steps: operations that work token by token, in order.
        views: other shapes of what has tokens first, by operation.
    """

    def __init__(self, block: ir.Block, sizes: tuple[int, int]) -> None:
        """Look at each operation of a function's block, in order."""
        self.block = block
        self.sizes = sizes
        self.roles: dict[ir.Value, Roles] = {}
        self.steps: dict[ir.Operation, Step] = {}
        self.views: set[ir.Operation] = set()
        for argument in block.arguments:
            if isinstance(argument.type, ir.RankedTensorType):
                shape = list(argument.type.shape)
                if tuple(shape[:2]) == sizes:
                    self.roles[argument] = (BATCH, PLACE, *[NONE] * (len(shape) - 2))
        for op in block.operations:
            self._visit(op.operation)

    def lead(self, value: ir.Value) -> int:
        """How many dimensions of a value stand for its tokens; 0 where it does not begin with them."""
        return _lead(self.roles.get(value, ()))

    def _visit(self, op: ir.Operation) -> None:
        if op.name == "linalg.generic" and len(op.results) == 1:
            self._visit_generic(op)
        elif op.name in RESHAPES:
            roles = self._seen(op)
            if any(roles):
                self.roles[op.results[0]] = roles
            if _lead(roles) and self.lead(op.operands[0]):
                self.views.add(op)

    def _visit_generic(self, op: ir.Operation) -> None:
        loops = self._roles_of_loops(op)
        written = maps(op)[-1]
        if not loops or not written.is_projected_permutation:
            return
        own = tuple(loops.get(d, NONE) for d in positions(written))
        if any(own):
            self.roles[op.results[0]] = own
        lead = _lead(own)
        step = self._step(op, tuple(positions(written)[:lead])) if lead else None
        if step is not None:
            self.steps[op] = step

    def _roles_of_loops(self, op: ir.Operation) -> dict[int, str]:
        """The role of each loop: that of a dimension that it runs over; none where they differ."""
        found: dict[int, set[str]] = {}
        for value, access in zip(op.operands, maps(op), strict=True):
            for role, expr in zip(self.roles.get(value, ()), access.results, strict=False):
                if role and isinstance(expr, ir.AffineDimExpr):
                    found.setdefault(expr.position, set()).add(role)
        return {loop: next(iter(roles)) for loop, roles in found.items() if len(roles) == 1}

    def _step(self, op: ir.Operation, loops: tuple[int, ...]) -> Step | None:
        """The generic as a step; None where it reads other tokens, or asks which one it makes."""
        reads = [self._read(op, at, loops) for at in range(len(op.operands) - 1)]
        if None in reads or place_of(op) is None or any(kinds(op)[loop] for loop in loops):
            return None
        if any(self.roles.get(value) for value in captured(op)) or asks(op, loops):
            return None
        kept = tuple(read for read in reads if read is not None)
        product = sorted(kept) == ["", "token"] and any(kinds(op))
        return Step(op, loops, kept, product) if "token" in kept else None

    def _read(self, op: ir.Operation, at: int, loops: tuple[int, ...]) -> str | None:
        """What an input is to a step, as in :class:`Step`; None where it is none of it."""
        access, value = maps(op)[at].results, op.operands[at]
        used = frozenset().union(*map(loops_of, access)) & set(loops)
        if not used:
            return "" if not any(self.roles.get(value, ())) else None
        lead = len(loops)
        if self.lead(value) == lead and _begins(access, loops):
            return "token"
        shape, place = ir.RankedTensorType(value.type).shape, loops[-1:]
        alone = lead == 2 or self.sizes[0] == 1  # one sentence: its tokens are places
        if alone and shape[0] == self.sizes[1] and _begins(access, place) and used == set(place):
            return "place" if not any(self.roles.get(value, ())) else None
        return None

    def _seen(self, op: ir.Operation) -> Roles:
        """Roles of a tensor's dimensions in another shape: batch and place may be joined to both, and split again."""
        source = self.roles.get(op.operands[0], ())
        shapes = [list(ir.RankedTensorType(value.type).shape) for value in (op.operands[0], op.results[0])]
        if not source or min(shapes[0] + shapes[1], default=0) < 0:
            return ()
        found: list[str] = []
        for at, group in enumerate(groups_of(op.attributes["reassociation"])):
            if op.name == "tensor.collapse_shape":
                found.append(_joined([source[d] for d in group]))
            else:
                found += _split(source[at], [shapes[1][d] for d in group], self.sizes)
        return tuple(found)


def _lead(roles: Sequence[str]) -> int:
    for lead in LEADS:
        if tuple(roles[: len(lead)]) == lead and not any(roles[len(lead) :]):
            return len(lead)
    return 0


def _begins(access: Sequence[ir.AffineExpr], loops: Sequence[int]) -> bool:
    """Whether the first dimensions are indexed by these loops, and no others by them."""
    first, rest = access[: len(loops)], access[len(loops) :]
    bare = all(isinstance(e, ir.AffineDimExpr) and e.position == d for e, d in zip(first, loops, strict=True))
    return bare and not frozenset().union(*map(loops_of, rest)) & set(loops)


def asks(op: ir.Operation, loops: Sequence[int]) -> bool:
    """Whether a body uses the number of its token, or has parts that are not looked at."""
    for one in body(op).operations:
        inner = one.operation
        if inner.name == "linalg.index" and ir.IntegerAttr(inner.attributes["dim"]).value in loops:
            return True
        if len(inner.regions):
            return True
    return False


def _joined(roles: Sequence[str]) -> str:
    if len(roles) == 1:
        return roles[0]
    return BOTH if tuple(roles) == (BATCH, PLACE) else NONE


def _split(role: str, shape: Sequence[int], sizes: tuple[int, int]) -> list[str]:
    if len(shape) == 1:
        return [role]
    if role == BOTH and tuple(shape) == sizes:
        return [BATCH, PLACE]
    return [NONE] * len(shape)


def packed_steps(tokens: Tokens) -> tuple[set[ir.Operation], set[ir.Operation]]:
    """The steps and views that a product of tokens depends on or that depend on one; and the latter alone.

    What leads to a product may also be read by others (a mask is, by attention): those read it as it was. What follows
    from a product is made for packed tokens only.
    """
    after = {op for op, step in tokens.steps.items() if step.product}
    if not after:
        return set(), set()
    order = sorted_ops(tokens)
    for op in order:
        if any(maker(value) in after for value in _token_operands(tokens, op)):
            after.add(op)
    both = set(after)
    for op in reversed(order):
        if op in both:
            both |= {
                one for one in map(maker, _token_operands(tokens, op)) if one in tokens.steps or one in tokens.views
            }
    return both, after


def sorted_ops(tokens: Tokens) -> list[ir.Operation]:
    """Steps and views in the order of their block."""
    members = {*tokens.steps, *tokens.views}
    if not members:
        return []
    block = next(iter(members)).block
    return [op.operation for op in block.operations if op.operation in members]


def _token_operands(tokens: Tokens, op: ir.Operation) -> list[ir.Value]:
    if op in tokens.views:
        return [op.operands[0]]
    return [value for value, read in zip(op.operands, tokens.steps[op].reads, strict=False) if read == "token"]
