// RUN: tile-opt %s --fractal-extract-graph --fractal-split-regions -mlir-print-local-scope | FileCheck-22 %s

!leaf = tensor<1x8xf32>
!seq = !fractal.array<[64] of tensor<1x8xf32>>

// A stacked LSTM: two dimensions have a state, hence four regions: along each, an init is read or its own result.
// CHECK-LABEL: fractal.graph @lstm_graph
// CHECK: fractal.block ["map", "fold left", "scan left"] to affine_map<(d0, d1, d2) -> (3, 32, 64)>
// CHECK-SAME: reads (%arg2 for 0 at affine_map<(d0, d1, d2) -> ()> where affine_set<(d0, d1, d2) : (d2 == 0)>
// CHECK-SAME: %0#0 for 0 at affine_map<(d0, d1, d2) -> (d0, d1, d2 - 1)> where affine_set<(d0, d1, d2) : (d2 - 1 >= 0)>
// CHECK-SAME: %arg0 for 1 at affine_map<(d0, d1, d2) -> (d0, d2)> where affine_set<(d0, d1, d2) : (d1 == 0)>
// CHECK-SAME: %0#0 for 1 at affine_map<(d0, d1, d2) -> (d0, d1 - 1, d2)> where affine_set<(d0, d1, d2) : (d1 - 1 >= 0)>
// CHECK-SAME: %arg1 for 2 at affine_map<(d0, d1, d2) -> (d1)>
// CHECK-SAME: %0#1 for 3 at affine_map<(d0, d1, d2) -> (d0, d1, d2 - 1)>
// CHECK: distances = [array<i64: 0, 0, 1>, array<i64: 0, 1, 0>]
// CHECK-SAME: region_domains = [
// CHECK-SAME: affine_set<(d0, d1, d2) : (d1 == 0, d2 == 0, d0 >= 0, -d0 + 2 >= 0)>,
// CHECK-SAME: affine_set<(d0, d1, d2) : (d1 == 0, d2 - 1 >= 0, d0 >= 0, -d0 + 2 >= 0, -d2 + 63 >= 0)>,
// CHECK-SAME: affine_set<(d0, d1, d2) : (d1 - 1 >= 0, d2 == 0, d0 >= 0, -d0 + 2 >= 0, -d1 + 31 >= 0)>,
// CHECK-SAME: affine_set<(d0, d1, d2) : (d1 - 1 >= 0, d2 - 1 >= 0, d0 >= 0, -d0 + 2 >= 0,
// CHECK-SAME: -d1 + 31 >= 0, -d2 + 63 >= 0)>]
// CHECK-SAME: region_reads = [array<i64: 0, 2, 4, 5>, array<i64: 1, 2, 4, 6>,
// CHECK-SAME: array<i64: 0, 3, 4, 5>, array<i64: 1, 3, 4, 6>]
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

// One element: there is none but the first, hence one region. From the right, the first iteration is the last place.
// CHECK-LABEL: fractal.graph @one_graph
// CHECK: region_domains = [affine_set<(d0) : (d0 == 0)>], region_reads = [array<i64: 0, 1>]
// CHECK: region_domains = [affine_set<(d0) : (-d0 + 63 == 0)>, affine_set<(d0) : (-d0 + 62 >= 0, d0 >= 0)>]
func.func @one(%xs: !fractal.array<[1] of tensor<1x8xf32>>, %ys: !seq, %h0: !leaf) -> (!leaf, !leaf) {
  %r = fractal.fold left (%h = %h0) over (%x = %xs) : (!leaf, !fractal.array<[1] of tensor<1x8xf32>>) -> !leaf {
    %n = arith.addf %h, %x : !leaf
    fractal.yield %n : !leaf
  }
  %s = fractal.fold right (%h = %h0) over (%y = %ys) : (!leaf, !seq) -> !leaf {
    %n = arith.addf %h, %y : !leaf
    fractal.yield %n : !leaf
  }
  return %r, %s : !leaf, !leaf
}

// Without a state there is nothing to tell apart.
// CHECK-LABEL: fractal.graph @none_graph
// CHECK-NOT: region_domains
func.func @none(%xs: !seq) -> !seq {
  %r = fractal.map (%x = %xs) : (!seq) -> !seq {
    %n = arith.negf %x : !leaf
    fractal.yield %n : !leaf
  }
  return %r : !seq
}

// Nine states at once: as many regions as nobody wants.
// CHECK-LABEL: fractal.graph @many_graph
// CHECK-NOT: region_domains
!x1 = !fractal.array<[2] of tensor<1x8xf32>>
!x2 = !fractal.array<[2, 2] of tensor<1x8xf32>>
!x3 = !fractal.array<[2, 2, 2] of tensor<1x8xf32>>
!x4 = !fractal.array<[2, 2, 2, 2] of tensor<1x8xf32>>
!x5 = !fractal.array<[2, 2, 2, 2, 2] of tensor<1x8xf32>>
!x6 = !fractal.array<[2, 2, 2, 2, 2, 2] of tensor<1x8xf32>>
!x7 = !fractal.array<[2, 2, 2, 2, 2, 2, 2] of tensor<1x8xf32>>
!x8 = !fractal.array<[2, 2, 2, 2, 2, 2, 2, 2] of tensor<1x8xf32>>
!x9 = !fractal.array<[2, 2, 2, 2, 2, 2, 2, 2, 2] of tensor<1x8xf32>>
func.func @many(%x0: !x9, %h0: !leaf) -> !leaf {
  %r0 = fractal.fold left (%h1 = %h0) over (%x1 = %x0) : (!leaf, !x9) -> !leaf {
    %r1 = fractal.fold left (%h2 = %h1) over (%x2 = %x1) : (!leaf, !x8) -> !leaf {
      %r2 = fractal.fold left (%h3 = %h2) over (%x3 = %x2) : (!leaf, !x7) -> !leaf {
        %r3 = fractal.fold left (%h4 = %h3) over (%x4 = %x3) : (!leaf, !x6) -> !leaf {
          %r4 = fractal.fold left (%h5 = %h4) over (%x5 = %x4) : (!leaf, !x5) -> !leaf {
            %r5 = fractal.fold left (%h6 = %h5) over (%x6 = %x5) : (!leaf, !x4) -> !leaf {
              %r6 = fractal.fold left (%h7 = %h6) over (%x7 = %x6) : (!leaf, !x3) -> !leaf {
                %r7 = fractal.fold left (%h8 = %h7) over (%x8 = %x7) : (!leaf, !x2) -> !leaf {
                  %r8 = fractal.fold left (%h9 = %h8) over (%x9 = %x8) : (!leaf, !x1) -> !leaf {
                    %n = arith.addf %h9, %x9 : !leaf
                    fractal.yield %n : !leaf
                  }
                  fractal.yield %r8 : !leaf
                }
                fractal.yield %r7 : !leaf
              }
              fractal.yield %r6 : !leaf
            }
            fractal.yield %r5 : !leaf
          }
          fractal.yield %r4 : !leaf
        }
        fractal.yield %r3 : !leaf
      }
      fractal.yield %r2 : !leaf
    }
    fractal.yield %r1 : !leaf
  }
  return %r0 : !leaf
}
