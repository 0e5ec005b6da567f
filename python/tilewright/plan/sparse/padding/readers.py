# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Whether what stands at padding is read by anyone: the proof that packed tokens leave results as they are.

A mask [batch, places] is zero at padding. Its readers say what that means: a number below all scores where a key is
hidden, a zero that pools nothing. Facts on numbers at padding follow the maps of operations; where a loop sums or
takes a maximum over places, what padding brings must leave the accumulator as it came. What leaves no result changed
needs nobody's word that padding is not read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass, field

import numpy as np

from tilewright.ir.generics import body, constant_of, dims_of, kinds, maker, maps, positions
from tilewright.ir.structure import captured
from tilewright.ir.views import RESHAPES, groups_of
from tilewright.mlir import ir
from tilewright.passes.weights import known_array
from tilewright.plan.sparse.padding.norms import Norms
from tilewright.plan.sparse.padding.scalars import KEPT, LOST, UNKNOWN, USUAL, Scalar, Trust, evaluate, largest
from tilewright.plan.sparse.padding.tokens import Tokens

#: Elements of a constant that are looked at.
_MOST = 1 << 22
#: The share of places that may be read as they are, each in all sentences.
_FEW = 8
_MAXIMA = ("arith.maximumf", "arith.maxnumf")

Pair = tuple[int, ...]
"""Dimensions of a value, or loops, of a batch and a place in it; or the one that is both."""


class Unproved(Exception):
    """Padding may be read. The text says by whom."""


@dataclass(frozen=True)
class Fact:
    """Numbers along a pair of dimensions.

    Attributes:
        dead: at padding.
        real: at tokens whose mask is 1.
    """

    dead: Scalar
    real: Scalar


@dataclass
class State:
    """What is known of a value's elements.

    Attributes:
        base: anywhere, but at padding.
        facts: by the dimensions that say where padding is.
        apart: the dimension of sentences, where bounds hold for those with padding alone, of which none is without a
            token, and there may be others in the batch.
    """

    base: Scalar = UNKNOWN
    facts: dict[Pair, Fact] = field(default_factory=dict)
    apart: int | None = None

    @property
    def changed(self) -> bool:
        """Whether leaving padding out changes it somewhere."""
        return any(fact.dead.trust is not Trust.SAME for fact in self.facts.values())


