# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-join-rows`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
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
from tilewright.normalize.attention_rows import is_plain, is_product, is_run, rows_between_products, unlike_rows
from tilewright.passes import Pass, register

_DYNAMIC = ir.ShapedType.get_dynamic_size()


@register
@dataclass(frozen=True)
class JoinRows(Pass):
    """Join loops over rows into one: where their extents are known at run time only, and along a softmax.

    A product of a batch of sequences with weights has batch x sequence rows, however they are split between the two:
    tiles of one loop fit them all, where tiles of the inner loop would be mostly empty for short sequences. Operations
    that follow go along, so that they still meet it in registers. Of known extents the rows of scores are joined, up
    to the product that reads their softmax: blocks of queries that attend to the same keys are one matrix. And of a
    product that a loop takes piece by piece all loops over rows but the innermost: layers of a recurrence that differ
    in how they split a sequence, as those of a dilated one do, are then products of one shape, with one plan and one
    code. The innermost stays, since rows in several loops are tiled as sentences are: see `plan/cpu/row_loops.py`.

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
        unlike: set[ir.Operation] = set()
        for generic in walk(op, "linalg.generic"):
            if is_product(generic) or _follows(generic, joined):
                loops = _joinable(generic, _is_taken_apart(generic))
                if loops and is_product(generic) and generic not in unlike:
                    unlike |= set(unlike_rows(generic, loops))
                if loops and generic not in unlike:
                    joined.add(_join(generic, loops))


def _source(value: ir.Value) -> ir.Operation | None:
    """The maker of a tensor, seen in another shape or not."""
    made = maker(value)
    while made is not None and made.name in RESHAPES:
        made = maker(made.operands[0])
    return made


def _is_taken_apart(op: ir.Operation) -> bool:
    """Whether all that reads it are loops that take slices: nothing computes on it, nor makes what it reads, beside it.

    Then the loops over its rows are nobody else's.
    """
    readers = [reader for value in _seen(op.results[0]) for reader, _ in uses(value) if reader.name not in RESHAPES]
    made = [_source(value) for value in list(op.operands)[:-1]]
    return (
        bool(readers)
        and all(reader.name == "tensor.extract_slice" and reader.block != op.block for reader in readers)
        and not any(m is not None and m.name == "linalg.generic" and m.block == op.block for m in made)
    )


def _seen(value: ir.Value) -> list[ir.Value]:
    """A tensor, and the other shapes that it is seen in."""
    found = [value]
    for each in found:  # which grows meanwhile
        found += [reader.results[0] for reader, _ in uses(each) if reader.name in RESHAPES]
    return found


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


def _joinable(op: ir.Operation, known: bool) -> list[int]:
    """Neighbouring parallel loops that all operands index one after the other, or not at all.

    Args:
        op: a generic.
        known: where all extents are known, join loops of any, but the innermost of more than one row and those inside
            it; else all but the outermost are open.
    """
    if not is_plain(op):
        return []
    output = positions(maps(op)[-1])
    shape = ir.RankedTensorType(op.results[0].type).shape
    known &= _DYNAMIC not in shape
    if 0 in shape:
        return []  # nothing is computed; and MLIR takes 0 times an unknown size for 0 in one place, unknown in another
    for start in range(len(output)):
        loops = [output[start]]
        for at in range(start + 1, len(output)):
            group = [*loops, output[at]]
            if (shape[at] != _DYNAMIC and not known) or not _may_be_one(op, group):
                break
            loops = group
        if known:
            large = [number for number in range(len(loops)) if shape[start + number] != 1]
            loops = loops[: large[-1]] if len(large) > 2 else []
        if len(loops) > 1:
            return loops
    return []


def _may_be_one(op: ir.Operation, group: list[int]) -> bool:
    return is_run(maps(op), group) and not any(kinds(op)[loop] for loop in group)


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
    return _joined_from_start(value, new) or create_joined(value, groups)


def _joined_from_start(value: ir.Value, new: ir.RankedTensorType) -> ir.Value | None:
    """A tensor of known sizes in the shape `new`, made of what it was before reshapes, where one does that at once."""
    found: tuple[ir.Value, list[list[int]]] | None = None
    while (made := maker(value)) is not None and made.name in RESHAPES:
        value = made.operands[0]
        groups = _groups_to(ir.RankedTensorType(value.type).shape, new.shape)
        found = (value, groups) if groups else found
    if found is None:
        return None
    return found[0] if found[0].type == new else create_joined(*found)


def _groups_to(shape: Sequence[int], joined: Sequence[int]) -> list[list[int]]:
    """Which dimensions of a shape stand for each one of another; none where that takes other than joining them."""
    groups: list[list[int]] = []
    dims = list(range(len(shape)))
    if _DYNAMIC in (*shape, *joined):
        return []
    for size in joined:
        group: list[int] = []
        while dims and (not group or prod(shape[d] for d in group) < size):
            group.append(dims.pop(0))
        groups.append(group)
    groups[-1] += dims
    sizes = [prod(shape[d] for d in group) for group in groups]
    return groups if all(groups) and sizes == list(joined) else []


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
