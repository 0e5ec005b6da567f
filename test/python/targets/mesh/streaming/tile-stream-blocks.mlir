// RUN: tile-opt %s --tile-stream-blocks | FileCheck-22 %s

#same = affine_map<(i, j) -> (i, j)>
#window = affine_map<(i, j, k) -> (i * 2 + k, j)>
#out = affine_map<(i, j, k) -> (i, j)>

// Two computations cut alike share a loop: the second reads the block of the first, which leaves the loop nowhere. The
// last of four blocks of 13 rows begins at row 37. A loop's index counts from the begin of the whole.
// CHECK-LABEL: func.func @alike
// CHECK: %[[ALL:.*]] = scf.for %[[I:.*]] = %{{.*}} iter_args(%[[WHOLE:.*]] = %{{.*}}) -> (tensor<50x7xf32>)
// CHECK: %[[BEGIN:.*]] = arith.muli %[[I]]
// CHECK: %[[AT:.*]] = arith.minsi %[[BEGIN]]
// CHECK: tensor.extract_slice %arg0[%[[AT]], 0] [13, 7] [1, 1] {coremesh.outside = "
// CHECK: %[[FIRST:.*]] = linalg.generic
// CHECK: linalg.index 0
// CHECK-NEXT: arith.addi %{{.*}}, %[[AT]]
// CHECK: %[[SECOND:.*]] = linalg.generic {{.*}} ins(%[[FIRST]] : tensor<13x7xf32>)
// CHECK: tensor.insert_slice %[[SECOND]] into %[[WHOLE]][%[[AT]], 0] [13, 7] [1, 1] {coremesh.outside = "
// CHECK: } {coremesh.streams}
// CHECK: return %[[ALL]]
func.func @alike(%x: tensor<50x7xf32>) -> tensor<50x7xf32> {
  %e = tensor.empty() : tensor<50x7xf32>
  %0 = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<50x7xf32>) outs(%e : tensor<50x7xf32>) attrs = {coremesh.blocks = array<i64: 4, 1>} {
  ^bb0(%u: f32, %o: f32):
    %i = linalg.index 0 : index
    %k = arith.index_cast %i : index to i32
    %f = arith.sitofp %k : i32 to f32
    %m = arith.addf %u, %f : f32
    linalg.yield %m : f32
  } -> tensor<50x7xf32>
  %1 = linalg.generic {indexing_maps = [#same, #same], iterator_types = ["parallel", "parallel"]}
      ins(%0 : tensor<50x7xf32>) outs(%e : tensor<50x7xf32>) attrs = {coremesh.blocks = array<i64: 4, 1>} {
  ^bb0(%u: f32, %o: f32):
    %m = arith.negf %u : f32
    linalg.yield %m : f32
  } -> tensor<50x7xf32>
  return %1 : tensor<50x7xf32>
}

// A loop that is combined: each block makes a partial result, the rest of 50 = 2 * 17 + 16 one behind the loop.
// CHECK-LABEL: func.func @combined
// CHECK: %[[START:.*]] = linalg.fill
// CHECK: %[[SUMS:.*]] = scf.for %[[I:.*]] = %{{.*}} to %c2{{.*}} iter_args(%[[SO_FAR:.*]] = %[[START]])
// CHECK: tensor.extract_slice %arg0[%{{.*}}, 0] [17, 7]
// CHECK: %[[NONE:.*]] = linalg.fill
// CHECK: %[[PART:.*]] = linalg.generic {{.*}} outs(%[[NONE]] : tensor<7xf32>)
// CHECK: %[[NEXT:.*]] = linalg.generic {{.*}} ins(%[[SO_FAR]], %[[PART]] : tensor<7xf32>, tensor<7xf32>)
// CHECK: scf.yield %[[NEXT]]
// CHECK: tensor.extract_slice %arg0[%c34{{.*}}, 0] [16, 7]
// CHECK: linalg.generic {{.*}} ins(%[[SUMS]], %{{.*}} : tensor<7xf32>, tensor<7xf32>)
func.func @combined(%x: tensor<50x7xf32>) -> tensor<7xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<7xf32>) -> tensor<7xf32>
  %0 = linalg.generic {indexing_maps = [#same, affine_map<(i, j) -> (j)>], iterator_types = ["reduction", "parallel"]}
      ins(%x : tensor<50x7xf32>) outs(%f : tensor<7xf32>) attrs = {coremesh.blocks = array<i64: 3, 1>} {
  ^bb0(%u: f32, %o: f32):
    %m = arith.addf %o, %u : f32
    linalg.yield %m : f32
  } -> tensor<7xf32>
  return %0 : tensor<7xf32>
}

// Windows are read with what they reach beyond a block; two loops that are cut are loops in each other.
// CHECK-LABEL: func.func @windows
// CHECK: scf.for
// CHECK: tensor.extract_slice %arg0[%{{.*}}, 0] [9, 6] [1, 1]
// CHECK: scf.for
// CHECK: tensor.extract_slice %{{.*}}[0, %{{.*}}] [9, 3] [1, 1]
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<4x3xf32>)
// CHECK: tensor.insert_slice {{.*}} : tensor<4x3xf32> into tensor<4x6xf32>
// CHECK: tensor.insert_slice {{.*}} : tensor<4x6xf32> into tensor<8x6xf32>
func.func @windows(%x: tensor<17x6xf32>, %w: tensor<3xf32>) -> tensor<8x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x6xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x6xf32>) -> tensor<8x6xf32>
  %0 = linalg.generic {indexing_maps = [#window, affine_map<(i, j, k) -> (k)>, #out],
                       iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<17x6xf32>, tensor<3xf32>) outs(%f : tensor<8x6xf32>)
      attrs = {coremesh.blocks = array<i64: 2, 2, 1>} {
  ^bb0(%u: f32, %v: f32, %o: f32):
    %m = arith.mulf %u, %v : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<8x6xf32>
  return %0 : tensor<8x6xf32>
}