class Readers:
    """Follows what stands at padding through a function.

    Attributes:
        hidden: whether the mask hid tokens from a loop over places.
        near: whether it did, or its numbers were not low enough to: it is a mask of padding.
        places: which are read in all sentences, padding or not.
        kept: loops over places in which padding leaves the accumulator as it came, each with its operation.
    """

    def __init__(self, tokens: Tokens, mask: ir.Value, packed: Set[ir.Operation], norms: Norms | None = None) -> None:
        """`packed` are the operations that are not carried out for padding, which reads as zeros.

        `norms` bound scores where numbers are as the model has them.
        """
        self.tokens = tokens
        self.packed = packed
        self.hidden = self.near = False
        self.places: set[int] = set()
        self.kept: set[tuple[ir.Operation, int]] = set()
        self._norms = norms
        self._shift: float | None = None
        self._lowers = False
        told = Fact(Scalar.exactly(0), Scalar.exactly(1))
        self._states: dict[ir.Value, State] = {mask: State(facts={(0, 1): told})}

    def prove(self, block: ir.Block) -> None:
        """Raises Unproved where padding may be read."""
        for op in block.operations:
            self._visit(op.operation)

    def state(self, value: ir.Value) -> State:
        """What is known of a value."""
        if value not in self._states:
            self._states[value] = State(_bounds(value))
        return self._states[value]

    def _visit(self, op: ir.Operation) -> None:
        if op.name == "linalg.generic" and len(op.results) == 1:
            self._states[op.results[0]] = self._generic(op)
        elif op.name in RESHAPES:
            self._states[op.results[0]] = self._view(op)
        elif op.name == "tensor.extract_slice":
            self._states[op.results[0]] = self._slice(op)
        else:
            for value in [*op.operands, *captured(op)]:
                if self.state(value).changed:
                    raise Unproved("a result has it" if op.name == "func.return" else f"{op.name} reads it")

    def _generic(self, op: ir.Operation) -> State:
        if any(self.state(value).changed for value in captured(op)):
            raise Unproved("a table that is read by index has it")
        inputs = list(op.operands)[:-1]
        facts = [self._along(op, value, access) for value, access in zip(inputs, maps(op), strict=False)]
        loops = [self._sentences(value, access) for value, access in zip(inputs, maps(op), strict=False)]
        apart = {loop for value, loop in zip(inputs, loops, strict=True) if self.state(value).apart is not None}
        mixes = any(kinds(op)) or len(apart) > 1 or None in apart  # perhaps what sentences of different kinds have
        state = State(self._result(op, [self._base(value, mixes) for value in inputs]))
        state.apart = None if mixes else next((_written(op, loop) for loop in apart), None)
        for pair in dict.fromkeys(pair for found in facts for pair in found):
            bases = [self._base(value, loop != pair[0]) for value, loop in zip(inputs, loops, strict=True)]
            sides = [
                [
                    getattr(found[pair], side) if pair in found else base
                    for found, base in zip(facts, bases, strict=True)
                ]
                for side in ("dead", "real")
            ]
            self._follow(op, state, pair, *sides)
        if op in self.packed:
            self._blank(state, tuple(range(self.tokens.lead(op.results[0]))))
        return state

    def _base(self, value: ir.Value, mixes: bool) -> Scalar:
        """What is known of a value anywhere; `mixes`: perhaps of another sentence than the one that is looked at."""
        state = self.state(value)
        return UNKNOWN if mixes and state.apart is not None else state.base

    def _sentences(self, value: ir.Value, access: ir.AffineMap) -> int | None:
        """The loop over the sentences that bounds of an input are of; None where no loop is that, or all have them."""
        apart = self.state(value).apart
        if apart is None or not isinstance(expr := access.results[apart], ir.AffineDimExpr):
            return None
        return ir.AffineDimExpr(expr).position

    def _along(self, op: ir.Operation, value: ir.Value, access: ir.AffineMap) -> dict[Pair, Fact]:
        """The facts of an input, by loops."""
        found: dict[Pair, Fact] = {}
        for pair, fact in self.state(value).facts.items():
            exprs = [access.results[d] for d in pair]
            if all(isinstance(e, ir.AffineDimExpr) for e in exprs):
                found[tuple(e.position for e in exprs)] = fact
            elif fact.dead.trust is not Trust.SAME:
                last = exprs[-1]
                self._read(pair, [last.value] if isinstance(last, ir.AffineConstantExpr) else None)
        return found

    def _read(self, pair: Pair, places: Sequence[int] | None) -> None:
        """Note that some places of each sentence are read."""
        size = self.tokens.sizes[1]
        if places is None or (len(pair) == 1 and self.tokens.sizes[0] > 1):
            raise Unproved("it is read in another order")
        self.places.update(places)
        if len(self.places) * _FEW > size:
            raise Unproved(f"{len(self.places)} of {size} places are read in all sentences")

    def _follow(
        self, op: ir.Operation, state: State, pair: Pair, dead: Sequence[Scalar], real: Sequence[Scalar]
    ) -> None:
        """What becomes of padding along a pair of loops."""
        reduced = [kinds(op)[loop] for loop in pair]
        changed = any(one.trust is not Trust.SAME for one in dead)
        if not any(reduced):
            written = positions(maps(op)[-1])
            place = tuple(written.index(loop) for loop in pair)
            state.facts[place] = Fact(self._result(op, dead), self._result(op, real))
            self._note(state.facts[place])
        elif reduced[-1]:
            floor = _floor(op, real)
            if evaluate(body(op), [*dead, Scalar(kept=True, floor=floor)]).kept:
                self.hidden |= changed
                self.near |= changed
                self.kept.add((op, pair[-1]))
                self._bound(op, state, pair, floor)
            elif changed:
                raise Unproved(self._told(op))
        elif changed:
            raise Unproved("it is mixed with tokens of other sentences")

    def _result(self, op: ir.Operation, arguments: Sequence[Scalar]) -> Scalar:
        return _result(op, arguments, self._norms.product(op) if self._norms and any(kinds(op)) else math.inf)

    def _bound(self, op: ir.Operation, state: State, pair: Pair, floor: float) -> None:
        """Note the least that a loop over places gives for each sentence that has padding and tokens."""
        single = self.tokens.sizes[0] == 1  # the one that is looked at, whichever loops read it
        at = _written(op, pair[0])
        if single or (at is not None and len(pair) > 1 and state.apart in (None, at)):
            state.base = Scalar(max(state.base.low, floor), state.base.high, state.base.trust)
            state.apart = None if single else at

    def _note(self, fact: Fact) -> None:
        """Note the number that a mask has at padding, 0 at most elsewhere, and whether it is 0 there."""
        if fact.dead.known and fact.dead.high < 0 == fact.real.high and fact.dead.trust is Trust.SAME:
            self._lowers = True
            self._shift = fact.dead.low if fact.real.zero else self._shift

    def _told(self, op: ir.Operation) -> str:
        """Why a loop over places sees padding."""
        last = maker(body(op).operations[len(body(op).operations) - 1].operands[0])
        if self.hidden or not self._lowers:
            return "a loop over places reads it, and no mask hides it"
        self.near = True
        if self._shift is None:
            return "its mask has a condition beside padding, by which a row may see no token"
        if last is not None and last.name in _MAXIMA:
            return f"what its mask adds to scores, {self._shift:.3g}, hides none for sure"
        return f"its mask's number, {self._shift:.3g}, is no maximum's to leave out"

    def _blank(self, state: State, tokens: Pair) -> None:
        """Let a packed operation's result at padding be zero, which is what the model has there or is not."""
        fact = state.facts.get(tokens)
        if fact is None or not fact.dead.zero:
            held = UNKNOWN if fact is None else fact.dead  # in the model, such as the number of a mask
            most = max(abs(end) for end in (USUAL, held.low, held.high) if held.known or math.isfinite(end))
            real = state.base if state.apart in (None, tokens[0]) else UNKNOWN
            state.facts[tokens] = Fact(Scalar(-most, most, Trust.BLANK), real if fact is None else fact.real)

    def _view(self, op: ir.Operation) -> State:
        source = self.state(op.operands[0])
        groups = groups_of(op.attributes["reassociation"])
        shapes = [list(ir.RankedTensorType(value.type).shape) for value in (op.operands[0], op.results[0])]

        def seen_as(dims: Pair) -> Pair | None:
            if op.name == "tensor.collapse_shape":
                return _collapsed(dims, groups, shapes[0])
            return _expanded(dims, groups, shapes[1], self.tokens.sizes)

        state = State(source.base)
        if source.apart is not None:
            sentences = seen_as((source.apart,))
            state = State() if sentences is None else State(source.base, apart=sentences[0])
        for pair, fact in source.facts.items():
            seen = seen_as(pair)
            if seen is not None:
                state.facts[seen] = fact
            elif fact.dead.trust is not Trust.SAME:
                raise Unproved("its places are no dimension of a tensor in another shape")
        return state

    def _slice(self, op: ir.Operation) -> State:
        source = self.state(op.operands[0])
        state = State(self._base(op.operands[0], mixes=True))
        shape = list(ir.RankedTensorType(op.operands[0].type).shape)
        first, sizes, steps = (
            list(ir.DenseI64ArrayAttr(op.attributes[f"static_{name}"])) for name in ("offsets", "sizes", "strides")
        )
        for pair, fact in source.facts.items():
            if fact.dead.trust is Trust.SAME:
                continue
            *batch, place = pair
            whole = all(sizes[d] == shape[d] for d in batch)
            known = min(first[place], sizes[place], steps[place]) >= 0
            self._read(
                pair, [first[place] + n * steps[place] for n in range(sizes[place])] if whole and known else None
            )
        return state


