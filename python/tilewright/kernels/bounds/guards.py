# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Checks in the code of a kernel: accesses that are not proven run where they stay inside, and else leave a mark."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.core.errors import UserError
from tilewright.ir import decisions
from tilewright.ir.diagnostics import located
from tilewright.ir.generics import create, create_fill
from tilewright.ir.units import symbol_of
from tilewright.kernels.bounds.forms import slices_of
from tilewright.kernels.bounds.proofs import Doubt, argument_name, line_of
from tilewright.kernels.bounds.sites import TileParts, tile_parts
from tilewright.mlir import ir

_EQ, _SLT, _SGE = 0, 2, 5  # of arith.cmpi


class Guards:
    """Writes the checks of one kernel; each has a place of its own in an argument more, which the host looks at.

    Args:
        kernel: gets the argument `marks`, behind all others.
        doubts: what to check, in program order.
    """

    def __init__(self, kernel: ir.Operation, doubts: Sequence[Doubt]) -> None:
        self.kernel = kernel
        self.doubts = doubts
        self._views: dict[ir.Value, ir.Value] = {}
        self.marks = _add_argument(kernel, f"memref<{max(len(doubts), 1)}xi64>")

    def write(self, followers: Sequence[ir.Operation]) -> None:
        """Write all checks.

        Args:
            followers: proven accesses, some of which may be through views that are checked.

        Raises:
            UserError: an access stands where no check can.
        """
        numbers = {doubt.site.op: number for number, doubt in enumerate(self.doubts)}
        known = {doubt.site.op: doubt for doubt in self.doubts}
        for op in [*known, *(op for op in followers if op not in known)]:
            if op.name == "memref.subview" and op in known:
                self._refuse_async(op)
                with ir.InsertionPoint(op), op.location:
                    self._views[op.results[0]] = self._view(op, known[op], numbers[op])
        for op in [*known, *(op for op in followers if op not in known)]:
            if op.name != "memref.subview":
                self._wrap(op, known.get(op), numbers.get(op, 0))

    def _wrap(self, op: ir.Operation, doubt: Doubt | None, number: int) -> None:
        """Put an access under its condition."""
        from tilewright.mlir.dialects import scf

        with ir.InsertionPoint(op), op.location:
            parts = [self._views[view] for memory in _memories(op) for view in _chain(memory) if view in self._views]
            if doubt is not None:
                parts.append(self._condition(op, doubt))
            if not parts:
                return
            self._refuse_async(op)
            inside = parts[0]
            for part in parts[1:]:
                inside = create("arith.andi", [inside, part], inside.type)
            branch = scf.IfOp(inside, [result.type for result in op.results], has_else=True)
        for old, new in zip(op.results, branch.results, strict=True):
            old.replace_all_uses_with(new)
        with ir.InsertionPoint(branch.then_block), op.location:
            op.move_before(scf.YieldOp(list(op.results)).operation)
        with ir.InsertionPoint(branch.else_block), op.location:
            if doubt is not None:
                self._mark(number)
            scf.YieldOp([_zero(result.type) for result in op.results])

    def _refuse_async(self, op: ir.Operation) -> None:
        """Raise where an access stands among copies in the background, which a condition would keep from it."""
        if op.parent.operation.name == "tile.async":
            raise located(
                UserError(
                    f"kernel {symbol_of(self.kernel)}{line_of(op)}: {op.name} in tile.async is not proven to stay "
                    "inside, and no check can stand there: copy outside of tile.async, or ask for checks=False"
                ),
                op,
            )

    def _mark(self, number: int) -> None:
        one = create("arith.constant", [], _type("i64"), {"value": ir.Attribute.parse("1 : i64")})
        ir.Operation.create("memref.store", operands=[one, self.marks, _index(number)])

    def _view(self, op: ir.Operation, doubt: Doubt, number: int) -> ir.Value:
        """Whether a view lies inside of its memory; marked where it does not."""
        from tilewright.mlir.dialects import scf

        offsets, sizes, strides = ([_value(part) for part in parts] for parts in slices_of(op))
        tests, empty = [], []
        for dim in sorted(doubt.dims):
            tests += _inside(offsets[dim], offsets[dim], op.operands[0], dim)
            tests.append(_ends_inside(offsets[dim], sizes[dim], strides[dim], _size(op.operands[0], dim)))
        for size in sizes:
            tests.append(_compare(_SGE, size, _index(0)))
            empty.append(_compare(_EQ, size, _index(0)))
        inside = _any([_all(tests), *empty])
        outside = create("arith.xori", [inside, _true()], inside.type)
        branch = scf.IfOp(outside)
        with ir.InsertionPoint(branch.then_block):
            self._mark(number)
            scf.YieldOp([])
        return inside

    def _condition(self, op: ir.Operation, doubt: Doubt) -> ir.Value:
        if not doubt.site.reaches:
            return _all([_sizes_agree(op, dim) for dim in sorted(doubt.dims)])
        if op.name.startswith("memref."):
            places = list(op.operands)[-ir.MemRefType(doubt.site.memory.type).rank :]
            tests = [t for d in sorted(doubt.dims) for t in _inside(places[d], places[d], doubt.site.memory, d)]
            return _all(tests)
        parts = tile_parts(op)
        counts = [_least(bound, _index(size)) for bound, size in zip(parts.valid, parts.shape, strict=False)]
        tests = []
        for dim in sorted(doubt.dims):
            tests += _inside(*_ends(parts, counts, dim), doubt.site.memory, dim)
        return _any([_all(tests), *(_compare(_SLT, count, _index(1)) for count in counts)])


