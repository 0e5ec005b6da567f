// RUN: tile-opt %s --tile-skew-recurrences --mlir-print-local-scope --split-input-file --verify-diagnostics \
// RUN:   | FileCheck-22 %s

!leaf = tensor<8xf32>
!list = !fractal.array<[9] of tensor<8xf32>>

// Three rows of nine columns are eleven diagonals; row 2 has its columns on diagonals 2 to 10.
// CHECK-LABEL: @main(
// CHECK: %[[INIT:.*]] = fractal.repeat %arg2 times 3
// CHECK: %[[BORDER:.*]] = fractal.read %arg0 at affine_map<(d0) -> (d0)> 
// CHECK-SAME: -> !fractal.array<[11] of tensor<8xf32>>
// CHECK: %[[ALL:.*]] = fractal.scan left (%[[H:.*]] = %[[INIT]]) over (%[[X:.*]] = %[[BORDER]], %{{.*}} = %{{.*}})
// CHECK: %[[BELOW:.*]] = fractal.shift %[[H]] by -1 fill %[[X]]
// CHECK: fractal.map (%[[A:.*]] = %[[H]], %[[B:.*]] = %[[BELOW]], %{{.*}} = %{{.*}}, %[[W:.*]] = %arg1)
// CHECK: %[[P:.*]] = arith.mulf %[[A]], %[[W]]
// CHECK: arith.addf %[[P]], %[[B]]
// CHECK: arith.select
// CHECK: fractal.read %[[ALL]] at affine_map<(d0) -> (d0 + 2, 2)>
func.func @main(%xs: !list, %ws: !fractal.array<[3] of tensor<8xf32>>, %h0: !leaf) -> !list {
  %r = fractal.fold left (%s = %xs) over (%w = %ws) : (!list, !fractal.array<[3] of tensor<8xf32>>) -> !list
      attributes {tile.wavefront} {
    %hs = fractal.scan left (%h = %h0) over (%x = %s) : (!leaf, !list) -> !list {
      %0 = arith.mulf %h, %w : !leaf
      %1 = arith.addf %0, %x : !leaf
      fractal.yield %1 : !leaf
    }
    fractal.yield %hs : !list
  }
  return %r : !list
}

// -----

!leaf = tensor<8xf32>
!list = !fractal.array<[9] of tensor<8xf32>>
!grid = !fractal.array<[4, 9] of tensor<8xf32>>

// A list of each row is read along diagonals, one that all rows share, too; all results are kept.
// CHECK-LABEL: @grid(
// CHECK: fractal.read %arg0 at affine_map<(d0, d1) -> (d1, d0 - d1)>
// CHECK-SAME: -> !fractal.array<[12, 4] of tensor<8xf32>>
// CHECK: fractal.read %arg1 at affine_map<(d0, d1) -> (d0 - d1)>
// CHECK: fractal.scan left
// CHECK: fractal.read %{{.*}} at affine_map<(d0, d1) -> (d0 + d1, d0)>
// CHECK-SAME: -> !fractal.array<[4, 9] of tensor<8xf32>>
func.func @grid(%xss: !grid, %ys: !list, %top: !list, %left: !leaf) -> !grid {
  %r = fractal.scan left (%above = %top) over (%xs = %xss) : (!list, !grid) -> !grid attributes {tile.wavefront} {
    %hs = fractal.scan left (%h = %left) over (%a = %above, %x = %xs, %y = %ys)
        : (!leaf, !list, !list, !list) -> !list {
      %0 = arith.addf %h, %a : !leaf
      %1 = arith.addf %0, %x : !leaf
      %2 = arith.addf %1, %y : !leaf
      fractal.yield %2 : !leaf
    }
    fractal.yield %hs : !list
  }
  return %r : !grid
}

// -----

!leaf = tensor<8xf32>
!list = !fractal.array<[9] of tensor<8xf32>>

// CHECK-NOT: @refused
func.func @refused(%xs: !list, %ws: !fractal.array<[3] of tensor<8xf32>>, %h0: !leaf) -> !list {
  // expected-error@+1 {{cannot become a wavefront, as 'tile.wavefront' asks: it goes from right to left}}
  %r = fractal.fold right (%s = %xs) over (%w = %ws) : (!list, !fractal.array<[3] of tensor<8xf32>>) -> !list
      attributes {tile.wavefront} {
    %hs = fractal.scan left (%h = %h0) over (%x = %s) : (!leaf, !list) -> !list {
      %0 = arith.addf %h, %x : !leaf
      fractal.yield %0 : !leaf
    }
    fractal.yield %hs : !list
  }
  return %r : !list
}

// -----

!leaf = tensor<1x8xf32>
!list = !fractal.array<[9] of tensor<1x8xf32>>
!grid = !fractal.array<[5, 9] of tensor<1x8xf32>>

// Two bands of two rows are a loop, one row is left. What needs no state is one product for all points, in front.
// CHECK-LABEL: @bands(
// CHECK: %[[MADE:.*]] = fractal.map (%{{.*}} = %arg0)
// CHECK: fractal.map
// CHECK: linalg.matmul
// CHECK: fractal.slice %[[MADE]] [0] [4] [1]
// CHECK: fractal.scan left
// CHECK: fractal.at
// CHECK: fractal.scan left (%{{.*}} = %{{.*}}) over (%{{.*}} = %{{.*}}) : (!fractal.array<[2] of
// CHECK-NOT: linalg.matmul
// CHECK: fractal.flatten
// CHECK: fractal.slice %[[MADE]] [4] [1] [1]
// CHECK: fractal.join
func.func @bands(%xss: !grid, %top: !list, %left: !leaf, %w: tensor<8x8xf32>, %z: !leaf) -> !grid {
  %r = fractal.scan left (%above = %top) over (%xs = %xss) : (!list, !grid) -> !grid
      attributes {tile.wavefront = 2 : i64} {
    %hs = fractal.scan left (%h = %left) over (%a = %above, %x = %xs) : (!leaf, !list, !list) -> !list {
      %p = linalg.matmul ins(%x, %w : !leaf, tensor<8x8xf32>) outs(%z : !leaf) -> !leaf
      %0 = arith.addf %h, %a : !leaf
      %1 = arith.addf %0, %p : !leaf
      fractal.yield %1 : !leaf
    }
    fractal.yield %hs : !list
  }
  return %r : !grid
}

// -----

!leaf = tensor<8xf32>
!list = !fractal.array<[9] of tensor<8xf32>>

func.func @none(%xs: !list, %ws: !fractal.array<[3] of tensor<8xf32>>, %h0: !leaf) -> !list {
  // expected-error@+1 {{has a 'tile.wavefront' of 0: a band has one row or more}}
  %r = fractal.fold left (%s = %xs) over (%w = %ws) : (!list, !fractal.array<[3] of tensor<8xf32>>) -> !list
      attributes {tile.wavefront = 0 : i64} {
    %hs = fractal.scan left (%h = %h0) over (%x = %s) : (!leaf, !list) -> !list {
      %0 = arith.addf %h, %x : !leaf
      fractal.yield %0 : !leaf
    }
    fractal.yield %hs : !list
  }
  return %r : !list
}
