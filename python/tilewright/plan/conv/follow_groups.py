# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-follow-groups`: what follows a product in groups takes its loops, so that they meet in registers.

A convolution in groups makes channels of two dimensions, groups and filters; what comes behind it sees one. This is the
other direction of `tile-join-rows`: there a product takes fewer loops, and what follows goes along; here it cannot,
since a group is a product of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir.generics import (
    body,
    create,
    iterator_types,
    kinds,
    maker,
    maps,
    place_of,
    positions,
    set_maps,
    uses,
)
from tilewright.ir.structure import Kind, Weights, blocks, linalg_ops
from tilewright.ir.views import consecutive, create_joined, create_split, groups_of
from tilewright.mlir import ir
from tilewright.passes import Pass, register

_COLLAPSE = "tensor.collapse_shape"


@register
@dataclass(frozen=True)
class FollowGroups(Pass):
    """Split loops of elementwise operations that read a product's result with joined dimensions.

    Before:
    ```mlir
    #x = affine_map<(m, g, n, k) -> (m, g, k)>
    #w = affine_map<(m, g, n, k) -> (g, k, n)>
    #y = affine_map<(m, g, n, k) -> (m, g, n)>
    #id = affine_map<(m, c) -> (m, c)>
    #bias = affine_map<(m, c) -> (c)>
    func.func @main(%x: tensor<16x2x8xf32>, %w: tensor<2x8x4xf32>, %b: tensor<8xf32>) -> tensor<16x8xf32> {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<16x2x4xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x2x4xf32>) -> tensor<16x2x4xf32>
      %y = linalg.generic {indexing_maps = [#x, #w, #y],
          iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
          ins(%x, %w : tensor<16x2x8xf32>, tensor<2x8x4xf32>) outs(%f : tensor<16x2x4xf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %m = arith.mulf %p, %q : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
      } -> tensor<16x2x4xf32>
      %c = tensor.collapse_shape %y [[0], [1, 2]] : tensor<16x2x4xf32> into tensor<16x8xf32>
      %h = tensor.empty() : tensor<16x8xf32>
      %z = linalg.generic {indexing_maps = [#id, #bias, #id], iterator_types = ["parallel", "parallel"]}
          ins(%c, %b : tensor<16x8xf32>, tensor<8xf32>) outs(%h : tensor<16x8xf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %t = arith.addf %p, %q : f32
        linalg.yield %t : f32
      } -> tensor<16x8xf32>
      return %z : tensor<16x8xf32>
    }
    ```
    After:
    ```mlir
    %bias = tensor.expand_shape %b [[0, 1]] output_shape [2, 4] : tensor<8xf32> into tensor<2x4xf32>
    ...
    %z = linalg.generic {indexing_maps = [#map3, #map4, #map3], iterator_types = ["parallel", "parallel", "parallel"]}
        ins(%y, %bias : tensor<16x2x4xf32>, tensor<2x4xf32>) outs(%e : tensor<16x2x4xf32>) {
    ...
    %r = tensor.collapse_shape %z [[0], [1, 2]] : tensor<16x2x4xf32> into tensor<16x8xf32>
    ```
    """

    name: ClassVar[str] = "tile-follow-groups"
    dialects: ClassVar[tuple[str, ...]] = ("linalg", "tensor")

    def run(self, op: ir.Operation) -> None:
        """Visit each elementwise operation after the makers of what it reads."""
        weights = Weights()
        for block in blocks(op):
            made: set[ir.Value] = set()  # by products, and by what has followed them
            for member in linalg_ops(block, weights):
                if member.kind is Kind.CONTRACTION:
                    made.add(member.result)
                elif member.kind is Kind.ELEMENTWISE:
                    _follow(member.op, made)


def _follow(op: ir.Operation, made: set[ir.Value]) -> None:
    """Let an operation take the loops of a product that it reads, directly or with joined dimensions."""
    if any(value in made for value in list(op.operands)[:-1]):
        made.add(op.results[0])
        return
    if not _can_split(op):
        return
    for number, value in enumerate(list(op.operands)[:-1]):
        collapse = maker(value)
        if collapse is not None and collapse.name == _COLLAPSE and collapse.operands[0] in made:
            sizes = _sizes_of_loops(op, number, collapse)
            made.add(_split(op, sizes))
            return


def _can_split(op: ir.Operation) -> bool:
    inner = {step.operation.name for step in body(op).operations}
    whole = ir.RankedTensorType(op.results[0].type).has_static_shape and place_of(op) is not None
    plain = all(m.is_projected_permutation for m in maps(op)) and not inner & {"linalg.index", "tensor.extract"}
    return whole and plain and not any(kinds(op))


def _sizes_of_loops(op: ir.Operation, number: int, collapse: ir.Operation) -> dict[int, list[int]]:
    """The loops that an operand with joined dimensions is read by, with the sizes that each is made of."""
    shape = ir.RankedTensorType(collapse.operands[0].type).shape
    groups, read = groups_of(collapse.attributes["reassociation"]), positions(maps(op)[number])
    return {loop: [shape[d] for d in group] for loop, group in zip(read, groups, strict=True) if len(group) > 1}


def _split(op: ir.Operation, sizes: dict[int, list[int]]) -> ir.Value:
    """Make several loops of one; gives the result in its new shape."""
    own, result = maps(op), op.results[0]
    old, readers = ir.RankedTensorType(result.type), list(uses(result))
    loops: dict[int, list[int]] = {}
    count = 0
    for loop in range(own[-1].n_dims):
        width = len(sizes.get(loop, [1]))
        loops[loop] = [*range(count, count + width)]
        count += width
    with op.location, ir.InsertionPoint(op):
        for number, m in enumerate(own[:-1]):
            op.operands[number] = _parted(op.operands[number], positions(m), sizes)
        shape = _shape(old.shape, positions(own[-1]), sizes)
        kind = ir.RankedTensorType.get(shape, old.element_type)
        op.operands[len(own) - 1] = create("tensor.empty", [], kind)
    result.set_type(kind)
    new = [[ir.AffineDimExpr.get(d) for loop in positions(m) for d in loops[loop]] for m in own]
    set_maps(op, [ir.AffineMap.get(count, 0, exprs) for exprs in new])
    op.attributes["iterator_types"] = iterator_types([False] * count)
    with op.location, ir.InsertionPoint.after(op):
        joined = create_joined(result, _groups(positions(own[-1]), sizes))
    for reader, at in readers:
        reader.operands[at] = joined
    return result


def _parted(value: ir.Value, read: Sequence[int], sizes: dict[int, list[int]]) -> ir.Value:
    """An operand with the dimensions of loops that are split: what it is a view of, or a view of it."""
    if not any(loop in sizes for loop in read):
        return value
    groups = _groups(read, sizes)
    shape = _shape(ir.RankedTensorType(value.type).shape, read, sizes)
    made = maker(value)
    if made is not None and made.name == _COLLAPSE and groups_of(made.attributes["reassociation"]) == groups:
        if ir.RankedTensorType(made.operands[0].type).shape == shape:
            return made.operands[0]
    return create_split(value, groups, shape)


def _shape(old: Sequence[int], read: Sequence[int], sizes: dict[int, list[int]]) -> list[int]:
    return [n for size, loop in zip(old, read, strict=True) for n in sizes.get(loop, [size])]


def _groups(read: Sequence[int], sizes: dict[int, list[int]]) -> list[list[int]]:
    return consecutive(len(sizes.get(loop, [1])) for loop in read)
