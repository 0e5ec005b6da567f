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

// Places of two loops in a list: its levels are not known to what reads it.
func.func @turned(%xss: !fractal.array<[3, 5] of tensor<8xf32>>, %zero: tensor<8xf32>) -> tensor<8xf32> {
  // expected-remark @below {{'!fractal.array<[7, 3] of tensor<8xf32>>' is read by another block}}
  %t = fractal.read %xss at affine_map<(d0, d1) -> (d1, d0 - d1)>
      : !fractal.array<[3, 5] of tensor<8xf32>> -> !fractal.array<[7, 3] of tensor<8xf32>>
  %r = fractal.fold left (%h = %zero) over (%ts = %t)
      : (tensor<8xf32>, !fractal.array<[7, 3] of tensor<8xf32>>) -> tensor<8xf32> {
    %m = fractal.map (%x = %ts) : (!fractal.array<[3] of tensor<8xf32>>) -> !fractal.array<[3] of tensor<8xf32>> {
      %n = arith.addf %h, %x : tensor<8xf32>
      fractal.yield %n : tensor<8xf32>
    }
    %c0 = arith.constant 0 : index
    %l = fractal.at %m[%c0] : !fractal.array<[3] of tensor<8xf32>> -> tensor<8xf32>
    fractal.yield %l : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}
