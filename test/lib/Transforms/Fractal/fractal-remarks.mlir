// RUN: tile-opt %s --fractal-extract-graph --fractal-split-regions --fractal-find-wavefronts -verify-diagnostics \
// RUN:   | FileCheck-22 %s

!leaf = tensor<8xf32>
!some = !fractal.array<[?] of tensor<8xf32>>

// How far back the end of the list before is, depends on its length: it has a graph, and no order.
// CHECK-LABEL: fractal.graph @chain_graph
// CHECK: nonuniform
// CHECK-NOT: schedule
// CHECK: fractal.block ["fold left"]
func.func @chain(%xss: !fractal.array<[?, ?] of tensor<8xf32>>, %zero: !leaf) -> !leaf {
  %r = fractal.fold left (%outer = %zero) over (%xs = %xss) : (!leaf, !fractal.array<[?, ?] of tensor<8xf32>>)
      -> !leaf {
    %s = fractal.fold left (%h = %outer) over (%x = %xs) : (!leaf, !some) -> !leaf {
      // expected-remark@+1 {{no row of integers orders what its iterations wait for}}
      %0 = arith.addf %h, %x : !leaf
      fractal.yield %0 : !leaf
    }
    fractal.yield %s : !leaf
  }
  return %r : !leaf
}
