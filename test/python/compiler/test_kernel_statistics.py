"""What the report reads from the IR: groups with their decisions, launches, work and operands of kernels."""

from __future__ import annotations

import pytest

pytest.importorskip("tilewright.dialects")
ir = pytest.importorskip("tilewright.mlir.ir")

from tilewright.compiler import kernel_statistics  # noqa: E402

KERNELS = """
tile.kernel @mm(%A: memref<8x64xf32>, %B: memref<64x32xf32>, %C: memref<8x32xf32>) grid(%i, %j) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !tile.tile<8x32xf32>
  %acc = scf.for %k = %c0 to %c64 step %c1 iter_args(%c = %zero) -> !tile.tile<8x32xf32> {
    %a = tile.load %A[%c0, %k] : memref<8x64xf32>, !tile.tile<8x1xf32>
    %b = tile.load %B[%k, %c0] : memref<64x32xf32>, !tile.tile<1x32xf32>
    %d = tile.mma %a, %b, %c : !tile.tile<8x1xf32>, !tile.tile<1x32xf32>, !tile.tile<8x32xf32>
    scf.yield %d : !tile.tile<8x32xf32>
  }
  %r = arith.addf %acc, %acc : !tile.tile<8x32xf32>
  tile.store %r, %C[%c0, %c0] : !tile.tile<8x32xf32>, memref<8x32xf32>
  tile.return
}
func.func @main(%a: tensor<8x64xf32>, %b: tensor<64x32xf32>) -> tensor<8x32xf32> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c3 = arith.constant 3 : index
  %e = tensor.empty() : tensor<8x32xf32>
  %r = scf.for %t = %c0 to %c3 step %c1 iter_args(%x = %e) -> tensor<8x32xf32> {
    %y = tile.launch @mm grid(%c2, %c3) ins(%a, %b : tensor<8x64xf32>, tensor<64x32xf32>)
        outs(%x : tensor<8x32xf32>) -> (tensor<8x32xf32>) loc("/layer.0/MatMul")
    scf.yield %y : tensor<8x32xf32>
  }
  return %r : tensor<8x32xf32>
}
"""


def observe(phase, text):
    found = {}
    with ir.Context():
        kernel_statistics.observe(found, phase, ir.Module.parse(text))
    return found


def test_kernels():
    found = observe("tile", KERNELS)
    assert found["kernel_text"]["mm"].startswith("tile.kernel @mm(")
    kernel = found["kernels"]["mm"]
    assert kernel["launches"] == 3 and kernel["grid"] == [2, 3] and kernel["tasks"] == 6
    assert kernel["flops"] == 6 * (64 * 2 * 8 * 32 + 8 * 32)
    assert kernel["bytes"] == 4 * (8 * 64 + 64 * 32 + 8 * 32)
    assert kernel["locations"] == ["/layer.0/MatMul"]
    assert kernel["shapes"] == ["tensor<8x64xf32>", "tensor<64x32xf32>", "tensor<8x32xf32>"]


GROUPS = """
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %y = tile.group "l2" (%a = %x : tensor<8x4xf32>) -> (tensor<8x4xf32>) attributes {tile.kernel = "exp_8x4"} {
    %e = tensor.empty() : tensor<8x4xf32>
    %r = linalg.generic {
        indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i, j)>],
        iterator_types = ["parallel", "parallel"]} ins(%a : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>)
        attrs = {tile.rtile = #tile.rtile<l2 = [8, 4]>} {
      ^bb0(%in: f32, %out: f32):
        %v = math.exp %in : f32
        linalg.yield %v : f32
    } -> tensor<8x4xf32> loc("/layer.0/Exp")
    tile.yield %r : tensor<8x4xf32>
  }
  return %y : tensor<8x4xf32>
}
"""


def test_groups():
    (group,) = observe("plan", GROUPS)["groups"]
    assert group["name"] == "exp_8x4" and group["level"] == "l2" and group["results"] == ["tensor<8x4xf32>"]
    assert group["flops"] == 8 * 4 and not group["gathers"]
    (op,) = group["ops"]
    assert op["op"] == "linalg.generic" and op["location"] == "/layer.0/Exp" and op["body"] == "math.exp"
    assert op["decisions"] == "tile.rtile = #tile.rtile<l2 = [8, 4]>"


PRODUCT = """
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n floordiv 8, k, n mod 8)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @main(%x: tensor<3x5xf32>, %w: tensor<2x5x8xf32>, %z: tensor<3x16xf32>) -> tensor<3x16xf32> {
  %y = tile.group "l2" (%a = %x : tensor<3x5xf32>, %b = %w : tensor<2x5x8xf32>, %c = %z : tensor<3x16xf32>)
      -> (tensor<3x16xf32>) {
    %r = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%a, %b : tensor<3x5xf32>, tensor<2x5x8xf32>) outs(%c : tensor<3x16xf32>) {
      ^bb0(%p: f32, %q: f32, %s: f32):
        %m = arith.mulf %p, %q : f32
        %t = arith.addf %s, %m : f32
        linalg.yield %t : f32
    } -> tensor<3x16xf32>
    tile.yield %r : tensor<3x16xf32>
  }
  return %y : tensor<3x16xf32>
}
"""


def test_work_of_a_product_with_packed_weights():
    (group,) = observe("plan", PRODUCT)["groups"]
    assert group["flops"] == 2 * 3 * 16 * 5


def test_scratch_and_modules_without_main():
    text = "llvm.func @k() attributes {tile.scratch_bytes = 640 : i64} { llvm.return }"
    assert observe("lower", text) == {"scratch": {"k": 640}}
    assert observe("plan", "module {}") == {} and observe("tile", "module {}") == {"kernels": {}, "kernel_text": {}}
    assert observe("normalize", KERNELS) == {}
