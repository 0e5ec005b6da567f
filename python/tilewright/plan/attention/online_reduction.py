# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Finds the reductions of a task that one loop can run block by block.

What reads a reduction's result needs all of it: a softmax reads its row three times. Where the later operation is a
function of the result that can be corrected when the result changes, both run in one loop: terms exp(x - m) relative to
a maximum m become terms relative to n by the factor exp(m - n), and so does all that is linear in them (Milakov and
Gimelshein, "Online normalizer calculation for softmax", 2018; FlashAttention, Dao et al., 2022, section 3.1).
Reductions that do not depend on each other need no correction.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from tilewright.ir import decisions
from tilewright.ir.generics import constant_of
from tilewright.ir.structure import Access, LinalgOp
from tilewright.mlir import ir

_EXPONENTIALS = ("math.exp", "math.exp2")
#: What makes a tensor inside a task without being an operation of the chain: it is made whole, not in blocks.
_UNCUT = ("linalg.fill", "arith.constant", "tensor.pad")
_MAXIMA = ("arith.maximumf", "arith.maxnumf")


@dataclass
class Chain:
    """Operations of a task that run in blocks of one loop, and what follows on what they accumulate."""

    #: the loop of each operation that runs in blocks
    loops: dict[LinalgOp, int]
    accumulators: list[LinalgOp] = field(default_factory=list)
    #: operations that need a whole reduction
    after: list[LinalgOp] = field(default_factory=list)
    #: the maximum that the result of an operation is relative to
    relative: dict[LinalgOp, LinalgOp] = field(default_factory=dict)

    @property
    def extent(self) -> int:
        """Size of the loop."""
        op, loop = next(iter(self.loops.items()))
        return op.extents[loop]

    @property
    def open(self) -> bool:
        """Whether a run brings the size of the loop."""
        return any(loop in op.dynamic for op, loop in self.loops.items())

    def made(self) -> list[LinalgOp]:
        """Operations that make a block of a tensor at a time."""
        return [op for op in self.loops if op not in self.accumulators]


def find_chains(ops: Sequence[LinalgOp], growing: bool = False, open_sizes: bool = False) -> list[Chain]:
    """All chains among the operations of a task, in program order; the longest loop first.

    Args:
        ops: the operations.
        growing: more may join the task: what they are to read is no obstacle.
        open_sizes: sizes may be known at run time only, that of the loop among them; bodies may count the loop.
    """
    if not open_sizes and any(op.dynamic for op in ops):
        return []
    found = []
    for loops in _classes(ops):
        chain = _Builder(ops, loops, open_sizes).build(growing)
        if chain is not None:
            found.append(chain)
    return sorted(found, key=lambda c: -c.extent)


def _shared_loops(ops: Sequence[LinalgOp]) -> Iterable[tuple[LinalgOp, int, LinalgOp, int]]:
    """Pairs of loops that index the same dimension of a tensor, in its maker and in a reader.

    Also of a tensor that both a reduction and a reader of its result read.
    """
    makers = {op.result: op for op in ops}
    for op in ops:
        for access in op.inputs:
            maker = makers.get(access.value)
            if maker is None:
                continue
            for left, right in [(maker.output, access), *_common(maker, op)]:
                for made, read in zip(left.dims, right.dims, strict=True):
                    if made is not None and read is not None:
                        yield maker, made, op, read


def _common(maker: LinalgOp, reader: LinalgOp) -> list[tuple[Access, Access]]:
    """Where a reduction and a reader of its result read the same tensor."""
    if not maker.reductions:
        return []
    return [(a, b) for a in maker.inputs for b in reader.inputs if a.value == b.value]


def _classes(ops: Sequence[LinalgOp]) -> Iterable[dict[LinalgOp, int]]:
    """Loops that run over the same dimension, as tensors between the operations say: one per operation."""
    parent = {(op, loop): (op, loop) for op in ops for loop in range(op.rank)}

    def find(key: tuple[LinalgOp, int]) -> tuple[LinalgOp, int]:
        while parent[key] != key:
            key = parent[key]
        return key

    for maker, made, reader, read in _shared_loops(ops):
        parent[find((maker, made))] = find((reader, read))
    classes: dict[tuple[LinalgOp, int], list[tuple[LinalgOp, int]]] = {}
    for key in parent:
        classes.setdefault(find(key), []).append(key)
    for members in classes.values():
        reduces = any(loop in op.reductions for op, loop in members)
        if reduces and len({op for op, _ in members}) == len(members) > 1:
            yield dict(members)


