// RUN: tile-opt %s --tile-groups-to-kernels --canonicalize --cse -split-input-file | FileCheck %s

// A matrix product with a packed weight and an epilogue: 2 x 3 tasks of 16 rows and 32 columns; in each, tiles of 8x32
// accumulate over k in registers, and the bias is added there.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n floordiv 32, k, n mod 32)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(m, n) -> (m, n)>
#col = affine_map<(m, n) -> (n)>

// CHECK-LABEL: tile.kernel @product
// CHECK-SAME: (%[[A:.*]]: memref<32x64xf32>, %[[B:.*]]: memref<3x64x32xf32>, %[[BIAS:.*]]: memref<96xf32>,
// CHECK-SAME: {{^}} %[[Y:.*]]: memref<32x96xf32>) grid(%[[J:.*]], %[[I:.*]])
// CHECK: scf.for %{{.*}} = %c0 to %c16 step %c8
// CHECK: %[[ACC:.*]] = scf.for %[[K:.*]] = %c0 to %c64 step %c1
// CHECK-SAME: {{^}} iter_args(%[[IN:.*]] = %{{.*}}) -> (!tile.tile<8x32xf32>)
// CHECK-DAG: %[[TA:.*]] = tile.load %[[A]][%{{.*}}, %[[K]]] : memref<32x64xf32>, !tile.tile<8x1xf32>
// CHECK-DAG: %[[TB:.*]] = tile.load %[[B]][%[[J]], %[[K]], %c0] : memref<3x64x32xf32>, !tile.tile<1x32xf32>
// CHECK: tile.mma %[[TA]], %[[TB]], %[[IN]]
// CHECK: tile.load %[[BIAS]]
// CHECK: %[[SUM:.*]] = arith.addf %[[ACC]], %{{.*}} : !tile.tile<8x32xf32>
// CHECK: tile.store %[[SUM]], %[[Y]]
// CHECK-NOT: tile.store
// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[N:.*]] = arith.constant 3 : index
// CHECK-DAG: %[[M:.*]] = arith.constant 2 : index
// CHECK: tile.launch @product grid(%[[N]], %[[M]])
func.func @main(%x: tensor<32x64xf32>, %w: tensor<3x64x32xf32>, %bias: tensor<96xf32>) -> tensor<32x96xf32> {
  %y = tile.group "l2" (%x1 = %x : tensor<32x64xf32>, %w1 = %w : tensor<3x64x32xf32>, %bias1 = %bias : tensor<96xf32>)
      -> (tensor<32x96xf32>) attributes {tile.kernel = "product"} {
    %r = tile.group "register" (%x2 = %x1 : tensor<32x64xf32>, %w2 = %w1 : tensor<3x64x32xf32>, %bias2 = %bias1
        : tensor<96xf32>) -> (tensor<32x96xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<32x96xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<32x96xf32>) -> tensor<32x96xf32>
      %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x2, %w2 : tensor<32x64xf32>, tensor<3x64x32xf32>) outs(%f : tensor<32x96xf32>)
          attrs = {tile.rtile = #tile.rtile<l2 = [16, 32, 64], register = [8, 32, 1], order = [1, 0, 2]>} {
      ^bb0(%q: f32, %s: f32, %o: f32):
        %m = arith.mulf %q, %s : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
      } -> tensor<32x96xf32>
      %g = linalg.generic {indexing_maps = [#id, #col, #id], iterator_types = ["parallel", "parallel"]}
          ins(%p, %bias2 : tensor<32x96xf32>, tensor<96xf32>) outs(%e : tensor<32x96xf32>) {
      ^bb0(%q: f32, %s: f32, %o: f32):
        %t = arith.addf %q, %s : f32
        linalg.yield %t : f32
      } -> tensor<32x96xf32>
      tile.yield %g : tensor<32x96xf32>
    }
    tile.yield %r : tensor<32x96xf32>
  }
  return %y : tensor<32x96xf32>
}

// -----

