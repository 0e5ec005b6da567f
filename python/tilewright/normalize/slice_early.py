# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-slice-early`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from tilewright.ir.generics import (
    body,
    create,
    create_like,
    loops_of,
    maker,
    maps,
    may_trap,
    open_sizes,
    place_of,
    uses,
)
from tilewright.ir.target_info import options_of
from tilewright.ir.units import symbol_of
from tilewright.ir.views import create_joined, groups_of
from tilewright.mlir import ir
from tilewright.passes import Pass, register
from tilewright.passes.base import option

_DYNAMIC = ir.ShapedType.get_dynamic_size()
_Size: TypeAlias = "int | ir.Value"


@register
@dataclass(frozen=True)
class SliceEarly(Pass):
    """Compute only the rows of a tensor that are read.

    Of the logits of a prompt the last ones alone may be asked for, of a sentence's states the first: then what made
    the tensor, row by row, makes these alone, and so on backward: products, norms and the rows of queries, up to where
    other rows are read, too. Where a slice of one row, or of at most half of them, is all that is read.

    Before:
    ```mlir
    #id = affine_map<(i, j) -> (i, j)>
    func.func @main(%x: tensor<16x64xf32>) -> tensor<1x64xf32> {
      %e = tensor.empty() : tensor<16x64xf32>
      %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%x : tensor<16x64xf32>) outs(%e : tensor<16x64xf32>) {
      ^bb0(%a: f32, %o: f32):
        %n = math.exp %a : f32
        linalg.yield %n : f32
      } -> tensor<16x64xf32>
      %l = tensor.extract_slice %y[15, 0] [1, 64] [1, 1] : tensor<16x64xf32> to tensor<1x64xf32>
      return %l : tensor<1x64xf32>
    }
    ```
    After:
    ```mlir
    %s = tensor.extract_slice %x[15, 0] [1, 64] [1, 1] : tensor<16x64xf32> to tensor<1x64xf32>
    %e = tensor.empty() : tensor<1x64xf32>
    %l = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
        ins(%s : tensor<1x64xf32>) outs(%e : tensor<1x64xf32>) {
    ...
    return %l : tensor<1x64xf32>
    ```
    """

    name: ClassVar[str] = "tile-slice-early"
    dialects: ClassVar[tuple[str, ...]] = ("linalg", "tensor")
    asked: bool = option(False, "only where tile.options ask for results in place, as who generates tokens does")

    def run(self, op: ir.Operation) -> None:
        """Go backward through @main: readers come before what they read."""
        # The first token of an encoder is a slice, too: there whole sentences are left, for padding to be skipped.
        if self.asked and not options_of(op).append_in_place:
            return
        for function in op.regions[0].blocks[0].operations:
            if function.operation.name == "func.func" and symbol_of(function) == "main":
                block = function.operation.regions[0].blocks[0]
                for made in reversed([inner.operation for inner in block.operations]):
                    _visit(made)


@dataclass(frozen=True)
class _Rows:
    """A slice along one dimension."""

    dim: int
    offset: _Size
    size: int

    def same(self, other: _Rows) -> bool:
        return (self.dim, self.size) == (other.dim, other.size) and _equal(self.offset, other.offset)


def _equal(a: _Size, b: _Size) -> bool:
    return isinstance(a, int) == isinstance(b, int) and a == b


def _visit(op: ir.Operation) -> None:
    move = _MOVES.get(op.name)
    if move is None or len(op.results) != 1:
        return
    rows = _read(op)
    if rows is not None and _is_early(rows.offset, op):
        move(op, rows)


def _read(op: ir.Operation) -> _Rows | None:
    """The rows that are all that is read of a result; None where more is."""
    found: list[_Rows] = []
    for user, _ in uses(op.results[0]):
        rows = _rows(user) if user.name == "tensor.extract_slice" and user.block == op.block else None
        if rows is None or (found and not rows.same(found[0])):
            return None
        found.append(rows)
    if not found:
        return None
    size = ir.RankedTensorType(op.results[0].type).shape[found[0].dim]
    return found[0] if (found[0].size == 1 if size == _DYNAMIC else 2 * found[0].size <= size) else None


