# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What the deciding passes know of a block: its linalg operations, their maps, and who feeds whom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from math import prod

from tilewright.ir import decisions
from tilewright.ir.constants import loop_of_row, spreads
from tilewright.ir.generics import loops_of, maker, nested, operations_of, terminator
from tilewright.mlir import ir

_SOURCES = frozenset(
    {"ml_program.global_load_const", "arith.constant", "complex.constant", "index.constant", "tensor.empty"}
)


#: What the extent of a loop counts as where it is known at run time only.
EXPECTED = 128
#: What compile time carries out on weights, as `tile-hoist-init` does.
_PACKING = frozenset(f"sparse_tile.{name}" for name in "assemble pack unpack parts quantize dequantize".split())

#: The attribute of a product that widens weights itself (`weight_only_quantization.py`); operands come first.
SMALL_WEIGHTS = decisions.PACKED
#: What a sum of products adds by, and what it multiplies by.
_PRODUCTS = {"arith.addf": "arith.mulf", "arith.addi": "arith.muli"}
_WIDENINGS = ("arith.extf", "arith.extsi", "arith.extui")


class Kind(Enum):
    """What an operation does with its reduced loops."""

    ELEMENTWISE = "elementwise"
    REDUCE = "reduce"
    CONTRACTION = "contraction"


@dataclass(frozen=True)
class Access:
    """An operand: its value and, per tensor dimension, the loops that its index expression uses.

    `dims[t]` is the loop d where dimension t is indexed by d alone, else None; `uses[t]` is the set of all loops in
    the expression (a window's output position and offset, for example).
    """

    value: ir.Value
    dims: tuple[int | None, ...]
    uses: tuple[frozenset[int], ...]
    map: ir.AffineMap = field(compare=False)

    @property
    def pure(self) -> bool:
        """Every dimension is indexed by one loop alone, or by the constant 0."""
        return all(d is not None or not u for d, u in zip(self.dims, self.uses, strict=True))

    @property
    def loops(self) -> frozenset[int]:
        """All loops that the operand depends on."""
        return frozenset().union(*self.uses)


@dataclass(eq=False)
class LinalgOp:
    """A `linalg.generic` of a block. An extent known at run time only counts as EXPECTED."""

    op: ir.Operation
    position: int
    reductions: frozenset[int]
    extents: tuple[int, ...]
    inputs: tuple[Access, ...]
    output: Access
    kind: Kind
    tables: tuple[ir.Value, ...]
    #: loops along which an index that it gathers by is computed anew: no tile may extend along them
    gathers: frozenset[int] = frozenset()
    #: number of assertions before it: nothing may move across one
    epoch: int = 0
    #: whether other nests share its task: it then sees a block of rows at a time
    welded: bool = False
    #: loops whose extents are known at run time only
    dynamic: frozenset[int] = frozenset()

    @property
    def result(self) -> ir.Value:
        """The tensor it makes."""
        return self.op.results[0]

    @property
    def rank(self) -> int:
        """Number of loops."""
        return len(self.extents)

    @cached_property
    def readers(self) -> frozenset[ir.Value | None]:
        """The operations that use its result, each by what it makes first; None for one that makes nothing.

        None is added while a pass plans. They are not kept as operations, whose hash changes with their attributes.
        """
        owners = [use.owner.operation for use in self.result.uses]
        return frozenset(owner.results[0] if owner.results else None for owner in owners)

    @cached_property
    def parallel(self) -> tuple[int, ...]:
        """The parallel loops, in order."""
        return tuple(d for d in range(self.rank) if d not in self.reductions)

    @property
    def is_step(self) -> bool:
        """Whether it is repeated: a step of a recurrence."""
        parent = self.op.parent
        return parent is not None and parent.name == "scf.for"

    @property
    def is_controlled(self) -> bool:
        """Whether it stands in a loop or a branch, which a device may run itself."""
        parent = self.op.parent
        return parent is not None and parent.name.startswith("scf.")

    @property
    def unpacks(self) -> bool:
        """Whether it is a product that makes an operand's elements of smaller ones, and of scales behind both."""
        return SMALL_WEIGHTS in self.op.attributes

    @property
    def gathers_lanes(self) -> bool:
        """Whether neighbours in its result come from anywhere."""
        return bool(self.output.dims) and self.output.dims[-1] in self.gathers

    @property
    def points(self) -> int:
        """Size of the iteration space."""
        return prod(self.extents)

    def reuse(self, access: Access) -> int:
        """How many points of the result each element of an input goes into."""
        return prod(self.extents[d] for d in self.parallel if d not in access.loops)


