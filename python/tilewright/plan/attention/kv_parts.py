# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Cuts the loop of a chain of reductions into parts, and combines what the parts accumulate.

All operations of the chain get one more, outer and parallel loop: the number of the part. A maximum of parts is the
largest of theirs; a sum relative to a maximum is that of the parts' sums, each rescaled by exp(its maximum - the
largest); any other reduction is combined by what it reduces with.

Parts of equal length are a dimension of what the chain reads (`tensor.expand_shape`). Where the length of the loop is
no multiple of the parts', or a run brings it, the chain reads all of it in each part, and terms of others are masked:
-inf in the place of what a maximum is taken of. `tile.live` lets the tasks of a part skip the blocks of all others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tilewright.ir import decisions
from tilewright.ir.generics import (
    body,
    constant_of,
    create,
    create_copy,
    create_generic,
    create_number,
    iterator_types,
    maker,
    open_sizes,
    set_maps,
)
from tilewright.ir.structure import Access, LinalgOp
from tilewright.ir.views import create_split
from tilewright.mlir import ir
from tilewright.plan.attention.masks import scores_of
from tilewright.plan.attention.online_reduction import Chain, combiner_of, exponentials_of, is_maximum

#: The lowest finite numbers: what a part's maximum starts from, so that exp(x - maximum) of infinitely low x is 0.
_LOWEST = {
    "f64": -1.7976931348623157e308,
    "f32": -3.4028234663852886e38,
    "f16": -65504.0,
    "bf16": -3.3895313892515355e38,
}