// Level mma: a step takes 4 bytes of the reduced dimension; 30 of them are 7 whole groups and one of 2. What the body
// widens, the tiles do not.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n floordiv 32, k floordiv 4, n mod 32, k mod 4)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: tile.kernel @bytes
// CHECK: scf.for %[[G:.*]] = %c0 to %c7 step %c1 {{.*}} -> (!tile.tile<8x32xi32>)
// CHECK: tile.load %{{.*}} : memref<8x30xi8>, !tile.tile<8x4xi8>
// CHECK: tile.load %{{.*}}[%{{.*}}, %[[G]], %{{.*}}, %c0] dims [1, 2]
// CHECK-SAME: {{^}} : memref<2x8x32x4xi8>, !tile.tile<4x32xi8, #tile.layout<interleave = 4>>
// CHECK: tile.mma %{{.*}} a_unsigned : !tile.tile<8x4xi8>
// CHECK: tile.mma %{{.*}} a_unsigned
// CHECK-SAME: {{^}} : !tile.tile<8x2xi8>, !tile.tile<2x32xi8, #tile.layout<interleave = 4>>, !tile.tile<8x32xi32>
// CHECK: tile.store
func.func @main(%x: tensor<8x30xi8>, %w: tensor<2x8x32x4xi8>) -> tensor<8x64xi32> {
  %y = tile.group "l2" (%x1 = %x : tensor<8x30xi8>, %w1 = %w : tensor<2x8x32x4xi8>) -> (tensor<8x64xi32>)
      attributes {tile.kernel = "bytes"} {
    %r = tile.group "register" (%x2 = %x1 : tensor<8x30xi8>, %w2 = %w1 : tensor<2x8x32x4xi8>) -> (tensor<8x64xi32>) {
      %zero = arith.constant 0 : i32
      %e = tensor.empty() : tensor<8x64xi32>
      %f = linalg.fill ins(%zero : i32) outs(%e : tensor<8x64xi32>) -> tensor<8x64xi32>
      %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x2, %w2 : tensor<8x30xi8>, tensor<2x8x32x4xi8>) outs(%f : tensor<8x64xi32>)
          attrs = {tile.rtile = #tile.rtile<l2 = [8, 64, 30], mma = [1, 16, 4], register = [8, 32, 4],
              order = [1, 0, 2]>} {
      ^bb0(%q: i8, %s: i8, %o: i32):
        %a = arith.extui %q : i8 to i32
        %b = arith.extsi %s : i8 to i32
        %m = arith.muli %a, %b : i32
        %t = arith.addi %o, %m : i32
        linalg.yield %t : i32
      } -> tensor<8x64xi32>
      tile.yield %p : tensor<8x64xi32>
    }
    tile.yield %r : tensor<8x64xi32>
  }
  return %y : tensor<8x64xi32>
}

// -----

// Two nests of one task: the sum of a row is handed on in a buffer of the task, as large as its 4 rows. The row of 100
// has a remainder of 36 lanes with an accumulator of its own.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// CHECK-LABEL: tile.kernel @normalize
// CHECK-SAME: (%[[X:.*]]: memref<8x100xf32>, %[[Y:.*]]: memref<8x100xf32>) grid(%[[I:.*]])
// CHECK: %[[BUFFER:.*]] = tile.alloc : memref<4xf32, #tile.level<"l2">>
// CHECK: scf.for %[[R:.*]] = %c0 to %c4 step %c1
// CHECK-DAG: tile.load %[[X]][%{{.*}}, %c0] : memref<8x100xf32>, !tile.tile<1x64xf32>
// CHECK-DAG: tile.load %[[X]][%{{.*}}, %c64] : memref<8x100xf32>, !tile.tile<1x36xf32>
// CHECK-COUNT-2: tile.reduce add
// CHECK: tile.store %{{.*}}, %[[BUFFER]][%[[R]]]
// CHECK: scf.for %[[S:.*]] = %c0 to %c4 step %c1
// CHECK: tile.load %[[BUFFER]][%[[S]]]
// CHECK: arith.divf %{{.*}} : !tile.tile<1x64xf32>
// CHECK: arith.divf %{{.*}} : !tile.tile<1x36xf32>
func.func @main(%x: tensor<8x100xf32>) -> tensor<8x100xf32> {
  %y = tile.group "l2" (%x1 = %x : tensor<8x100xf32>) -> (tensor<8x100xf32>) attributes {tile.kernel = "normalize"} {
    %s = tile.group "register" (%x2 = %x1 : tensor<8x100xf32>) -> (tensor<8xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<8xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
      %p = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
          ins(%x2 : tensor<8x100xf32>) outs(%f : tensor<8xf32>)
          attrs = {tile.rtile = #tile.rtile<l2 = [4, 100], register = [1, 64], order = [0, 1]>} {
      ^bb0(%q: f32, %o: f32):
        %t = arith.addf %o, %q : f32
        linalg.yield %t : f32
      } -> tensor<8xf32>
      tile.yield %p : tensor<8xf32>
    }
    %r = tile.group "register" (%x2 = %x1 : tensor<8x100xf32>, %s2 = %s : tensor<8xf32>) -> (tensor<8x100xf32>) {
      %e = tensor.empty() : tensor<8x100xf32>
      %g = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
          ins(%x2, %s2 : tensor<8x100xf32>, tensor<8xf32>) outs(%e : tensor<8x100xf32>)
          attrs = {tile.rtile = #tile.rtile<l2 = [4, 100], register = [1, 64], order = [0, 1]>} {
      ^bb0(%q: f32, %u: f32, %o: f32):
        %t = arith.divf %q, %u : f32
        linalg.yield %t : f32
      } -> tensor<8x100xf32>
      tile.yield %g : tensor<8x100xf32>
    }
    tile.yield %r : tensor<8x100xf32>
  }
  return %y : tensor<8x100xf32>
}

