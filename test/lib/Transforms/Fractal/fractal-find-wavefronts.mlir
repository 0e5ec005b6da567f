// RUN: tile-opt %s --fractal-extract-graph --fractal-split-regions --fractal-find-wavefronts -mlir-print-local-scope \
// RUN:   | FileCheck-22 %s

!leaf = tensor<1x8xf32>
!seq = !fractal.array<[64] of tensor<1x8xf32>>
!grid = !fractal.array<[10, 10] of tensor<1x8xf32>>
!row = !fractal.array<[10] of tensor<1x8xf32>>
!layers = !fractal.array<[32] of tensor<1x8xf32>>

// A stacked LSTM of 32 layers and 64 steps: 95 steps, in each of which up to 32 cells (of three sentences) may run.
// In the region without a first iteration: 2 <= j0 < 95, max(1, j0 - 63) <= j1 < min(j0, 32), 0 <= j2 < 3.
// CHECK-LABEL: fractal.graph @lstm_graph
// CHECK: distances = [array<i64: 0, 0, 1>, array<i64: 0, 1, 0>], hyperplanes = affine_map<() -> (95)>
// CHECK-SAME: region_lower = [
// CHECK-SAME: [affine_map<() -> (2)>, affine_map<(d0) -> (1, d0 - 63)>, affine_map<(d0, d1) -> (0)>]],
// CHECK-SAME: region_upper = [
// CHECK-SAME: [affine_map<() -> (95)>, affine_map<(d0) -> (d0, 32)>, affine_map<(d0, d1) -> (3)>]],
// CHECK-SAME: schedule = affine_map<(d0, d1, d2) -> (d1 + d2, d1, d0)>,
// CHECK-SAME: schedule_distances = [array<i64: 1, 0, 0>, array<i64: 1, 1, 0>],
// CHECK-SAME: schedule_lower = [affine_map<() -> (0)>, affine_map<(d0) -> (0, d0 - 63)>, affine_map<(d0, d1) -> (0)>],
// CHECK-SAME: schedule_upper = [affine_map<() -> (95)>, affine_map<(d0) -> (32, d0 + 1)>, affine_map<(d0, d1) -> (3)>]
func.func @lstm(%xss: !fractal.array<[3, 64] of tensor<1x8xf32>>, %ws: !fractal.array<[32] of tensor<1x8xf32>>,
                %zero: !leaf) -> !fractal.array<[3, 64] of tensor<1x8xf32>> {
  %r = fractal.map (%xs = %xss) : (!fractal.array<[3, 64] of tensor<1x8xf32>>)
      -> !fractal.array<[3, 64] of tensor<1x8xf32>> {
    %last = fractal.fold left (%s = %xs) over (%w = %ws) : (!seq, !fractal.array<[32] of tensor<1x8xf32>>) -> !seq {
      %hs:2 = fractal.scan left (%h = %zero, %c = %zero) over (%x = %s) : (!leaf, !leaf, !seq) -> (!seq, !seq) {
        %0 = arith.addf %h, %x : !leaf
        %1 = arith.mulf %0, %w : !leaf
        %2 = arith.addf %1, %c : !leaf
        fractal.yield %1, %2 : !leaf, !leaf
      }
      fractal.yield %hs#0 : !seq
    }
    fractal.yield %last : !seq
  }
  return %r : !fractal.array<[3, 64] of tensor<1x8xf32>>
}