def _ends(parts: TileParts, counts: Sequence[ir.Value], dim: int) -> tuple[ir.Value, ir.Value]:
    """The least and the greatest place of a tile along a dimension of memory."""
    offset = parts.offsets[dim]
    if parts.interleave > 1 and dim == len(parts.offsets) - 1:
        return offset, _add(offset, _index(min(parts.interleave, parts.shape[0]) - 1))
    if dim not in parts.dims:
        return offset, offset
    at = parts.dims.index(dim)
    if at == parts.along:
        low, high = (_index_of(_listed(parts, counts, kind)) for kind in ("min", "max"))
        return _add(offset, low), _add(offset, high)
    size = -(-parts.shape[at] // (parts.interleave if at == 0 else 1))
    count = counts[at] if counts else _index(size)
    last = _add(offset, _mul(_add(count, _index(-1)), _index(parts.steps[at])))
    return (offset, last) if parts.steps[at] >= 0 else (last, offset)


def _listed(parts: TileParts, counts: Sequence[ir.Value], kind: str) -> ir.Value:
    """The least or greatest index of a list, of those that are valid."""
    from tilewright.mlir.dialects.tile import ReduceKindAttr

    indices = parts.indices
    assert indices is not None
    element = ir.ShapedType(indices.type).element_type
    size = ir.ShapedType(indices.type).shape[0]
    listed = indices
    if counts:
        first = _extract(indices, element)
        mask = create(
            "arith.cmpi", [_iota(size), _splat(counts[parts.along], size)], _tile(size, "i1"), _predicate(_SLT)
        )
        listed = create("tile.select", [mask, indices, _splat(first, size)], indices.type)
    attributes = {"kind": ReduceKindAttr.get(kind), "dims": ir.DenseI64ArrayAttr.get([0])}
    least = create("tile.reduce", [listed], _tile(1, str(element)), attributes)
    return _extract(least, element)


def _memories(op: ir.Operation) -> list[ir.Value]:
    return [value for value in op.operands if isinstance(value.type, ir.MemRefType)]


def _chain(memory: ir.Value) -> list[ir.Value]:
    """A memory, what it is a view of, and so on."""
    found = [memory]
    while not isinstance(memory, ir.BlockArgument) and memory.owner.operands:
        memory = memory.owner.operands[0]
        found.append(memory)
    return found


# The host -------------------------------------------------------------------------------------------------------------


def look_at_marks(launch: ir.Operation, doubts: Sequence[Doubt], shown: Callable[[Doubt], str]) -> None:
    """Give a launch on tensors the marks, zeros before it, and end the run where one is set behind it."""
    count = len(doubts)
    kind = ir.Type.parse(f"tensor<{count}xi64>")
    segments = list(ir.DenseI32ArrayAttr(launch.attributes["operandSegmentSizes"]))
    segments[2] += 1
    with ir.InsertionPoint(launch), launch.location:
        zero = create("arith.constant", [], _type("i64"), {"value": ir.Attribute.parse("0 : i64")})
        empty = create("tensor.empty", [], kind)
        cleared = create_fill(zero, empty)
        made = ir.Operation.create(
            "tile.launch",
            results=[*(result.type for result in launch.results), kind],
            operands=[*launch.operands, cleared],
            attributes={
                "kernel": launch.attributes["kernel"],
                "operandSegmentSizes": ir.DenseI32ArrayAttr.get(segments),
            },
        )
        for number, doubt in enumerate(doubts):
            mark = create("tensor.extract", [made.results[-1], _index(number)], zero.type)
            ir.Operation.create(
                "cf.assert",
                operands=[_compare(_EQ, mark, zero)],
                attributes={"msg": ir.StringAttr.get(shown(doubt))},
            )
    for old, new in zip(launch.results, made.results, strict=False):
        old.replace_all_uses_with(new)
    launch.erase()


def message(kernel: ir.Operation, doubt: Doubt) -> str:
    """What the run says where an access reached out."""
    op = doubt.site.op
    where = f"kernel {symbol_of(kernel)}{line_of(op)}: {op.name}"
    if not doubt.site.reaches:
        return f"{where} between memories of different sizes"
    return (
        f"{where} reached out of {argument_name(doubt.site.memory)}: a check in the code, as no bound was known before"
    )


# Small operations -----------------------------------------------------------------------------------------------------


def _add_argument(kernel: ir.Operation, kind: str) -> ir.Value:
    """Give a kernel an argument more, before the coordinates of its tasks."""
    block = kernel.regions[0].blocks[0]
    rank = ir.IntegerAttr(kernel.attributes["grid_rank"]).value
    old = list(block.arguments)
    coordinates = old[len(old) - rank :]
    with kernel.location as here:
        added = block.add_argument(_type(kind), here)
        for coordinate in coordinates:
            coordinate.replace_all_uses_with(block.add_argument(coordinate.type, here))
    for _ in coordinates:
        block.erase_argument(len(old) - rank)
    taken = [argument.type for argument in block.arguments][: len(old) - rank + 1]
    kernel.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(taken, [], kernel.context))
    if "arg_attrs" in kernel.attributes:
        given = list(ir.ArrayAttr(kernel.attributes["arg_attrs"]))
        kernel.attributes["arg_attrs"] = ir.ArrayAttr.get(
            [*given, ir.DictAttr.get({decisions.NAME: ir.StringAttr.get("marks")})]
        )
    return added


