# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Reading and making `linalg.generic` in this phase's passes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from tilewright.mlir import ir


def walk(op: ir.Operation, name: str) -> list[ir.Operation]:
    """All ops called `name` inside `op`, in order. A list: callers change what they walk."""
    found: list[ir.Operation] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        if inner.name == name:
            found.append(inner.operation)
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    return found


def nested(op: ir.Operation) -> list[ir.Operation]:
    """The operations right inside one, of all its blocks in order.

    Four times as fast as reading them from the blocks, which looks for the Python class of each, and imports those of
    its dialect.
    """
    found: list[ir.Operation] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        if inner == op:
            return ir.WalkResult.ADVANCE
        found.append(inner)
        return ir.WalkResult.SKIP

    op.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def descendants(op: ir.Operation) -> list[ir.Operation]:
    """All operations inside one, at any depth, in the order of the text."""
    found: list[ir.Operation] = []

    def visit(inner: ir.Operation) -> ir.WalkResult:
        if inner.operation != op:
            found.append(inner.operation)
        return ir.WalkResult.ADVANCE

    op.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found


def operations_of(block: ir.Block) -> list[ir.Operation]:
    """The operations of a block, in order; see :func:`nested`."""
    owner = block.owner.operation
    if len(owner.regions) == 1 and len(owner.regions[0].blocks) == 1:
        return nested(owner)
    return [view.operation for view in block.operations]


def ancestors(op: ir.Operation) -> Iterator[ir.Operation]:
    """The operations around one, the nearest first."""
    above = op.parent
    while above is not None:
        yield above.operation
        above = above.operation.parent


def maps(op: ir.Operation) -> list[ir.AffineMap]:
    """The indexing maps, inputs first."""
    return [attribute.value for attribute in op.attributes["indexing_maps"]]


def set_maps(op: ir.Operation, new: Sequence[ir.AffineMap]) -> None:
    """Replace the indexing maps."""
    op.attributes["indexing_maps"] = ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in new])


def kinds(op: ir.Operation) -> list[bool]:
    """For each loop, whether it reduces."""
    reduction = ir.Attribute.parse("#linalg.iterator_type<reduction>")
    return [attribute == reduction for attribute in op.attributes["iterator_types"]]


def iterator_types(reduces: Sequence[bool]) -> ir.ArrayAttr:
    """The attribute for these loops."""
    names = ("reduction" if r else "parallel" for r in reduces)
    return ir.ArrayAttr.get([ir.Attribute.parse(f"#linalg.iterator_type<{n}>") for n in names])


def body(op: ir.Operation) -> ir.Block:
    """The block of the only region."""
    return op.regions[0].blocks[0]


def has_regions(op: ir.Operation) -> bool:
    """Whether something in the body has a body of its own, as branches have."""
    return any(len(one.regions) for one in operations_of(body(op)))


def terminator(region: ir.Region) -> ir.Operation:
    """The last operation of a region's only block."""
    block = region.blocks[0]
    return block.operations[len(block.operations) - 1].operation


def constant_of(value: ir.Value) -> float | int | None:
    """The number that a scalar constant holds."""
    op = maker(value)
    if op is None or op.name != "arith.constant":
        return None
    attribute = op.attributes["value"]
    return attribute.value if isinstance(attribute, ir.FloatAttr | ir.IntegerAttr) else None


def may_trap(op: ir.Operation) -> bool:
    """Whether an operation on numbers may end the process: an assertion may stand before it for that reason."""
    return ("div" in op.name or "rem" in op.name) and constant_of(op.operands[1]) in (None, 0, -1)


def is_zeros(value: ir.Value) -> bool:
    """Whether a tensor is filled with a constant zero."""
    op = maker(value)
    return op is not None and op.name == "linalg.fill" and constant_of(op.operands[0]) == 0


def is_copy(op: ir.Operation) -> bool:
    """Whether it copies its single input, through permutations only."""
    if op.name != "linalg.generic" or len(op.operands) != 2 or len(op.results) != 1:
        return False
    block = body(op)
    if len(block.operations) != 1 or block.operations[0].operands[0] != block.arguments[0]:
        return False
    return not any(kinds(op)) and all(m.is_permutation for m in maps(op))


def read_through(inner: ir.AffineMap, loops: Mapping[int, ir.AffineExpr], rank: int) -> ir.AffineMap:
    """A map over other loops.

    Args:
        inner: results that are loops or constants.
        loops: what each of these loops is, in terms of the others.
        rank: how many others there are.
    """
    exprs = [loops[e.position] if isinstance(e, ir.AffineDimExpr) else e for e in inner.results]
    return ir.AffineMap.get(rank, 0, exprs)


def positions(affine_map: ir.AffineMap) -> list[int]:
    """The loops along the dimensions of a projected permutation."""
    return [ir.AffineDimExpr(e).position for e in affine_map.results]


def uses(value: ir.Value) -> Iterator[tuple[ir.Operation, int]]:
    """Users with operand numbers, in a list's safety."""
    yield from [(use.owner.operation, use.operand_number) for use in value.uses]


