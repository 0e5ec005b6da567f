# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-append-in-place`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from tilewright.ir import decisions
from tilewright.ir.diagnostics import remark
from tilewright.ir.generics import create, maker, terminator, uses
from tilewright.ir.target_info import options_of
from tilewright.ir.units import symbol_of
from tilewright.mlir import ir
from tilewright.passes import Pass, register

_Size: TypeAlias = "int | ir.Value"
#: Of arith.cmpi: signed, less or equal.
_NOT_ABOVE = 3


@register
@dataclass(frozen=True)
class AppendInPlace(Pass):
    """Write what a result has behind an input where there is room for it, instead of copying both.

    A decoder returns its past with the keys and values of new tokens behind it: a copy of the whole past in each step.
    Where the options ask for it (`append_in_place`), @main gets a buffer for such a result that holds the input's rows
    already, and room behind them. The result is its beginning; new rows alone are written. That the room is enough is
    asserted before anything is written.

    Before:
    ```mlir
    module attributes {tile.options = {append_in_place = true}} {
      func.func @main(%past: tensor<?x4xf32> {tile.name = "past"}, %new: tensor<2x4xf32> {tile.name = "new"})
          -> (tensor<?x4xf32> {tile.name = "present"}) {
        %c0 = arith.constant 0 : index
        %c2 = arith.constant 2 : index
        %n = tensor.dim %past, %c0 : tensor<?x4xf32>
        %total = arith.addi %n, %c2 : index
        %e = tensor.empty(%total) : tensor<?x4xf32>
        %a = tensor.insert_slice %past into %e[0, 0] [%n, 4] [1, 1] : tensor<?x4xf32> into tensor<?x4xf32>
        %b = tensor.insert_slice %new into %a[%n, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<?x4xf32>
        return %b : tensor<?x4xf32>
      }
    }
    ```
    After:
    ```mlir
    func.func @main(%past: tensor<?x4xf32> {tile.name = "past"}, %new: tensor<2x4xf32> {tile.name = "new"},
        %room: tensor<?x4xf32> {tile.appends = array<i64: 0, 0, 0>, tile.name = "present"})
    ...
    cf.assert %ok, "no room for output present, whose dimension 0 is" {tile.tell}
    %a = tensor.extract_slice %room[0, 0] [%total, 4] [1, 1] : tensor<?x4xf32> to tensor<?x4xf32>
    %b = tensor.insert_slice %new into %a[%n, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<?x4xf32>
    return %b : tensor<?x4xf32>
    ```
    """

    name: ClassVar[str] = "tile-append-in-place"
    dialects: ClassVar[tuple[str, ...]] = ("tensor", "arith", "cf")

    def run(self, op: ir.Operation) -> None:
        """Look at the results of @main."""
        if not options_of(op).append_in_place:
            return
        for function in op.regions[0].blocks[0].operations:
            if function.operation.name == "func.func" and symbol_of(function) == "main":
                _append(function.operation)


@dataclass(frozen=True)
class _Slice:
    """A tensor.insert_slice with its numbers."""

    op: ir.Operation
    offsets: tuple[_Size, ...]
    sizes: tuple[_Size, ...]

    @property
    def source(self) -> ir.Value:
        return self.op.operands[0]


@dataclass(frozen=True)
class _Continued:
    """A result that is an input with rows behind it.

    Attributes:
        result, input: their numbers.
        axis: along which there are more rows.
        past: how the input is put into the result.
        empty: what it is put into.
    """

    result: int
    input: int
    axis: int
    past: _Slice
    empty: ir.Operation


def _append(function: ir.Operation) -> None:
    block = function.regions[0].blocks[0]
    inputs = len(block.arguments)
    taken: set[int] = set()
    for number, value in enumerate(terminator(function.regions[0]).operands):
        found = _continued(number, value, block)
        if found is not None and found.input < inputs and found.input not in taken:
            taken.add(found.input)
            _in_place(function, found)
    if not taken:
        remark(function, "append_in_place: no result is an input with rows behind it, so nothing is written in place")


def _continued(number: int, value: ir.Value, block: ir.Block) -> _Continued | None:
    """How a result continues an input; None where it does not."""
    inserts: list[_Slice] = []
    op = maker(value)
    while op is not None and op.name == "tensor.insert_slice" and (inserted := _slice(op)) is not None:
        inserts.append(inserted)
        op = maker(op.operands[1])
    past = [one for one in inserts if _is_whole_input(one, block)]
    if op is None or op.name != "tensor.empty" or op.block != block or len(inserts) < 2 or len(past) != 1:
        return None
    first = past[0]
    axes = {_behind(first, one) for one in inserts if one is not first}
    axis = axes.pop() if len(axes) == 1 else None
    kind = ir.RankedTensorType(value.type)
    if axis is None or not kind.is_dynamic_dim(axis) or first.source.type != value.type:
        return None
    return _Continued(number, ir.BlockArgument(first.source).arg_number, axis, first, op)


def _is_whole_input(one: _Slice, block: ir.Block) -> bool:
    """Whether an input of the function stands at the beginning."""
    given = isinstance(one.source, ir.BlockArgument) and one.source.owner == block
    return given and all(isinstance(at, int) and at == 0 for at in one.offsets)


def _behind(first: _Slice, other: _Slice) -> int | None:
    """Along which axis a slice begins where the first one ends; None where it does not."""
    moved = [d for d, at in enumerate(other.offsets) if isinstance(at, ir.Value) or at != 0]
    return moved[0] if len(moved) == 1 and _same(other.offsets[moved[0]], first.sizes[moved[0]]) else None


def _same(a: _Size, b: _Size) -> bool:
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == b
    return a == b


