// RUN: tile-opt %s --convert-fractal-to-linalg --canonicalize --split-input-file | FileCheck-22 %s

!list = !fractal.array<[6] of tensor<4x8xf32>>
!lists = !fractal.array<[2, 6] of tensor<4x8xf32>>

// A window that only a slice reads: its part is copied, the level after that of the map around it.
// None of its windows goes round: places are sums of loops.
// CHECK: #[[$AT:.*]] = affine_map<(d0, d1, d2, d3, d4) -> (d0, d1 + d2, d3, d4)>
// CHECK-LABEL: func.func @part_of_windows(
// CHECK-NOT: tensor<2x6x3
// CHECK: %[[W:.*]] = linalg.generic {indexing_maps = [#[[$AT]], #{{.*}}],
// CHECK-SAME: ins(%arg0 : tensor<2x6x4x8xf32>) outs(%{{.*}} : tensor<2x3x3x4x8xf32>)
// CHECK-NOT: tensor.extract_slice
// CHECK: return %[[W]]
func.func @part_of_windows(%xss: !lists) -> !fractal.array<[2, 3, 3] of tensor<4x8xf32>> {
  %r = fractal.map (%xs = %xss) : (!lists) -> !fractal.array<[2, 3, 3] of tensor<4x8xf32>> {
    %w = fractal.window %xs size 3 stride 1 dilation 1 padding [1, 1] wrap
        : !list -> !fractal.array<[6, 3] of tensor<4x8xf32>>
    %p = fractal.slice %w [1] [3] [1]
        : !fractal.array<[6, 3] of tensor<4x8xf32>> -> !fractal.array<[3, 3] of tensor<4x8xf32>>
    fractal.yield %p : !fractal.array<[3, 3] of tensor<4x8xf32>>
  }
  return %r : !fractal.array<[2, 3, 3] of tensor<4x8xf32>>
}

// -----

!list = !fractal.array<[9] of tensor<8xf32>>

// Windows with a stride, whose padding a part leaves out; a part of those that go round needs the place modulo.
// CHECK: #[[$AT:.*]] = affine_map<(d0, d1, d2) -> (d0 * 2 + d1 * 3 + 1, d2)>
// CHECK-LABEL: func.func @strides(
// CHECK: linalg.generic {indexing_maps = [#[[$AT]], #{{.*}}],
// CHECK: ins(%arg0 : tensor<9x8xf32>) outs(%{{.*}} : tensor<2x2x8xf32>)
// CHECK: arith.remsi
// CHECK: tensor.extract
func.func @strides(%xs: !list, %fill: tensor<8xf32>)
    -> (!fractal.array<[2, 2] of tensor<8xf32>>, !fractal.array<[2, 2] of tensor<8xf32>>) {
  %w = fractal.window %xs size 2 stride 2 dilation 3 padding [1, 1] fill %fill
      : !list, tensor<8xf32> -> !fractal.array<[4, 2] of tensor<8xf32>>
  %p = fractal.slice %w [1] [2] [1]
      : !fractal.array<[4, 2] of tensor<8xf32>> -> !fractal.array<[2, 2] of tensor<8xf32>>
  %v = fractal.window %xs size 2 stride 1 dilation 1 padding [0, 1] wrap
      : !list -> !fractal.array<[9, 2] of tensor<8xf32>>
  %q = fractal.slice %v [7] [2] [1]
      : !fractal.array<[9, 2] of tensor<8xf32>> -> !fractal.array<[2, 2] of tensor<8xf32>>
  return %p, %q : !fractal.array<[2, 2] of tensor<8xf32>>, !fractal.array<[2, 2] of tensor<8xf32>>
}

// -----

!list = !fractal.array<[6] of tensor<8xf32>>

// Two readers: it is copied whole, and cut.
// CHECK-LABEL: func.func @parts_of_a_reversal(
// CHECK: %[[R:.*]] = linalg.generic {{.*}} outs(%{{.*}} : tensor<6x8xf32>)
// CHECK-DAG: tensor.extract_slice %[[R]][0, 0] [2, 8] [1, 1]
// CHECK-DAG: tensor.extract_slice %[[R]][2, 0] [2, 8] [2, 1]
func.func @parts_of_a_reversal(%xs: !list)
    -> (!fractal.array<[2] of tensor<8xf32>>, !fractal.array<[2] of tensor<8xf32>>) {
  %r = fractal.reverse %xs : !list -> !list
  %a = fractal.slice %r [0] [2] [1] : !list -> !fractal.array<[2] of tensor<8xf32>>
  %b = fractal.slice %r [2] [2] [2] : !list -> !fractal.array<[2] of tensor<8xf32>>
  return %a, %b : !fractal.array<[2] of tensor<8xf32>>, !fractal.array<[2] of tensor<8xf32>>
}