def _type(text: str) -> ir.Type:
    return ir.Type.parse(text)


def _tile(size: int, element: str) -> ir.Type:
    return _type(f"!tile.tile<{size}x{element}>")


def _index(number: int) -> ir.Value:
    return create("arith.constant", [], ir.IndexType.get(), {"value": ir.IntegerAttr.get(ir.IndexType.get(), number)})


def _true() -> ir.Value:
    return create("arith.constant", [], _type("i1"), {"value": ir.Attribute.parse("true")})


def _value(part: int | ir.Value) -> ir.Value:
    return _index(part) if isinstance(part, int) else part


def _add(a: ir.Value, b: ir.Value) -> ir.Value:
    return create("arith.addi", [a, b], a.type)


def _mul(a: ir.Value, b: ir.Value) -> ir.Value:
    return create("arith.muli", [a, b], a.type)


def _minus(a: ir.Value, b: ir.Value) -> ir.Value:
    return create("arith.subi", [a, b], a.type)


def _divide(a: ir.Value, b: ir.Value) -> ir.Value:
    return create("arith.divsi", [a, b], a.type)


def _least(a: ir.Value, b: ir.Value) -> ir.Value:
    return create("arith.minsi", [a, b], a.type)


def _most(a: ir.Value, b: ir.Value) -> ir.Value:
    return create("arith.maxsi", [a, b], a.type)