def _slice(op: ir.Operation) -> _Slice | None:
    """The numbers of an insert_slice, by the target's dimensions; None where it has steps."""
    steps = list(ir.DenseI64ArrayAttr(op.attributes["static_strides"]))
    if any(step != 1 for step in steps):
        return None
    rest = iter(list(op.operands)[2:])
    offsets, sizes = (
        tuple(next(rest) if ir.ShapedType.is_dynamic_size(n) else n for n in ir.DenseI64ArrayAttr(op.attributes[name]))
        for name in ("static_offsets", "static_sizes")
    )
    return _Slice(op, offsets, sizes)


def _in_place(function: ir.Operation, found: _Continued) -> None:
    block = function.regions[0].blocks[0]
    past, kind = found.past.source, found.past.source.type
    room = block.add_argument(kind, past.owner.owner.location)
    name = _declare(function, found)
    with ir.InsertionPoint(found.empty):
        sizes = _sizes(found.empty)
        total = sizes[found.axis]
        assert isinstance(total, ir.Value)
        held = _dim(room, found.axis)
        wide, flag = ir.IntegerType.get_signless(64), ir.IntegerType.get_signless(1)
        fits = create("arith.cmpi", [total, held], flag, {"predicate": ir.IntegerAttr.get(wide, _NOT_ABOVE)})
        message = f"no room for output {name}, whose dimension {found.axis} is"
        told = {"msg": ir.StringAttr.get(message), decisions.TELL: ir.UnitAttr.get()}
        ir.Operation.create("cf.assert", operands=[fits], attributes=told)
        whole = _start(room, sizes)
    readers = [use for use in uses(past) if use[0].name != "tensor.dim" and use[0] != found.past.op]
    if readers:
        with ir.InsertionPoint.at_block_begin(block):  # they may come before the past is put into the result
            sizes = _sizes_of(past)
            old = _start(room, sizes)
        for known, size in zip(found.past.sizes, sizes, strict=True):  # new rows begin where these end, visibly
            if isinstance(size, ir.Value) and isinstance(known, ir.Value) and _is_size_of(past, known):
                known.replace_all_uses_with(size)
        for reader, number in readers:
            reader.operands[number] = old
    _put(found, whole)


def _declare(function: ir.Operation, found: _Continued) -> str:
    """Write the new argument into the function's type; the result's name."""
    block = function.regions[0].blocks[0]
    old = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    kind = ir.FunctionType.get([argument.type for argument in block.arguments], old.results)
    function.attributes["function_type"] = ir.TypeAttr.get(kind)
    results = function.attributes["res_attrs"] if "res_attrs" in function.attributes else None
    names = {entry.name: entry.attr for entry in ir.DictAttr(results[found.result])} if results is not None else {}
    numbers = ir.DenseI64ArrayAttr.get([found.result, found.input, found.axis])
    named = {decisions.NAME: names[decisions.NAME]} if decisions.NAME in names else {}
    given = function.attributes["arg_attrs"] if "arg_attrs" in function.attributes else None
    arguments = list(given) if given is not None else [ir.DictAttr.get({}) for _ in old.inputs]
    room = ir.DictAttr.get({decisions.APPENDS: numbers, **named})
    function.attributes["arg_attrs"] = ir.ArrayAttr.get([*arguments, room])
    return ir.StringAttr(names[decisions.NAME]).value if named else str(found.result)


def _put(found: _Continued, whole: ir.Value) -> None:
    """Put the other parts into the beginning of the room, which holds the input already."""
    op = found.past.op
    before = op.operands[1]
    for reader, number in list(uses(op.results[0])):
        reader.operands[number] = whole if before == found.empty.results[0] else before
    if before != found.empty.results[0]:
        last = maker(before)
        assert last is not None
        while last.operands[1] != found.empty.results[0]:
            last = maker(last.operands[1])
            assert last is not None
        last.operands[1] = whole
    op.erase()
    if not any(True for _ in uses(found.empty.results[0])):
        found.empty.erase()


def _sizes(empty: ir.Operation) -> list[_Size]:
    """All sizes of a tensor.empty."""
    rest = iter(empty.operands)
    shape = ir.RankedTensorType(empty.results[0].type).shape
    return [next(rest) if ir.ShapedType.is_dynamic_size(n) else n for n in shape]


def _sizes_of(value: ir.Value) -> list[_Size]:
    """All sizes of a tensor, at the current insertion point."""
    shape = ir.RankedTensorType(value.type).shape
    return [_dim(value, d) if ir.ShapedType.is_dynamic_size(n) else n for d, n in enumerate(shape)]


def _is_size_of(value: ir.Value, size: ir.Value) -> bool:
    """Whether the IR says that a number is a size of a tensor."""
    op = maker(size)
    return op is not None and op.name == "tensor.dim" and op.operands[0] == value


def _dim(value: ir.Value, dim: int) -> ir.Value:
    """A size of a tensor that a run brings, at the current insertion point."""
    index = ir.IndexType.get()
    number = create("arith.constant", [], index, {"value": ir.IntegerAttr.get(index, dim)})
    return create("tensor.dim", [value, number], index)


def _start(room: ir.Value, sizes: Sequence[_Size]) -> ir.Value:
    """The first elements of the room."""
    open_ = ir.ShapedType.get_dynamic_size()
    values = [n for n in sizes if isinstance(n, ir.Value)]
    rank = len(sizes)
    attributes = {
        "static_offsets": ir.DenseI64ArrayAttr.get([0] * rank),
        "static_sizes": ir.DenseI64ArrayAttr.get([n if isinstance(n, int) else open_ for n in sizes]),
        "static_strides": ir.DenseI64ArrayAttr.get([1] * rank),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, len(values), 0]),
    }
    return create("tensor.extract_slice", [room, *values], room.type, attributes)
