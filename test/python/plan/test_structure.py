# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Facts that the deciding passes rest on."""

import pytest

from tilewright.ir.structure import Kind, Weights, blocks, linalg_ops, set_attribute
from tilewright.mlir import ir
from tilewright.passes import run_pipeline

SOFTMAX = """
#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @main(%x: tensor<128x384xf32>) -> tensor<128x384xf32> {
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x384xf32>
  %r = tensor.empty() : tensor<128xf32>
  %f = linalg.fill ins(%z : f32) outs(%r : tensor<128xf32>) -> tensor<128xf32>
  %m = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<128x384xf32>) outs(%f : tensor<128xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.maximumf %o, %a : f32
    linalg.yield %n : f32
  } -> tensor<128xf32>
  %ex = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<128x384xf32>, tensor<128xf32>) outs(%e : tensor<128x384xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.subf %a, %b : f32
    %n1 = math.exp %n : f32
    linalg.yield %n1 : f32
  } -> tensor<128x384xf32>
  %s = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%ex : tensor<128x384xf32>) outs(%f : tensor<128xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.addf %o, %a : f32
    linalg.yield %n : f32
  } -> tensor<128xf32>
  %y = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
      ins(%ex, %s : tensor<128x384xf32>, tensor<128xf32>) outs(%e : tensor<128x384xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %n = arith.divf %a, %b : f32
    linalg.yield %n : f32
  } -> tensor<128x384xf32>
  return %y : tensor<128x384xf32>
}
"""


@pytest.fixture
def softmax():
    with ir.Context(), ir.Location.unknown():
        yield ir.Module.parse(SOFTMAX)


def members(module):
    return [op for block in blocks(module.operation) for op in linalg_ops(block, Weights())]


def integers(module, name):
    return [ir.IntegerAttr(op.op.attributes[name]).value for op in members(module)]


def test_kinds_and_extents(softmax):
    ops = members(softmax)
    assert [op.kind for op in ops] == [Kind.REDUCE, Kind.ELEMENTWISE, Kind.REDUCE, Kind.ELEMENTWISE]
    assert all(op.extents == (128, 384) for op in ops)
    assert [a.dims for a in ops[1].inputs] == [(0, 1), (0,)]


def test_softmax_is_one_task_of_three_nests(softmax):
    run_pipeline(softmax.operation, "builtin.module(tile-plan-fusion)")
    assert integers(softmax, "tile.task") == [0, 0, 0, 0]
    assert integers(softmax, "tile.nest") == [0, 1, 1, 2]


def test_tasks_of_softmax_cover_whole_rows(softmax):
    run_pipeline(softmax.operation, "builtin.module(tile-plan-fusion,tile-plan-tiles)")
    last = members(softmax)[-1]
    assert str(last.op.attributes["tile.rtile"]) == "#tile.rtile<l2 = [2, 384], register = [1, 128], order = [0, 1]>"


def test_narrow_vectors_give_narrow_tiles(softmax):
    run_pipeline(softmax.operation, "builtin.module(tile-plan-fusion,tile-plan-tiles{lanes=8 registers=16})")
    assert "register = [1, 64]" in str(members(softmax)[-1].op.attributes["tile.rtile"])


def test_readers_are_found_again_after_their_attributes_changed(softmax):
    """The hash of an operation is one of its contents: sets of operations lose what a decision is written to."""
    ops = members(softmax)
    readers = ops[0].readers
    for number, op in enumerate(ops):
        set_attribute(op.op, "tile.nest", f"{number} : i64")
    assert readers == {ops[1].result}
    assert ops[1].readers == {ops[2].result, ops[3].result}
    assert ops[3].readers == {None}, "the function's end makes nothing"