@dataclass
class Parts:
    """The rewriting of one chain.

    Attributes:
        chain: the operations.
        count: parts of its loop.
        length: steps of a part, a power of two, where the last one may be shorter; 0: `count` divides the loop.
        number: what keeps the operations of this chain together in one task.
        made: what has been made so far: results of the chain as they are now, with parts.
        kept: copies of what the parts accumulated, of the same tasks: a loop carries sums, memory gets them once.
    """

    chain: Chain
    count: int
    length: int
    number: int
    made: dict[LinalgOp, ir.Value] = field(default_factory=dict)
    kept: dict[LinalgOp, ir.Value] = field(default_factory=dict)
    open_count: ir.Value | None = None

    def cut(self) -> list[ir.Operation]:
        """Rewrite all operations; returns the new ones of the chain, in program order."""
        factors = {op: _factor_of(op, self.chain) for op in self.chain.accumulators if op in self.chain.relative}
        scores = [] if not self.length else list(scores_of(self.chain))
        self.open_count = self._count() if self.chain.open else None
        totals: dict[LinalgOp, ir.Value] = {}
        new = []
        for op in self.chain.loops:
            new.append(self._cut(op))
            if op in scores:
                self.made[op] = self._masked(op)
            if op in self.chain.accumulators:
                self.kept[op] = self._copy(op)
                totals[op] = self._combine(op, totals, factors.get(op))
        for op in reversed(list(self.chain.loops)):
            if op in totals:
                inside = {other.op for other in self.chain.loops}
                for use in list(op.result.uses):
                    if use.owner.operation not in inside:
                        use.owner.operation.operands[use.operand_number] = totals[op]
        for op in reversed(list(self.chain.loops)):
            op.op.erase()
        return new

    def _makers(self) -> dict[ir.Value, LinalgOp]:
        return {op.result: op for op in self.chain.loops}

    def _cut(self, op: LinalgOp) -> ir.Operation:
        """The operation with one more loop; the old one stays until all have been rewritten."""
        old, loop, makers = op.op, self.chain.loops[op], self._makers()
        part = ir.AffineDimExpr.get(0)
        values, maps = [], []
        with old.location, ir.InsertionPoint(old):
            for access in op.inputs:
                shifted = [_shifted(e) for e in access.map.results]
                maker_op = makers.get(access.value)
                if maker_op is not None:
                    values.append(self.made[maker_op])
                    maps.append([part, *shifted])
                    continue
                if self.length:
                    values.append(access.value)
                    maps.append(shifted)
                    continue
                values.append(self._expanded(access, loop) if loop in access.loops else access.value)
                pairs = zip(shifted, access.dims, strict=True)
                maps.append([e for expr, dim in pairs for e in ([part, expr] if dim == loop else [expr])])
            values.append(self._place(op, loop))
            maps.append([part, *(_shifted(e) for e in op.output.map.results)])
            new = old.clone(ir.InsertionPoint(old))
        for at, value in enumerate(values):
            new.operands[at] = value
        new.results[0].set_type(values[-1].type)
        set_maps(new.operation, [ir.AffineMap.get(op.rank + 1, 0, exprs) for exprs in maps])
        new.attributes["iterator_types"] = iterator_types([False, *(d in op.reductions for d in range(op.rank))])
        new.attributes[decisions.APART] = self._apart(old.context)
        _shift_indices(new.operation)
        self.made[op] = new.results[0]
        return new.operation

    def _place(self, op: LinalgOp, loop: int) -> ir.Value:
        """What the parts write into: a tensor of its own, filled with what the reduction starts from."""
        kind = ir.RankedTensorType(op.result.type)
        count = 1 if self.length else self.count
        sizes = [s // count if d == loop else s for s, d in zip(kind.shape, op.output.dims, strict=True)]
        empty, start = self._empty(op, ir.RankedTensorType.get(sizes, kind.element_type)), maker(op.output.value)
        made = empty.type
        if start is None or start.name != "linalg.fill":
            return empty
        first = _start_of(op, start.operands[0])
        fill = start.clone(ir.InsertionPoint(op.op))
        fill.operands[0] = first
        fill.operands[1] = empty
        fill.results[0].set_type(made)
        return fill.results[0]

    def _empty(self, op: LinalgOp, kind: ir.RankedTensorType) -> ir.Value:
        """An empty tensor of `kind` for each part, at the current insertion point."""
        parts = ir.ShapedType.get_dynamic_size() if self.open_count is not None else self.count
        sizes = [] if self.open_count is None else [self.open_count]
        sizes += open_sizes(op.op)
        return create("tensor.empty", sizes, ir.RankedTensorType.get([parts, *kind.shape], kind.element_type))

    def _count(self) -> ir.Value:
        """How many parts a run has."""
        op, loop = next((o, n) for o, n in self.chain.loops.items() if any(n in a.dims for a in o.inputs))
        access = next(a for a in op.inputs if loop in a.dims)
        index = ir.IndexType.get(op.op.context)
        with op.op.location, ir.InsertionPoint(next(iter(self.chain.loops)).op):
            at, length = (
                create("arith.constant", [], index, {"value": ir.IntegerAttr.get(index, n)})
                for n in (access.dims.index(loop), self.length)
            )
            return create("arith.ceildivui", [create("tensor.dim", [access.value, at], index), length], index)

    def _masked(self, op: LinalgOp) -> ir.Value:
        """Scores of each part: -inf where a step is none of the part's."""
        source, place = self.made[op], op.output.dims.index(self.chain.loops[op])
        kind = ir.RankedTensorType(source.type)
        same, index, number = ir.AffineMap.get_identity(kind.rank), ir.IndexType.get(), ir.IntegerType.get_signless(32)

        def body_of(elements: list[ir.Value]) -> ir.Value:
            part, step = (
                create("arith.index_cast", [create("linalg.index", [], index, {"dim": _i64(d)})], number)
                for d in (0, place + 1)
            )
            bits = create(
                "arith.constant", [], number, {"value": ir.IntegerAttr.get(number, self.length.bit_length() - 1)}
            )
            equal = {"predicate": _i64(0)}
            own = create("arith.cmpi", [create("arith.shrui", [step, bits], number), part], _i1(), equal)
            low = create_number(float("-inf"), kind.element_type)
            return create("arith.select", [own, elements[0], low], kind.element_type)

        with op.op.location, ir.InsertionPoint(op.op):
            empty = self._empty(op, ir.RankedTensorType(op.result.type))
            made = create_generic([(source, same)], empty, same, [False] * kind.rank, body_of)
        length = self.length
        decisions.LIVE.set(made.owner, [0, 1, 0, 0, length, length, length])
        made.owner.attributes[decisions.APART] = self._apart(op.op.context)
        return made

    def _expanded(self, access: Access, loop: int) -> ir.Value:
        """An operand whose dimension along the loop is two: the part, and the place in it."""
        kind = ir.RankedTensorType(access.value.type)
        at = access.dims.index(loop)
        shape = [*kind.shape[:at], self.count, kind.shape[at] // self.count, *kind.shape[at + 1 :]]
        groups = [[d] if d < at else [d, d + 1] if d == at else [d + 1] for d in range(kind.rank)]
        return create_split(access.value, groups, shape)

    def _copy(self, op: LinalgOp) -> ir.Value:
        source = self.made[op]
        with op.op.location, ir.InsertionPoint(op.op):
            copy = create_copy(source, self._empty(op, ir.RankedTensorType(op.result.type)))
        copy.owner.attributes[decisions.APART] = self._apart(op.op.context)
        return copy

    def _apart(self, context: ir.Context) -> ir.Attribute:
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(64, context), self.number)

    def _combine(self, op: LinalgOp, totals: dict[LinalgOp, ir.Value], factor: Factor | None) -> ir.Value:
        """One result of what the parts accumulated."""
        old, kind = op.op, ir.RankedTensorType(op.result.type)
        rank, combiner = kind.rank, combiner_of(op)
        assert combiner is not None
        dims = [ir.AffineDimExpr.get(d) for d in range(rank + 1)]
        written = ir.AffineMap.get(rank + 1, 0, dims[:rank])
        reads = [(self.kept[op], ir.AffineMap.get(rank + 1, 0, [dims[rank], *dims[:rank]]))]
        if factor is not None:
            at = [ir.AffineConstantExpr.get(0) if d is None else dims[d] for d in factor.dims]
            reads.append((self.kept[factor.top], ir.AffineMap.get(rank + 1, 0, [dims[rank], *at])))
            reads.append((totals[factor.top], ir.AffineMap.get(rank + 1, 0, at)))

        def body_of(elements: list[ir.Value]) -> ir.Value:
            term, total = elements[0], elements[-1]
            if factor is not None:
                lower = create("arith.subf", elements[1:3], term.type)
                term = create("arith.mulf", [term, create(factor.function, [lower], term.type)], term.type)
            return create(combiner[0], [total, term], term.type)

        with old.location, ir.InsertionPoint(old):
            start = maker(op.output.value)
            assert start is not None
            return create_generic(reads, start.results[0], written, [False] * rank + [True], body_of)


@dataclass(frozen=True)
class Factor:
    """By what a part's sum is rescaled: function(the maximum of its part - the largest of all).

    Attributes:
        top: the maximum.
        function: an exponential.
        dims: for each dimension of the maximum, that of the sum; None where it has one element.
    """

    top: LinalgOp
    function: str
    dims: tuple[int | None, ...]


def can_mask(chain: Chain) -> bool:
    """Whether scores of other parts can be masked: all terms are exponentials of tensors that nothing else reads."""
    tops = {op for op in chain.accumulators if is_maximum(op)}
    read = {a.value for op in tops for a in op.inputs}
    sums = all(op in tops or op in chain.relative for op in chain.accumulators)
    return sums and bool(tops) and read <= {op.result for op in scores_of(chain)}


def can_cut(chain: Chain) -> bool:
    """Whether all that a part needs is known: how sums follow maxima, and one float type for both."""
    for op in chain.accumulators:
        if combiner_of(op) is None or any(d is None for d in op.output.dims) or _start_of(op, None) is None:
            return False
        if op in chain.relative:
            factor = _factor_of(op, chain)
            if factor is None or _element(factor.top) != _element(op):
                return False
    return not any(decisions.APART.on(op.op) for op in chain.loops)


def _i64(number: int) -> ir.Attribute:
    return ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)


