# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Which steps of a chain's loop change nothing, since constants mask them.

An element that is replaced by, or added to, a number below all others adds exp(-inf) = 0 to sums that are relative to
its row's maximum. Where constants say so for all rows of a task, the task's loop starts later or ends earlier. Rows of
which every element is masked see all elements: there is no maximum above the mask's value. (Scores so low that they
are no larger than the mask's value themselves, below -1e38, are taken for masked, too. What skipped steps would
multiply by these zeros is not read: an infinite or undefined value there does not make the result undefined.)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tilewright.ir.generics import constant_of
from tilewright.ir.structure import Access, LinalgOp
from tilewright.mlir import ir
from tilewright.passes.weights import known_array
from tilewright.plan.attention.online_reduction import Chain, is_maximum

#: Numbers below all scores.
LOW = -1e38
#: Elements of a mask that are looked at.
_MOST = 1 << 27


# Names, not functions: numpy is loaded when a mask is looked at.
_COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
CONVERSIONS = ("arith.extf", "arith.truncf")
_FUNCTIONS = {
    "arith.andi": "bitwise_and",
    "arith.ori": "bitwise_or",
    "arith.xori": "bitwise_xor",
    "arith.addi": "add",
    "arith.subi": "subtract",
    "arith.muli": "multiply",
}


def _lowest(array: np.ndarray) -> float:
    """What is below all scores in an array: of 16 bits, infinity alone."""
    return -np.inf if array.dtype.kind == "f" and array.dtype.itemsize < 4 else LOW


class Mask:
    """What the constants that an operation reads say of its result, per row and step."""

    def __init__(self, op: LinalgOp, step: int) -> None:
        """`step` is the loop that runs in blocks."""
        self.op = op
        self.step = step
        self.row = self._row()
        block = op.op.regions[0].blocks[0]
        self.result = block.operations[len(block.operations) - 1].operands[0]

    def _row(self) -> int | None:
        """The other loop that constants depend on, if there is one and only one."""
        constants = [a for a in self.op.inputs if is_constant(a.value)]
        loops = {d for a in constants for d in a.loops if self.op.extents[d] > 1}
        loops.discard(self.step)
        return loops.pop() if len(loops) == 1 else None

    def live(self) -> np.ndarray | None:
        """Where the result is no number below all others: [rows, steps]."""
        if self.row is None or self.op.extents[self.row] * self.op.extents[self.step] > _MOST:
            return None
        dead = self._dead(self.result)
        if not dead.any():
            return None
        shape = (self.op.extents[self.row], self.op.extents[self.step])
        live = ~np.broadcast_to(dead, shape)
        return live | ~live.any(axis=1, keepdims=True)

    def _dead(self, value: ir.Value) -> np.ndarray:
        number = constant_of(value)
        if number is not None:
            return np.array([[number <= LOW]])
        if isinstance(value, ir.BlockArgument):
            array = self._argument(value)
            return np.array([[False]]) if array is None else array <= _lowest(array)
        op = value.owner
        if op.name == "arith.select":
            yes, no = self._dead(op.operands[1]), self._dead(op.operands[2])
            condition = self._value(op.operands[0])
            return self._chosen(op, yes & no) if condition is None else np.where(condition.astype(bool), yes, no)
        if op.name == "arith.addf":
            return self._dead(op.operands[0]) | self._dead(op.operands[1])
        if op.name in CONVERSIONS:
            return self._dead(op.operands[0])
        return np.array([[False]])

    def _chosen(self, select: ir.Operation, dead: np.ndarray) -> np.ndarray:
        """Where a choice that a run takes part in is masked: where constants alone choose -inf.

        A row of which a run masks the rest has no number then, however many steps it sees. With a finite number in
        the place of -inf, its exponentials would be those of all steps.
        """
        for wanted, value in zip((True, False), list(select.operands)[1:], strict=True):
            if constant_of(value) == -np.inf:
                dead = dead | self._surely(select.operands[0], wanted)
        return dead

    def _surely(self, condition: ir.Value, wanted: bool) -> np.ndarray:
        """Where a condition is `wanted`, whatever a run brings."""
        known = self._value(condition)
        if known is not None:
            return known.astype(bool) == wanted
        op = None if isinstance(condition, ir.BlockArgument) else condition.owner
        if op is None or op.name not in ("arith.andi", "arith.ori"):
            return np.array([[False]])
        left, right = (self._surely(v, wanted) for v in op.operands)
        return left & right if (op.name == "arith.andi") == wanted else left | right

    def _value(self, value: ir.Value) -> np.ndarray | None:
        """A scalar of the body for all rows and steps, where constants determine it."""
        number = constant_of(value)
        if number is not None:
            return np.array([[number]])
        if isinstance(value, ir.BlockArgument):
            return self._argument(value)
        op = value.owner
        operands = [self._value(v) for v in op.operands]
        if any(v is None for v in operands):
            return None
        if op.name == "arith.cmpi":
            predicate = ir.IntegerAttr(op.attributes["predicate"]).value
            name = _COMPARISONS[predicate] if predicate < len(_COMPARISONS) else None
        else:
            name = _FUNCTIONS.get(op.name)
        return None if name is None else getattr(np, name)(*operands)

    def _argument(self, value: ir.BlockArgument) -> np.ndarray | None:
        if value.arg_number >= len(self.op.inputs):
            return None
        access = self.op.inputs[value.arg_number]
        array = known_array(access.value) if is_constant(access.value) else None
        if array is None or array.dtype.kind not in "biuf":
            return None
        return self._by_row(access, array)

    def _by_row(self, access: Access, array: np.ndarray) -> np.ndarray | None:
        """The array as [rows or 1, steps or 1]."""
        order = []
        for dim, uses, size in zip(access.dims, access.uses, array.shape, strict=True):
            if size > 1 and dim not in (self.row, self.step):
                return None
            if uses and dim is None:
                return None
            order.append(dim)
        kept = [d for d, size in zip(order, array.shape, strict=True) if size > 1]
        array = array.reshape([size for size in array.shape if size > 1])
        if kept == [self.step, self.row]:
            return array.T
        if kept == [self.row]:
            return array[:, None]
        return array[None, :] if kept == [self.step] else array.reshape([1, 1]) if not kept else array