// A grid RNN of 32 layers on 10 by 10 points: three dimensions with a state, 50 steps. In the last region:
// 3 <= m < 50, max(1, m - 18) <= n < min(m - 1, 32), max(1, m - n - 9) <= p < min(m - n, 10), 0 <= q < 2.
// CHECK-LABEL: fractal.graph @grid_graph
// CHECK: fractal.block ["map", "fold left", "scan left", "scan left"]
// CHECK: hyperplanes = affine_map<() -> (50)>
// CHECK-SAME: [affine_map<() -> (3)>, affine_map<(d0) -> (d0 - 18, 1)>,
// CHECK-SAME: affine_map<(d0, d1) -> (1, d0 - d1 - 9)>, affine_map<(d0, d1, d2) -> (0)>]],
// CHECK-SAME: [affine_map<() -> (50)>, affine_map<(d0) -> (d0 - 1, 32)>,
// CHECK-SAME: affine_map<(d0, d1) -> (d0 - d1, 10)>, affine_map<(d0, d1, d2) -> (2)>]],
// CHECK-SAME: schedule = affine_map<(d0, d1, d2, d3) -> (d1 + d2 + d3, d1, d2, d0)>
func.func @grid(%grids: !fractal.array<[2, 10, 10] of tensor<1x8xf32>>, %ws: !layers, %zeros: !row, %zero: !leaf)
    -> !fractal.array<[2, 10, 10] of tensor<1x8xf32>> {
  %r = fractal.map (%grid = %grids) : (!fractal.array<[2, 10, 10] of tensor<1x8xf32>>)
      -> !fractal.array<[2, 10, 10] of tensor<1x8xf32>> {
    %last = fractal.fold left (%s = %grid) over (%w = %ws) : (!grid, !layers) -> !grid {
      %rows = fractal.scan left (%above = %zeros) over (%row = %s) : (!row, !grid) -> !grid {
        %points = fractal.scan left (%left = %zero) over (%up = %above, %x = %row) : (!leaf, !row, !row) -> !row {
          %0 = arith.addf %left, %up : !leaf
          %1 = arith.addf %0, %x : !leaf
          %2 = arith.mulf %1, %w : !leaf
          fractal.yield %2 : !leaf
        }
        fractal.yield %points : !row
      }
      fractal.yield %rows : !grid
    }
    fractal.yield %last : !grid
  }
  return %r : !fractal.array<[2, 10, 10] of tensor<1x8xf32>>
}

// Lengths that a run knows: as many steps as both together, less one. From the right, steps count down.
// CHECK-LABEL: fractal.graph @unknown_graph
// CHECK: distances = [array<i64: 0, -1>, array<i64: 1, 0>], hyperplanes = affine_map<()[s0, s1] -> (s0 + s1 - 1)>
// CHECK-SAME: schedule = affine_map<(d0, d1) -> (d0 - d1, d0)>
func.func @unknown(%xs: !fractal.array<[?] of tensor<1x8xf32>>, %ws: !fractal.array<[?] of tensor<1x8xf32>>,
                   %zero: !leaf) -> !fractal.array<[?] of tensor<1x8xf32>> {
  %last = fractal.fold left (%s = %xs) over (%w = %ws)
      : (!fractal.array<[?] of tensor<1x8xf32>>, !fractal.array<[?] of tensor<1x8xf32>>)
      -> !fractal.array<[?] of tensor<1x8xf32>> {
    %hs = fractal.scan right (%h = %zero) over (%x = %s) : (!leaf, !fractal.array<[?] of tensor<1x8xf32>>)
        -> !fractal.array<[?] of tensor<1x8xf32>> {
      %0 = arith.addf %h, %x : !leaf
      %1 = arith.mulf %0, %w : !leaf
      fractal.yield %1 : !leaf
    }
    fractal.yield %hs : !fractal.array<[?] of tensor<1x8xf32>>
  }
  return %last : !fractal.array<[?] of tensor<1x8xf32>>
}

// The state goes on from the end of one list to the beginning of the next: no two iterations may run at once.
// CHECK-LABEL: fractal.graph @chain_graph
// CHECK: distances = [array<i64: 1, -9>, array<i64: 0, 1>], hyperplanes = affine_map<() -> (100)>
// CHECK-SAME: schedule = affine_map<(d0, d1) -> (d0 * 10 + d1, d0)>
func.func @chain(%xss: !grid, %zero: !leaf) -> !leaf {
  %r = fractal.fold left (%outer = %zero) over (%xs = %xss) : (!leaf, !grid) -> !leaf {
    %s = fractal.fold left (%h = %outer) over (%x = %xs) : (!leaf, !row) -> !leaf {
      %0 = arith.addf %h, %x : !leaf
      fractal.yield %0 : !leaf
    }
    fractal.yield %s : !leaf
  }
  return %r : !leaf
}
