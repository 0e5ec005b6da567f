// RUN: tile-opt %s --tile-fuse-exponents --split-input-file | FileCheck-22 %s

#ij = affine_map<(i, j) -> (i, j)>
#i0 = affine_map<(i, j) -> (i, 0)>
!list = !fractal.array<[4] of tensor<8x5xf32>>

// One body; the maximum is read without the dimension that broadcasting added.
// CHECK: #[[$ROW:.*]] = affine_map<(d0, d1) -> (d0)>
// CHECK-LABEL: @softmax(
// CHECK: fractal.map (%[[X:.*]] = %arg0)
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[$ROW]], #{{[a-z]+}}]
// CHECK-SAME: ins(%[[X]], %arg1 : tensor<8x5xf32>, tensor<8xf32>)
// CHECK-NEXT: ^bb0
// CHECK-NEXT: %[[D:.*]] = arith.subf
// CHECK-NEXT: math.exp %[[D]]
// CHECK-NOT: linalg.generic
func.func @softmax(%xs: !list, %m: tensor<8xf32>) -> !list {
  %r = fractal.map (%x = %xs) : (!list) -> !list {
    %e = tensor.empty() : tensor<8x5xf32>
    %w = tensor.expand_shape %m [[0, 1]] output_shape [8, 1] : tensor<8xf32> into tensor<8x1xf32>
    %d = linalg.generic {indexing_maps = [#ij, #i0, #ij], iterator_types = ["parallel", "parallel"]}
        ins(%x, %w : tensor<8x5xf32>, tensor<8x1xf32>) outs(%e : tensor<8x5xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %0 = arith.subf %a, %b : f32
      linalg.yield %0 : f32
    } -> tensor<8x5xf32>
    %p = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
        ins(%d : tensor<8x5xf32>) outs(%e : tensor<8x5xf32>) {
    ^bb0(%a: f32, %o: f32):
      %0 = math.exp %a : f32
      linalg.yield %0 : f32
    } -> tensor<8x5xf32>
    fractal.yield %p : tensor<8x5xf32>
  }
  return %r : !list
}

// -----

#ij = affine_map<(i, j) -> (i, j)>
!list = !fractal.array<[4] of tensor<8x5xf32>>

// A difference that others read stays; so do other operations before an exponential.
// CHECK-LABEL: @others(
// CHECK: arith.subf
// CHECK-NEXT: linalg.yield
// CHECK: math.exp
// CHECK-NEXT: linalg.yield
// CHECK: arith.mulf
// CHECK-NEXT: linalg.yield
// CHECK: math.exp
func.func @others(%xs: !list, %m: tensor<8x5xf32>) -> (!list, !list, !list) {
  %r:3 = fractal.map (%x = %xs) : (!list) -> (!list, !list, !list) {
    %e = tensor.empty() : tensor<8x5xf32>
    %d = linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]}
        ins(%x, %m : tensor<8x5xf32>, tensor<8x5xf32>) outs(%e : tensor<8x5xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %0 = arith.subf %a, %b : f32
      linalg.yield %0 : f32
    } -> tensor<8x5xf32>
    %p = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
        ins(%d : tensor<8x5xf32>) outs(%e : tensor<8x5xf32>) {
    ^bb0(%a: f32, %o: f32):
      %0 = math.exp %a : f32
      linalg.yield %0 : f32
    } -> tensor<8x5xf32>
    %s = linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]}
        ins(%x, %m : tensor<8x5xf32>, tensor<8x5xf32>) outs(%e : tensor<8x5xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %0 = arith.mulf %a, %b : f32
      linalg.yield %0 : f32
    } -> tensor<8x5xf32>
    %q = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
        ins(%s : tensor<8x5xf32>) outs(%e : tensor<8x5xf32>) {
    ^bb0(%a: f32, %o: f32):
      %0 = math.exp %a : f32
      linalg.yield %0 : f32
    } -> tensor<8x5xf32>
    fractal.yield %d, %p, %q : tensor<8x5xf32>, tensor<8x5xf32>, tensor<8x5xf32>
  }
  return %r#0, %r#1, %r#2 : !list, !list, !list
}

// -----

#ij = affine_map<(i, j) -> (i, j)>

// Outside of functions of lists nothing changes.
// CHECK-LABEL: @plain(
// CHECK: arith.subf
// CHECK-NEXT: linalg.yield
// CHECK: math.exp
func.func @plain(%x: tensor<8x5xf32>, %m: tensor<8x5xf32>) -> tensor<8x5xf32> {
  %e = tensor.empty() : tensor<8x5xf32>
  %d = linalg.generic {indexing_maps = [#ij, #ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%x, %m : tensor<8x5xf32>, tensor<8x5xf32>) outs(%e : tensor<8x5xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %0 = arith.subf %a, %b : f32
    linalg.yield %0 : f32
  } -> tensor<8x5xf32>
  %p = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%d : tensor<8x5xf32>) outs(%e : tensor<8x5xf32>) {
  ^bb0(%a: f32, %o: f32):
    %0 = math.exp %a : f32
    linalg.yield %0 : f32
  } -> tensor<8x5xf32>
  return %p : tensor<8x5xf32>
}