// -----

// The last of the tasks along a ragged dimension has code of its own; a gather reads its row's number first.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// CHECK-LABEL: tile.kernel @gather
// CHECK-SAME: (%[[IDS:.*]]: memref<5xi32>, %[[TABLE:.*]]: memref<100x32xf32>, %[[Y:.*]]: memref<5x32xf32>)
// CHECK-SAME: {{^}} grid(%[[I:.*]])
// CHECK: %[[LAST:.*]] = arith.cmpi eq, %[[I]], %c2
// CHECK: scf.if %[[LAST]]
// CHECK: tile.load %[[TABLE]][%{{.*}}, %c0] : memref<100x32xf32>, !tile.tile<1x32xf32>
// CHECK: else
// CHECK: scf.for %{{.*}} = %c0 to %c2 step %c1
// CHECK: tile.load %[[TABLE]][%{{.*}}, %c0] : memref<100x32xf32>, !tile.tile<1x32xf32>
func.func @main(%ids: tensor<5xi32>, %table: tensor<100x32xf32>) -> tensor<5x32xf32> {
  %y = tile.group "l2" (%ids1 = %ids : tensor<5xi32>, %table1 = %table : tensor<100x32xf32>) -> (tensor<5x32xf32>)
      attributes {tile.kernel = "gather"} {
    %r = tile.group "register" (%ids2 = %ids1 : tensor<5xi32>, %table2 = %table1 : tensor<100x32xf32>)
        -> (tensor<5x32xf32>) {
      %e = tensor.empty() : tensor<5x32xf32>
      %g = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
          ins(%ids2 : tensor<5xi32>) outs(%e : tensor<5x32xf32>)
          attrs = {tile.rtile = #tile.rtile<l2 = [2, 32], register = [1, 32], order = [0, 1]>} {
      ^bb0(%q: i32, %o: f32):
        %n = arith.index_cast %q : i32 to index
        %c = linalg.index 1 : index
        %t = tensor.extract %table2[%n, %c] : tensor<100x32xf32>
        linalg.yield %t : f32
      } -> tensor<5x32xf32>
      tile.yield %g : tensor<5x32xf32>
    }
    tile.yield %r : tensor<5x32xf32>
  }
  return %y : tensor<5x32xf32>
}

// -----

// What is gathered from a table of equal elements is that element, wherever.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>

