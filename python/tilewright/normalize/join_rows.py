# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-join-rows`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir.generics import (
    create,
    create_fill,
    iterator_types,
    kinds,
    maker,
    maps,
    place_of,
    positions,
    set_maps,
    uses,
    walk,
)
from tilewright.ir.views import RESHAPES, create_joined, create_split, groups_of, joined_shape
from tilewright.mlir import ir
from tilewright.normalize.attention_rows import is_plain, is_product, is_run, rows_between_products
from tilewright.passes import Pass, register

_DYNAMIC = ir.ShapedType.get_dynamic_size()


@register
@dataclass(frozen=True)
class JoinRows(Pass):
    """Join loops over rows into one: where their extents are known at run time only, and along a softmax.

    A product of a batch of sequences with weights has batch x sequence rows, however they are split between the two:
    tiles of one loop fit them all, where tiles of the inner loop would be mostly empty for short sequences. Operations
    that follow go along, so that they still meet it in registers. Of known extents only the rows of scores are
    joined, up to the product that reads their softmax: blocks of queries that attend to the same keys are one matrix.

    Before:
    ```mlir
    #x = affine_map<(b, s, n, k) -> (b, s, k)>
    #w = affine_map<(b, s, n, k) -> (k, n)>
    #y = affine_map<(b, s, n, k) -> (b, s, n)>
    func.func @main(%x: tensor<?x?x8xf32>, %w: tensor<8x4xf32>, %b: index, %s: index) -> tensor<?x?x4xf32> {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty(%b, %s) : tensor<?x?x4xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x?x4xf32>) -> tensor<?x?x4xf32>
      %y = linalg.generic {indexing_maps = [#x, #w, #y],
          iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%x, %w : tensor<?x?x8xf32>, tensor<8x4xf32>) outs(%f : tensor<?x?x4xf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %m = arith.mulf %p, %q : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
      } -> tensor<?x?x4xf32>
      return %y : tensor<?x?x4xf32>
    }
    ```
    After:
    ```mlir
    %rows = tensor.collapse_shape %x [[0, 1], [2]] : tensor<?x?x8xf32> into tensor<?x8xf32>
    ...
    %y = linalg.generic {indexing_maps = [#map, #map1, #map2], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%rows, %w : tensor<?x8xf32>, tensor<8x4xf32>) outs(%f : tensor<?x4xf32>) {
    ...
    %z = tensor.expand_shape %y [[0, 1], [2]] output_shape [%b, %s, 4] : tensor<?x4xf32> into tensor<?x?x4xf32>
    ```
    """

    name: ClassVar[str] = "tile-join-rows"
    dialects: ClassVar[tuple[str, ...]] = ("linalg", "tensor", "arith")

    def run(self, op: ir.Operation) -> None:
        """Visit each operation after the makers of what it reads."""
        for generic in walk(op, "linalg.generic"):
            for member, rows in rows_between_products(generic):
                _join(member, rows)
        joined: set[ir.Operation] = set()
        for generic in walk(op, "linalg.generic"):
            if is_product(generic) or _follows(generic, joined):
                loops = _joinable(generic)
                if loops:
                    joined.add(_join(generic, loops))


def _source(value: ir.Value) -> ir.Operation | None:
    """The maker of a tensor, seen in another shape or not."""
    made = maker(value)
    while made is not None and made.name in RESHAPES:
        made = maker(made.operands[0])
    return made


def _follows(op: ir.Operation, joined: set[ir.Operation]) -> bool:
    """Whether the operations that make what it reads have joined rows, the last of them at least."""
    makers = [m for m in map(_source, list(op.operands)[:-1]) if m is not None and m.name == "linalg.generic"]
    latest: ir.Operation | None = None
    for made in makers:
        if made.block != op.block:
            return False
        if latest is None or latest.is_before_in_block(made):
            latest = made
    return latest is not None and latest in joined


def _joinable(op: ir.Operation) -> list[int]:
    """Neighbouring parallel loops that all operands index one after the other, or not at all; the inner ones open."""
    own, parallel = maps(op), [not reduces for reduces in kinds(op)]
    if not is_plain(op):
        return []
    output = positions(own[-1])
    shape = ir.RankedTensorType(op.results[0].type).shape
    if 0 in shape:
        return []  # nothing is computed; and MLIR takes 0 times an unknown size for 0 in one place, unknown in another
    for start in range(len(output)):
        loops = [output[start]]
        for at in range(start + 1, len(output)):
            group = [*loops, output[at]]
            if shape[at] != _DYNAMIC or not all(parallel[d] and is_run(own, group) for d in group):
                break
            loops = group
        if len(loops) > 1:
            return loops
    return []


