// RUN: tile-opt %s --tile-groups-to-kernels --canonicalize --cse | FileCheck %s

// The rows' number is known at run time only. A panel of 64 * 32 floats is 128 lines; rounds of four steps, 16 of them
// in a tile of 8 rows. Each of the first eight tiles fetches an eighth of the next panel, a line in each round. A
// single tile also fetches the other seven lines of each round, and so does a row where no tile is whole. Where there
// are up to four tiles, the first two fetch what lies behind their eighths: 3 lines in each round.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n floordiv 32, k, n mod 32)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-DAG: #[[$EIGHTH:.*]] = affine_map<(d0, d1)[s0] -> (d1 * 4 + (d0 floordiv 8) * 256 + s0 * 2048 + 2048)>
// CHECK-DAG: #[[$REST:.*]] = affine_map<(d0, d1)[s0] -> (d1 * 28 + (d0 floordiv 8) * 1792 + s0 * 2048 + 2304)>
// CHECK-DAG: #[[$HALF:.*]] = affine_map<(d0, d1)[s0] -> (d1 * 12 + (d0 floordiv 8) * 768 + s0 * 2048 + 2560)>
// CHECK-LABEL: tile.kernel @ahead
// CHECK-SAME: %[[B:[a-z0-9]*]]: memref<3x64x32xf32>
// CHECK: %[[HERE:.*]] = affine.min
// CHECK: scf.for %[[M:.*]] = %c0 to %{{.*}} step %c8
// CHECK: scf.for %[[K:.*]] = %c0 to %c64 step %c4 iter_args
// CHECK: %[[FLAT:.*]] = memref.collapse_shape %[[B]]
// CHECK: %[[AT:.*]] = affine.apply #[[$EIGHTH]](%[[M]], %[[K]])
// CHECK: memref.prefetch %[[FLAT]][%[[AT]]], read, locality<2>, data : memref<6144xf32>
// CHECK: %[[FIRST:.*]] = arith.cmpi eq, %[[M]], %c0
// CHECK: %[[ONE:.*]] = arith.cmpi slt, %[[HERE]], %c20
// CHECK: %[[SINGLE:.*]] = arith.andi %[[FIRST]], %[[ONE]]
// CHECK: %[[FEW:.*]] = arith.cmpi sle, %[[HERE]], %c32
// CHECK: %[[EARLY:.*]] = arith.cmpi slt, %[[M]], %c16
// CHECK: %[[BOTH:.*]] = arith.andi %[[FEW]], %[[EARLY]]
// CHECK: scf.if %[[SINGLE]]
// CHECK: %[[FROM:.*]] = affine.apply #[[$REST]](%[[M]], %[[K]])
// CHECK: memref.prefetch %[[FLAT]][%[[FROM]]]
// CHECK-COUNT-6: memref.prefetch
// CHECK: } else {
// CHECK: scf.if %[[BOTH]]
// CHECK: %[[THERE:.*]] = affine.apply #[[$HALF]](%[[M]], %[[K]])
// CHECK: memref.prefetch %[[FLAT]][%[[THERE]]]
// CHECK-COUNT-2: memref.prefetch
// CHECK-NOT: memref.prefetch
// CHECK: tile.mma
// CHECK: scf.for %[[ROW:.*]] = %{{.*}} to %[[HERE]] step %c1
// CHECK: %[[NONE:.*]] = arith.cmpi eq, %[[ROW]], %c0
// CHECK: scf.if %[[NONE]]
// CHECK-COUNT-7: memref.prefetch
// CHECK-NOT: memref.prefetch
func.func @main(%x: tensor<?x64xf32>, %w: tensor<3x64x32xf32>, %n: index) -> tensor<?x96xf32> {
  %y = tile.group "l2" (%x1 = %x : tensor<?x64xf32>, %w1 = %w : tensor<3x64x32xf32>, %n1 = %n : index)
      -> (tensor<?x96xf32>) attributes {tile.kernel = "ahead"} {
    %r = tile.group "register" (%x2 = %x1 : tensor<?x64xf32>, %w2 = %w1 : tensor<3x64x32xf32>, %n2 = %n1 : index)
        -> (tensor<?x96xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty(%n2) : tensor<?x96xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x96xf32>) -> tensor<?x96xf32>
      %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x2, %w2 : tensor<?x64xf32>, tensor<3x64x32xf32>) outs(%f : tensor<?x96xf32>)
          attrs = {tile.prefetch = array<i64: 1>,
                   tile.rtile = #tile.rtile<l2 = [64, 32, 64], register = [8, 32, 1], unroll = [1, 1, 4],
                       order = [1, 0, 2]>,
                   tile.tails = [array<i64: 1>, array<i64>, array<i64>]} {
      ^bb0(%q: f32, %s: f32, %o: f32):
        %m = arith.mulf %q, %s : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
      } -> tensor<?x96xf32>
      tile.yield %p : tensor<?x96xf32>
    }
    tile.yield %r : tensor<?x96xf32>
  }
  return %y : tensor<?x96xf32>
}
