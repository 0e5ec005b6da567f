# Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
# See LICENSE for license information.
# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
"""Bodies run on all cores at once compute what they compute core by core, and cost what is counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.mlir import ir
from tilewright.sim.coremesh.program import Cost
from tilewright.sim.coremesh_ir.cost import cost_of
from tilewright.sim.coremesh_ir.kernel import Kernel

PROGRAM = """
coremesh.program "p" grid(1, 1) () : () -> () {{
  {buffers}
  coremesh.compute "c" ({reads}) to (@W) {{
    {body}
    coremesh.yield %r : {result}
  }}
  coremesh.yield
}}
"""

PRODUCT = """
    %r = linalg.matmul ins(%a, %b : tensor<3x5xf32>, tensor<5x7xf32>) outs(%c : tensor<3x7xf32>) -> tensor<3x7xf32>
"""
SOFTMAX_PART = """
    %low = arith.constant 0xFF800000 : f32
    %e = tensor.empty() : tensor<3xf32>
    %init = linalg.fill ins(%low : f32) outs(%e : tensor<3xf32>) -> tensor<3xf32>
    %m = linalg.reduce ins(%a : tensor<3x5xf32>) outs(%init : tensor<3xf32>) dimensions = [1]
      (%x: f32, %y: f32) {
        %0 = arith.maximumf %x, %y : f32
        linalg.yield %0 : f32
      }
    %f = tensor.empty() : tensor<3x5xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>,
        affine_map<(i, j) -> (i, j)>], iterator_types = ["parallel", "parallel"]}
        ins(%a, %m : tensor<3x5xf32>, tensor<3xf32>) outs(%f : tensor<3x5xf32>) {
      ^bb0(%x: f32, %y: f32, %z: f32):
        %0 = arith.subf %x, %y : f32
        %1 = math.exp %0 : f32
        linalg.yield %1 : f32
    } -> tensor<3x5xf32>
"""
ELEMENTWISE = """
    %two = arith.constant dense<2.0> : tensor<3x5xf32>
    %0 = arith.mulf %a, %two : tensor<3x5xf32>
    %1 = arith.cmpf ogt, %0, %two : tensor<3x5xf32>
    %2 = arith.select %1, %0, %a : tensor<3x5xi1>, tensor<3x5xf32>
    %r = arith.truncf %2 : tensor<3x5xf32> to tensor<3x5xf16>
"""
ROWS = """
    %0 = tensor.extract_slice %a[1, 0] [1, 5] [1, 1] : tensor<3x5xf32> to tensor<1x5xf32>
    %r = tensor.insert_slice %0 into %a[0, 0] [1, 5] [1, 1] : tensor<1x5xf32> into tensor<3x5xf32>
"""
INDEXED = """
    %e = tensor.empty() : tensor<3x5xf32>
    %r = linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
        iterator_types = ["parallel", "parallel"]} ins(%a : tensor<3x5xf32>) outs(%e : tensor<3x5xf32>) {
      ^bb0(%x: f32, %z: f32):
        %i = linalg.index 1 : index
        %n = arith.index_cast %i : index to i32
        %s = arith.sitofp %n : i32 to f32
        %0 = arith.addf %x, %s : f32
        linalg.yield %0 : f32
    } -> tensor<3x5xf32>
"""
MIXED = INDEXED.replace("%r", "%q").replace("%e", "%d") + SOFTMAX_PART.replace("%a", "%q")
SHAPES = """
    %0 = tensor.extract_slice %a[0, 0] [2, 3] [2, 2] : tensor<3x5xf32> to tensor<2x3xf32>
    %1 = tensor.collapse_shape %0 [[0, 1]] : tensor<2x3xf32> into tensor<6xf32>
    %2 = tensor.concat dim(0) %1, %1 : (tensor<6xf32>, tensor<6xf32>) -> tensor<12xf32>
    %r = tensor.expand_shape %2 [[0, 1]] output_shape [4, 3] : tensor<12xf32> into tensor<4x3xf32>
"""
VECTOR = """
    %r = linalg.vecmat ins(%x, %a : tensor<3xf32>, tensor<3x5xf32>) outs(%y : tensor<5xf32>) -> tensor<5xf32>
"""
MOVED = """
    %i = arith.constant 1 : index
    %r = tensor.extract_slice %a[%i, 0] [2, 5] [1, 1] : tensor<3x5xf32> to tensor<2x5xf32>
