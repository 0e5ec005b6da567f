# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""What tasks move and hold: the worked example of Welder (section 4), windows, best fit."""

from __future__ import annotations

import random

import pytest

from tilewright.ir.structure import LinalgOp, Weights, blocks, linalg_ops
from tilewright.mlir import ir
from tilewright.plan.model.bestfit import ALIGNMENT, Request, pack
from tilewright.plan.model.traffic import boundary, footprint, propagate, traffic

MIB = 1 << 20

PRODUCT_SOFTMAX = """
#a = affine_map<(i, j, k) -> (i, k)>
#b = affine_map<(i, j, k) -> (k, j)>
#c = affine_map<(i, j, k) -> (i, j)>
#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
func.func @main(%a: tensor<98304x64xf32>, %b: tensor<64x128xf32>) -> tensor<98304x128xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<98304x128xf32>
  %r = tensor.empty() : tensor<98304xf32>
  %s = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%a, %b : tensor<98304x64xf32>, tensor<64x128xf32>) outs(%e : tensor<98304x128xf32>) {
  ^bb0(%x: f32, %y: f32, %o: f32):
    %p = arith.mulf %x, %y : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<98304x128xf32>
  %m = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%s : tensor<98304x128xf32>) outs(%r : tensor<98304xf32>) {
  ^bb0(%x: f32, %o: f32):
    %t = arith.maximumf %o, %x : f32
    linalg.yield %t : f32
  } -> tensor<98304xf32>
  %x = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%s, %m : tensor<98304x128xf32>, tensor<98304xf32>) outs(%e : tensor<98304x128xf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %d = arith.subf %v, %w : f32
    %t = math.exp %d : f32
    linalg.yield %t : f32
  } -> tensor<98304x128xf32>
  %n = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<98304x128xf32>) outs(%r : tensor<98304xf32>) {
  ^bb0(%v: f32, %o: f32):
    %t = arith.addf %o, %v : f32
    linalg.yield %t : f32
  } -> tensor<98304xf32>
  %y = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x, %n : tensor<98304x128xf32>, tensor<98304xf32>) outs(%e : tensor<98304x128xf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %t = arith.divf %v, %w : f32
    linalg.yield %t : f32
  } -> tensor<98304x128xf32>
  return %y : tensor<98304x128xf32>
}
"""

WINDOW = """
#x = affine_map<(i, w) -> (2 * i + w)>
#k = affine_map<(i, w) -> (w)>
#y = affine_map<(i, w) -> (i)>
#id = affine_map<(i) -> (i)>
func.func @main(%x: tensor<65xf32>, %k: tensor<3xf32>) -> tensor<32xf32> {
  %e = tensor.empty() : tensor<65xf32>
  %f = tensor.empty() : tensor<32xf32>
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<65xf32>) outs(%e : tensor<65xf32>) {
  ^bb0(%v: f32, %o: f32):
    %t = math.exp %v : f32
    linalg.yield %t : f32
  } -> tensor<65xf32>
  %y = linalg.generic {indexing_maps = [#x, #k, #y], iterator_types = ["parallel", "reduction"]}
      ins(%n, %k : tensor<65xf32>, tensor<3xf32>) outs(%f : tensor<32xf32>) {
  ^bb0(%v: f32, %w: f32, %o: f32):
    %p = arith.mulf %v, %w : f32
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<32xf32>
  return %y : tensor<32xf32>
}
"""


TRANSPOSE = """
#x = affine_map<(c, i) -> (i, c)>
#y = affine_map<(c, i) -> (c, i)>
func.func @main(%x: tensor<40x64xf32>) -> tensor<64x40xf32> {
  %e = tensor.empty() : tensor<64x40xf32>
  %y = linalg.generic {indexing_maps = [#x, #y], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<40x64xf32>) outs(%e : tensor<64x40xf32>) {
  ^bb0(%v: f32, %o: f32):
    linalg.yield %v : f32
  } -> tensor<64x40xf32>
  return %y : tensor<64x40xf32>
}
"""


