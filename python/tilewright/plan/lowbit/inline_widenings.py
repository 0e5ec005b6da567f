# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Pass `tile-inline-widenings`: small tensors that are only widened are no kernels of their own.

Operators of several steps compute in f32, so the scale of a normalization or the bias of a convolution in f16 is
widened first. Where these are weights, that happens at compile time. What a run brings would be a launch for a few
hundred numbers, and several microseconds; who reads them widens them in registers instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from tilewright.ir import decisions
from tilewright.ir.generics import body, kinds, maker, maps, uses
from tilewright.ir.structure import Kind, LinalgOp, Weights, blocks, describe, linalg_ops
from tilewright.ir.views import RESHAPES
from tilewright.mlir import ir
from tilewright.passes import Pass, register
from tilewright.plan.lowbit.fuse_dequantization import with_steps

#: Elements of what is widened again by each reader, at most: less than a launch's worth.
_FEW = 1 << 15
#: Steps that cost a reader nothing to speak of.
_CHEAP = frozenset({"arith.extf", "linalg.yield"})


@register
@dataclass(frozen=True)
class InlineWidenings(Pass):
    """Let larger elementwise operations and sums widen small tensors themselves.

    Before:
    ```mlir
    #i = affine_map<(i) -> (i)>
    #id = affine_map<(i, j) -> (i, j)>
    #row = affine_map<(i, j) -> (j)>
    func.func @main(%x: tensor<64x32xf32>, %s: tensor<32xf16>) -> tensor<64x32xf32> {
      %d = tensor.empty() : tensor<32xf32>
      %g = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel"]}
          ins(%s : tensor<32xf16>) outs(%d : tensor<32xf32>) {
      ^bb0(%p: f16, %o: f32):
        %u = arith.extf %p : f16 to f32
        linalg.yield %u : f32
      } -> tensor<32xf32>
      %e = tensor.empty() : tensor<64x32xf32>
      %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
          ins(%x, %g : tensor<64x32xf32>, tensor<32xf32>) outs(%e : tensor<64x32xf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %m = arith.mulf %p, %q : f32
        linalg.yield %m : f32
      } -> tensor<64x32xf32>
      return %y : tensor<64x32xf32>
    }
    ```
    After:
    ```mlir
    %y = linalg.generic {indexing_maps = [#map, #map1, #map], iterator_types = ["parallel", "parallel"]}
        ins(%x, %s : tensor<64x32xf32>, tensor<32xf16>) outs(%e : tensor<64x32xf32>) {
    ^bb0(%p: f32, %q: f16, %o: f32):
      %u = arith.extf %q : f16 to f32
      %m = arith.mulf %p, %u : f32
    ```
    """

    name: ClassVar[str] = "tile-inline-widenings"
    dialects: ClassVar[tuple[str, ...]] = ("arith", "linalg", "tensor")

    def run(self, op: ir.Operation) -> None:
        """Visit what is widened, in order; all of its readers take it, or none."""
        for block in blocks(op):
            weights = Weights()
            for member in [m.op for m in linalg_ops(block, weights) if _widens(m)]:
                readers = list(uses(member.results[0]))
                if readers and all(_takes(reader, number, member) for reader, number in readers):
                    while found := next(uses(member.results[0]), None):
                        _widen_in(*found, member)
                    member.erase()


def _widens(op: LinalgOp) -> bool:
    """Whether an operation is a small one that only widens its operand."""
    names = {step.operation.name for step in body(op.op).operations}
    small = op.kind is Kind.ELEMENTWISE and not op.dynamic and op.points <= _FEW
    return small and names == _CHEAP and len(op.inputs) == 1 and maps(op.op)[-1].is_permutation and op.inputs[0].pure


def _takes(reader: ir.Operation, number: int, made: ir.Operation) -> bool:
    """Whether a reader repeats what is widened: a larger operation, but no product (other rules for these)."""
    if reader.name != "linalg.generic" or reader.block != made.block or number >= len(reader.operands) - 1:
        return False
    if len(reader.results) != 1 or decisions.HOST.on(reader) or not maker(reader.results[0]):
        return False
    op = describe(reader, 0)
    if op.kind is Kind.CONTRACTION or op.tables:
        return False
    points = prod(ir.RankedTensorType(made.results[0].type).shape)
    larger = op.points > points or (op.points == points and not any(kinds(reader)) and _is_given(made))
    return op.inputs[number].pure and larger and sum(kinds(reader)) < op.rank


def _is_given(op: ir.Operation) -> bool:
    """Whether an operation reads what a run brings, as it comes: its reader may then belong to another task."""
    made = maker(op.operands[0])
    while made is not None and made.name in RESHAPES:
        made = maker(made.operands[0])
    return made is None


def _widen_in(reader: ir.Operation, number: int, made: ir.Operation) -> None:
    """Put a reader that widens one of its operands in the place of one that reads it wide."""
    new = with_steps(describe(reader, 0), number, made)
    reader.results[0].replace_all_uses_with(new.results[0])
    reader.erase()