def _numbers(op: ir.Operation, name: str, values: list[ir.Value]) -> list[_Size]:
    """Offsets, sizes or strides of a slice; those that a run brings are taken from the values."""
    static = list(ir.DenseI64ArrayAttr(op.attributes[name]))
    return [values.pop(0) if n == _DYNAMIC else n for n in static]


def _parts(op: ir.Operation, leading: int) -> tuple[list[_Size], list[_Size]] | None:
    """Offsets and sizes of an extract_slice or insert_slice; None where it has steps."""
    values = list(op.operands)[leading:]
    names = ("static_offsets", "static_sizes", "static_strides")
    offsets, sizes, steps = (_numbers(op, name, values) for name in names)
    return (offsets, sizes) if all(isinstance(s, int) and s == 1 for s in steps) else None


def _rows(op: ir.Operation) -> _Rows | None:
    """What a slice takes, where it is cut along one dimension and known to be whole along all others.

    The result may lack that dimension where it has one row.
    """
    parts = _parts(op, 1)
    if parts is None:
        return None
    offsets, sizes = parts
    whole = zip(offsets, sizes, _extents(op.operands[0]), strict=True)
    cut = [d for d, (at, n, all_) in enumerate(whole) if not (_equal(at, 0) and _equal(n, all_))]
    if len(cut) != 1 or not isinstance(size := sizes[cut[0]], int):
        return None
    shape = list(ir.RankedTensorType(op.results[0].type).shape)
    static = _static(sizes)
    if shape != static and (size != 1 or shape != static[: cut[0]] + static[cut[0] + 1 :]):
        return None
    return _Rows(cut[0], offsets[cut[0]], size)


def _extents(value: ir.Value) -> list[_Size]:
    """The sizes of a tensor; -1 where a run brings one and nothing here says which value it is."""
    shape = list(ir.RankedTensorType(value.type).shape)
    op = maker(value)
    if _DYNAMIC not in shape:
        return _with(shape, [])
    while op is not None and op.name == "tensor.insert_slice":
        op = maker(op.operands[1])
    if op is None:
        return _with(shape, [])
    if op.name == "tensor.extract_slice":
        parts = _parts(op, 1)
        return parts[1] if parts is not None and len(parts[1]) == len(shape) else _with(shape, [])
    if op.name == "tensor.collapse_shape":
        inner = _extents(op.operands[0])
        groups = groups_of(op.attributes["reassociation"])
        return [inner[g[0]] if len(g) == 1 else _with([n], [])[0] for g, n in zip(groups, shape, strict=True)]
    return _with(shape, _given(op))


def _given(op: ir.Operation) -> list[ir.Value]:
    """The sizes that an operation's result gets from a run, where it says them."""
    if op.name == "tensor.empty":
        return list(op.operands)
    if op.name == "tensor.expand_shape":
        return list(op.operands)[1:]
    return open_sizes(op) if op.name in ("linalg.generic", "linalg.fill") and len(op.results) == 1 else []


def _with(shape: Sequence[int], given: Sequence[ir.Value]) -> list[_Size]:
    values = iter(given)
    return [n if n != _DYNAMIC else next(values, -1) for n in shape]


def _is_early(offset: _Size, op: ir.Operation) -> bool:
    """Whether an offset is known where an operation stands; the arithmetic that leads to it moves to the start."""
    if isinstance(offset, int):
        return True
    chain: list[ir.Operation] = []
    if not _collect(offset, op.block, chain):
        return False
    first = op.block.operations[0].operation
    for step in chain:
        if step == first:
            first = _after(step)
        else:
            step.move_before(first)
    return True


def _after(op: ir.Operation) -> ir.Operation:
    ops = [other.operation for other in op.block.operations]
    return ops[ops.index(op) + 1]