def renumber(op: ir.Operation) -> None:
    """Number the loops of an elementwise generic by the dimensions of its result, so that its map is the identity."""
    if any(inner.operation.name == "linalg.index" for inner in body(op).operations):
        return
    own = maps(op)
    order = positions(own[-1])
    new = [ir.AffineDimExpr.get(order.index(d)) for d in range(own[-1].n_dims)]
    set_maps(op, [_substitute(m, new) for m in own])


def _substitute(affine_map: ir.AffineMap, new: list[ir.AffineExpr]) -> ir.AffineMap:
    return ir.AffineMap.get(len(new), 0, [e.compose(ir.AffineMap.get(len(new), 0, new)) for e in affine_map.results])


def dims_of(access: ir.AffineMap, loop: int) -> list[int]:
    """The dimensions that a loop alone indexes."""
    found = enumerate(access.results)
    return [dim for dim, expr in found if isinstance(expr, ir.AffineDimExpr) and expr.position == loop]


def loops_of(expr: ir.AffineExpr) -> frozenset[int]:
    """The loops that an index expression depends on."""
    if isinstance(expr, ir.AffineDimExpr):
        return frozenset({expr.position})
    if isinstance(expr, ir.AffineBinaryExpr):
        return loops_of(expr.lhs) | loops_of(expr.rhs)
    return frozenset()


def maker(value: ir.Value) -> ir.Operation | None:
    """The op whose result a value is; None for a block's argument."""
    return None if isinstance(value, ir.BlockArgument) else value.owner.operation


def place_of(op: ir.Operation) -> ir.Operation | None:
    """The empty tensor that a result is made in."""
    made = maker(op.operands[len(op.operands) - 1])
    if made is not None and made.name == "linalg.fill":
        made = maker(made.operands[1])
    return made if made is not None and made.name == "tensor.empty" else None


def open_sizes(op: ir.Operation) -> list[ir.Value]:
    """The sizes that a run brings of the empty tensor that a result is made in; none where there is none."""
    place = place_of(op)
    return [] if place is None else list(place.operands)


def create(name: str, operands: Sequence[ir.Value], result: ir.Type, attributes: dict | None = None) -> ir.Value:
    """An op with one result, at the current insertion point."""
    return ir.Operation.create(name, results=[result], operands=operands, attributes=attributes).result


def create_number(value: float, kind: ir.Type) -> ir.Value:
    """A constant of a floating-point or integer type, at the current insertion point."""
    made = ir.FloatAttr.get(kind, value) if isinstance(kind, ir.FloatType) else ir.IntegerAttr.get(kind, int(value))
    return create("arith.constant", [], kind, {"value": made})


def create_scaled(
    total: ir.Value,
    scales: Sequence[tuple[ir.Value, ir.AffineMap]],
    constant: float | None = None,
    sizes: Sequence[ir.Value] = (),
) -> ir.Value:
    """A tensor times a constant, then times floats that its points read elsewhere, at the current insertion point.

    Args:
        total: the tensor.
        scales: tensors of as wide floats, or narrower ones, and where each point of `total` reads them.
        constant: what all elements are multiplied by first.
        sizes: of `total`, those that a run brings.
    """
    kind = ir.RankedTensorType(total.type)
    element, identity = kind.element_type, ir.AffineMap.get_identity(kind.rank)
    number = None if constant is None else create_number(constant, element)
    place = create("tensor.empty", sizes, kind)

    def scaled(elements: list[ir.Value]) -> ir.Value:
        value = elements[0] if number is None else create("arith.mulf", [elements[0], number], element)
        for scale in elements[1:-1]:
            wide = scale if scale.type == element else create("arith.extf", [scale], element)
            value = create("arith.mulf", [value, wide], element)
        return value

    return create_generic([(total, identity), *scales], place, identity, [False] * kind.rank, scaled)


def create_copy(source: ir.Value, target: ir.Value, cast: str | None = None) -> ir.Value:
    """linalg.generic that copies `source` into `target` of the same shape, at the current insertion point.

    Args:
        source: what is copied.
        target: what is written.
        cast: the op that makes an element of `target`'s type from one of `source`'s; None where the types are the same.
    """
    kind = ir.RankedTensorType(target.type)
    identity = ir.AffineMapAttr.get(ir.AffineMap.get_identity(kind.rank))
    op = ir.Operation.create(
        "linalg.generic",
        results=[kind],
        operands=[source, target],
        attributes={
            "indexing_maps": ir.ArrayAttr.get([identity, identity]),
            "iterator_types": iterator_types([False] * kind.rank),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1]),
        },
        regions=1,
    )
    read = ir.RankedTensorType(source.type).element_type
    block = ir.Block.create_at_start(op.regions[0], [read, kind.element_type])
    with ir.InsertionPoint(block):
        element = block.arguments[0]
        value = create(cast, [element], kind.element_type) if cast else element
        ir.Operation.create("linalg.yield", operands=[value])
    return op.result


