// RUN: tile-opt %s --tile-find-pairs | FileCheck-22 %s

!leaf = tensor<8xf32>
!list = !fractal.array<[9] of tensor<8xf32>>
!grid = !fractal.array<[4, 9] of tensor<8xf32>>

// CHECK-LABEL: @layers(
// CHECK: fractal.fold {{.*}} attributes {tile.pair = array<i64: 3, 9>}
func.func @layers(%xs: !list, %ws: !fractal.array<[3] of tensor<8xf32>>, %h0: !leaf) -> !list {
  %r = fractal.fold left (%s = %xs) over (%w = %ws) : (!list, !fractal.array<[3] of tensor<8xf32>>) -> !list {
    %hs = fractal.scan left (%h = %h0) over (%x = %s) : (!leaf, !list) -> !list {
      %0 = arith.mulf %h, %w : !leaf
      %1 = arith.addf %0, %x : !leaf
      fractal.yield %1 : !leaf
    }
    fractal.yield %hs : !list
  }
  return %r : !list
}

// Rows of a grid: the state above is a list, the inner scan has a list of its own beside it.
// CHECK-LABEL: @grid(
// CHECK: fractal.scan {{.*}} attributes {tile.pair = array<i64: 4, 9>}
func.func @grid(%xss: !grid, %top: !list, %left: !leaf) -> !grid {
  %r = fractal.scan left (%above = %top) over (%xs = %xss) : (!list, !grid) -> !grid {
    %hs = fractal.scan left (%h = %left) over (%a = %above, %x = %xs) : (!leaf, !list, !list) -> !list {
      %0 = arith.addf %h, %a : !leaf
      %1 = arith.addf %0, %x : !leaf
      fractal.yield %1 : !leaf
    }
    fractal.yield %hs : !list
  }
  return %r : !grid
}

// The initial state of each row is the last one of the row above: no pair.
// CHECK-LABEL: @whole(
// CHECK-NOT: tile.pair
func.func @whole(%xs: !list, %ws: !fractal.array<[3] of tensor<8xf32>>) -> !list {
  %r = fractal.fold left (%s = %xs) over (%w = %ws) : (!list, !fractal.array<[3] of tensor<8xf32>>) -> !list {
    %last = arith.constant 8 : index
    %h0 = fractal.at %s[%last] : !list -> !leaf
    %hs = fractal.scan left (%h = %h0) over (%x = %s) : (!leaf, !list) -> !list {
      %0 = arith.addf %h, %x : !leaf
      fractal.yield %0 : !leaf
    }
    fractal.yield %hs : !list
  }
  return %r : !list
}

// From the right; lengths that are not known; something behind the scan.
// CHECK-LABEL: @others(
// CHECK-NOT: tile.pair
func.func @others(%xs: !list, %ys: !fractal.array<[?] of tensor<8xf32>>, %ws: !fractal.array<[3] of tensor<8xf32>>,
    %h0: !leaf) -> (!list, !fractal.array<[?] of tensor<8xf32>>, !list) {
  %r = fractal.fold left (%s = %xs) over (%w = %ws) : (!list, !fractal.array<[3] of tensor<8xf32>>) -> !list {
    %hs = fractal.scan right (%h = %h0) over (%x = %s) : (!leaf, !list) -> !list {
      %0 = arith.addf %h, %x : !leaf
      fractal.yield %0 : !leaf
    }
    fractal.yield %hs : !list
  }
  %q = fractal.fold left (%s = %ys) over (%w = %ws)
      : (!fractal.array<[?] of tensor<8xf32>>, !fractal.array<[3] of tensor<8xf32>>)
      -> !fractal.array<[?] of tensor<8xf32>> {
    %hs = fractal.scan left (%h = %h0) over (%x = %s)
        : (!leaf, !fractal.array<[?] of tensor<8xf32>>) -> !fractal.array<[?] of tensor<8xf32>> {
      %0 = arith.addf %h, %x : !leaf
      fractal.yield %0 : !leaf
    }
    fractal.yield %hs : !fractal.array<[?] of tensor<8xf32>>
  }
  %t = fractal.fold left (%s = %xs) over (%w = %ws) : (!list, !fractal.array<[3] of tensor<8xf32>>) -> !list {
    %hs = fractal.scan left (%h = %h0) over (%x = %s) : (!leaf, !list) -> !list {
      %0 = arith.addf %h, %x : !leaf
      fractal.yield %0 : !leaf
    }
    %b = fractal.reverse %hs : !list -> !list
    fractal.yield %b : !list
  }
  return %r, %q, %t : !list, !fractal.array<[?] of tensor<8xf32>>, !list
}
