// RUN: tile-opt %s --split-input-file --verify-diagnostics --convert-fractal-to-linalg | FileCheck %s

// One encoded weight on the right: all elements are rows of one matrix.

// CHECK-LABEL: @right
// CHECK-SAME: %[[XS:.*]]: tensor<4x3x2x8xf32>, %[[W:.*]]: tensor<8x6xf32, #{{.*}}>
// CHECK: %[[X:.*]] = tensor.collapse_shape %[[XS]] {{\[\[}}0, 1, 2], [3]]
// CHECK: %[[C:.*]] = linalg.fill {{.*}} -> tensor<24x6xf32>
// CHECK: %[[Y:.*]] = sparse_tile.matmul %[[X]], %[[W]], %[[C]] {kernel = "panels"}
// CHECK: %[[R:.*]] = tensor.expand_shape %[[Y]] {{\[\[}}0, 1, 2], [3]] output_shape [4, 3, 2, 6]
// CHECK: return %[[R]]
#tesa = #sparse_tile.tesa<nm<2 : 4, axis = 0>>
!xs = !fractal.array<[3] of tensor<2x8xf32>>
!ys = !fractal.array<[3] of tensor<2x6xf32>>
func.func @right(%xss: !fractal.array<[4, 3] of tensor<2x8xf32>>, %w: tensor<8x6xf32, #tesa>)
    -> !fractal.array<[4, 3] of tensor<2x6xf32>> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2x6xf32>
  %c = linalg.fill ins(%zero : f32) outs(%e : tensor<2x6xf32>) -> tensor<2x6xf32>
  %r = fractal.map (%xs = %xss) : (!fractal.array<[4, 3] of tensor<2x8xf32>>)
      -> !fractal.array<[4, 3] of tensor<2x6xf32>> {
    %s = fractal.map (%x = %xs) : (!xs) -> !ys {
      %y = sparse_tile.matmul %x, %w, %c {kernel = "panels"}
          : tensor<2x8xf32>, tensor<8x6xf32, #tesa>, tensor<2x6xf32>
      fractal.yield %y : tensor<2x6xf32>
    }
    fractal.yield %s : !ys
  }
  return %r : !fractal.array<[4, 3] of tensor<2x6xf32>>
}

// -----

// On the left: they are columns. How many there are, a run knows.

// CHECK-LABEL: @left
// CHECK-SAME: %[[XS:.*]]: tensor<?x8x2xf32>, %[[W:.*]]: tensor<6x8xf32, #{{.*}}>, %[[C:.*]]: tensor<6x2xf32>
// CHECK: %[[T:.*]] = linalg.transpose ins(%[[XS]] {{.*}} permutation = [1, 0, 2]
// CHECK: %[[X:.*]] = tensor.collapse_shape %[[T]] {{\[\[}}0], [1, 2]] : tensor<8x?x2xf32> into tensor<8x?xf32>
// CHECK: %[[Y:.*]] = sparse_tile.matmul %[[W]], %[[X]]
// CHECK: tensor.expand_shape %[[Y]] {{\[\[}}0], [1, 2]]
// CHECK: linalg.transpose {{.*}} permutation = [1, 0, 2]
#tesa1 = #sparse_tile.tesa<nm<2 : 4, axis = 1>>
func.func @left(%xs: !fractal.array<[?] of tensor<8x2xf32>>, %w: tensor<6x8xf32, #tesa1>, %c: tensor<6x2xf32>)
    -> !fractal.array<[?] of tensor<6x2xf32>> {
  %s = fractal.map (%x = %xs) : (!fractal.array<[?] of tensor<8x2xf32>>) -> !fractal.array<[?] of tensor<6x2xf32>> {
    %y = sparse_tile.matmul %w, %x, %c : tensor<6x8xf32, #tesa1>, tensor<8x2xf32>, tensor<6x2xf32>
    fractal.yield %y : tensor<6x2xf32>
  }
  return %s : !fractal.array<[?] of tensor<6x2xf32>>
}

// -----

// In a loop of states alone, nothing is lifted.

// CHECK-LABEL: @fold
// CHECK: scf.for
// CHECK: sparse_tile.matmul %{{.*}}, %{{.*}}, %{{.*}} : tensor<1x8xf32>, tensor<8x8xf32, #{{.*}}>, tensor<1x8xf32>
#tesa2 = #sparse_tile.tesa<block<[4, 4]>>
func.func @fold(%xs: !fractal.array<[5] of tensor<1x8xf32>>, %w: tensor<8x8xf32, #tesa2>) -> tensor<1x8xf32> {
  %h = arith.constant dense<0.0> : tensor<1x8xf32>
  %r = fractal.fold left (%s = %h) over (%x = %xs)
      : (tensor<1x8xf32>, !fractal.array<[5] of tensor<1x8xf32>>) -> tensor<1x8xf32> {
    %y = sparse_tile.matmul %s, %w, %x : tensor<1x8xf32>, tensor<8x8xf32, #tesa2>, tensor<1x8xf32>
    fractal.yield %y : tensor<1x8xf32>
  }
  return %r : tensor<1x8xf32>
}

// -----

#tesa3 = #sparse_tile.tesa<nm<2 : 4, axis = 0>>
func.func @several(%xs: !fractal.array<[3] of tensor<2x8xf32>>, %ws: !fractal.array<[3] of tensor<8x2xf32, #tesa3>>,
    %c: tensor<2x2xf32>) -> !fractal.array<[3] of tensor<2x2xf32>> {
  %r = fractal.map (%x = %xs, %w = %ws)
      : (!fractal.array<[3] of tensor<2x8xf32>>, !fractal.array<[3] of tensor<8x2xf32, #tesa3>>)
      -> !fractal.array<[3] of tensor<2x2xf32>> {
    // expected-error @+1 {{unsupported: 'sparse_tile.matmul' has an encoded operand that differs between elements}}
    %y = sparse_tile.matmul %x, %w, %c : tensor<2x8xf32>, tensor<8x2xf32, #tesa3>, tensor<2x2xf32>
    fractal.yield %y : tensor<2x2xf32>
  }
  return %r : !fractal.array<[3] of tensor<2x2xf32>>
}