class _Unfit(Exception):
    """The operations cannot run in blocks of this loop."""


class _Builder:
    """Goes through the operations of a task in program order."""

    def __init__(self, ops: Sequence[LinalgOp], loops: dict[LinalgOp, int], counting: bool) -> None:
        self.ops = ops
        self.counting = counting
        self.loops = loops
        self.makers = {op.result: op for op in ops}
        self.chain = Chain({})

    def build(self, growing: bool) -> Chain | None:
        """The chain, or None where these loops make none."""
        try:
            for op in self.ops:
                self._add(op)
            self._check_uses(growing)
        except _Unfit:
            return None
        chain = self.chain
        known = {loop in op.dynamic for op, loop in chain.loops.items()}
        return chain if chain.accumulators and chain.made() and len(known) == 1 else None

    def _add(self, op: LinalgOp) -> None:
        makers = [m for a in op.inputs if (m := self.makers.get(a.value)) is not None]
        if any(self._is_total(op, maker) for maker in makers):
            self.chain.after.append(op)
            return
        loop = self.loops.get(op)
        if loop is None:
            return
        if any(extent < 1 for extent in op.extents) or _packs(op, loop):
            raise _Unfit
        if op.tables or not _is_cut_plainly(op, loop) or (_counts(op, loop) and not self.counting):
            raise _Unfit
        tops = {self.chain.relative[m] for m in makers if m in self.chain.relative}
        tops |= {m for m in makers if m in self.chain.accumulators}
        self.chain.loops[op] = loop
        if loop in op.reductions:
            self._accumulate(op)
        if len(tops) > 1:
            raise _Unfit
        if tops:
            self._relate(op, tops.pop())

    def _is_total(self, op: LinalgOp, maker: LinalgOp) -> bool:
        """Whether `op` needs all of what `maker` accumulates, or follows on such an operation."""
        if maker in self.chain.after:
            return True
        if maker not in self.chain.accumulators:
            return False
        number = next(n for n, a in enumerate(op.inputs) if a.value == maker.result)
        return op not in self.loops or not is_maximum(maker) or not exponentials_of(op, number)

    def _accumulate(self, op: LinalgOp) -> None:
        start = op.output.value
        if isinstance(start, ir.BlockArgument) or start.owner.name != "linalg.fill" or not op.output.pure:
            raise _Unfit
        if constant_of(start.owner.operands[0]) is None or len(op.reductions) != 1 or combiner_of(op) is None:
            raise _Unfit
        self.chain.accumulators.append(op)

    def _relate(self, op: LinalgOp, top: LinalgOp) -> None:
        """`op` depends on the maximum `top`: it must be linear in exp(x - top)."""
        relative = {
            n
            for n, a in enumerate(op.inputs)
            if (m := self.makers.get(a.value)) is not None and self.chain.relative.get(m) is top
        }
        block = op.op.regions[0].blocks[0]
        last = block.operations[len(block.operations) - 1]
        powers: set[ir.Value] = set()
        for number, access in enumerate(op.inputs):
            if access.value == top.result:
                powers |= set(exponentials_of(op, number))
        value = last.operands[0]
        if op in self.chain.accumulators:
            combiner = combiner_of(op)
            if combiner is None or combiner[0] != "arith.addf" or constant_of(op.output.value.owner.operands[0]) != 0.0:
                raise _Unfit
            value = combiner[1]
        if _Linear(relative, powers).of(value) != "linear":
            raise _Unfit
        self.chain.relative[op] = top

    def _check_uses(self, growing: bool) -> None:
        """What is made in blocks is never whole: only what runs in blocks, too, may read it."""
        inside = {op.op for op in self.chain.loops}
        others = {op.op for op in self.ops} - inside
        for op in self.chain.made():
            users = {use.owner.operation for use in op.result.uses}
            if users & others or not (growing or users <= inside):
                raise _Unfit