"""
A, B, C = ("%a", "3x5xf32"), ("%b", "5x7xf32"), ("%c", "3x7xf32")
X, Y = ("%x", "3xf32"), ("%y", "5xf32")
#: Body, tiles read, the tile written, whether cores run at once, its cost.
CASES = {
    "product": (PRODUCT, [A, B, C], "3x7xf32", True, Cost(105, 35, 0, 32)),
    "softmax": (SOFTMAX_PART, [A], "3x5xf32", True, Cost(0, 1 + 5 + 2, 3 + 15 + 30, 32)),
    "elementwise": (ELEMENTWISE, [A], "3x5xf16", True, Cost(0, 4, 60, 32)),
    "rows": (ROWS, [A], "3x5xf32", True, Cost(0, 2, 20, 32)),
    "mixed": (MIXED, [A], "3x5xf32", True, Cost(0, 3 + 8, 45 + 48, 32)),
    "shapes": (SHAPES, [A], "4x3xf32", True, Cost(0, 2, 6 + 12, 32)),
    "indexed": (INDEXED, [A], "3x5xf32", True, Cost(0, 3, 45, 32)),
    "moved": (MOVED, [A], "2x5xf32", False, Cost(0, 1, 10, 32)),
    "vector": (VECTOR, [X, A, Y], "5xf32", True, Cost(15, 3, 0, 32)),
    "copy": ("%r = tensor.cast %a : tensor<3x5xf32> to tensor<3x5xf32>", [A], "3x5xf32", True, Cost(0, 1, 15, 32)),
}


def kernel(case: str) -> Kernel:
    body, reads, written, *_ = CASES[case]
    names = "RSTUV"
    buffers = [f"coremesh.buffer @{name} : tensor<{tile}>" for name, (_, tile) in zip(names, reads, strict=False)]
    slots = [f"{value} = @{name} : tensor<{tile}>" for name, (value, tile) in zip(names, reads, strict=False)]
    text = PROGRAM.format(
        buffers="\n".join([*buffers, f"coremesh.buffer @W : tensor<{written}>"]),
        reads=", ".join(slots),
        body=body,
        result=f"tensor<{written}>",
    )
    with ir.Context():
        module = ir.Module.parse(text)
        program = module.body.operations[0]
        return Kernel(list(program.regions[0].blocks[0].operations)[-2].operation)


def tiles(case: str, cores: int) -> list[np.ndarray]:
    rng = np.random.default_rng(7)
    sizes = [tuple(map(int, tile.split("x")[:-1])) for _, tile in CASES[case][1]]
    return [rng.standard_normal((cores, *size)).astype(np.float32) for size in sizes]


@pytest.mark.parametrize("cores", [1, 2, 7])
@pytest.mark.parametrize("case", CASES)
def test_all_cores_at_once(case, cores):
    run, given = kernel(case), tiles(case, cores)
    assert run.is_batched == CASES[case][3]
    before = [tile.copy() for tile in given]
    (together,) = run(*given)
    assert together.shape[0] == cores
    for core in range(cores):
        (alone,) = run(*[tile[core : core + 1] for tile in given])
        np.testing.assert_array_equal(together[core], alone[0])
    for tile, old in zip(given, before, strict=True):
        np.testing.assert_array_equal(tile, old)


def test_what_bodies_compute():
    a, b, c = tiles("product", 4)
    np.testing.assert_allclose(kernel("product")(a, b, c)[0], a @ b + c, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(kernel("softmax")(a)[0], np.exp(a - a.max(2, keepdims=True)), rtol=1e-6)
    np.testing.assert_array_equal(kernel("indexed")(a)[0], a + np.arange(5, dtype=np.float32))
    np.testing.assert_array_equal(kernel("rows")(a)[0][:, 0], a[:, 1])
    part = a[:, ::2, ::2].reshape(4, 2, 3)
    np.testing.assert_array_equal(kernel("shapes")(a)[0], np.concatenate([part, part], 1))
    np.testing.assert_array_equal(kernel("elementwise")(a)[0], np.where(2 * a > 2, 2 * a, a).astype(np.float16))


@pytest.mark.parametrize("case", CASES)
def test_cost(case):
    assert cost_of(kernel(case).node) == CASES[case][4]
