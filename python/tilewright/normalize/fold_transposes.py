# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-fold-transposes`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tilewright.ir.generics import (
    create_like,
    is_copy,
    kinds,
    loops_of,
    maker,
    maps,
    positions,
    renumber,
    set_maps,
    uses,
    walk,
)
from tilewright.ir.regroup import move_up
from tilewright.mlir import ir
from tilewright.passes import Pass, register


@register
@dataclass(frozen=True)
class FoldTransposes(Pass):
    """Fold transposing copies into the maps of the generic before or after them.

    A producer that nothing else reads writes its result in the transposed order at once. Otherwise consumers with
    plain maps read the untransposed tensor. Copies on both sides of a collapse become one before it. Windowed consumers
    (convolutions) keep the layout that they were given, and so do windowed sums whose images have other neighbours in
    memory than the transposed result: they would gather what they read.

    Before:
    ```mlir
    #same = affine_map<(m, n) -> (m, n)>
    #swap = affine_map<(m, n) -> (n, m)>
    func.func @main(%x: tensor<4x8xf32>) -> tensor<8x4xf32> {
      %e = tensor.empty() : tensor<4x8xf32>
      %y = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
          ins(%x : tensor<4x8xf32>) outs(%e : tensor<4x8xf32>) {
      ^bb0(%a: f32, %o: f32):
        %n = arith.negf %a : f32
        linalg.yield %n : f32
      } -> tensor<4x8xf32>
      %f = tensor.empty() : tensor<8x4xf32>
      %t = linalg.generic {indexing_maps = [#swap, #same], iterator_types = ["parallel", "parallel"]}
          ins(%y : tensor<4x8xf32>) outs(%f : tensor<8x4xf32>) {
      ^bb0(%a: f32, %o: f32):
        linalg.yield %a : f32
      } -> tensor<8x4xf32>
      return %t : tensor<8x4xf32>
    }
    ```
    After:
    ```mlir
    #map = affine_map<(d0, d1) -> (d1, d0)>
    #map1 = affine_map<(d0, d1) -> (d0, d1)>
    ...
    %t = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["parallel", "parallel"]}
        ins(%x : tensor<4x8xf32>) outs(%f : tensor<8x4xf32>) {
    ^bb0(%a: f32, %o: f32):
      %n = arith.negf %a : f32
      linalg.yield %n : f32
    } -> tensor<8x4xf32>
    ...
    return %t : tensor<8x4xf32>
    ```
    """

    name: ClassVar[str] = "tile-fold-transposes"
    dialects: ClassVar[tuple[str, ...]] = ("linalg", "tensor")

    def run(self, op: ir.Operation) -> None:
        """Visit each transposing copy once, in order."""
        for copy in walk(op, "linalg.generic"):
            if is_copy(copy) and move_up(copy, 0) and _makes_new_tensor(copy):
                copy.results[0].replace_all_uses_with(copy.operands[0])
                copy.erase()
                continue
            if not is_copy(copy) or not _makes_new_tensor(copy):
                continue
            source = _source_dims(copy)
            if source == sorted(source):
                continue
            if _fold_into_producer(copy, source):
                copy.erase()
            elif _fold_into_consumers(copy, source):
                copy.erase()


def _makes_new_tensor(op: ir.Operation) -> bool:
    init = maker(op.operands[len(op.operands) - 1])
    return init is not None and init.name == "tensor.empty"


def _source_dims(copy: ir.Operation) -> list[int]:
    """For each dimension of the result, the dimension of the input it comes from."""
    read, written = (positions(m) for m in maps(copy))
    return [read.index(loop) for loop in written]


def _fold_into_producer(copy: ir.Operation, source: list[int]) -> bool:
    value = copy.operands[0]
    producer = maker(value)
    if producer is None or producer.name != "linalg.generic" or len(producer.results) != 1:
        return False
    if len(list(uses(value))) != 1 or producer.block != copy.block:
        return False
    init = None if _would_gather(producer, source) else _permuted_init(producer, source)
    if init is None:
        return False
    producer.operands[len(producer.operands) - 1] = init
    own = maps(producer)
    written = positions(own[-1])
    own[-1] = ir.AffineMap.get(own[-1].n_dims, 0, [ir.AffineDimExpr.get(written[d]) for d in source])
    set_maps(producer, own)
    if not any(kinds(producer)):
        renumber(producer)
    value.set_type(init.type)
    copy.results[0].replace_all_uses_with(value)
    return True


def _would_gather(producer: ir.Operation, source: list[int]) -> bool:
    """Whether a windowed sum would write side by side what its image has apart, and does not yet."""
    if not any(kinds(producer)) or not source:
        return False
    *read, written = maps(producer)
    now, then = positions(written)[-1], positions(written)[source[-1]]
    images = [[loops_of(e) for e in m.results] for m in read if not m.is_projected_permutation]
    return any(then in frozenset().union(*image) and then not in image[-1] for image in images) and now != then


def _permuted_init(producer: ir.Operation, source: list[int]) -> ir.Value | None:
    """The producer's destination with permuted dimensions, made anew: tensor.empty, filled or not."""
    if not maps(producer)[-1].is_projected_permutation:
        return None
    old = producer.operands[len(producer.operands) - 1]
    if isinstance(old, ir.BlockArgument):
        return None
    made = old.owner.operation
    kind = ir.RankedTensorType(old.type)
    if not kind.has_static_shape:
        return None
    permuted = ir.RankedTensorType.get([kind.shape[d] for d in source], kind.element_type)
    if made.name not in ("tensor.empty", "linalg.fill"):
        return None
    with producer.location, ir.InsertionPoint(producer):
        return create_like(made, permuted)


def _fold_into_consumers(copy: ir.Operation, source: list[int]) -> bool:
    """Let every consumer read the copy's input. All or none: a copy that stays costs the same for any number.

    A copy before a loop stays for its consumers inside: each of their steps would read against the order.
    """
    result = copy.results[0]
    found = list(uses(result))
    if not found or not all(user.block == copy.block and _can_absorb(user, number) for user, number in found):
        return False
    for user, number in found:
        own = maps(user)
        read = list(own[number].results)
        at = [read[source.index(d)] for d in range(len(source))]
        own[number] = ir.AffineMap.get(own[number].n_dims, 0, at)
        user.operands[number] = copy.operands[0]
        set_maps(user, own)
    return True


def _can_absorb(user: ir.Operation, number: int) -> bool:
    if user.name != "linalg.generic" or number >= len(user.operands) - len(user.results):
        return False
    return all(isinstance(e, ir.AffineDimExpr | ir.AffineConstantExpr) for m in maps(user) for e in m.results)
