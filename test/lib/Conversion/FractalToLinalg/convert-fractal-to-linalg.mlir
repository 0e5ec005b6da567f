// RUN: tile-opt %s --convert-fractal-to-linalg --canonicalize --split-input-file --mlir-print-local-scope \
// RUN:   | FileCheck-22 %s

!leaf = tensor<1x8xf32>
!list = !fractal.array<[4] of tensor<1x8xf32>>
!lists = !fractal.array<[3, 4] of tensor<1x8xf32>>

// Two maps around a product: two parallel loops in front; the weight has none.
// CHECK-LABEL: @maps(
// CHECK-SAME: %[[XS:.*]]: tensor<3x4x1x8xf32>, %[[WEIGHT:.*]]: tensor<8x8xf32>) -> tensor<3x4x1x8xf32>
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0, d1, d2, d3, d4) -> (d0, d1, d2, d4)>,
// CHECK-SAME: affine_map<(d0, d1, d2, d3, d4) -> (d4, d3)>,
// CHECK-SAME: ins(%[[XS]], %[[WEIGHT]] :
// CHECK-NOT: fractal
func.func @maps(%xss: !lists, %w: tensor<8x8xf32>) -> !lists {
  %r = fractal.map (%xs = %xss) : (!lists) -> !lists {
    %s = fractal.map (%x = %xs) : (!list) -> !list {
      %zero = arith.constant 0.0 : f32
      %e = tensor.empty() : !leaf
      %i = linalg.fill ins(%zero : f32) outs(%e : !leaf) -> !leaf
      %y = linalg.matmul ins(%x, %w : !leaf, tensor<8x8xf32>) outs(%i : !leaf) -> !leaf
      fractal.yield %y : !leaf
    }
    fractal.yield %s : !list
  }
  return %r : !lists
}

// -----

!leaf = tensor<1x8xf32>
!list = !fractal.array<[4] of tensor<1x8xf32>>
!lists = !fractal.array<[3, 4] of tensor<1x8xf32>>

// A scan in a map is one loop over time for all lists; time lies outside in memory, until the result is returned.
// CHECK-LABEL: @scan_in_map(
// CHECK-SAME: %[[XS:.*]]: tensor<3x4x1x8xf32>
// CHECK: scf.for %[[T:.*]] = %c0 to %c4 step %c1 iter_args(%[[H:[^ ]*]] = %{{[^ ]*}}, %[[OUT:[^ ]*]] = %{{[^ ]*}})
// CHECK-SAME: -> (tensor<3x1x8xf32>, tensor<4x3x1x8xf32>)
// CHECK: %[[X:.*]] = tensor.extract_slice %[[XS]][0, %[[T]], 0, 0] [3, 1, 1, 8] [1, 1, 1, 1]
// CHECK-SAME: to tensor<3x1x8xf32>
// CHECK: %[[N:.*]] = linalg.generic {{.*}} ins(%[[H]], %[[X]]
// CHECK: arith.addf
// CHECK: %[[NEXT:.*]] = tensor.insert_slice %[[N]] into %[[OUT]][%[[T]], 0, 0, 0] [1, 3, 1, 8]
// CHECK: scf.yield %[[N]], %[[NEXT]]
func.func @scan_in_map(%xss: !lists, %h0: !leaf) -> !lists {
  %r = fractal.map (%xs = %xss) : (!lists) -> !lists {
    %s = fractal.scan left (%h = %h0) over (%x = %xs) : (!leaf, !list) -> !list {
      %n = arith.addf %h, %x : !leaf
      fractal.yield %n : !leaf
    }
    fractal.yield %s : !list
  }
  return %r : !lists
}

// -----

!leaf = tensor<1x8xf32>
!list = !fractal.array<[4] of tensor<1x8xf32>>

// A list of states that nobody reads is not made: cells of an LSTM.
// CHECK-LABEL: @unread_states(
// CHECK: scf.for {{.*}} -> (tensor<1x8xf32>, tensor<1x8xf32>, tensor<4x1x8xf32>)
func.func @unread_states(%xs: !list, %z: !leaf) -> !list {
  %r:2 = fractal.scan left (%h = %z, %c = %z) over (%x = %xs) : (!leaf, !leaf, !list) -> (!list, !list) {
    %d = arith.mulf %c, %x : !leaf
    %n = arith.addf %h, %d : !leaf
    fractal.yield %n, %d : !leaf, !leaf
  }
  return %r#0 : !list
}

// -----

!leaf = tensor<1x8xf32>
!list = !fractal.array<[4] of tensor<1x8xf32>>

