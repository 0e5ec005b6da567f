# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Where a mask that a run brings leaves something of scores, as a tensor of bytes.

The rules are those of `masks.py`: what is replaced by a number below all others, or has one added, adds nothing to
sums that are relative to its row's maximum, and rows of which every element is masked see all elements.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass

from tilewright.ir import decisions
from tilewright.ir.generics import body as body_of
from tilewright.ir.generics import (
    constant_of,
    create,
    create_fill,
    create_generic,
    create_number,
    create_repeated,
    maker,
)
from tilewright.ir.structure import Access, Kind, LinalgOp, captured
from tilewright.mlir import ir
from tilewright.plan.attention.masks import CONVERSIONS, LOW, is_constant
from tilewright.plan.attention.online_reduction import Chain

#: Steps of the loop for which there is one flag: tiles of masks are multiples of it.
UNIT = 64

_Emit = Callable[[Mapping[int, ir.Value]], ir.Value]


@dataclass(frozen=True)
class _Term:
    """A scalar that can be computed before the scores are: of which inputs of the body, and how.

    Terms with equal keys compute the same of equal inputs.
    """

    inputs: frozenset[int]
    emit: _Emit
    key: Hashable


@dataclass(frozen=True)
class RunTimeMask:
    """What masks the scores of a chain.

    Attributes:
        op: the operation that masks.
        chain: the chain.
        dead: whether an element is masked, an i1.
    """

    op: LinalgOp
    chain: Chain
    dead: _Term

    @property
    def inputs(self) -> list[Access]:
        """The tensors that say what is masked."""
        return [self.op.inputs[n] for n in sorted(self.dead.inputs)]

    @property
    def loops(self) -> list[int]:
        """The loops that the mask depends on; that which runs in blocks comes last."""
        step = self.chain.loops[self.op]
        return [*sorted({d for access in self.inputs for d in access.loops} - {step}), step]

    @property
    def _key(self) -> Hashable:
        """Masks with equal keys have equal flags."""
        numbers = sorted(self.dead.inputs)
        reads = [(n, self.op.inputs[n].value, str(self._by_unit(self.op.inputs[n]))) for n in numbers]
        return self.dead.key, tuple(reads), tuple(self.op.extents[d] for d in self.loops)

    def give_flags(self, known: dict[Hashable, ir.Value]) -> None:
        """Compute the flags in front of the operation, which becomes one that has them as its last input.

        What computes them shares no task with the chain (`tile.apart`). Layers share their mask: `known` are the flags
        of a block so far, by mask.
        """
        op, key = self.op.op, self._key
        with ir.InsertionPoint(op), op.location:
            flags = known.get(key)
            if flags is None or not flags.owner.is_before_in_block(op):
                flags = known[key] = self._create_flags()
        reads = [(access.value, access.map) for access in self.op.inputs]
        new = _reading(self.op, [*reads, (flags, self._map_of_flags())], lambda v: [*v[: len(reads)], v[-1]])
        decisions.SKIP.set(new.owner, len(reads))

    def _map_of_flags(self) -> ir.AffineMap:
        *rows, step = (ir.AffineDimExpr.get(d) for d in self.loops)
        return ir.AffineMap.get(self.op.rank, 0, [*rows, ir.AffineExpr.get_floor_div(step, UNIT)])

    def _create_flags(self) -> ir.Value:
        """A byte per row and unit of steps: 1 where something is left of it, or where its row has nothing left."""

        def left(elements: list[ir.Value]) -> ir.Value:
            dead = self.dead.emit(dict(zip(sorted(self.dead.inputs), elements[:-1], strict=True)))
            return create("arith.xori", [create("arith.extui", [dead], _byte()), create_number(1, _byte())], _byte())

        *rows, steps = (self.op.extents[d] for d in self.loops)
        rank = len(self.loops)
        # A tensor that nothing reads has the extent of the loop over a unit.
        unit = (_empty([UNIT]), ir.AffineMap.get(rank + 1, 0, [ir.AffineDimExpr.get(rank)]))
        alive = _any([*rows, steps // UNIT], [*((a.value, self._by_unit(a)) for a in self.inputs), unit], left)
        some = _any(rows, [(alive, ir.AffineMap.get_identity(rank))], lambda elements: elements[0])
        flags = _or_nothing(alive, some, [*rows, -(-steps // UNIT)])
        apart = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0)
        for value in (alive, some, flags):
            decisions.APART.set(value.owner, apart)
        return flags

    def _by_unit(self, access: Access) -> ir.AffineMap:
        """The map of an input over the loops of the flags, and one more that counts the steps of a unit."""
        *rows, step = self.loops
        last = ir.AffineDimExpr.get(len(rows))
        inside = ir.AffineExpr.get_add(ir.AffineExpr.get_mul(last, UNIT), ir.AffineDimExpr.get(len(rows) + 1))

        def expr(loop: int | None) -> ir.AffineExpr:
            if loop is None:
                return ir.AffineConstantExpr.get(0)
            return inside if loop == step else ir.AffineDimExpr.get(rows.index(loop))

        return ir.AffineMap.get(len(rows) + 2, 0, [expr(loop) for loop in access.dims])


def _any(
    sizes: list[int], reads: list[tuple[ir.Value, ir.AffineMap]], compute: Callable[[list[ir.Value]], ir.Value]
) -> ir.Value:
    """The or of what is computed, over a last loop behind those of the result."""
    rank = len(sizes)
    inner = ir.AffineMap.get(rank + 1, 0, [ir.AffineDimExpr.get(d) for d in range(rank)])
    none = create_fill(create_number(0, _byte()), _empty(sizes))
    return create_generic(
        reads, none, inner, [*[False] * rank, True], lambda v: create("arith.ori", [v[-1], compute(v[:-1])], _byte())
    )


def _or_nothing(alive: ir.Value, some: ir.Value, shape: list[int]) -> ir.Value:
    """`alive` [rows ..., whole units] where `some` [rows ...] is 1, else ones; with a last unit that is none, if any.

    Steps behind the last whole unit run in no block of their loop; what stands there is that of the unit before.
    """
    rank = len(shape)
    whole = ir.AffineMap.get_identity(rank)
    row = ir.AffineMap.get(rank, 0, [ir.AffineDimExpr.get(d) for d in range(rank - 1)])
    known = ir.RankedTensorType(alive.type).shape[-1]
    reads = [(some, row)] if known < shape[-1] else [(some, row), (alive, whole)]

    def compute(elements: list[ir.Value]) -> ir.Value:
        nothing = create("arith.xori", [elements[0], create_number(1, _byte())], _byte())
        return create("arith.ori", [elements[1] if len(reads) > 1 else _last_known(alive, rank), nothing], _byte())

    return create_generic(reads, _empty(shape), whole, [False] * rank, compute)


def _last_known(table: ir.Value, rank: int) -> ir.Value:
    """In a body, the element of a table at the point of the loops, or the last one along its last dimension."""
    index, i64 = ir.IndexType.get(), ir.IntegerType.get_signless(64)
    places = [create("linalg.index", [], index, {"dim": ir.IntegerAttr.get(i64, d)}) for d in range(rank)]
    last = create_number(ir.RankedTensorType(table.type).shape[-1] - 1, index)
    places[-1] = create("arith.minui", [places[-1], last], index)
    return create("tensor.extract", [table, *places], _byte())


def _byte() -> ir.Type:
    return ir.IntegerType.get_signless(8)


def _empty(sizes: list[int]) -> ir.Value:
    """A tensor of bytes."""
    return create("tensor.empty", [], ir.RankedTensorType.get(sizes, _byte()))


def drop_flags(op: LinalgOp) -> None:
    """Take an operation's flags away (`tile.skip`), and what computes them, where it runs in no loop over blocks."""
    number = decisions.SKIP.read(op.op)
    flags = op.inputs[number].value
    kept = [(access.value, access.map) for n, access in enumerate(op.inputs) if n != number]
    # What stands in the place of the flags is not used.
    new = _reading(op, kept, lambda elements: [*elements[:number], elements[0], *elements[number:]])
    decisions.SKIP.drop(new.owner)
    _erase_unused(flags)


def _reading(
    op: LinalgOp,
    reads: list[tuple[ir.Value, ir.AffineMap]],
    arguments: Callable[[list[ir.Value]], list[ir.Value]],
) -> ir.Value:
    """The result of an operation that reads something else, in the place of `op`, with its decisions.

    Args:
        op: which is erased.
        reads: the inputs, each with its map.
        arguments: of the body of `op`, from the elements of the inputs and the old one.
    """
    old = op.op
    with ir.InsertionPoint(old), old.location:
        kinds = [d in op.reductions for d in range(op.rank)]
        new = create_generic(
            reads, op.output.value, op.output.map, kinds, lambda elements: create_repeated(old, arguments(elements))
        )
    for name in old.attributes:
        if name.startswith("tile."):
            new.owner.attributes[name] = old.attributes[name]
    old.results[0].replace_all_uses_with(new)
    old.erase()
    return new


def _erase_unused(value: ir.Value) -> None:
    """Erase what makes flags that nothing reads: the operations that `give_flags` made, the last ones first."""
    front, found = [value], []
    while front:
        made = maker(front.pop())
        if made is not None and made.name == "linalg.generic" and decisions.APART.on(made) and made not in found:
            found.append(made)
            front += [*made.operands, *captured(made)]
    while (idle := next((made for made in found if not any(made.results[0].uses)), None)) is not None:
        found.remove(idle)
        idle.erase()


def mask_of(op: LinalgOp, chain: Chain) -> RunTimeMask | None:
    """What an operation that makes scores masks of them, as far as inputs say that do not depend on scores.

    None where nothing is masked, where constants say all of it, or where the sizes are those of a run.
    """
    if op.dynamic or op.reductions:
        return None
    block = body_of(op.op)
    dead = _Reader(op, chain).dead(block.operations[len(block.operations) - 1].operands[0])
    if dead is None or all(is_constant(op.inputs[n].value) for n in dead.inputs):
        return None
    mask = RunTimeMask(op, chain, dead)
    return mask if any(mask.loops[-1] in access.loops for access in mask.inputs) else None


class _Reader:
    """Reads the body of an operation that masks."""

    def __init__(self, op: LinalgOp, chain: Chain) -> None:
        self.op = op
        self.makers = {member.result: member for member in chain.loops}
        self.block = body_of(op.op)

    def dead(self, value: ir.Value) -> _Term | None:
        """Whether a value is a number below all others; None: it is not, as far as can be told."""
        number = constant_of(value)
        if number is not None:
            return _Term(frozenset(), lambda _: create_number(1, _bit()), True) if number <= LOW else None
        if isinstance(value, ir.BlockArgument):
            known = self._known(value)
            return None if known is None else _below(known, value.type)
        op = value.owner
        if op.name == "arith.select":
            return self._chosen(op)
        if op.name == "arith.addf":
            return _either([self.dead(v) for v in op.operands])
        return self.dead(op.operands[0]) if op.name in CONVERSIONS else None

    def _chosen(self, select: ir.Operation) -> _Term | None:
        condition = self._known(select.operands[0])
        yes, no = (self.dead(v) for v in list(select.operands)[1:])
        if condition is None or (yes is None and no is None):
            return None
        inputs = condition.inputs.union(*(term.inputs for term in (yes, no) if term is not None))

        def emit(known: Mapping[int, ir.Value]) -> ir.Value:
            sides = [create_number(0, _bit()) if term is None else term.emit(known) for term in (yes, no)]
            return create("arith.select", [condition.emit(known), *sides], _bit())

        return _Term(inputs, emit, (condition.key, *(None if term is None else term.key for term in (yes, no))))

    def _known(self, value: ir.Value) -> _Term | None:
        """A scalar of the body that does not depend on scores."""
        if isinstance(value, ir.BlockArgument):
            number = value.arg_number
            if value.owner != self.block or number >= len(self.op.inputs) or not self._may_read(number):
                return None
            return _Term(frozenset([number]), lambda known: known[number], number)
        op = value.owner
        if constant_of(value) is not None and op.operation.block != self.block:
            return _Term(frozenset(), lambda _: value, value)
        if op.name.partition(".")[0] not in ("arith", "math") or len(op.regions) or len(op.results) != 1:
            return None
        terms = [self._known(v) for v in op.operands]
        if any(term is None for term in terms):
            return None
        parts = [term for term in terms if term is not None]

        def emit(known: Mapping[int, ir.Value]) -> ir.Value:
            copy = op.operation.clone()
            for at, part in enumerate(parts):
                copy.operands[at] = part.emit(known)
            return copy.results[0]

        attributes = tuple(sorted((name, str(op.attributes[name])) for name in op.attributes))
        key = (op.name, attributes, *(part.key for part in parts))
        return _Term(frozenset().union(*(part.inputs for part in parts)), emit, key)

    def _may_read(self, number: int) -> bool:
        access = self.op.inputs[number]
        return access.pure and not self._follows(access.value)

    def _follows(self, value: ir.Value) -> bool:
        """Whether a tensor depends on what products or reductions of the chain make."""
        made = self.makers.get(value)
        return made is not None and (
            made.kind is not Kind.ELEMENTWISE or any(self._follows(a.value) for a in made.inputs)
        )


def _either(terms: list[_Term | None]) -> _Term | None:
    found = [term for term in terms if term is not None]
    if len(found) < 2:
        return found[0] if found else None
    first, second = found
    return _Term(
        first.inputs | second.inputs,
        lambda known: create("arith.ori", [first.emit(known), second.emit(known)], _bit()),
        ("or", first.key, second.key),
    )


def _below(term: _Term, kind: ir.Type) -> _Term | None:
    """Whether a number is below all scores: of 16 bits, infinity alone."""
    if not isinstance(kind, ir.FloatType):
        return None
    lowest = LOW if kind.width >= 32 else float("-inf")
    predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 5)  # ole
    return _Term(
        term.inputs,
        lambda known: create(
            "arith.cmpf", [term.emit(known), create_number(lowest, kind)], _bit(), {"predicate": predicate}
        ),
        ("below", term.key),
    )


def _bit() -> ir.Type:
    return ir.IntegerType.get_signless(1)
