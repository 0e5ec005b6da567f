# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-split-by-slices`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir.generics import body, create, create_like, kinds, loops_of, maker, maps, uses, walk
from tilewright.mlir import ir
from tilewright.passes import Pass, register

#: Columns of a contraction that still fill the vectors of every machine.
_LEAST_COLUMNS = 32
_DYNAMIC = ir.ShapedType.get_dynamic_size()


@dataclass(frozen=True)
class _Piece:
    """A slice of a result along one dimension."""

    op: ir.Operation
    dim: int
    offset: int
    size: int


@register
@dataclass(frozen=True)
class SplitBySlices(Pass):
    """Compute each slice of a result by an operation of its own, where slices meet in another.

    The gates of a recurrent cell and the halves of a gated unit are made as one tensor, and read as slices that meet
    at the same points. Each made apart, they are tiles of one task (`tile-plan-fusion`); what made the tensor is split
    in the same way, back to a product, whose weights are cut when they are packed. Only results of which nothing but
    disjoint slices along one dimension is read are split, so no work is done twice.

    Before:
    ```mlir
    #id = affine_map<(i, j) -> (i, j)>
    func.func @main(%x: tensor<4x128xf32>) -> tensor<4x64xf32> {
      %e = tensor.empty() : tensor<4x128xf32>
      %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%x : tensor<4x128xf32>) outs(%e : tensor<4x128xf32>) {
      ^bb0(%a: f32, %o: f32):
        %n = math.exp %a : f32
        linalg.yield %n : f32
      } -> tensor<4x128xf32>
      %l = tensor.extract_slice %y[0, 0] [4, 64] [1, 1] : tensor<4x128xf32> to tensor<4x64xf32>
      %r = tensor.extract_slice %y[0, 64] [4, 64] [1, 1] : tensor<4x128xf32> to tensor<4x64xf32>
      %f = tensor.empty() : tensor<4x64xf32>
      %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%l, %r : tensor<4x64xf32>, tensor<4x64xf32>) outs(%f : tensor<4x64xf32>) {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %m = arith.mulf %a, %b : f32
        linalg.yield %m : f32
      } -> tensor<4x64xf32>
      return %z : tensor<4x64xf32>
    }
    ```
    After:
    ```mlir
    %xl = tensor.extract_slice %x[0, 0] [4, 64] [1, 1] : tensor<4x128xf32> to tensor<4x64xf32>
    %el = tensor.empty() : tensor<4x64xf32>
    %l = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
        ins(%xl : tensor<4x64xf32>) outs(%el : tensor<4x64xf32>) {
      ...
    %xr = tensor.extract_slice %x[0, 64] [4, 64] [1, 1] : tensor<4x128xf32> to tensor<4x64xf32>
    %er = tensor.empty() : tensor<4x64xf32>
    %r = linalg.generic {indexing_maps = [#map, #map], iterator_types = ["parallel", "parallel"]}
        ins(%xr : tensor<4x64xf32>) outs(%er : tensor<4x64xf32>) {
      ...
    ```
    """

    name: ClassVar[str] = "tile-split-by-slices"
    dialects: ClassVar[tuple[str, ...]] = ("linalg", "tensor")

    def run(self, op: ir.Operation) -> None:
        """Start where slices meet, go on with what made the parts."""
        for generic in walk(op, "linalg.generic"):
            if _meet(generic):
                _split_chain(generic)


def _meet(op: ir.Operation) -> bool:
    """Whether some operation reads two of the slices of a result."""
    if len(op.results) != 1:
        return False
    seen: set[ir.Operation] = set()
    for user, _ in uses(op.results[0]):
        if user.name != "tensor.extract_slice":
            return False
        readers = {reader for reader, _ in uses(user.results[0]) if reader.name == "linalg.generic"}
        if seen & readers:
            return True
        seen |= readers
    return False


def _split_chain(op: ir.Operation) -> None:
    """Split an operation, then the operations of which only the slices that this made are read."""
    pieces = _pieces(op)
    if not pieces or not _may_split(op, pieces):
        return
    sources = list(op.operands)[:-1]
    for piece in pieces:
        _make_piece(op, piece)
    op.erase()
    for source in dict.fromkeys(sources):
        made = maker(source)
        if made is not None and made.name == "linalg.generic" and len(made.results) == 1:
            _split_chain(made)


def _pieces(op: ir.Operation) -> list[_Piece]:
    """The slices that are all that is read of the result, disjoint along one dimension; none where it is not so."""
    kind = op.results[0].type
    fresh = _fresh(op) if isinstance(kind, ir.RankedTensorType) else None
    if fresh is None:
        return []
    sizes = _sizes(kind.shape, _open_sizes(fresh))
    pieces = [_piece(user, sizes) if user.block == op.block else None for user, _ in uses(op.results[0])]
    found = [p for p in pieces if p is not None]
    if len(found) != len(pieces) or len(found) < 2 or len({p.dim for p in found}) != 1:
        return []
    found.sort(key=lambda p: p.offset)
    apart = all(a.offset + a.size <= b.offset for a, b in zip(found, found[1:], strict=False))
    return found if apart else []