// From the right: the last element first.
// CHECK-LABEL: @fold_right(
// CHECK: scf.for %[[T:.*]] = %c0 to %c4
// CHECK: %[[AT:.*]] = arith.subi %c3, %[[T]]
// CHECK: tensor.extract_slice %{{.*}}[%[[AT]], 0, 0]
func.func @fold_right(%xs: !list, %h0: !leaf) -> !leaf {
  %r = fractal.fold right (%h = %h0) over (%x = %xs) : (!leaf, !list) -> !leaf {
    %n = arith.subf %x, %h : !leaf
    fractal.yield %n : !leaf
  }
  return %r : !leaf
}

// -----

!leaf = tensor<1x8xf32>
!list = !fractal.array<[4] of tensor<1x8xf32>>

// One elementwise operation: a reduction loop, no loop of steps. The element on the right is the second operand.
// CHECK-LABEL: @reduce(
// CHECK-NOT: scf.for
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel", "reduction"]}
// CHECK-SAME: ins(%{{.*}} : tensor<4x1x8xf32>) outs(%{{.*}} : tensor<1x8xf32>)
// CHECK: ^bb0(%[[IN:.*]]: f32, %[[SUM:.*]]: f32):
// CHECK: arith.maximumf %[[SUM]], %[[IN]]
func.func @reduce(%xs: !list, %init: !leaf) -> !leaf {
  %r = fractal.reduce (%a, %b = %xs) init (%init) : (!list, !leaf) -> !leaf {
    %m = arith.maximumf %a, %b : !leaf
    fractal.yield %m : !leaf
  }
  return %r : !leaf
}

// -----

!leaf = tensor<1x8xf32>
!list = !fractal.array<[6] of tensor<1x8xf32>>
!groups = !fractal.array<[2, 3] of tensor<1x8xf32>>

// Groups of every second element are a reshape; going through them in turn changes only which dimension is time.
// CHECK-LABEL: @dilated(
// CHECK: tensor.expand_shape %{{.*}} {{\[\[}}0, 1], [2], [3]] output_shape [3, 2, 1, 8]
// CHECK: scf.for {{.*}} -> (tensor<2x1x8xf32>, tensor<3x2x1x8xf32>)
// CHECK: tensor.collapse_shape %{{.*}} {{\[\[}}0, 1], [2], [3]] : tensor<3x2x1x8xf32> into tensor<6x1x8xf32>
func.func @dilated(%xs: !list, %h0: !leaf) -> !list {
  %g = fractal.interleave %xs by 2 : !list -> !groups
  %s = fractal.map (%group = %g) : (!groups) -> !groups {
    %t = fractal.scan left (%h = %h0) over (%x = %group)
        : (!leaf, !fractal.array<[3] of tensor<1x8xf32>>) -> !fractal.array<[3] of tensor<1x8xf32>> {
      %n = arith.addf %h, %x : !leaf
      fractal.yield %n : !leaf
    }
    fractal.yield %t : !fractal.array<[3] of tensor<1x8xf32>>
  }
  %r = fractal.deinterleave %s : !groups -> !list
  return %r : !list
}

// -----

!list = !fractal.array<[4] of tensor<8xf32>>
!mesh = !fractal.array<[4, 4] of tensor<8xf32>>

// A mesh repeats neither list.
// CHECK-LABEL: @mesh(
// CHECK: linalg.generic {indexing_maps = [affine_map<(d0, d1, d2) -> (d0, d2)>, affine_map<(d0, d1, d2) -> (d1, d2)>,
// CHECK-SAME: ins(%arg0, %arg1 : tensor<4x8xf32>, tensor<4x8xf32>)
func.func @mesh(%xs: !list, %ys: !list) -> !mesh {
  %a, %b = fractal.product %xs, %ys : !list, !list -> !mesh, !mesh
  %r = fractal.map (%p = %a, %q = %b) : (!mesh, !mesh) -> !mesh {
    %s = fractal.map (%x = %p, %y = %q) : (!list, !list) -> !list {
      %n = arith.mulf %x, %y : tensor<8xf32>
      fractal.yield %n : tensor<8xf32>
    }
    fractal.yield %s : !list
  }
  return %r : !mesh
}

// -----

!list = !fractal.array<[5] of tensor<8xf32>>
!windows = !fractal.array<[5, 3] of tensor<8xf32>>

// What is no slice is copied by one generic that reads where the access map says, or the fill outside.
// CHECK-LABEL: @windows(
// CHECK: linalg.generic
// CHECK: arith.select
// CHECK: } -> tensor<5x3x8xf32>
func.func @windows(%xs: !list, %fill: tensor<8xf32>) -> !windows {
  %r = fractal.window %xs size 3 stride 1 dilation 1 padding [1, 1] fill %fill : !list, tensor<8xf32> -> !windows
  return %r : !windows
}