def _written(op: ir.Operation, loop: int | None) -> int | None:
    """The dimension of an operation's result along a loop; None where it has none of it alone."""
    return None if loop is None else next(iter(dims_of(maps(op)[-1], loop)), None)


def _floor(op: ir.Operation, real: Sequence[Scalar]) -> float:
    """What a maximum is not below, since a token is among what it is taken of."""
    found = evaluate(body(op), [*real, Scalar.exactly(-math.inf)])
    return found.low if found.trust is Trust.SAME else -math.inf


def _result(op: ir.Operation, arguments: Sequence[Scalar], size: float) -> Scalar:
    """An element of an operation's result, from those of its inputs; of a sum, which is not above `size` in size."""
    block, start = body(op), _bounds(op.operands[len(op.operands) - 1])
    if not any(kinds(op)):
        return evaluate(block, [*arguments, start])
    if evaluate(block, [*arguments, KEPT]).kept:
        return start
    last = maker(block.operations[len(block.operations) - 1].operands[0])
    once = evaluate(block, [*arguments, start])
    if last is None or once.trust is Trust.LOST:
        return LOST if any(one.trust for one in arguments) else UNKNOWN
    if last.name in _MAXIMA:
        one = evaluate(block, [*arguments, Scalar.exactly(-math.inf)])
        return Scalar(one.low, max(one.high, start.high)).with_trust(one.trust)
    if last.name in ("arith.addf", "math.fma") and isinstance(last.results[0].type, ir.FloatType):
        most = min(USUAL, size, largest(last.results[0].type))
        return Scalar(-most, most).with_trust(once.trust)
    return LOST if any(one.trust for one in arguments) else UNKNOWN


