// RUN: tile-opt %s --tile-groups-to-kernels --canonicalize --cse -split-input-file | FileCheck %s

// Rows of a product are shared evenly between tiles of six at most: 32 are two tiles of six and four of five, not five
// of six and one of two, whose few sums would wait for each other.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: tile.kernel @rows
// CHECK: scf.for %[[TALL:.*]] = %c0 to %c12 step %c6 {
// CHECK: tile.mma {{.*}}, !tile.tile<6x16xf32>
// CHECK: tile.store %{{.*}}, %{{.*}}[%[[TALL]],
// CHECK: scf.for %[[REST:.*]] = %c0 to %c20 step %c5 {
// CHECK: tile.mma {{.*}}, !tile.tile<5x16xf32>
// CHECK: %[[AT:.*]] = affine.apply #{{.*}}(%[[REST]])
// CHECK: tile.store %{{.*}}, %{{.*}}[%[[AT]],
// CHECK-NOT: scf.for
func.func @main(%x: tensor<32x64xf32>, %w: tensor<64x16xf32>) -> tensor<32x16xf32> {
  %y = tile.group "l2" (%x1 = %x : tensor<32x64xf32>, %w1 = %w : tensor<64x16xf32>) -> (tensor<32x16xf32>)
      attributes {tile.kernel = "rows"} {
    %r = tile.group "register" (%x2 = %x1 : tensor<32x64xf32>, %w2 = %w1 : tensor<64x16xf32>) -> (tensor<32x16xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<32x16xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<32x16xf32>) -> tensor<32x16xf32>
      %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x2, %w2 : tensor<32x64xf32>, tensor<64x16xf32>) outs(%f : tensor<32x16xf32>)
          attrs = {tile.rtile = #tile.rtile<l2 = [32, 16, 64], register = [6, 16, 1], order = [1, 0, 2]>} {
      ^bb0(%s: f32, %u: f32, %o: f32):
        %m = arith.mulf %s, %u : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
      } -> tensor<32x16xf32>
      tile.yield %p : tensor<32x16xf32>
    }
    tile.yield %r : tensor<32x16xf32>
  }
  return %y : tensor<32x16xf32>
}

// -----

// Ten rows are two tiles of five. What is fetched for the next panel is dealt among the tiles by their number.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n floordiv 16, k, n mod 16)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK: affine_map<{{.*}}floordiv 5
// CHECK-LABEL: tile.kernel @fetched
// CHECK: scf.for %{{.*}} = %c0 to %c10 step %c5 {
// CHECK: memref.prefetch
// CHECK: tile.mma {{.*}}, !tile.tile<5x16xf32>
// CHECK-NOT: tile.tile<4x16xf32>
func.func @main(%x: tensor<10x64xf32>, %w: tensor<4x64x16xf32>) -> tensor<10x64xf32> {
  %y = tile.group "l2" (%x1 = %x : tensor<10x64xf32>, %w1 = %w : tensor<4x64x16xf32>) -> (tensor<10x64xf32>)
      attributes {tile.kernel = "fetched"} {
    %r = tile.group "register" (%x2 = %x1 : tensor<10x64xf32>, %w2 = %w1 : tensor<4x64x16xf32>)
        -> (tensor<10x64xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<10x64xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<10x64xf32>) -> tensor<10x64xf32>
      %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x2, %w2 : tensor<10x64xf32>, tensor<4x64x16xf32>) outs(%f : tensor<10x64xf32>)
          attrs = {tile.prefetch = array<i64: 1>,
            tile.rtile = #tile.rtile<l2 = [10, 64, 64], register = [6, 16, 1], order = [1, 0, 2],
                                     unroll = [1, 1, 4]>} {
      ^bb0(%s: f32, %u: f32, %o: f32):
        %m = arith.mulf %s, %u : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
      } -> tensor<10x64xf32>
      tile.yield %p : tensor<10x64xf32>
    }
    tile.yield %r : tensor<10x64xf32>
  }
  return %y : tensor<10x64xf32>
}

// -----

// Rows that are packed in blocks of 16: tiles of three would cross them, so 18 rows are four tiles of four, and two.

#a = affine_map<(m, n, k) -> (m floordiv 16, k, m mod 16)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: tile.kernel @blocks
// CHECK: scf.for %{{.*}} = %c0 to %c16 step %c4 {
// CHECK: tile.mma {{.*}}, !tile.tile<4x16xf32>
// CHECK: tile.mma {{.*}}, !tile.tile<2x16xf32>
// CHECK-NOT: tile.tile<3x16xf32>
func.func @main(%x: tensor<2x64x16xf32>, %w: tensor<64x16xf32>) -> tensor<18x16xf32> {
  %y = tile.group "l2" (%x1 = %x : tensor<2x64x16xf32>, %w1 = %w : tensor<64x16xf32>) -> (tensor<18x16xf32>)
      attributes {tile.kernel = "blocks"} {
    %r = tile.group "register" (%x2 = %x1 : tensor<2x64x16xf32>, %w2 = %w1 : tensor<64x16xf32>) -> (tensor<18x16xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<18x16xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<18x16xf32>) -> tensor<18x16xf32>
      %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x2, %w2 : tensor<2x64x16xf32>, tensor<64x16xf32>) outs(%f : tensor<18x16xf32>)
          attrs = {tile.rtile = #tile.rtile<l2 = [18, 16, 64], register = [4, 16, 1], order = [1, 0, 2]>} {
      ^bb0(%s: f32, %u: f32, %o: f32):
        %m = arith.mulf %s, %u : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
      } -> tensor<18x16xf32>
      tile.yield %p : tensor<18x16xf32>
    }
    tile.yield %r : tensor<18x16xf32>
  }
  return %y : tensor<18x16xf32>
}
