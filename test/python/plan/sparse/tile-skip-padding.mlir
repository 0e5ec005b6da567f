// RUN: tile-opt %s --tile-set-target="target=host-generic-avx512 padded=mask" --tile-skip-padding 2>/dev/null \
// RUN:   | FileCheck-22 %s
// RUN: tile-opt %s --tile-set-target="target=host-generic-avx512 padded=mask" --tile-skip-padding -o /dev/null 2>&1 \
// RUN:   | FileCheck-22 %s --check-prefix=TOLD
// RUN: tile-opt %s --tile-set-target="target=cuda:sm_80 padded=mask" --tile-skip-padding -o /dev/null 2>&1 \
// RUN:   | FileCheck-22 %s --check-prefix=GPU
// RUN: tile-opt %s --tile-set-target=target=host-generic-avx512 --tile-skip-padding \
// RUN:   | FileCheck-22 %s --check-prefix=OFF

// TOLD: remark: 1 products and what belongs to them leave out tokens where 'mask' is 0
// GPU: remark: padding by 'mask' is computed like tokens: it is left out on CPUs only
// OFF-NOT: sparse_tile

#x = affine_map<(b, s, n, k) -> (b, s, k)>
#w = affine_map<(b, s, n, k) -> (k, n)>
#y = affine_map<(b, s, n, k) -> (b, s, n)>
#z = affine_map<(b, n, s) -> (b, s, n)>
#t = affine_map<(b, n, s) -> (b, n)>

// A product of tokens, returned and summed over places: packed, and put to its places once for both.
// CHECK-LABEL: func.func @main
// CHECK: %[[LIVE:.*]], %[[COUNT:.*]] = sparse_tile.index %{{.*}} unit [1] axis 0 : tensor<64xi64>
// CHECK: %[[LIST:.*]] = tensor.extract_slice %[[LIVE]]
// CHECK: %[[NUMBERS:.*]] = sparse_tile.scatter %{{.*}} into %{{.*}}[%[[LIST]]] axis 0
// CHECK: %[[X:.*]] = sparse_tile.gather %{{.*}}[%[[LIST]]] axis 0 : tensor<64x8xf32>, tensor<?xi32> to tensor<?x8xf32>
// CHECK: %[[Y:.*]] = linalg.generic {{.*}} ins(%[[X]], %{{.*}} : tensor<?x8xf32>, tensor<8x32xf32>)
// CHECK: %[[S:.*]] = sparse_tile.gather %[[Y]][%[[NUMBERS]]] axis 0
// CHECK: %[[E:.*]] = tensor.expand_shape %[[S]]
// CHECK: %[[T:.*]] = linalg.generic {{.*}} ins(%[[E]] : tensor<4x16x32xf32>)
// CHECK: return %[[E]], %[[T]]
func.func @main(%x: tensor<4x16x8xf32> {tile.name = "x"}, %mask: tensor<4x16xi64> {tile.name = "mask"})
    -> (tensor<4x16x32xf32>, tensor<4x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<1.0> : tensor<8x32xf32>
  %e = tensor.empty() : tensor<4x16x32xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x16x32xf32>) -> tensor<4x16x32xf32>
  %y = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4x16x8xf32>, tensor<8x32xf32>) outs(%f : tensor<4x16x32xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<4x16x32xf32>
  %e2 = tensor.empty() : tensor<4x32xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<4x32xf32>) -> tensor<4x32xf32>
  %z = linalg.generic {indexing_maps = [#z, #t], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%y : tensor<4x16x32xf32>) outs(%f2 : tensor<4x32xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = arith.addf %o, %p : f32
    linalg.yield %t : f32
  } -> tensor<4x32xf32>
  return %y, %z : tensor<4x16x32xf32>, tensor<4x32xf32>
}
