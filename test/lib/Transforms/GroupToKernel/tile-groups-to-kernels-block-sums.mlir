// RUN: tile-opt %s -split-input-file --tile-groups-to-kernels --canonicalize --cse -verify-diagnostics | FileCheck %s

// A row times weights in bytes with a scale and a zero point for each block of 32: a step of a block is one product of
// the row's element and widened bytes, behind a block the sums are centred and scaled.

// CHECK-LABEL: tile.kernel @row
// CHECK: %[[START:.*]] = arith.constant dense<0.000000e+00> : !tile.tile<1x16xf32>
// CHECK: scf.for %{{.*}} = %c0 to %c4 step %c1 iter_args(%[[ACC:.*]] =
// CHECK: %[[SUMS:.*]]:2 = scf.for %{{.*}} = %c0 to %c32 step %c1
// CHECK-SAME: {{^}} iter_args(%[[SUM:.*]] = {{.*}}, %[[XS:.*]] = {{.*}}) -> (!tile.tile<1x16xf32>, !tile.tile<1x1xf32>)
// CHECK-DAG: %[[X:.*]] = tile.load {{.*}} !tile.tile<1x1xf32>
// CHECK-DAG: %[[Q:.*]] = tile.load {{.*}} !tile.tile<1x16xi8>
// CHECK: %[[F:.*]] = tile.convert %[[Q]]
// CHECK: %[[PRODUCT:.*]] = tile.mma %[[X]], %[[F]], %[[SUM]]
// CHECK: %[[ROW:.*]] = arith.addf %[[XS]], %[[X]]
// CHECK-NOT: arith.mulf
// CHECK: scf.yield %[[PRODUCT]], %[[ROW]]
// CHECK: arith.negf
// CHECK: %[[CENTRED:.*]] = math.fma {{.*}}, %[[SUMS]]#0
// CHECK: %[[NEXT:.*]] = math.fma %[[CENTRED]], {{.*}}, %[[ACC]]
// CHECK: scf.yield %[[NEXT]]
#x = affine_map<(n, b, k) -> (b, k)>
#w = affine_map<(n, b, k) -> (b, k, n)>
#s = affine_map<(n, b, k) -> (b, n)>
#y = affine_map<(n, b, k) -> (n)>
func.func @main(%x: tensor<4x32xf32>, %w: tensor<4x32x16xi8>, %s: tensor<4x16xf32>, %z: tensor<4x16xi8>)
    -> tensor<16xf32> {
  %y = tile.group "l2" (%x1 = %x : tensor<4x32xf32>, %w1 = %w : tensor<4x32x16xi8>, %s1 = %s
      : tensor<4x16xf32>, %z1 = %z : tensor<4x16xi8>) -> (tensor<16xf32>) attributes {tile.kernel = "row"} {
    %r = tile.group "register" (%x2 = %x1 : tensor<4x32xf32>, %w2 = %w1 : tensor<4x32x16xi8>, %s2 = %s1
        : tensor<4x16xf32>, %z2 = %z1 : tensor<4x16xi8>) -> (tensor<16xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<16xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
      %p = linalg.generic {indexing_maps = [#x, #w, #s, #s, #y],
          iterator_types = ["parallel", "reduction", "reduction"]}
          ins(%x2, %w2, %s2, %z2 : tensor<4x32xf32>, tensor<4x32x16xi8>, tensor<4x16xf32>, tensor<4x16xi8>)
              outs(%f : tensor<16xf32>)
          attrs = {tile.block_sums = 1 : i64, tile.rtile = #tile.rtile<l2 = [16, 4, 32], register = [16, 1, 1],
              order = [0, 1, 2]>} {
      ^bb0(%a: f32, %q: i8, %c: f32, %n: i8, %o: f32):
        %u = arith.uitofp %q : i8 to f32
        %m = arith.uitofp %n : i8 to f32
        %d = arith.subf %u, %m : f32
        %v = arith.mulf %d, %c : f32
        %h = arith.mulf %a, %v : f32
        %t = arith.addf %o, %h : f32
        linalg.yield %t : f32
      } -> tensor<16xf32>
      tile.yield %p : tensor<16xf32>
    }
    tile.yield %r : tensor<16xf32>
  }
  return %y : tensor<16xf32>
}

// -----

// A scale that differs within the block cannot be multiplied behind it.

func.func @main(%x: tensor<4x32xf32>, %w: tensor<4x32x16xf32>, %s: tensor<4x32xf32>) -> tensor<16xf32> {
  %y = tile.group "l2" (%x1 = %x : tensor<4x32xf32>, %w1 = %w : tensor<4x32x16xf32>, %s1 = %s : tensor<4x32xf32>)
      -> (tensor<16xf32>) attributes {tile.kernel = "row"} {
    %r = tile.group "register" (%x2 = %x1 : tensor<4x32xf32>, %w2 = %w1 : tensor<4x32x16xf32>, %s2 = %s1
        : tensor<4x32xf32>) -> (tensor<16xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<16xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16xf32>) -> tensor<16xf32>
  // expected-error@+1 {{has tile.block_sums, but no operand with a scale that stays the same along the 1 innermost}}
      %p = linalg.generic {indexing_maps = [affine_map<(n, b, k) -> (b, k)>, affine_map<(n, b, k) -> (b, k, n)>,
          affine_map<(n, b, k) -> (b, k)>, affine_map<(n, b, k) -> (n)>],
          iterator_types = ["parallel", "reduction", "reduction"]}
          ins(%x2, %w2, %s2 : tensor<4x32xf32>, tensor<4x32x16xf32>, tensor<4x32xf32>) outs(%f : tensor<16xf32>)
          attrs = {tile.block_sums = 1 : i64, tile.rtile = #tile.rtile<l2 = [16, 4, 32], register = [16, 1, 1],
              order = [0, 1, 2]>} {
      ^bb0(%a: f32, %q: f32, %c: f32, %o: f32):
        %v = arith.mulf %q, %c : f32
        %h = arith.mulf %a, %v : f32
        %t = arith.addf %o, %h : f32
        linalg.yield %t : f32
      } -> tensor<16xf32>
      tile.yield %p : tensor<16xf32>
    }
    tile.yield %r : tensor<16xf32>
  }
  return %y : tensor<16xf32>
}