def _i1() -> ir.Type:
    return ir.IntegerType.get_signless(1)


def _element(op: LinalgOp) -> ir.Type:
    return ir.RankedTensorType(op.result.type).element_type


def _start_of(op: LinalgOp, value: ir.Value | None) -> ir.Value | bool | None:
    """What a part of a reduction starts from; without a value, whether parts may start from it (None: they may not)."""
    start = maker(op.output.value)
    combiner = combiner_of(op)
    if combiner is None or op.op is None:
        return value
    first = constant_of(start.operands[0]) if start is not None and start.name == "linalg.fill" else None
    if is_maximum(op) and first == float("-inf"):
        if value is None:
            return str(_element(op)) in _LOWEST or None
        return create_number(_LOWEST[str(_element(op))], _element(op))
    if value is None:
        return True if is_maximum(op) or first == 0 else None
    return value


def _factor_of(op: LinalgOp, chain: Chain) -> Factor | None:
    """How a sum depends on its maximum: followed from the sum through what the chain makes to the exponential."""
    top = chain.relative[op]
    makers = {member.result: member for member in chain.loops}
    front: list[tuple[LinalgOp, dict[int, int]]] = [(op, {d: i for i, d in enumerate(op.output.dims) if d is not None})]
    while front:
        member, bound = front.pop()
        for number, access in enumerate(member.inputs):
            made = makers.get(access.value)
            if made is top:
                found = exponentials_of(member, number)
                dims = tuple(None if d is None else bound.get(d, -1) for d in access.dims)
                if not found or -1 in dims:
                    return None
                return Factor(top, found[0].owner.name, dims)
            if made is not None:
                pairs = zip(made.output.dims, access.dims, strict=True)
                front.append((made, {a: bound[b] for a, b in pairs if a is not None and b in bound}))
    return None