// CHECK-LABEL: tile.kernel @gather_splat
// CHECK-SAME: (%{{.*}}: memref<5xi32>, %[[Y:.*]]: memref<5x32xf32>)
// CHECK: arith.constant dense<2.000000e+00> : !tile.tile<1x32xf32>
// CHECK-NOT: tile.load
// CHECK: tile.store %{{.*}}, %[[Y]]
func.func @main(%ids: tensor<5xi32>) -> tensor<5x32xf32> {
  %y = tile.group "l2" (%ids1 = %ids : tensor<5xi32>) -> (tensor<5x32xf32>) attributes {tile.kernel = "gather_splat"} {
    %r = tile.group "register" (%ids2 = %ids1 : tensor<5xi32>) -> (tensor<5x32xf32>) {
      %table = arith.constant dense<2.0> : tensor<100x32xf32>
      %e = tensor.empty() : tensor<5x32xf32>
      %g = linalg.generic {indexing_maps = [#row, #id], iterator_types = ["parallel", "parallel"]}
          ins(%ids2 : tensor<5xi32>) outs(%e : tensor<5x32xf32>)
          attrs = {tile.rtile = #tile.rtile<l2 = [2, 32], register = [1, 32], order = [0, 1]>} {
      ^bb0(%q: i32, %o: f32):
        %n = arith.index_cast %q : i32 to index
        %c = linalg.index 1 : index
        %t = tensor.extract %table[%n, %c] : tensor<100x32xf32>
        linalg.yield %t : f32
      } -> tensor<5x32xf32>
      tile.yield %g : tensor<5x32xf32>
    }
    tile.yield %r : tensor<5x32xf32>
  }
  return %y : tensor<5x32xf32>
}

// -----

// Rounds of four steps, and one step after them: 17 = 4 * 4 + 1. While a task works on one panel of the packed weight,
// each round of each of its 2 row tiles fetches lines of the next panel: 17 * 32 * 4 bytes are 34 lines, which 2 * 4
// rounds fetch by 5.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n floordiv 32, k, n mod 32)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-DAG: #[[$AHEAD:.*]] = affine_map<(d0, d1)[s0] -> (d1 * 20 + (d0 floordiv 8) * 320 + s0 * 544 + 544)>
// CHECK-DAG: #[[$NEXT:.*]] = affine_map<(d0, d1)[s0] -> (d1 * 20 + (d0 floordiv 8) * 320 + s0 * 544 + 560)>
// CHECK-LABEL: tile.kernel @ahead
// CHECK-SAME: (%{{.*}}: memref<16x17xf32>, %[[B:.*]]: memref<3x17x32xf32>,
// CHECK: scf.for %[[M:.*]] = %c0 to %c16 step %c8
// CHECK: scf.for %[[K:.*]] = %c0 to %c16 step %c4 iter_args
// CHECK: %[[FLAT:.*]] = memref.collapse_shape %[[B]]
// CHECK: %[[AT:.*]] = affine.apply #[[$AHEAD]](%[[M]], %[[K]])
// CHECK: memref.prefetch %[[FLAT]][%[[AT]]], read, locality<2>, data : memref<1632xf32>
// CHECK: affine.apply #[[$NEXT]]
// CHECK-COUNT-4: memref.prefetch
// CHECK-NOT: memref.prefetch
// CHECK-COUNT-4: tile.mma
// CHECK: scf.yield
// CHECK: tile.mma
// CHECK-NOT: tile.mma
func.func @main(%x: tensor<16x17xf32>, %w: tensor<3x17x32xf32>) -> tensor<16x96xf32> {
  %y = tile.group "l2" (%x1 = %x : tensor<16x17xf32>, %w1 = %w : tensor<3x17x32xf32>) -> (tensor<16x96xf32>)
      attributes {tile.kernel = "ahead"} {
    %r = tile.group "register" (%x2 = %x1 : tensor<16x17xf32>, %w2 = %w1 : tensor<3x17x32xf32>) -> (tensor<16x96xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<16x96xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x96xf32>) -> tensor<16x96xf32>
      %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x2, %w2 : tensor<16x17xf32>, tensor<3x17x32xf32>) outs(%f : tensor<16x96xf32>)
          attrs = {tile.prefetch = array<i64: 1>,
            tile.rtile = #tile.rtile<l2 = [16, 32, 17], register = [8, 32, 1], unroll = [1, 1, 4], order = [1, 0, 2]>} {
      ^bb0(%q: f32, %s: f32, %o: f32):
        %m = arith.mulf %q, %s : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
      } -> tensor<16x96xf32>
      tile.yield %p : tensor<16x96xf32>
    }
    tile.yield %r : tensor<16x96xf32>
  }
  return %y : tensor<16x96xf32>
}

// -----

// A convolution of a 7x6 image (unpadded: the input has 9x8), two lines at a time: 12 rows of accumulators of 8 lanes.
// What depends on the position in a line only, %line, is repeated for both lines. The last line is one by itself.