def _collect(value: ir.Value, block: ir.Block, chain: list[ir.Operation]) -> bool:
    """Put the arithmetic that a number comes from into an order; False where it comes from something else."""
    op = maker(value)
    if op is None or op.block != block or op in chain:
        return True
    plain = op.name.startswith("arith.") and not any(isinstance(v.type, ir.ShapedType) for v in op.operands)
    if (not plain or may_trap(op)) and not (op.name == "tensor.dim" and maker(op.operands[0]) is None):
        return False
    numbers = [operand for operand in op.operands if not isinstance(operand.type, ir.ShapedType)]
    if not all(_collect(operand, block, chain) for operand in numbers):
        return False
    chain.append(op)
    return True


def _is_known(value: ir.Value, dim: int) -> bool:
    """Whether values say all sizes of a tensor but that along the rows."""
    return all(d == dim or not _equal(n, -1) for d, n in enumerate(_extents(value)))


def _cut(value: ir.Value, rows: _Rows) -> ir.Value:
    """Rows of a tensor, at the current insertion point."""
    kind = ir.RankedTensorType(value.type)
    sizes: list[_Size] = [rows.size if d == rows.dim else n for d, n in enumerate(_extents(value))]
    shape = [n if isinstance(n, int) else _DYNAMIC for n in sizes]
    result = ir.RankedTensorType.get(shape, kind.element_type)
    given = [n for n in sizes if isinstance(n, ir.Value)]
    made = maker(value)
    place = made if made is None or made.name != "linalg.fill" else maker(made.operands[1])
    if made is not None and place is not None and place.name == "tensor.empty":
        return create_like(made, result, given)
    offsets: list[_Size] = [rows.offset if d == rows.dim else 0 for d in range(kind.rank)]
    moved = [rows.offset] if isinstance(rows.offset, ir.Value) else []
    attributes = {
        "static_offsets": ir.DenseI64ArrayAttr.get(_static(offsets)),
        "static_sizes": ir.DenseI64ArrayAttr.get(shape),
        "static_strides": ir.DenseI64ArrayAttr.get([1] * kind.rank),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, len(moved), len(given), 0]),
    }
    return create("tensor.extract_slice", [value, *moved, *given], result, attributes)


def _static(sizes: Sequence[_Size]) -> list[int]:
    return [n if isinstance(n, int) else _DYNAMIC for n in sizes]


def _replace(op: ir.Operation, copy: ir.Operation, rows: _Rows) -> None:
    """Let the copy's result, which has the rows alone, stand for all slices of an operation."""
    kind = ir.RankedTensorType(op.results[0].type)
    shape = [rows.size if d == rows.dim else n for d, n in enumerate(kind.shape)]
    copy.results[0].set_type(ir.RankedTensorType.get(shape, kind.element_type))
    for user, _ in list(uses(op.results[0])):
        with user.location, ir.InsertionPoint(user):
            user.results[0].replace_all_uses_with(_shaped(copy.results[0], user.results[0].type, rows.dim))
        user.erase()
    op.erase()


def _shaped(value: ir.Value, kind: ir.Type, dim: int) -> ir.Value:
    """The rows as a slice showed them: without their dimension, maybe."""
    rank = ir.RankedTensorType(value.type).rank
    if value.type == kind:
        return value
    if rank == 1:
        return create_joined(value, [])
    first = max(dim - 1, 0)  # the dimension joins one beside it
    return create_joined(value, [[d, d + 1] if d == first else [d] for d in range(rank) if d != first + 1])


def _generic(op: ir.Operation, rows: _Rows) -> None:
    own = maps(op)
    loop = own[-1].results[rows.dim]
    if not isinstance(loop, ir.AffineDimExpr) or place_of(op) is None or _counts(op, ir.AffineDimExpr(loop).position):
        return
    position = ir.AffineDimExpr(loop).position
    if any(e != loop and position in loops_of(e) for m in own for e in m.results):
        return
    if any(list(m.results).count(loop) > 1 for m in own):
        return
    along = [next((d for d, e in enumerate(m.results) if e == loop), None) for m in own]
    pairs = list(zip(list(op.operands), along, strict=True))
    if not all(d is None or _is_known(value, d) for value, d in pairs):
        return
    with op.location, ir.InsertionPoint(op):
        operands = [v if d is None else _cut(v, _Rows(d, rows.offset, rows.size)) for v, d in pairs]
        copy = op.clone().operation
    for number, value in enumerate(operands):
        copy.operands[number] = value
    _replace(op, copy, rows)