def _shifted(expr: ir.AffineExpr) -> ir.AffineExpr:
    """An index expression whose loops have the next higher numbers."""
    if isinstance(expr, ir.AffineDimExpr):
        return ir.AffineDimExpr.get(expr.position + 1)
    if isinstance(expr, ir.AffineAddExpr):
        return _shifted(expr.lhs) + _shifted(expr.rhs)
    if isinstance(expr, ir.AffineMulExpr):
        return _shifted(expr.lhs) * _shifted(expr.rhs)
    if isinstance(expr, ir.AffineConstantExpr):
        return expr
    lhs, rhs = _shifted(expr.lhs), _shifted(expr.rhs)
    if isinstance(expr, ir.AffineModExpr):
        return ir.AffineExpr.get_mod(lhs, rhs)
    get = ir.AffineExpr.get_floor_div if isinstance(expr, ir.AffineFloorDivExpr) else ir.AffineExpr.get_ceil_div
    return get(lhs, rhs)


def _shift_indices(op: ir.Operation) -> None:
    """Let what counts loops in a body count the same ones as before."""
    for inner in body(op).operations:
        if inner.operation.name == "linalg.index":
            old = ir.IntegerAttr(inner.operation.attributes["dim"])
            inner.operation.attributes["dim"] = ir.IntegerAttr.get(old.type, old.value + 1)


def around(maximum: LinalgOp, ops: Sequence[LinalgOp]) -> list[LinalgOp]:
    """The operations over the loop that a maximum reduces: what makes its terms, and what reads those and itself.

    Products are ends: what makes their operands is not among them, nor what reads their sums.
    """
    makers = {op.result: op for op in ops}
    readers: dict[ir.Value, list[LinalgOp]] = {}
    for op in ops:
        for access in op.inputs:
            readers.setdefault(access.value, []).append(op)
    found = {maximum: next(iter(maximum.reductions))}
    front = [maximum]
    while front:
        op = front.pop()
        for other, loop in [*_made_from(op, found[op], readers), *_made_of(op, found[op], makers, op is maximum)]:
            same = other.epoch == maximum.epoch and other.op.block == maximum.op.block
            if loop is not None and same and other not in found:
                found[other] = loop
                front.append(other)
    return _closed(maximum, found, readers)


def _made_from(
    op: LinalgOp, loop: int, readers: dict[ir.Value, list[LinalgOp]]
) -> Iterator[tuple[LinalgOp, int | None]]:
    """What reads the result of an operation, and by which loop what `loop` wrote."""
    if loop in op.reductions or loop not in op.output.dims:
        return
    at = op.output.dims.index(loop)
    for reader in readers.get(op.result, []):
        yield reader, next(a.dims[at] for a in reader.inputs if a.value == op.result)


def _made_of(
    op: LinalgOp, loop: int, makers: dict[ir.Value, LinalgOp], end: bool
) -> Iterator[tuple[LinalgOp, int | None]]:
    """What makes the inputs of an operation that is no reduction (or the `end`), and the loop that `loop` reads."""
    for access in op.inputs if end or not op.reductions else ():
        made = makers.get(access.value)
        if made is not None and loop in access.dims:
            yield made, made.output.dims[access.dims.index(loop)]


def _closed(maximum: LinalgOp, found: dict[LinalgOp, int], readers: dict[ir.Value, list[LinalgOp]]) -> list[LinalgOp]:
    """Without what others need whole: the parts read it as it is."""
    kept = set(found)
    while True:
        ends = {op for op in kept if op is not maximum and found[op] not in op.reductions}
        outside = {op for op in ends if len(readers.get(op.result, [])) != len(list(op.result.uses))}
        outside |= {op for op in ends if any(r not in kept for r in readers.get(op.result, []))}
        if not outside:
            return sorted(kept, key=lambda op: op.position)
        kept -= outside