def _join(op: ir.Operation, loops: list[int]) -> ir.Operation:
    """Make one loop of several; the result is seen in its shape of before."""
    own = maps(op)
    starts = [positions(m).index(loops[0]) if loops[0] in positions(m) else None for m in own]
    count = len(loops)
    result = op.results[0]
    old = ir.RankedTensorType(result.type)
    readers = list(uses(result))
    with op.location, ir.InsertionPoint(op):
        for number, start in enumerate(starts[:-1]):
            if start is not None:
                op.operands[number] = _joined(op.operands[number], start, count)
        at = starts[-1]
        assert at is not None
        place = place_of(op)
        assert place is not None
        sizes = _sizes(old, list(place.operands))
        op.operands[len(op.operands) - 1] = _new_place(op, sizes, at, count)
    result.set_type(op.operands[len(op.operands) - 1].type)
    _set_loops(op, loops)
    with op.location, ir.InsertionPoint.after(op):
        split = _split(result, old, sizes, at, count)
    for reader, number in readers:
        reader.operands[number] = split
    return op


def _set_loops(op: ir.Operation, loops: list[int]) -> None:
    kept = [d for d in range(maps(op)[0].n_dims) if d not in loops[1:]]
    new = [
        ir.AffineMap.get(len(kept), 0, [ir.AffineDimExpr.get(kept.index(d)) for d in positions(m) if d in kept])
        for m in maps(op)
    ]
    reduces = [kinds(op)[d] for d in kept]
    set_maps(op, new)
    op.attributes["iterator_types"] = iterator_types(reduces)


def _groups(rank: int, start: int, count: int) -> list[list[int]]:
    """The dimensions of a shape, those that are joined together."""
    return [
        *([d] for d in range(start)),
        list(range(start, start + count)),
        *([d] for d in range(start + count, rank)),
    ]


def _joined(value: ir.Value, start: int, count: int) -> ir.Value:
    """A tensor with joined dimensions: a view, or what it is a view of."""
    kind = ir.RankedTensorType(value.type)
    groups = _groups(kind.rank, start, count)
    new = ir.RankedTensorType.get(joined_shape(kind.shape, groups), kind.element_type)
    made = maker(value)
    if made is not None and made.name == "tensor.expand_shape" and made.operands[0].type == new:
        if groups_of(made.attributes["reassociation"]) == groups:
            return made.operands[0]
    return create_joined(value, groups)


def _sizes(kind: ir.RankedTensorType, dynamic: list[ir.Value]) -> list[int | ir.Value]:
    values = iter(dynamic)
    return [next(values) if size == _DYNAMIC else size for size in kind.shape]


def _index(size: int | ir.Value) -> ir.Value:
    if not isinstance(size, int):
        return size
    kind = ir.IndexType.get()
    return create("arith.constant", [], kind, {"value": ir.IntegerAttr.get(kind, size)})


def _new_place(op: ir.Operation, sizes: list[int | ir.Value], start: int, count: int) -> ir.Value:
    """An empty tensor with joined dimensions, filled as the old one."""
    old = ir.RankedTensorType(op.results[0].type)
    size = sizes[start]
    for other in sizes[start + 1 : start + count]:
        if isinstance(size, int) and isinstance(other, int):
            size *= other
        else:
            size = create("arith.muli", [_index(size), _index(other)], ir.IndexType.get())
    kind = ir.RankedTensorType.get(joined_shape(old.shape, _groups(old.rank, start, count)), old.element_type)
    dynamic = [n for n in [*sizes[:start], size, *sizes[start + count :]] if not isinstance(n, int)]
    empty = create("tensor.empty", dynamic, kind)
    made = maker(op.operands[len(op.operands) - 1])
    assert made is not None
    return create_fill(made.operands[0], empty) if made.name == "linalg.fill" else empty


def _split(value: ir.Value, kind: ir.RankedTensorType, sizes: list[int | ir.Value], start: int, count: int) -> ir.Value:
    """A tensor with joined dimensions, seen as `kind`."""
    dynamic = [n for n in sizes if not isinstance(n, int)]
    return create_split(value, _groups(kind.rank, start, count), kind.shape, dynamic)
