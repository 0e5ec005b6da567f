// RUN: tile-opt %s --tile-set-target=target=cpu:icelake-server --tile-plan-sparsity --split-input-file \
// RUN:   | FileCheck-22 %s
// RUN: tile-opt %s --tile-plan-sparsity --split-input-file | FileCheck-22 %s --check-prefix=NONE

// Without a machine nothing is decided.

// NONE-NOT: tile.sparsity = {cover = "dense"

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @small
// CHECK: tile.sparsity = {cover = "dense", density = 5.000000e-01 : f64
// CHECK-SAME: reason = "4 elements are too few for a kernel of their own"
func.func @small(%x: tensor<8x2xf32>) -> tensor<8x2xf32> {
  %w = arith.constant dense<[[1.0, 0.0], [0.0, 2.0]]> : tensor<2x2xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x2xf32>) -> tensor<8x2xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x2xf32>, tensor<2x2xf32>) outs(%f : tensor<8x2xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<8x2xf32>
  return %y : tensor<8x2xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// A weight without zeros, and one operand that is no constant: nothing is said.

// CHECK-LABEL: func.func @whole
// CHECK-NOT: tile.sparsity
func.func @whole(%x: tensor<8x2xf32>, %v: tensor<2x2xf32>) -> (tensor<8x2xf32>, tensor<8x2xf32>) {
  %w = arith.constant dense<[[1.0, 3.0], [4.0, 2.0]]> : tensor<2x2xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x2xf32>) -> tensor<8x2xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x2xf32>, tensor<2x2xf32>) outs(%f : tensor<8x2xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<8x2xf32>
  %z = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %v : tensor<8x2xf32>, tensor<2x2xf32>) outs(%f : tensor<8x2xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<8x2xf32>
  return %y, %z : tensor<8x2xf32>, tensor<8x2xf32>
}

// -----

#image = affine_map<(h, c, s) -> (h + s)>
#filter = affine_map<(h, c, s) -> (s, c)>
#out = affine_map<(h, c, s) -> (h, c)>

// A window of more than one place is not multiplied as a matrix.

// CHECK-LABEL: func.func @windows
// CHECK: tile.sparsity = {cover = "dense"
// CHECK-SAME: reason = "it reads windows of an image: sparse kernels multiply matrices"
func.func @windows(%x: tensor<9xf32>) -> tensor<8x2xf32> {
  %w = arith.constant dense<[[1.0, 0.0], [0.0, 2.0]]> : tensor<2x2xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x2xf32>) -> tensor<8x2xf32>
  %y = linalg.generic {indexing_maps = [#image, #filter, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<9xf32>, tensor<2x2xf32>) outs(%f : tensor<8x2xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<8x2xf32>
  return %y : tensor<8x2xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// What stands there stays.

// CHECK-LABEL: func.func @edited
// CHECK: tile.sparsity = {cover = #{{.*}}}
// CHECK-NOT: reason
func.func @edited(%x: tensor<8x2xf32>) -> tensor<8x2xf32> {
  %w = arith.constant dense<[[1.0, 0.0], [0.0, 2.0]]> : tensor<2x2xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x2xf32>) -> tensor<8x2xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x2xf32>, tensor<2x2xf32>) outs(%f : tensor<8x2xf32>)
      attrs = {tile.sparsity = {cover = #sparse_tile.tesa<mask>}} {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<8x2xf32>
  return %y : tensor<8x2xf32>
}
