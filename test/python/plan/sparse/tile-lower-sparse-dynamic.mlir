// RUN: tile-opt %s --tile-set-target=target=host-generic-avx512 --tile-lower-sparse --split-input-file 2>/dev/null \
// RUN:   | FileCheck-22 %s
// RUN: tile-opt %s --tile-set-target=target=nvidia-sm80 --tile-lower-sparse --split-input-file 2>/dev/null \
// RUN:   | FileCheck-22 %s --check-prefix=GPU

// Zeros that a run shows: what is live is listed, packed and multiplied by itself, or everything is. What follows the
// product stands in both branches.
// CHECK-LABEL: func.func @main
// CHECK: %[[P:.*]]:3 = tile.launch @condense_columns
// CHECK: %[[T:.*]] = linalg.generic {{.*}} ins(%[[P]]#2
// CHECK: %[[N:.*]] = tensor.extract %[[T]]
// CHECK: scf.if
// CHECK: tile.launch @product_of_live_columns
// CHECK: linalg.generic
// CHECK: math.absf
// CHECK: else
// CHECK: arith.mulf
// CHECK: math.absf
// CHECK-NOT: sparse_tile
// GPU-LABEL: func.func @main
// GPU: tile.launch @live_micro_tiles
// GPU: tile.launch @list_micro_tiles
// GPU: scf.if
// GPU: tile.launch @product_of_live_columns
// GPU: else
// GPU: arith.mulf
func.func @main(%x: tensor<64x40xf32>, %w: tensor<40x96xf32>) -> tensor<64x96xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64x96xf32>
  %c = linalg.fill ins(%zero : f32) outs(%e : tensor<64x96xf32>) -> tensor<64x96xf32>
  %p = sparse_tile.pack %x : tensor<64x40xf32> to tensor<64x40xf32, #sparse_tile.tesa<dynamic<[8, 1]>>>
  %y = sparse_tile.matmul %p, %w, %c
      : tensor<64x40xf32, #sparse_tile.tesa<dynamic<[8, 1]>>>, tensor<40x96xf32>, tensor<64x96xf32>
  %f = tensor.empty() : tensor<64x96xf32>
  %z = linalg.generic {indexing_maps = [affine_map<(m, n) -> (m, n)>, affine_map<(m, n) -> (m, n)>],
      iterator_types = ["parallel", "parallel"]} ins(%y : tensor<64x96xf32>) outs(%f : tensor<64x96xf32>) {
  ^bb0(%v: f32, %o: f32):
    %a = math.absf %v : f32
    linalg.yield %a : f32
  } -> tensor<64x96xf32>
  return %z : tensor<64x96xf32>
}

// -----

// Index, gather and scatter by themselves.
// CHECK-LABEL: func.func @moves
// CHECK: %[[F:.*]] = tile.launch @live_micro_tiles
// CHECK: %[[L:.*]]:2 = tile.launch @list_micro_tiles grid({{.*}}) ins(%[[F]]
// CHECK: tile.launch @gather_slices
// CHECK: tile.launch @scatter_slices
// CHECK-NOT: sparse_tile
func.func @moves(%x: tensor<64x40xf32>, %i: tensor<5xi32>) -> (tensor<4x40xi32>, tensor<4x1xi32>, tensor<64x40xf32>) {
  %l, %n = sparse_tile.index %x unit [16, 1] axis 1 : tensor<64x40xf32> to tensor<4x40xi32>, tensor<4x1xi32>
  %g = sparse_tile.gather %x[%i] axis 0 : tensor<64x40xf32>, tensor<5xi32> to tensor<5x40xf32>
  %s = sparse_tile.scatter %g into %x[%i] axis 0 accumulate : tensor<5x40xf32>, tensor<5xi32>, tensor<64x40xf32>
  return %l, %n, %s : tensor<4x40xi32>, tensor<4x1xi32>, tensor<64x40xf32>
}
