// RUN: tile-opt %s --tile-set-target=target=nvidia-sm80 --tile-apply-sparsity --split-input-file --verify-diagnostics \
// RUN:   | FileCheck-22 %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// Blocks where they hold half of their elements, a mask for the rest; the second adds to the first.

// CHECK-LABEL: func.func @main
// CHECK: %[[BLOCKS:.*]] = linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<8x8xf32>, tensor<2x1xi32>)
// CHECK: %[[B:.*]] = sparse_tile.pack %[[BLOCKS]]
// CHECK: %[[BP:.*]]:3 = sparse_tile.parts %[[B]] {{.*}} to tensor<1x4x4xf32>, tensor<1xi32>, tensor<3xi32>
// CHECK: %[[BE:.*]] = sparse_tile.assemble %[[BP]]#0, %[[BP]]#1, %[[BP]]#2
// CHECK: %[[FIRST:.*]] = sparse_tile.matmul %arg0, %[[BE]], %{{.*}} {kernel = "dense"}
// CHECK: sparse_tile.parts %{{.*}} to tensor<12xf32>, tensor<12xi32>, tensor<9xi32>
// CHECK: sparse_tile.matmul %arg0, %{{.*}}, %[[FIRST]] {kernel = "dense"}
func.func @main(%x: tensor<6x8xf32> {tile.name = "x"}) -> (tensor<6x8xf32> {tile.name = "y"}) {
  %w = arith.constant dense<[
      [3.0, 5.0, 6.0, 2.0, 0.0, 0.0, 0.0, 5.0],
      [1.0, 4.0, 5.0, 2.0, 0.0, 0.0, 0.0, 2.0],
      [8.0, 4.0, 8.0, 5.0, 0.0, 0.0, 0.0, 0.0],
      [6.0, 7.0, 4.0, 4.0, 2.0, 0.0, 0.0, 0.0],
      [0.0, 3.0, 0.0, 6.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 1.0, 0.0, 8.0, 3.0, 2.0, 0.0],
      [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0],
      [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]> : tensor<8x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<6x8xf32>, tensor<8x8xf32>) outs(%f : tensor<6x8xf32>)
      attrs = {tile.sparsity = {cover = #sparse_tile.tesa<block<[4, 4]>, mask>, kernels = ["dense", "dense"]}} {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// A family that takes the sparse operand on the left gets the transposed weight, and transposed activations.

// CHECK-LABEL: func.func @main
// CHECK: %[[W:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<2x8xf16>)
// CHECK: %[[P:.*]] = sparse_tile.pack %[[W]] : tensor<2x8xf16> to tensor<2x8xf16, #[[T:.*]]>
// CHECK: %[[V:.*]]:2 = sparse_tile.parts %[[P]] : tensor<2x8xf16, #[[T]]> to tensor<2x4xf16>, tensor<2x4xi8>
// CHECK: %[[E:.*]] = sparse_tile.assemble %[[V]]#0, %[[V]]#1
// CHECK: %[[X:.*]] = linalg.generic {{.*}} ins(%arg0 : tensor<6x8xf16>) outs(%{{.*}} : tensor<8x6xf16>)
// CHECK: %[[Y:.*]] = sparse_tile.matmul %[[E]], %[[X]], %{{.*}} {kernel = "gpu_mma_sp"}
// CHECK: linalg.generic {{.*}} ins(%[[Y]] : tensor<2x6xf32>) outs(%{{.*}} : tensor<6x2xf32>)
func.func @main(%x: tensor<6x8xf16>) -> tensor<6x2xf32> {
  %w = arith.constant dense<[[1.0, 0.0], [2.0, 3.0], [0.0, 0.0], [0.0, 4.0],
                             [0.0, 0.0], [0.0, 0.0], [5.0, 6.0], [7.0, 8.0]]> : tensor<8x2xf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x2xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x2xf32>) -> tensor<6x2xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<6x8xf16>, tensor<8x2xf16>) outs(%f : tensor<6x2xf32>)
      attrs = {tile.sparsity = {cover = #sparse_tile.tesa<nm<2 : 4, axis = 0>>, kernels = ["gpu_mma_sp"]}} {
  ^bb0(%p: f16, %q: f16, %o: f32):
    %pw = arith.extf %p : f16 to f32
    %qw = arith.extf %q : f16 to f32
    %t = arith.mulf %pw, %qw : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<6x2xf32>
  return %y : tensor<6x2xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: func.func @main
// CHECK-NOT: sparse_tile
func.func @main(%x: tensor<6x8xf32> {tile.name = "x"}) -> (tensor<6x8xf32> {tile.name = "y"}) {
  %w = arith.constant dense<[
      [3.0, 5.0, 6.0, 2.0, 0.0, 0.0, 0.0, 5.0],
      [1.0, 4.0, 5.0, 2.0, 0.0, 0.0, 0.0, 2.0],
      [8.0, 4.0, 8.0, 5.0, 0.0, 0.0, 0.0, 0.0],
      [6.0, 7.0, 4.0, 4.0, 2.0, 0.0, 0.0, 0.0],
      [0.0, 3.0, 0.0, 6.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 1.0, 0.0, 8.0, 3.0, 2.0, 0.0],
      [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0],
      [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]> : tensor<8x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<6x8xf32>, tensor<8x8xf32>) outs(%f : tensor<6x8xf32>)
      attrs = {tile.sparsity = {cover = "dense"}} {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

func.func @main(%x: tensor<6x8xf32> {tile.name = "x"}) -> (tensor<6x8xf32> {tile.name = "y"}) {
  %w = arith.constant dense<[
      [3.0, 5.0, 6.0, 2.0, 0.0, 0.0, 0.0, 5.0],
      [1.0, 4.0, 5.0, 2.0, 0.0, 0.0, 0.0, 2.0],
      [8.0, 4.0, 8.0, 5.0, 0.0, 0.0, 0.0, 0.0],
      [6.0, 7.0, 4.0, 4.0, 2.0, 0.0, 0.0, 0.0],
      [0.0, 3.0, 0.0, 6.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 1.0, 0.0, 8.0, 3.0, 2.0, 0.0],
      [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0],
      [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]> : tensor<8x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  // expected-error@+1 {{2:4 along axis 0 does not fit the weight: window [0, 0] has 4 units that are not zero}}
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<6x8xf32>, tensor<8x8xf32>) outs(%f : tensor<6x8xf32>)
      attrs = {tile.sparsity = {cover = #sparse_tile.tesa<nm<2 : 4, axis = 0>>}} {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

func.func @main(%x: tensor<6x8xf32> {tile.name = "x"}) -> (tensor<6x8xf32> {tile.name = "y"}) {
  %w = arith.constant dense<[
      [3.0, 5.0, 6.0, 2.0, 0.0, 0.0, 0.0, 5.0],
      [1.0, 4.0, 5.0, 2.0, 0.0, 0.0, 0.0, 2.0],
      [8.0, 4.0, 8.0, 5.0, 0.0, 0.0, 0.0, 0.0],
      [6.0, 7.0, 4.0, 4.0, 2.0, 0.0, 0.0, 0.0],
      [0.0, 3.0, 0.0, 6.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 1.0, 0.0, 8.0, 3.0, 2.0, 0.0],
      [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0],
      [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]> : tensor<8x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  // expected-error@+1 {{has 2 kernels for a cover of 1 regions}}
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<6x8xf32>, tensor<8x8xf32>) outs(%f : tensor<6x8xf32>)
      attrs = {tile.sparsity = {cover = #sparse_tile.tesa<mask>, kernels = ["dense", "dense"]}} {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}

// -----

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

func.func @main(%x: tensor<6x8xf32> {tile.name = "x"}) -> (tensor<6x8xf32> {tile.name = "y"}) {
  %w = arith.constant dense<[
      [3.0, 5.0, 6.0, 2.0, 0.0, 0.0, 0.0, 5.0],
      [1.0, 4.0, 5.0, 2.0, 0.0, 0.0, 0.0, 2.0],
      [8.0, 4.0, 8.0, 5.0, 0.0, 0.0, 0.0, 0.0],
      [6.0, 7.0, 4.0, 4.0, 2.0, 0.0, 0.0, 0.0],
      [0.0, 3.0, 0.0, 6.0, 0.0, 0.0, 0.0, 0.0],
      [0.0, 0.0, 1.0, 0.0, 8.0, 3.0, 2.0, 0.0],
      [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0],
      [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]> : tensor<8x8xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<6x8xf32>) -> tensor<6x8xf32>
  // expected-error@+1 {{a cover has its blocks first}}
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<6x8xf32>, tensor<8x8xf32>) outs(%f : tensor<6x8xf32>)
      attrs = {tile.sparsity = {cover = #sparse_tile.tesa<mask, block<[4, 4]>>}} {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}