def transposed_row(op: LinalgOp, lane: int) -> int | None:
    """The loop that is contiguous in an input whose lanes are not: both are tiled, and transposed on the way."""
    for access in op.inputs:
        last = access.dims[-1] if access.dims else None
        if last is not None and last != lane and lane in access.dims and op.extents[last] > 1:
            return last
    return None


def set_attribute(op: ir.Operation, name: str, text: str) -> None:
    """Sets a discardable attribute from its textual form."""
    op.attributes[name] = ir.Attribute.parse(text, op.context)


def index_terms(expr: ir.AffineExpr) -> dict[int, int] | None:
    """The coefficient of each loop in an index expression; None where it is not linear with constant factors."""
    if isinstance(expr, ir.AffineDimExpr):
        return {expr.position: 1}
    if isinstance(expr, ir.AffineConstantExpr):
        return {}
    if isinstance(expr, ir.AffineAddExpr):
        left, right = index_terms(expr.lhs), index_terms(expr.rhs)
        if left is None or right is None:
            return None
        return {d: left.get(d, 0) + right.get(d, 0) for d in {*left, *right}}
    if isinstance(expr, ir.AffineMulExpr) and isinstance(expr.rhs, ir.AffineConstantExpr):
        terms, factor = index_terms(expr.lhs), expr.rhs.value
        return None if terms is None else {d: c * factor for d, c in terms.items()}
    return None


def index_constant(expr: ir.AffineExpr) -> int:
    """What an index expression with constant factors adds to its loops."""
    if isinstance(expr, ir.AffineConstantExpr):
        return expr.value
    if isinstance(expr, ir.AffineAddExpr):
        return index_constant(expr.lhs) + index_constant(expr.rhs)
    return 0


@dataclass(frozen=True)
class _Form:
    """What the maps and loops of an operation say; equal layers have the same.

    Attributes:
        reductions: loops that reduce.
        rank: number of loops.
        maps: for each operand its map, and `dims` and `uses` of an :class:`Access` that follow from it.
    """

    reductions: frozenset[int]
    rank: int
    maps: tuple[tuple[ir.AffineMap, tuple[int | None, ...], tuple[frozenset[int], ...]], ...]


Forms = dict[tuple[ir.Attribute, ir.Attribute], _Form]
"""Forms that are known, by the attributes that they follow from."""


def _form_of(op: ir.Operation, known: Forms) -> _Form:
    attributes = op.attributes
    key = attributes["indexing_maps"], attributes["iterator_types"]
    form = known.get(key)
    if form is None:
        kinds = [str(attribute) for attribute in key[1]]
        reductions = frozenset(d for d, kind in enumerate(kinds) if "reduction" in kind)
        form = known[key] = _Form(reductions, len(kinds), tuple(_indexed(each.value) for each in key[0]))
    return form


def _indexed(affine_map: ir.AffineMap) -> tuple[ir.AffineMap, tuple[int | None, ...], tuple[frozenset[int], ...]]:
    exprs = list(affine_map.results)
    dims = tuple(expr.position if isinstance(expr, ir.AffineDimExpr) else None for expr in exprs)
    return affine_map, dims, tuple(map(loops_of, exprs))


def _kind(op: ir.Operation, reductions: frozenset[int]) -> Kind:
    if not reductions:
        return Kind.ELEMENTWISE
    if SMALL_WEIGHTS in op.attributes:
        return Kind.CONTRACTION
    last = maker(terminator(op.regions[0]).operands[0])
    product = _PRODUCTS.get(last.name) if last is not None else None
    if last is not None and product and len(op.operands) == 3:
        terms = [v.owner for v in last.operands if not isinstance(v, ir.BlockArgument)]
        if any(t.name == product and all(is_element(v) for v in t.operands) for t in terms):
            return Kind.CONTRACTION
    return Kind.REDUCE


