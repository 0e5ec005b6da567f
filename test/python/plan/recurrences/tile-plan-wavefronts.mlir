// RUN: tile-opt %s --split-input-file --tile-set-target=target=nvidia-h100 --tile-plan-wavefronts 2>&1 \
// RUN:   | FileCheck-22 %s --check-prefixes=CHECK,GPU
// RUN: tile-opt %s --split-input-file --tile-set-target=target=cpu:icelake-server --tile-plan-wavefronts 2>&1 \
// RUN:   | FileCheck-22 %s --check-prefixes=CHECK,CPU

!row = tensor<1x256xf32>
!list = !fractal.array<[64] of tensor<1x256xf32>>
!weight = tensor<256x256xf32>
!weights = !fractal.array<[16] of tensor<256x256xf32>>

// Remarks come first, those of both parts. Sixteen layers whose weights do not fit the second cache together: a core
// goes layer by layer, a GPU, whose launches take longer than its products, along diagonals.
// GPU: remark: 16 x 64 points of a recurrence run as 79 diagonals: predicted are {{[0-9]+}} us row by row
// CPU: remark: 16 x 64 points of a recurrence stay row by row: predicted are {{[0-9]+}} us row by row
// CHECK: remark: 3 x 9 points of a recurrence run as 11 diagonals
// CHECK-LABEL: @layers(
// GPU: fractal.fold {{.*}} attributes {tile.wavefront}
// CPU: fractal.fold {{.*}} attributes {tile.unroll = 4 : i64}
// CHECK-NOT: tile.pair
func.func @layers(%xs: !list, %ws: !weights, %us: !weights, %h0: !row) -> !list {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : !row
  %z = linalg.fill ins(%zero : f32) outs(%e : !row) -> !row
  %r = fractal.fold left (%s = %xs) over (%w = %ws, %u = %us) : (!list, !weights, !weights) -> !list
      attributes {tile.pair = array<i64: 16, 64>} {
    %hs = fractal.scan left (%h = %h0) over (%x = %s) : (!row, !list) -> !list {
      %p = linalg.matmul ins(%x, %w : !row, !weight) outs(%z : !row) -> !row
      %q = linalg.matmul ins(%h, %u : !row, !weight) outs(%p : !row) -> !row
      %n = math.tanh %q : !row
      fractal.yield %n : !row
    }
    fractal.yield %hs : !list
  }
  return %r : !list
}

// -----

!row = tensor<8xf32>
!list = !fractal.array<[9] of tensor<8xf32>>

// Hardly any work: what counts are launches.
// CHECK-LABEL: @main(
// CHECK: fractal.fold {{.*}} attributes {tile.wavefront}
func.func @main(%xs: !list, %ws: !fractal.array<[3] of tensor<8xf32>>, %h0: !row) -> !list {
  %r = fractal.fold left (%s = %xs) over (%w = %ws) : (!list, !fractal.array<[3] of tensor<8xf32>>) -> !list
      attributes {tile.pair = array<i64: 3, 9>} {
    %hs = fractal.scan left (%h = %h0) over (%x = %s) : (!row, !list) -> !list {
      %0 = arith.mulf %h, %w : !row
      %1 = arith.addf %0, %x : !row
      fractal.yield %1 : !row
    }
    fractal.yield %hs : !list
  }
  return %r : !list
}

// -----

!row = tensor<1x8xf32>
!list = !fractal.array<[9] of tensor<1x8xf32>>
#tesa = #sparse_tile.tesa<nm<2 : 4, axis = 0>>

// One product takes one encoded weight: each row of the domain has its own.
// CHECK-LABEL: @encoded(
// CHECK: fractal.fold {{.*}} attributes {tile.unroll}
func.func @encoded(%xs: !list, %ws: !fractal.array<[3] of tensor<8x8xf32>>, %h0: !row) -> !list {
  %r = fractal.fold left (%s = %xs) over (%w = %ws) : (!list, !fractal.array<[3] of tensor<8x8xf32>>) -> !list
      attributes {tile.pair = array<i64: 3, 9>} {
    %hs = fractal.scan left (%h = %h0) over (%x = %s) : (!row, !list) -> !list {
      %p = sparse_tile.pack %w : tensor<8x8xf32> to tensor<8x8xf32, #tesa>
      %y = sparse_tile.matmul %h, %p, %x : !row, tensor<8x8xf32, #tesa>, !row
      fractal.yield %y : !row
    }
    fractal.yield %hs : !list
  }
  return %r : !list
}

// -----

!row = tensor<1x1024xf32>
!list = !fractal.array<[10] of tensor<1x1024xf32>>
!grid = !fractal.array<[10, 10] of tensor<1x1024xf32>>
!weight = tensor<1024x1024xf32>

// A grid whose rows share a weight: a core reads it for five points at a time, and computes few outside of the domain.
// CHECK-LABEL: @grid(
// GPU: fractal.scan {{.*}} attributes {tile.wavefront}
// CPU: fractal.scan {{.*}} attributes {tile.wavefront = 5 : i64}
func.func @grid(%xss: !grid, %top: !list, %left: !row, %u: !weight) -> !grid {
  %r = fractal.scan left (%above = %top) over (%xs = %xss) : (!list, !grid) -> !grid
      attributes {tile.pair = array<i64: 10, 10>} {
    %hs = fractal.scan left (%h = %left) over (%a = %above, %x = %xs) : (!row, !list, !list) -> !list {
      %0 = arith.addf %h, %a : !row
      %1 = linalg.matmul ins(%0, %u : !row, !weight) outs(%x : !row) -> !row
      fractal.yield %1 : !row
    }
    fractal.yield %hs : !list
  }
  return %r : !grid
}