def _is_cut_plainly(op: LinalgOp, loop: int) -> bool:
    """Whether each tensor is indexed by the loop alone, or not by it; what the task fills or pads itself is not cut."""
    flags = decisions.SKIP.get(op.op)
    for access in (*(a for n, a in enumerate(op.inputs) if n != flags), op.output):
        for dim, uses in zip(access.dims, access.uses, strict=True):
            if loop in uses and dim != loop:
                return False
        value = access.value
        made = not isinstance(value, ir.BlockArgument) and value.owner.name in _UNCUT
        if made and access is not op.output and loop in access.loops:
            return False
    return True


def _packs(op: LinalgOp, loop: int) -> bool:
    """Whether an operand that the loop indexes is to be laid out in blocks."""
    if not decisions.LAYOUTS.on(op.op):
        return False
    kinds = list(op.op.attributes[decisions.LAYOUTS])
    return any(loop in a.loops and "inner" in str(k) for a, k in zip(op.inputs, kinds, strict=False))


def _counts(op: LinalgOp, loop: int) -> bool:
    """Whether the body uses the number of the iteration."""
    return any(
        inner.operation.name == "linalg.index" and ir.IntegerAttr(inner.operation.attributes["dim"]).value == loop
        for inner in op.op.regions[0].blocks[0].operations
    )


def combiner_of(op: LinalgOp) -> tuple[str, ir.Value] | None:
    """Name and term where the body is combiner(accumulator, term)."""
    block = op.op.regions[0].blocks[0]
    last = block.operations[len(block.operations) - 1].operands[0]
    if isinstance(last, ir.BlockArgument) or len(last.owner.operands) != 2:
        return None
    accumulator = block.arguments[len(op.inputs)]
    left, right = last.owner.operands
    if (left == accumulator) == (right == accumulator):
        return None
    return last.owner.name, right if left == accumulator else left


def is_maximum(op: LinalgOp) -> bool:
    """Whether an operation reduces by taking maxima."""
    combiner = combiner_of(op)
    return combiner is not None and combiner[0] in _MAXIMA


def exponentials_of(op: LinalgOp, number: int) -> list[ir.Value]:
    """The value F(x - a) of the body, F an exponential, where a, input `number`, is used nowhere else."""
    argument = op.op.regions[0].blocks[0].arguments[number]
    uses = list(argument.uses)
    if len(uses) != 1 or uses[0].owner.operation.name != "arith.subf" or uses[0].operand_number != 1:
        return []
    after = list(uses[0].owner.operation.results[0].uses)
    if len(after) != 1 or after[0].owner.operation.name not in _EXPONENTIALS:
        return []
    return [after[0].owner.operation.results[0]]


class _Linear:
    """Whether a scalar of a body is linear in some inputs and powers: "free" of them, "linear", or "other".

    Args:
        inputs: numbers of the inputs.
        powers: values F(x - a), F an exponential, which are linear in themselves where x is free.
    """

    def __init__(self, inputs: set[int], powers: set[ir.Value]) -> None:
        self.inputs = inputs
        self.powers = powers

    def of(self, value: ir.Value) -> str:
        if value in self.powers:
            exponent = value.owner.operands[0].owner.operands[0]
            return "linear" if self.of(exponent) == "free" else "other"
        if isinstance(value, ir.BlockArgument):
            return "linear" if value.arg_number in self.inputs else "free"
        kinds = [self.of(v) for v in value.owner.operands]
        if all(kind == "free" for kind in kinds):
            return "free"
        if "other" in kinds:
            return "other"
        return "linear" if self._keeps(value.owner, kinds) else "other"

    @staticmethod
    def _keeps(op: ir.Operation, kinds: list[str]) -> bool:
        if op.name == "arith.mulf":
            return kinds.count("linear") == 1
        if op.name == "arith.divf":
            return kinds == ["linear", "free"]
        if op.name in ("arith.truncf", "arith.extf"):
            return True  # but for rounding
        if op.name == "arith.select":
            zero = [k == "linear" or constant_of(v) == 0.0 for k, v in zip(kinds, op.operands, strict=True)]
            return kinds[0] == "free" and all(zero[1:])
        return op.name == "arith.negf" or (op.name in ("arith.addf", "arith.subf") and "free" not in kinds)