// -----

!list = !fractal.array<[3] of tensor<4x8xf32>>
!lists = !fractal.array<[2, 3] of tensor<4x8xf32>>

// A list joined to others keeps the order of the maps around it; nothing is transposed.
// CHECK-LABEL: func.func @join(
// CHECK: tensor.insert_slice %{{.*}} into %{{.*}}[0, 0, 0, 0] [2, 3, 4, 8] {{.*}} into tensor<2x6x4x8xf32>
// CHECK: tensor.insert_slice %{{.*}} into %{{.*}}[0, 3, 0, 0] [2, 3, 4, 8] {{.*}} into tensor<2x6x4x8xf32>
func.func @join(%xss: !lists, %yss: !lists) -> !fractal.array<[2, 6] of tensor<4x8xf32>> {
  %r = fractal.map (%xs = %xss, %ys = %yss) : (!lists, !lists) -> !fractal.array<[2, 6] of tensor<4x8xf32>> {
    %j = fractal.join %xs, %ys : !list, !list -> !fractal.array<[6] of tensor<4x8xf32>>
    fractal.yield %j : !fractal.array<[6] of tensor<4x8xf32>>
  }
  return %r : !fractal.array<[2, 6] of tensor<4x8xf32>>
}

// -----

!list = !fractal.array<[3] of tensor<4x8xf32>>

// Rows of a list of blocks between others: a list of blocks, whose rows are seen as one dimension behind it.
// CHECK-LABEL: func.func @blocks(
// CHECK: tensor.insert_slice %{{.*}} into %{{.*}}[2, 0, 0] [3, 4, 8] [1, 1, 1] {{.*}} into tensor<5x4x8xf32>
// CHECK: tensor.collapse_shape %{{.*}} {{\[}}[0, 1], [2]] : tensor<5x4x8xf32> into tensor<20x8xf32>
func.func @blocks(%xs: !list, %x: tensor<8x8xf32>) -> tensor<20x8xf32> {
  %t = fractal.to_tensor %xs : !list -> tensor<3x4x8xf32>
  %rows = tensor.collapse_shape %t [[0, 1], [2]] : tensor<3x4x8xf32> into tensor<12x8xf32>
  %r = tensor.concat dim(0) %x, %rows : (tensor<8x8xf32>, tensor<12x8xf32>) -> tensor<20x8xf32>
  return %r : tensor<20x8xf32>
}

// -----

!list = !fractal.array<[3] of tensor<4x8xf32>>

// Beside rows that are no whole blocks they are rows.
// CHECK-LABEL: func.func @rows(
// CHECK: tensor.insert_slice %{{.*}} into %{{.*}}[7, 0] [12, 8] [1, 1] : tensor<12x8xf32> into tensor<19x8xf32>
func.func @rows(%xs: !list, %x: tensor<7x8xf32>) -> tensor<19x8xf32> {
  %t = fractal.to_tensor %xs : !list -> tensor<3x4x8xf32>
  %rows = tensor.collapse_shape %t [[0, 1], [2]] : tensor<3x4x8xf32> into tensor<12x8xf32>
  %r = tensor.concat dim(0) %x, %rows : (tensor<7x8xf32>, tensor<12x8xf32>) -> tensor<19x8xf32>
  return %r : tensor<19x8xf32>
}

// -----

!list = !fractal.array<[3] of tensor<4x8xf32>>
!more = !fractal.array<[5] of tensor<4x8xf32>>

// Each of five elements looks for the last of three indices that names it; one copy of leaves, nothing written twice.
// CHECK-LABEL: func.func @scatter(
// CHECK: linalg.generic {{.*}} iterator_types = ["parallel", "reduction"]} ins(%{{.*}}, %{{.*}} : tensor<3xi32>
// CHECK-SAME: outs(%{{.*}} : tensor<5xi64>)
// CHECK: arith.maxsi
// CHECK: linalg.generic {{.*}} outs(%{{.*}} : tensor<5x4x8xf32>)
// CHECK-DAG: tensor.extract %{{.*}} : tensor<3x4x8xf32>
// CHECK-DAG: tensor.extract %{{.*}} : tensor<5x4x8xf32>
// CHECK: arith.select
// CHECK-NOT: linalg.generic
func.func @scatter(%xs: !list, %ys: !more, %at: tensor<3xi32>) -> !more {
  %r = fractal.scatter %xs into %ys[%at] : !list, !more, tensor<3xi32> -> !more
  return %r : !more
}