def create_transposed(value: ir.Value, order: Sequence[int]) -> ir.Value:
    """A tensor of known size with its dimensions in another order, at the current insertion point.

    Args:
        value: the tensor.
        order: which of its dimensions is each of the new one's.
    """
    kind, rank = ir.RankedTensorType(value.type), len(order)
    reads = ir.AffineMap.get(rank, 0, [ir.AffineDimExpr.get(order.index(d)) for d in range(rank)])
    place = create("tensor.empty", [], ir.RankedTensorType.get([kind.shape[d] for d in order], kind.element_type))
    same = ir.AffineMap.get_identity(rank)
    return create_generic([(value, reads)], place, same, [False] * rank, lambda elements: elements[0])


def create_zero(kind: ir.Type) -> ir.Value:
    """The zero of a float or integer type, at the current insertion point."""
    return create_number(0, kind)


def create_split(value: ir.Value, dim: int, parts: Sequence[int]) -> ir.Value:
    """A tensor with one dimension of known size seen as several, at the current insertion point.

    Args:
        value: the tensor; sizes of its other dimensions may be those of a run.
        dim: the dimension.
        parts: known sizes, the outermost first, whose product is the size of `dim`.
    """
    kind, index = ir.RankedTensorType(value.type), ir.IndexType.get()
    shape, dynamic = list(kind.shape), []
    for d, size in enumerate(shape):
        if size < 0:
            at = create("arith.constant", [], index, {"value": ir.IntegerAttr.get(index, d)})
            dynamic.append(create("tensor.dim", [value, at], index))
    shape[dim : dim + 1] = parts
    i64, more = ir.IntegerType.get_signless(64), len(parts) - 1
    groups = [[d] if d < dim else [*range(d, d + more + 1)] if d == dim else [d + more] for d in range(kind.rank)]
    attributes = {
        "reassociation": ir.ArrayAttr.get([ir.ArrayAttr.get([ir.IntegerAttr.get(i64, d) for d in g]) for g in groups]),
        "static_output_shape": ir.DenseI64ArrayAttr.get(shape),
    }
    return create(
        "tensor.expand_shape", [value, *dynamic], ir.RankedTensorType.get(shape, kind.element_type), attributes
    )


def create_fill(scalar: ir.Value, target: ir.Value) -> ir.Value:
    """linalg.fill of `target` with elements of the same type, at the current insertion point."""
    op = ir.Operation.create(
        "linalg.fill",
        results=[target.type],
        operands=[scalar, target],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 1])},
        regions=1,
    )
    block = ir.Block.create_at_start(op.regions[0], [scalar.type] * 2)
    with ir.InsertionPoint(block):
        ir.Operation.create("linalg.yield", operands=[block.arguments[0]])
    return op.result


def create_like(fresh: ir.Operation, kind: ir.Type, sizes: Sequence[ir.Value] = ()) -> ir.Value:
    """An empty tensor of another type, filled where `fresh`, a tensor.empty or linalg.fill, fills.

    `sizes` are the type's that a run brings.
    """
    empty = create("tensor.empty", list(sizes), kind)
    return create_fill(fresh.operands[0], empty) if fresh.name == "linalg.fill" else empty


def create_generic(
    reads: Sequence[tuple[ir.Value, ir.AffineMap]],
    target: ir.Value,
    written: ir.AffineMap,
    reduces: Sequence[bool],
    compute: Callable[[list[ir.Value]], ir.Value],
) -> ir.Value:
    """linalg.generic into `target`, at the current insertion point.

    Args:
        reads: the inputs, each with its map.
        target: what is written.
        written: the map of the result.
        reduces: for each loop, whether it reduces.
        compute: makes the element that is yielded from the elements of the inputs and the target's old one.
    """
    op = ir.Operation.create(
        "linalg.generic",
        results=[target.type],
        operands=[*(value for value, _ in reads), target],
        attributes={
            "indexing_maps": ir.ArrayAttr.get([ir.AffineMapAttr.get(m) for m in (*(m for _, m in reads), written)]),
            "iterator_types": iterator_types(reduces),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(reads), 1]),
        },
        regions=1,
    )
    elements = [ir.RankedTensorType(value.type).element_type for value in (*(v for v, _ in reads), target)]
    block = ir.Block.create_at_start(op.regions[0], elements)
    with ir.InsertionPoint(block):
        ir.Operation.create("linalg.yield", operands=[compute(list(block.arguments))])
    return op.result


def create_repeated(op: ir.Operation, elements: Sequence[ir.Value]) -> ir.Value:
    """What the body of a generic yields for some elements, one for each of its arguments: its steps, copied here."""
    known = dict(zip(body(op).arguments, elements, strict=True))
    *steps, last = body(op).operations
    for step in steps:
        copy = step.operation.clone()
        for at, operand in enumerate(step.operands):
            copy.operands[at] = known.get(operand, operand)
        known.update(zip(step.results, copy.results, strict=True))
    return known.get(last.operands[0], last.operands[0])