def is_constant(value: ir.Value) -> bool:
    """Whether a tensor is a constant or a weight, in another shape or not."""
    while not isinstance(value, ir.BlockArgument) and value.owner.name in (
        "tensor.collapse_shape",
        "tensor.expand_shape",
    ):
        value = value.owner.operands[0]
    return not isinstance(value, ir.BlockArgument) and value.owner.name in (
        "ml_program.global_load_const",
        "arith.constant",
    )


def masks_of(chain: Chain) -> Iterator[tuple[LinalgOp, Mask]]:
    """What constants say of scores."""
    for op in scores_of(chain, before=True):
        yield op, Mask(op, chain.loops[op])


def scores_of(chain: Chain, before: bool = False) -> Iterator[LinalgOp]:
    """The operations of a chain whose result is only read as x in maxima of x and exp(x - maximum).

    Args:
        chain: the operations.
        before: rounded or not: what is rounded, not what rounds.
    """
    for op in chain.made():
        if before and not _converts(op) and _is_score(op, chain):
            yield op
        elif not before and _is_score(op, chain) and not any(_converts(r) for r in _readers(op, chain)):
            yield op


def _readers(op: LinalgOp, chain: Chain) -> list[LinalgOp]:
    return [r for r in chain.loops if any(a.value == op.result for a in r.inputs)]


def _is_score(op: LinalgOp, chain: Chain) -> bool:
    readers = _readers(op, chain)
    return bool(readers) and all(_is_score(r, chain) if _converts(r) else _is_exponent(r, op, chain) for r in readers)


def _converts(op: LinalgOp) -> bool:
    """Whether an operation only rounds or widens each element."""
    operations = op.op.regions[0].blocks[0].operations
    return not op.reductions and len(operations) == 2 and operations[0].operation.name in CONVERSIONS


def _wide_uses(value: ir.Value) -> Iterator[ir.OpOperand]:
    """The uses of a scalar, those of what only widens it in the place of the widening."""
    for use in value.uses:
        wider = use.owner.operation
        yield from wider.results[0].uses if wider.name == "arith.extf" else [use]


def _is_exponent(reader: LinalgOp, op: LinalgOp, chain: Chain) -> bool:
    if reader in chain.accumulators and is_maximum(reader):
        return True
    if reader not in chain.relative:
        return False
    block = reader.op.regions[0].blocks[0]
    for number, access in enumerate(reader.inputs):
        if access.value != op.result:
            continue
        for use in _wide_uses(block.arguments[number]):
            if use.owner.operation.name != "arith.subf" or use.operand_number != 0:
                return False
            after = [u.owner.operation.name for u in use.owner.operation.results[0].uses]
            if any(name not in ("math.exp", "math.exp2") for name in after):
                return False
    return True


def live_blocks(live: np.ndarray, rows: int, block: int) -> list[tuple[int, int]]:
    """Per task of `rows` rows, the steps from which to which whole blocks are live somewhere."""
    steps = live.shape[1] // block * block
    found = []
    for start in range(0, live.shape[0], rows):
        seen = np.flatnonzero(live[start : start + rows, :steps].any(axis=0))
        first, last = (int(seen[0]), int(seen[-1]) + 1) if seen.size else (0, 0)
        found.append((first // block * block, -(-last // block) * block))
    return found


def stretches(bounds: list[tuple[int, int]]) -> list[int]:
    """The bounds of all tasks as stretches in which they grow evenly: first task, start, growth, end, growth."""
    result: list[int] = []
    first = 0
    while first < len(bounds):
        (low, high), last = bounds[first], first + 1
        steps = (0, 0)
        if last < len(bounds):
            steps = (bounds[last][0] - low, bounds[last][1] - high)
        while last < len(bounds) and bounds[last] == (
            low + steps[0] * (last - first),
            high + steps[1] * (last - first),
        ):
            last += 1
        result += [first, low, steps[0], high, steps[1]]
        first = last
    return result