def _predicate(number: int) -> dict[str, ir.Attribute]:
    return {"predicate": ir.IntegerAttr.get(ir.IntegerType.get_signless(64), number)}


def _compare(predicate: int, a: ir.Value, b: ir.Value) -> ir.Value:
    return create("arith.cmpi", [a, b], _type("i1"), _predicate(predicate))


def _all(tests: Sequence[ir.Value]) -> ir.Value:
    result = _true()
    for test in tests:
        result = create("arith.andi", [result, test], test.type)
    return result


def _any(tests: Sequence[ir.Value]) -> ir.Value:
    result = tests[0]
    for test in tests[1:]:
        result = create("arith.ori", [result, test], test.type)
    return result


def _size(memory: ir.Value, dim: int) -> ir.Value:
    return create("memref.dim", [memory, _index(dim)], ir.IndexType.get())


def _inside(low: ir.Value, high: ir.Value, memory: ir.Value, dim: int) -> list[ir.Value]:
    """The least place is inside, and the greatest one too; a sum that wraps around is below the least place."""
    size = _size(memory, dim)
    tests = [_compare(_SGE, low, _index(0)), _compare(_SLT, low, size)]
    return tests if high == low else [*tests, _compare(_SLT, high, size), _compare(_SGE, high, low)]


def _ends_inside(offset: ir.Value, count: ir.Value, stride: ir.Value, size: ir.Value) -> ir.Value:
    """Whether the last place of a view is inside, where its first one is. Nothing here overflows: quotients do not."""
    steps = _most(_add(count, _index(-1)), _index(1))
    after, before = (_divide(room, steps) for room in (_minus(_add(size, _index(-1)), offset), offset))
    fits = _all([_compare(_SGE, after, stride), _compare(_SGE, stride, _minus(_index(0), before))])
    return _any([_compare(_SLT, count, _index(2)), fits])


def _sizes_agree(op: ir.Operation, dim: int) -> ir.Value:
    source, target = (_size(memory, dim) for memory in list(op.operands)[:2])
    return _compare(_SGE if "fill" in op.attributes else _EQ, target, source)


def _zero(kind: ir.Type) -> ir.Value:
    element = ir.ShapedType(kind).element_type if isinstance(kind, ir.ShapedType) else kind
    number = "0" if isinstance(element, ir.IntegerType | ir.IndexType) else "0.0"
    number = "false" if str(element) == "i1" else number
    text = f"dense<{number}> : {kind}" if isinstance(kind, ir.ShapedType) else f"{number} : {kind}"
    return create("arith.constant", [], kind, {"value": ir.Attribute.parse("false" if text == "false : i1" else text)})


def _iota(size: int) -> ir.Value:
    return create("tile.iota", [], _tile(size, "index"), {"dim": ir.Attribute.parse("0 : i64")})


def _splat(value: ir.Value, size: int) -> ir.Value:
    return create("tile.splat", [value], _tile(size, str(value.type)))


def _extract(tile: ir.Value, element: ir.Type) -> ir.Value:
    return create("tile.extract", [tile], element, {"offsets": ir.DenseI64ArrayAttr.get([0])})


def _index_of(value: ir.Value) -> ir.Value:
    return value if isinstance(value.type, ir.IndexType) else create("arith.index_cast", [value], ir.IndexType.get())