def is_element(value: ir.Value) -> bool:
    """Whether a scalar of a body is an operand's element, or one that is widened."""
    if not isinstance(value, ir.BlockArgument) and value.owner.name in _WIDENINGS:
        value = value.owner.operands[0]
    return isinstance(value, ir.BlockArgument)


def is_dynamic(value: ir.Value) -> bool:
    """Whether sizes of a tensor are known at run time only."""
    return not ir.RankedTensorType(value.type).has_static_shape


def sizes_of(value: ir.Value) -> list[int]:
    """The sizes of a tensor; one known at run time only counts as EXPECTED."""
    return [EXPECTED if size < 0 else size for size in ir.RankedTensorType(value.type).shape]


def _extents(inputs: list[Access], output: Access, rank: int) -> tuple[int, ...]:
    """The extents of the loops; negative where they are known at run time only."""
    extents: list[int | None] = [None] * rank
    for access in [output, *inputs]:
        shape = ir.RankedTensorType(access.value.type).shape
        for size, dim in zip(shape, access.dims, strict=True):
            if dim is not None and (extents[dim] or -1) < 0:
                extents[dim] = size
    if None in extents:
        raise ValueError(f"a loop of {rank} has no extent: no operand is indexed by it alone")
    return tuple(extents)  # type: ignore[arg-type]


def tables_of(op: ir.Operation) -> tuple[ir.Value, ...]:
    """What the `tensor.extract` ops of a body read, in order."""
    return tuple(
        inner.operands[0] for inner in op.regions[0].blocks[0].operations if inner.operation.name == "tensor.extract"
    )


def _gathers(op: ir.Operation, operands: list[Access]) -> frozenset[int]:
    """The loops that places in tables depend on through what the body computes."""
    found: set[int] = set()
    for inner in op.regions[0].blocks[0].operations:
        if inner.operation.name == "tensor.extract":
            for index in list(inner.operands)[1:]:
                if isinstance(index, ir.BlockArgument) or index.owner.name != "linalg.index":
                    found |= _loops_behind(index, op, operands)
    return frozenset(found)


def _loops_behind(value: ir.Value, op: ir.Operation, operands: list[Access]) -> set[int]:
    """The loops that a value of a body depends on; what is computed outside is the same at each point."""
    if isinstance(value, ir.BlockArgument):
        return set(operands[value.arg_number].loops) if value.owner == op.regions[0].blocks[0] else set()
    if value.owner.parent != op:
        return set()
    if value.owner.name == "linalg.index":
        return {ir.IntegerAttr(value.owner.attributes["dim"]).value}
    inputs = list(value.owner.operands)[1 if value.owner.name == "tensor.extract" else 0 :]
    return {loop for operand in inputs for loop in _loops_behind(operand, op, operands)}


def describe(op: ir.Operation, position: int, epoch: int = 0, forms: Forms | None = None) -> LinalgOp:
    """The facts of one `linalg.generic`; `forms` that many have are found out once."""
    form = _form_of(op, {} if forms is None else forms)
    accesses = [Access(v, dims, uses, m) for v, (m, dims, uses) in zip(op.operands, form.maps, strict=True)]
    inputs, output = accesses[:-1], accesses[-1]
    tables = tables_of(op)
    extents = _extents(inputs, output, form.rank)
    return LinalgOp(
        op=op,
        position=position,
        reductions=form.reductions,
        extents=tuple(EXPECTED if e < 0 else e for e in extents),
        inputs=tuple(inputs),
        output=output,
        kind=_kind(op, form.reductions),
        tables=tables,
        gathers=_gathers(op, accesses) if tables else frozenset(),
        epoch=epoch,
        dynamic=frozenset(d for d, e in enumerate(extents) if e < 0),
    )


