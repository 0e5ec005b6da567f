# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Programs built in Python are those written as text."""

from __future__ import annotations

import pytest

from tilewright.dialects.coremesh import at_least, at_most, equal, program
from tilewright.mlir import ir
from tilewright.mlir.dialects import arith, func

TEXT = """
func.func @f(%a: tensor<4x9xf32>) -> tensor<4x9xf32> {
  %r = coremesh.program "around" grid(2, 3) (%in = %a) : (tensor<4x9xf32>) -> tensor<4x9xf32> {
    coremesh.buffer @A : tensor<2x3xf32> slots 2 address 16
    coremesh.route @left along x ring from (p + 1) mod 3 colors [7, 8, 9] by (p + q) mod 3
    coremesh.route @down along y from p - 1
    coremesh.place %in in @A block(y, x) ring : tensor<4x9xf32>
    coremesh.loop 3 {
      %s = coremesh.send @A[i mod 2] on @left
      %t = coremesh.recv @A[(i + 1) mod 2] from @left
      coremesh.wait round %s, %t
      coremesh.loop 2 {
        %u = coremesh.relay @A[j] from @down to @left combine max where ring (x >= 1, x <= 2, y == 1)
        %v = coremesh.recv @A[1] from @down combine add where (i - j >= 0)
        coremesh.wait %u, %v
      }
    }
    coremesh.compute "double" (%x = @A : tensor<2x3xf32>) to (@A[1], @A) where (y == 0) {
      %0 = arith.addf %x, %x : tensor<2x3xf32>
      coremesh.yield %0, %x : tensor<2x3xf32>, tensor<2x3xf32>
    }
    %out = coremesh.collect @A[1] block(y, x), @A block(y, x) ring : tensor<4x9xf32>
    coremesh.yield %out : tensor<4x9xf32>
  }
  return %r : tensor<4x9xf32>
}
"""


def build(tensor: ir.Value) -> ir.Value:
    with program("around", (2, 3), [tensor], [tensor.type]) as p:
        tiles = p.buffer("A", ir.RankedTensorType.get((2, 3), ir.F32Type.get()), slots=2, address=16)
        left = p.route("left", "x", (p.p + 1) % 3, order="ring", colors=[7, 8, 9], color=(p.p + p.q) % 3)
        down = p.route("down", "y", p.p - 1)
        p.place(p.inputs[0], tiles[0], (p.y, p.x), order="ring")
        with p.loop(3) as i:
            p.wait([p.send(tiles[i % 2], left), p.recv(tiles[(i + 1) % 2], left)], overhead="round")
            with p.loop(2) as j:
                some = [at_least(p.x, 1), at_most(p.x, 2), equal(p.y, 1)]
                u = p.relay(tiles[j], down, left, combine="max", where=some, order="ring")
                v = p.recv(tiles[1], down, combine="add", where=[at_least(i, j)])
                p.wait([u, v])
        with p.compute("double", [tiles[0]], [tiles[1], tiles[0]], where=[equal(p.y, 0)]) as (x,):
            p.yield_(arith.addf(x, x), x)
        p.yield_(p.collect([(tiles[1], (p.y, p.x)), (tiles[0], (p.y, p.x))], tensor.type, order="ring"))
    return p.op.results[0]


def test_built_as_written():
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.create()
        type_ = ir.RankedTensorType.get((4, 9), ir.F32Type.get())
        with ir.InsertionPoint(module.body):
            function = func.FuncOp("f", ([type_], [type_]))
            with ir.InsertionPoint(function.add_entry_block()):
                func.ReturnOp([build(function.arguments[0])])
        module.operation.verify()
        assert str(module) == str(ir.Module.parse(TEXT))


def test_a_mistake_is_found_by_the_verifier():
    with ir.Context(), ir.Location.unknown():
        module = ir.Module.create()
        with ir.InsertionPoint(module.body), program("p", (1, 1), [], []) as p:
            tiles = p.buffer("A", ir.RankedTensorType.get((2,), ir.F32Type.get()))
            p.send(tiles[0], p.route("r", "x", 0))
            p.yield_()
        with pytest.raises(ir.MLIRError, match="makes a token that nobody waits for"):
            module.operation.verify()