def _counts(op: ir.Operation, loop: int) -> bool:
    """Whether the body reads the index of a loop."""
    steps = [step.operation for step in body(op).operations]
    return any(s.name == "linalg.index" and ir.IntegerAttr(s.attributes["dim"]).value == loop for s in steps)


def _reshape(op: ir.Operation, rows: _Rows) -> None:
    groups = groups_of(op.attributes["reassociation"])
    expands = op.name == "tensor.expand_shape"
    if expands:
        alone = next((g for g, dims in enumerate(groups) if dims == [rows.dim]), None)
    else:
        alone = groups[rows.dim][0] if len(groups[rows.dim]) == 1 else None
    if alone is None or not _is_known(op.operands[0], alone) or not _is_known(op.results[0], rows.dim):
        return
    with op.location, ir.InsertionPoint(op):
        part = _cut(op.operands[0], _Rows(alone, rows.offset, rows.size))
        if expands:
            sizes: list[_Size] = [rows.size if d == rows.dim else n for d, n in enumerate(_extents(op.results[0]))]
            shape = ir.RankedTensorType.get(_static(sizes), ir.RankedTensorType(part.type).element_type)
            more = {"static_output_shape": ir.DenseI64ArrayAttr.get(_static(sizes))}
            given = [n for n in sizes if isinstance(n, ir.Value)]
            attributes = {"reassociation": op.attributes["reassociation"], **more}
            copy = create("tensor.expand_shape", [part, *given], shape, attributes).owner.operation
        else:
            copy = op.clone().operation
            copy.operands[0] = part
    _replace(op, copy, rows)


def _slice(op: ir.Operation, rows: _Rows) -> None:
    """A slice or an insertion that is whole along the rows."""
    inserts = op.name == "tensor.insert_slice"
    parts = _parts(op, 2 if inserts else 1)
    whole = _extents(op.operands[1 if inserts else 0])
    kind = ir.RankedTensorType(op.operands[0].type)
    if parts is None or kind.rank != ir.RankedTensorType(op.results[0].type).rank:
        return
    offsets, sizes = parts
    if not _equal(offsets[rows.dim], 0) or not _equal(sizes[rows.dim], whole[rows.dim]):
        return
    tensors = list(op.operands)[: 1 + inserts]
    if not all(_is_known(value, rows.dim) for value in tensors):
        return
    with op.location, ir.InsertionPoint(op):
        found = [_cut(value, rows) for value in tensors]
        sizes = [rows.size if d == rows.dim else n for d, n in enumerate(sizes)]
        moved, given = ([n for n in numbers if isinstance(n, ir.Value)] for numbers in (offsets, sizes))
        attributes = {
            "static_offsets": ir.DenseI64ArrayAttr.get(_static(offsets)),
            "static_sizes": ir.DenseI64ArrayAttr.get(_static(sizes)),
            "static_strides": ir.DenseI64ArrayAttr.get([1] * len(sizes)),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([*[1] * len(found), len(moved), len(given), 0]),
        }
        element = ir.RankedTensorType(found[0].type).element_type
        result = found[1].type if inserts else ir.RankedTensorType.get(_static(sizes), element)
        copy = create(op.name, [*found, *moved, *given], result, attributes).owner.operation
    _replace(op, copy, rows)


_MOVES = {
    "linalg.generic": _generic,
    "tensor.expand_shape": _reshape,
    "tensor.collapse_shape": _reshape,
    "tensor.insert_slice": _slice,
    "tensor.extract_slice": _slice,
}