class Weights:
    """Which values follow from weights and constants alone (they are computed at compile time).

    Attributes:
        forms: of operations that were described.
    """

    def __init__(self) -> None:
        """Know nothing yet."""
        self.forms: Forms = {}
        self._known: dict[ir.Value, bool] = {}
        self._loops: dict[ir.Value, ir.Operation] = {}
        self._has_weight: dict[ir.Value, bool] = {}

    def only(self, value: ir.Value) -> bool:
        """True when weights determine `value` and nothing that the model is called with does.

        What constants alone determine, a filled tensor for example, is cheaper to make than to keep. In a loop over a
        list of weights, whose rows it takes in order, what follows from a row is known, of each iteration.
        """
        return self._fixed(value) and self._stored(value)

    def _fixed(self, value: ir.Value) -> bool:
        known = self._known.get(value)
        if known is None:
            known = self._known[value] = self._compute(value)
        return known

    def _stored(self, value: ir.Value) -> bool:
        known = self._has_weight.get(value)
        if known is None:
            if isinstance(value, ir.BlockArgument):
                return False
            op = value.owner
            known = op.name == "ml_program.global_load_const" or _is_table(op)
            known = known or any(map(self._stored, op.operands)) or any(map(self._stored, captured(op)))
            self._has_weight[value] = known
        return known

    def _compute(self, value: ir.Value) -> bool:
        if isinstance(value, ir.BlockArgument):
            return False
        op = value.owner
        if op.name in _SOURCES and not op.operands:
            return True
        kind = value.type
        if not isinstance(kind, ir.RankedTensorType) or not kind.has_static_shape:
            return False
        if not op.name.startswith(("linalg.", "tensor.")) and op.name not in _PACKING:
            return False
        row = loop_of_row(op)
        used = list(op.operands)[: 1 if row else None]
        # Most operations end here, before their bodies are looked through.
        return all(map(self._fixed, used)) and self._follows(value, row, [*used, *captured(op)])

    def _follows(self, value: ir.Value, row: ir.Operation | None, used: Sequence[ir.Value]) -> bool:
        """Whether all that is used is known; a table of the iterations of two loops would be larger than weights."""
        if not all(self._fixed(v) for v in used):
            return False
        loops = [self._loops[v] for v in used if v in self._loops] + ([] if row is None else [row])
        if loops:
            self._loops[value] = loops[0]
        return all(loop == loops[0] for loop in loops) and not (loops and spreads(value.owner, loops[0]))


def _is_table(op: ir.Operation) -> bool:
    if op.name != "arith.constant":
        return False
    value = op.attributes["value"]
    return isinstance(value, ir.DenseElementsAttr) and not value.is_splat


def captured(op: ir.Operation | ir.OpView) -> list[ir.Value]:
    """Values from outside of `op` that its regions use."""
    found: list[ir.Value] = []
    inside: list[ir.Block] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        for region in inner.regions:
            inside.extend(region.blocks)
        if inner.operation.block not in inside:
            return ir.WalkResult.ADVANCE  # op itself
        for value in inner.operands:
            owner = value.owner
            if (owner if isinstance(owner, ir.Block) else owner.operation.block) not in inside:
                found.append(value)
        return ir.WalkResult.ADVANCE

    if op.regions:
        op.operation.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def blocks(root: ir.Operation) -> Iterator[ir.Block]:
    """All blocks of host functions in which groups may be formed: bodies of @main and of its loops."""
    for region in root.regions:
        for block in region.blocks:
            yield block
            for op in operations_of(block):
                if op.regions and not op.name.startswith(("linalg.", "tile.")) and not _is_init(op):
                    yield from blocks(op)


def _is_init(op: ir.Operation) -> bool:
    return op.name == "func.func" and ir.StringAttr(op.attributes["sym_name"]).value_bytes == b"init"


def linalg_ops(block: ir.Block, weights: Weights) -> list[LinalgOp]:
    """The generics of a block that run with the model and that kernels can take, in program order; one tensor each."""
    found = []
    epoch = 0
    for position, operation in enumerate(operations_of(block)):
        epoch += _asserts(operation)
        if operation.name != "linalg.generic" or decisions.HOST.on(operation):
            continue
        if len(operation.results) != 1:
            continue
        if not weights.only(operation.results[0]):
            found.append(describe(operation, position, epoch, weights.forms))
    return found


def _asserts(op: ir.Operation) -> bool:
    """Whether an operation may end the run."""
    if op.name == "cf.assert":
        return True
    if not op.name.startswith("scf."):
        return False
    return any(map(_asserts, nested(op)))
