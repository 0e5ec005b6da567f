// RUN: tile-opt %s --tile-groups-to-kernels --canonicalize --cse | FileCheck %s

// A window of three steps, 4 places apart, over 12 places between borders of four zeros, in tiles of four places. What
// the first tile reads at step 0 is border, so the window starts at step 1 there; at the last one it ends before step
// 2.

// CHECK-DAG: #[[$LOW:.*]] = affine_map<(d0) -> ((-d0 + 1) ceildiv 4)>
// CHECK-DAG: #[[$HIGH:.*]] = affine_map<(d0) -> ((-d0 + 15) floordiv 4 + 1)>
// CHECK-LABEL: tile.kernel @window
// CHECK: scf.for %[[I:.*]] = %c0 to %c12 step %c4
// CHECK: %[[L:.*]] = affine.apply #[[$LOW]](%[[I]])
// CHECK: %[[FROM:.*]] = arith.maxsi %[[L]], %c0
// CHECK: %[[H:.*]] = affine.apply #[[$HIGH]](%[[I]])
// CHECK: %[[TO:.*]] = arith.minsi %[[H]], %c3
// CHECK: scf.for %{{.*}} = %[[FROM]] to %[[TO]] step %c1
// CHECK: scf.for %{{.*}} = %c0 to %c16
// CHECK: tile.mma
func.func @main(%x: tensor<20x16xf32>, %w: tensor<3x16x32xf32>) -> tensor<12x32xf32> {
  %y = tile.group "l2" (%x1 = %x : tensor<20x16xf32>, %w1 = %w : tensor<3x16x32xf32>) -> (tensor<12x32xf32>)
      attributes {tile.kernel = "window"} {
    %r = tile.group "register" (%x2 = %x1 : tensor<20x16xf32>, %w2 = %w1 : tensor<3x16x32xf32>) -> (tensor<12x32xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<12x32xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<12x32xf32>) -> tensor<12x32xf32>
      %p = linalg.generic {indexing_maps = [affine_map<(i, n, k, c) -> (i + k * 4, c)>,
          affine_map<(i, n, k, c) -> (k, c, n)>,
          affine_map<(i, n, k, c) -> (i, n)>], iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
          ins(%x2, %w2 : tensor<20x16xf32>, tensor<3x16x32xf32>) outs(%f : tensor<12x32xf32>)
          attrs = {tile.image = array<i64: 0, 0, 4, 16>,
              tile.rtile = #tile.rtile<l2 = [12, 32, 3, 16], register = [4, 32, 1, 1], order = [0, 1, 2, 3]>} {
      ^bb0(%a: f32, %b: f32, %o: f32):
        %m = arith.mulf %a, %b : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
      } -> tensor<12x32xf32>
      tile.yield %p : tensor<12x32xf32>
    }
    tile.yield %r : tensor<12x32xf32>
  }
  return %y : tensor<12x32xf32>
}