@pytest.fixture
def operations():
    """The operations of @main in a module given as text."""
    with ir.Context() as context:
        yield lambda text: _operations(ir.Module.parse(text, context))


def _operations(module: ir.Module) -> list[LinalgOp]:
    _operations.alive = module  # type: ignore[attr-defined]
    (block,) = (b for b in blocks(module.operation) if len(b.operations) > 1)
    return linalg_ops(block, Weights())


@pytest.mark.parametrize("rows,per_task,total", [(4, 35840, 840), (16, 45056, 264)])
def test_traffic_of_the_worked_example(operations, rows, per_task, total):
    ops = operations(PRODUCT_SOFTMAX)
    assert traffic(ops, {0: rows}) == 98304 // rows * per_task == total * MIB


def test_boxes_of_a_product_and_softmax(operations):
    ops = operations(PRODUCT_SOFTMAX)
    boxes = propagate(ops, {0: 4})
    assert [boxes[op] for op in ops] == [(4, 128, 64), (4, 128), (4, 128), (4, 128), (4, 128)]


def test_footprint_is_what_lives_at_once(operations):
    """Scores, exponentials, maxima and sums: the maxima's place is free for the sums."""
    row = 4 * 128 * 4
    small = ALIGNMENT
    assert 2 * row + small <= footprint(operations(PRODUCT_SOFTMAX), {0: 4}) <= 2 * row + 2 * small


def test_a_window_needs_its_halo(operations):
    first, window = operations(WINDOW)
    assert propagate([first, window], {0: 8}) == {first: (17,), window: (8, 3)}


def test_columns_of_few_elements_move_whole_lines(operations):
    """A task of one column of a row-major tensor reads a line of 64 bytes per row for each element."""
    (move,) = operations(TRANSPOSE)
    (reads,) = boundary([move], {0: 1}).values()
    assert (reads.moved, reads.lines) == (reads.whole, 16 * reads.whole)
    (reads,) = boundary([move], {0: 16}).values()
    assert reads.moved == reads.lines == reads.whole


def _peak(requests: list[Request]) -> int:
    steps = range(max(r.last for r in requests) + 1)
    return max(sum(r.bytes for r in requests if r.first <= s <= r.last) for s in steps)


@pytest.mark.parametrize("seed", range(20))
def test_best_fit(seed):
    """Nothing that lives at once overlaps; between the peak of what lives and the sum of all; aligned."""
    rng = random.Random(seed)
    requests = []
    for _ in range(rng.randint(1, 30)):
        first = rng.randint(0, 20)
        requests.append(Request(first, first + rng.randint(0, 6), ALIGNMENT * rng.randint(1, 50)))
    placed = pack(requests)
    for a, (one, start) in enumerate(zip(requests, placed.offsets, strict=True)):
        assert start % 32 == 0 and start + one.bytes <= placed.bytes
        for other, at in list(zip(requests, placed.offsets, strict=True))[:a]:
            if one.first <= other.last and other.first <= one.last:
                assert start + one.bytes <= at or at + other.bytes <= start
    assert _peak(requests) <= placed.bytes <= sum(r.bytes for r in requests)


def test_best_fit_reuses_the_smallest_hole():
    """32 then 8 blocks are freed; 8 blocks go into the hole of 8, not into that of 32."""
    k = ALIGNMENT
    sizes = [(0, 3, 32 * k), (1, 9, k), (2, 3, 8 * k), (3, 9, k), (4, 9, 8 * k)]
    placed = pack([Request(*r) for r in sizes])
    assert placed.offsets[4] == placed.offsets[2]


def test_what_meets_in_registers_is_not_held(operations):
    ops = operations(PRODUCT_SOFTMAX)
    assert footprint(ops, {0: 4}, {ops[0]}) < footprint(ops, {0: 4})