def _open_sizes(fresh: ir.Operation) -> list[ir.Value]:
    """The sizes that a run brings of a tensor, of what makes it."""
    empty = fresh if fresh.name == "tensor.empty" else maker(fresh.operands[1])
    return list(empty.operands) if empty is not None else []


def _sizes(static: Sequence[int], given: Sequence[ir.Value]) -> list[int | ir.Value]:
    """Sizes as numbers, or the values that a run brings in the places of unknown ones."""
    values = iter(given)
    return [next(values) if n == _DYNAMIC else n for n in static]


def _piece(user: ir.Operation, shape: Sequence[int | ir.Value]) -> _Piece | None:
    if user.name != "tensor.extract_slice":
        return None
    names = ("static_offsets", "static_sizes", "static_strides")
    offsets, sizes, strides = (list(ir.DenseI64ArrayAttr(user.attributes[name])) for name in names)
    if _DYNAMIC in offsets or any(s != 1 for s in strides):
        return None
    taken = _sizes(sizes, list(user.operands)[1:])
    cut = [d for d, size in enumerate(taken) if size != shape[d]]
    same_rank = list(ir.RankedTensorType(user.results[0].type).shape) == sizes
    if len(cut) != 1 or not same_rank or sizes[cut[0]] == _DYNAMIC:
        return None
    return _Piece(user, cut[0], offsets[cut[0]], sizes[cut[0]])


def _may_split(op: ir.Operation, pieces: Sequence[_Piece]) -> bool:
    own = maps(op)
    if not isinstance(own[-1].results[pieces[0].dim], ir.AffineDimExpr) or _fresh(op) is None:
        return False
    if any(inner.operation.name in ("linalg.index", "tensor.extract") for inner in body(op).operations):
        return False
    if any(kinds(op)) and min(p.size for p in pieces) < _LEAST_COLUMNS:
        return False
    loop = ir.AffineDimExpr(own[-1].results[pieces[0].dim])
    if not all(_has_known_cut(v, m, loop, own[-1]) for v, m in zip(list(op.operands), own, strict=True)):
        return False
    return all(e == loop or loop.position not in loops_of(e) for m in own for e in m.results)


def _has_known_cut(value: ir.Value, affine_map: ir.AffineMap, loop: ir.AffineExpr, written: ir.AffineMap) -> bool:
    """Whether the sizes of a part of an input are constants or those of the result."""
    shape = ir.RankedTensorType(value.type).shape
    whole = loop not in list(affine_map.results)
    return whole or all(
        n != _DYNAMIC or e in list(written.results) for n, e in zip(shape, affine_map.results, strict=True)
    )


def _fresh(op: ir.Operation) -> ir.Operation | None:
    """What makes the tensor that is written, if it is a tensor of the operation's own: empty or filled."""
    made = maker(op.operands[len(op.operands) - 1])
    if made is None or made.name == "tensor.empty":
        return made
    if made.name != "linalg.fill":
        return None
    below = maker(made.operands[1])
    return made if below is not None and below.name == "tensor.empty" else None


def _make_piece(op: ir.Operation, piece: _Piece) -> None:
    """Put a copy of `op` that works on slices of its inputs in the place of one slice of its result."""
    own = maps(op)
    loop = own[-1].results[piece.dim]
    fresh = _fresh(op)
    assert fresh is not None
    given = _open_sizes(fresh)
    extents = dict(zip(own[-1].results, _sizes(ir.RankedTensorType(op.results[0].type).shape, given), strict=True))
    with op.location, ir.InsertionPoint(op):
        inputs = [_cut(v, m, loop, piece, extents) for v, m in zip(list(op.operands)[:-1], own[:-1], strict=True)]
        place = create_like(fresh, piece.op.results[0].type, given)
        copy = op.clone()
    for number, value in enumerate([*inputs, place]):
        copy.operation.operands[number] = value
    copy.operation.results[0].set_type(piece.op.results[0].type)
    piece.op.results[0].replace_all_uses_with(copy.operation.results[0])
    piece.op.erase()


def _cut(
    value: ir.Value,
    affine_map: ir.AffineMap,
    loop: ir.AffineExpr,
    piece: _Piece,
    extents: Mapping[ir.AffineExpr, int | ir.Value],
) -> ir.Value:
    """The part of an input that a piece reads; the result's extents are those of its loops."""
    kind = ir.RankedTensorType(value.type)
    along = [d for d, e in enumerate(affine_map.results) if e == loop]
    if not along:
        return value
    sizes = [piece.size if d in along else n for d, n in enumerate(kind.shape)]
    open_sizes = [extents[affine_map.results[d]] for d, n in enumerate(sizes) if n == _DYNAMIC]
    attributes = {
        "static_offsets": ir.DenseI64ArrayAttr.get([piece.offset if d in along else 0 for d in range(kind.rank)]),
        "static_sizes": ir.DenseI64ArrayAttr.get(sizes),
        "static_strides": ir.DenseI64ArrayAttr.get([1] * kind.rank),
        "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, len(open_sizes), 0]),
    }
    return create(
        "tensor.extract_slice", [value, *open_sizes], ir.RankedTensorType.get(sizes, kind.element_type), attributes
    )