def _bounds(value: ir.Value) -> Scalar:
    """Between which numbers a constant tensor's elements are."""
    op = maker(value)
    if op is None:
        return UNKNOWN
    if op.name == "linalg.fill":
        number = constant_of(op.operands[0])
        return UNKNOWN if number is None else Scalar.exactly(number)
    if op.name not in ("arith.constant", "ml_program.global_load_const"):
        return UNKNOWN
    if not isinstance(value.type, ir.RankedTensorType) or math.prod(value.type.shape) > _MOST:
        return UNKNOWN
    array = known_array(value)
    if array is None or array.size == 0 or array.dtype.kind not in "biuf" or not np.all(array == array):
        return UNKNOWN
    return Scalar(float(array.min()), float(array.max()))


def _collapsed(pair: Pair, groups: Sequence[Sequence[int]], shape: Sequence[int]) -> Pair | None:
    """A pair where dimensions are joined; None where they are joined with others."""
    seen: list[int] = []
    for dim in pair:
        at, group = next((n, group) for n, group in enumerate(groups) if dim in group)
        if any(shape[d] != 1 for d in group if d not in pair):
            return None
        seen += [at] * (at not in seen)
    return tuple(seen) if _in_order(pair, groups) else None


def _in_order(pair: Pair, groups: Sequence[Sequence[int]]) -> bool:
    """Whether the batch comes before the place, or both are in groups of their own."""
    at = [next(n for n, group in enumerate(groups) if d in group) for d in pair]
    return list(pair) == sorted(pair) or len(set(at)) == len(pair)


def _expanded(pair: Pair, groups: Sequence[Sequence[int]], shape: Sequence[int], sizes: tuple[int, int]) -> Pair | None:
    """A pair where dimensions are split; None where they are cut in other parts."""
    if len(pair) == 1 and len(groups[pair[0]]) == 2 and [shape[d] for d in groups[pair[0]]] == list(sizes):
        return tuple(groups[pair[0]])
    seen = [_only(groups[d], shape) for d in pair]
    return None if None in seen else tuple(d for d in seen if d is not None)


def _only(group: Sequence[int], shape: Sequence[int]) -> int | None:
    """The dimension of a group beside which there are ones alone."""
    large = [d for d in group if shape[d] != 1] or list(group)[:1]
    return large[0] if len(large) == 1 else None