#x = affine_map<(h, w, n, r, s, c) -> (h + r, w + s, c)>
#f = affine_map<(h, w, n, r, s, c) -> (r, s, c, n)>
#y = affine_map<(h, w, n, r, s, c) -> (h, w, n)>
#id = affine_map<(h, w, n) -> (h, w, n)>
#w = affine_map<(h, w, n) -> (w)>

// CHECK-LABEL: tile.kernel @conv
// CHECK: %[[ACC:.*]] = scf.for {{.*}} -> (!tile.tile<12x8xf32>)
// CHECK: %[[X:.*]] = tile.load {{.*}} : memref<9x8x4xf32>, !tile.tile<2x6x1xf32>
// CHECK: tile.reshape %[[X]] : !tile.tile<2x6x1xf32> -> !tile.tile<12x1xf32>
// CHECK: tile.mma
// CHECK: %[[LINE:.*]] = tile.load {{.*}} : memref<6xf32>, !tile.tile<6xf32>
// CHECK: %[[ONE:.*]] = tile.reshape %[[LINE]] : !tile.tile<6xf32> -> !tile.tile<1x6x1xf32>
// CHECK: %[[TWO:.*]] = tile.broadcast %[[ONE]] : !tile.tile<1x6x1xf32> -> !tile.tile<2x6x1xf32>
// CHECK: tile.reshape %[[TWO]] : !tile.tile<2x6x1xf32> -> !tile.tile<12x1xf32>
// CHECK: tile.store {{.*}} : !tile.tile<2x6x8xf32>, memref<7x6x8xf32>
// CHECK: -> (!tile.tile<6x8xf32>)
// CHECK: tile.store {{.*}} : !tile.tile<6x8xf32>, memref<7x6x8xf32>
func.func @main(%x: tensor<9x8x4xf32>, %k: tensor<3x3x4x8xf32>, %line: tensor<6xf32>) -> tensor<7x6x8xf32> {
  %y = tile.group "l2" (%x1 = %x : tensor<9x8x4xf32>, %k1 = %k : tensor<3x3x4x8xf32>, %l1 = %line : tensor<6xf32>)
      -> (tensor<7x6x8xf32>) attributes {tile.kernel = "conv"} {
    %r = tile.group "register" (%x2 = %x1 : tensor<9x8x4xf32>, %k2 = %k1 : tensor<3x3x4x8xf32>, %l2 = %l1
        : tensor<6xf32>) -> (tensor<7x6x8xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<7x6x8xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<7x6x8xf32>) -> tensor<7x6x8xf32>
      %p = linalg.generic {indexing_maps = [#x, #f, #y],
          iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
          ins(%x2, %k2 : tensor<9x8x4xf32>, tensor<3x3x4x8xf32>) outs(%f : tensor<7x6x8xf32>)
          attrs = {tile.rtile = #tile.rtile<l2 = [7, 6, 8, 3, 3, 4], register = [2, 6, 8, 1, 1, 1],
              order = [2, 0, 1, 3, 4, 5]>} {
      ^bb0(%q: f32, %s: f32, %o: f32):
        %m = arith.mulf %q, %s : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
      } -> tensor<7x6x8xf32>
      %g = linalg.generic {indexing_maps = [#id, #w, #id], iterator_types = ["parallel", "parallel", "parallel"]}
          ins(%p, %l2 : tensor<7x6x8xf32>, tensor<6xf32>) outs(%e : tensor<7x6x8xf32>) {
      ^bb0(%q: f32, %s: f32, %o: f32):
        %t = arith.addf %q, %s : f32
        linalg.yield %t : f32
      } -> tensor<7x6x8xf32>
      tile.yield %g : tensor<7x6x8xf32>
    }
    tile.yield %r : tensor<7x6x8xf32>
  }
  return %y : tensor<7x6x8xf32>
}

// -----

// A reduction of 20 in blocks of 8, the last of 4: the tile of sums starts from 0, and each block adds to what the
// result holds. The copy of the right operand holds one block of its rows. Rows of tasks come before columns
// (tile.grid).

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#id = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: tile.kernel @blocks
// CHECK-SAME: (%{{.*}}: memref<16x20xf32>, %[[W:.*]]: memref<20x96xf32>, %[[Y:.*]]: memref<16x96xf32>)
// CHECK-SAME: {{^}} grid(%[[I:.*]], %[[J:.*]])
// CHECK: %[[COPY:.*]] = tile.alloc : memref<8x32xf32, #tile.level<"l2">>
// CHECK: tile.store %{{.*}}, %[[Y]]
// CHECK: scf.for %[[BLOCK:.*]] = %c0 to %c2 step %c1 {
// CHECK: scf.for
// CHECK: tile.store %{{.*}}, %[[COPY]]
// CHECK: %[[START:.*]] = tile.load %[[Y]]
// CHECK: %[[SUM:.*]] = scf.for %{{.*}} = %c0 to %c8 step %c1 iter_args(%{{.*}} = %[[START]])
// CHECK: tile.store %[[SUM]], %[[Y]]
// CHECK: scf.for %{{.*}} = %c0 to %c4 step %c1
// CHECK: tile.store %{{.*}}, %[[COPY]]
// CHECK: %[[MORE:.*]] = tile.load %[[Y]]
// CHECK: scf.for %{{.*}} = %c0 to %c4 step %c1 iter_args(%{{.*}} = %[[MORE]])
// CHECK-LABEL: func.func @main
// CHECK: tile.launch @blocks grid(%c2, %c3)
func.func @main(%x: tensor<16x20xf32>, %w: tensor<20x96xf32>) -> tensor<16x96xf32> {
  %y = tile.group "l2" (%x1 = %x : tensor<16x20xf32>, %w1 = %w : tensor<20x96xf32>) -> (tensor<16x96xf32>)
      attributes {tile.kernel = "blocks"} {
    %q = tile.group "register" (%w2 = %w1 : tensor<20x96xf32>) -> (tensor<20x96xf32>) {
      %e = tensor.empty() : tensor<20x96xf32>
      %g = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
          ins(%w2 : tensor<20x96xf32>) outs(%e : tensor<20x96xf32>)
          attrs = {tile.rtile = #tile.rtile<l2 = [20, 32], register = [1, 32], order = [0, 1]>} {
      ^bb0(%s: f32, %o: f32):
        linalg.yield %s : f32
      } -> tensor<20x96xf32>
      tile.yield %g : tensor<20x96xf32>
    }
    %r = tile.group "register" (%x2 = %x1 : tensor<16x20xf32>, %w2 = %q : tensor<20x96xf32>) -> (tensor<16x96xf32>) {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : tensor<16x96xf32>
      %f = linalg.fill ins(%zero : f32) outs(%e : tensor<16x96xf32>) -> tensor<16x96xf32>
      %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x2, %w2 : tensor<16x20xf32>, tensor<20x96xf32>) outs(%f : tensor<16x96xf32>)
          attrs = {tile.grid = array<i64: 0, 1>,
            tile.rtile = #tile.rtile<block = [16, 96, 8], l2 = [8, 32, 20], register = [8, 32, 1], order = [1, 0, 2]>} {
      ^bb0(%s: f32, %u: f32, %o: f32):
        %m = arith.mulf %s, %u : f32
        %t = arith.addf %o, %m : f32
        linalg.yield %t : f32
      } -> tensor<16x96xf32>
      tile.yield %p : tensor<16x96xf32>
    }
    tile.yield %r : tensor<16x96xf32>
  }
  return %y : tensor<16x96xf32>
}

// -----

// A result that is stored past the caches: rows of 64 lie at multiples of 16 bytes, rows of 66 do not.

#id = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: tile.kernel @aligned
// CHECK: tile.store {{.*}} {tile.streamed}
// CHECK-LABEL: tile.kernel @ragged
// CHECK: tile.store
// CHECK-NOT: tile.streamed
// CHECK: tile.return
func.func @main(%x: tensor<8x64xf32>, %z: tensor<8x66xf32>) -> (tensor<8x64xf32>, tensor<8x66xf32>) {
  %y = tile.group "l2" (%x1 = %x : tensor<8x64xf32>) -> (tensor<8x64xf32>) attributes {tile.kernel = "aligned"} {
    %r = tile.group "register" (%x2 = %x1 : tensor<8x64xf32>) -> (tensor<8x64xf32>) {
      %e = tensor.empty() : tensor<8x64xf32>
      %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"],
          tile.stream, tile.rtile = #tile.rtile<l2 = [4, 64], register = [1, 64], order = [0, 1]>}
          ins(%x2 : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
      ^bb0(%a: f32, %o: f32):
        %t = arith.negf %a : f32
        linalg.yield %t : f32
      } -> tensor<8x64xf32>
      tile.yield %n : tensor<8x64xf32>
    }
    tile.yield %r : tensor<8x64xf32>
  }
  %v = tile.group "l2" (%x1 = %z : tensor<8x66xf32>) -> (tensor<8x66xf32>) attributes {tile.kernel = "ragged"} {
    %r = tile.group "register" (%x2 = %x1 : tensor<8x66xf32>) -> (tensor<8x66xf32>) {
      %e = tensor.empty() : tensor<8x66xf32>
      %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"],
          tile.stream, tile.rtile = #tile.rtile<l2 = [4, 66], register = [1, 66], order = [0, 1]>}
          ins(%x2 : tensor<8x66xf32>) outs(%e : tensor<8x66xf32>) {
      ^bb0(%a: f32, %o: f32):
        %t = arith.negf %a : f32
        linalg.yield %t : f32
      } -> tensor<8x66xf32>
      tile.yield %n : tensor<8x66xf32>
    }
    tile.yield %r : tensor<8x66xf32>
  }
  return %y, %v : tensor<8x64xf32>, tensor<8x66xf32>
}

// -----

// Level mma tiles rows, too: sums are held in blocks, the registers of a matrix unit. 40 rows are 32 and the 16 that
// end with the last one; a sum that nothing follows is stored as it is held.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n floordiv 32, k floordiv 4, n mod 32, k mod 4)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: tile.kernel @matrix
// CHECK: tile.load {{.*}} : memref<40x128xi8>, !tile.tile<32x64xi8, #tile.layout<inner = [0, 1], tiles = [16, 64]>>
// CHECK: tile.load
// CHECK-SAME: dims [1, 2] : memref<2x32x32x4xi8>,
// CHECK-SAME: {{^}} !tile.tile<64x32xi8, #tile.layout<inner = [0, 1], tiles = [64, 16], interleave = 4>>
// CHECK: tile.mma
// CHECK: tile.store {{.*}} : !tile.tile<32x32xi32, #tile.layout<inner = [0, 1], tiles = [16, 16]>>, memref<40x64xi32>
// CHECK: tile.load %{{.*}}[%c24, {{.*}} !tile.tile<16x64xi8
// CHECK: tile.mma
// CHECK: tile.store {{.*}} : !tile.tile<16x32xi32, #tile.layout<inner = [0, 1], tiles = [16, 16]>>, memref<40x64xi32>
func.func @main(%x: tensor<40x128xi8>, %w: tensor<2x32x32x4xi8>) -> tensor<40x64xi32> {
  %y = tile.group "l2" (%x1 = %x : tensor<40x128xi8>, %w1 = %w : tensor<2x32x32x4xi8>) -> (tensor<40x64xi32>)
      attributes {tile.kernel = "matrix"} {
    %r = tile.group "register" (%x2 = %x1 : tensor<40x128xi8>, %w2 = %w1 : tensor<2x32x32x4xi8>)
        -> (tensor<40x64xi32>) {
      %zero = arith.constant 0 : i32
      %e = tensor.empty() : tensor<40x64xi32>
      %f = linalg.fill ins(%zero : i32) outs(%e : tensor<40x64xi32>) -> tensor<40x64xi32>
      %p = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
          ins(%x2, %w2 : tensor<40x128xi8>, tensor<2x32x32x4xi8>) outs(%f : tensor<40x64xi32>)
          attrs = {tile.rtile = #tile.rtile<l2 = [40, 64, 128], mma = [16, 16, 64], register = [32, 32, 64],
              order = [1, 0, 2]>} {
      ^bb0(%q: i8, %s: i8, %o: i32):
        %a = arith.extui %q : i8 to i32
        %b = arith.extsi %s : i8 to i32
        %m = arith.muli %a, %b : i32
        %t = arith.addi %o, %m : i32
        linalg.yield %t : i32
      } -> tensor<40x64xi32>
      tile.yield %p : tensor<40x64xi32>
    }
    tile.yield %r : tensor<40x64xi32>
  }
  return %y : tensor<40x64xi32>
}
