// RUN: tile-opt %s --tile-set-target=target=host-generic-avx512 --tile-plan-dynamic --split-input-file 2>/dev/null \
// RUN:   | FileCheck-22 %s
// RUN: tile-opt %s --tile-set-target=target=host-generic-avx512 --tile-plan-dynamic --split-input-file -o /dev/null \
// RUN:   2>&1 | FileCheck-22 %s --check-prefix=TOLD

// TOLD: remark: zeros are looked for when it runs (a ReLU makes zeros)
// TOLD: remark: zeros are looked for when it runs (rows are masked)
// TOLD-NOT: remark

#a = affine_map<(b, s, n, k) -> (b, s, k)>
#b = affine_map<(b, s, n, k) -> (k, n)>
#c = affine_map<(b, s, n, k) -> (b, s, n)>
#i = affine_map<(b, s, k) -> (b, s, k)>

// What a ReLU makes, rows of a batch joined: zeros of single elements, looked for in columns of 8 rows.
// CHECK-LABEL: func.func @relu
// CHECK: %[[J:.*]] = tensor.collapse_shape
// CHECK: %[[P:.*]] = sparse_tile.pack %[[J]] : tensor<64x2xf32> to tensor<64x2xf32, #tesa>
// CHECK: sparse_tile.matmul %[[P]], %{{.*}} {tile.sparsity = {cover = "dynamic [8, 1]"
// CHECK: tensor.expand_shape
func.func @relu(%x: tensor<4x16x2xf32>) -> tensor<4x16x4096xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<3.0> : tensor<2x4096xf32>
  %p = tensor.empty() : tensor<4x16x2xf32>
  %h = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x : tensor<4x16x2xf32>) outs(%p : tensor<4x16x2xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = arith.maximumf %v, %zero : f32
    linalg.yield %r : f32
  } -> tensor<4x16x2xf32>
  %q = tensor.empty() : tensor<4x16x4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%q : tensor<4x16x4096xf32>) -> tensor<4x16x4096xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%h, %w : tensor<4x16x2xf32>, tensor<2x4096xf32>) outs(%f : tensor<4x16x4096xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %m = arith.mulf %l, %r : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<4x16x4096xf32>
  return %y : tensor<4x16x4096xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#i = affine_map<(m, k) -> (m, k)>
#r = affine_map<(m, k) -> (m)>

// Rows that a mask multiplies are zero as a whole.
// CHECK-LABEL: func.func @rows
// CHECK: sparse_tile.pack
// CHECK: sparse_tile.matmul %{{.*}} {tile.sparsity = {cover = "dynamic [1, 2]"
func.func @rows(%x: tensor<64x2xf32>, %mask: tensor<64xf32>) -> tensor<64x4096xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<3.0> : tensor<2x4096xf32>
  %p = tensor.empty() : tensor<64x2xf32>
  %h = linalg.generic {indexing_maps = [#i, #r, #i], iterator_types = ["parallel", "parallel"]}
      ins(%x, %mask : tensor<64x2xf32>, tensor<64xf32>) outs(%p : tensor<64x2xf32>) {
  ^bb0(%v: f32, %k: f32, %o: f32):
    %m = arith.mulf %v, %k : f32
    linalg.yield %m : f32
  } -> tensor<64x2xf32>
  %q = tensor.empty() : tensor<64x4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%q : tensor<64x4096xf32>) -> tensor<64x4096xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%h, %w : tensor<64x2xf32>, tensor<2x4096xf32>) outs(%f : tensor<64x4096xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %m = arith.mulf %l, %r : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<64x4096xf32>
  return %y : tensor<64x4096xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#i = affine_map<(m, k) -> (m, k)>

// A weight that is infinite makes NaN of a zero; and finding zeros is too much where few columns are multiplied.
// CHECK-LABEL: func.func @left
// CHECK-NOT: sparse_tile
func.func @left(%x: tensor<64x2xf32>) -> (tensor<64x4096xf32>, tensor<64x16xf32>) {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<0x7F800000> : tensor<2x4096xf32>
  %n = arith.constant dense<3.0> : tensor<2x16xf32>
  %p = tensor.empty() : tensor<64x2xf32>
  %h = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<64x2xf32>) outs(%p : tensor<64x2xf32>) {
  ^bb0(%v: f32, %o: f32):
    %r = arith.maximumf %v, %zero : f32
    linalg.yield %r : f32
  } -> tensor<64x2xf32>
  %q = tensor.empty() : tensor<64x4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%q : tensor<64x4096xf32>) -> tensor<64x4096xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%h, %w : tensor<64x2xf32>, tensor<2x4096xf32>) outs(%f : tensor<64x4096xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %m = arith.mulf %l, %r : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<64x4096xf32>
  %u = tensor.empty() : tensor<64x16xf32>
  %g = linalg.fill ins(%zero : f32) outs(%u : tensor<64x16xf32>) -> tensor<64x16xf32>
  %z = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%h, %n : tensor<64x2xf32>, tensor<2x16xf32>) outs(%g : tensor<64x16xf32>) {
  ^bb0(%l: f32, %r: f32, %o: f32):
    %m = arith.mulf %l, %r : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<64x16xf32>
  return %y, %z : tensor<64x4096xf32>, tensor<64x16xf32>
}
