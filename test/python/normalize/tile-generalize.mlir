// RUN: tile-opt %s --tile-generalize | FileCheck-22 %s

// CHECK-DAG: #[[$A:.*]] = affine_map<(d0, d1, d2) -> (d0, d2)>
// CHECK-DAG: #[[$B:.*]] = affine_map<(d0, d1, d2) -> (d2, d1)>
// CHECK-DAG: #[[$C:.*]] = affine_map<(d0, d1, d2) -> (d0, d1)>

// CHECK-LABEL: @matmul
// CHECK: linalg.fill
// CHECK: linalg.generic {indexing_maps = [#[[$A]], #[[$B]], #[[$C]]],
// CHECK-SAME: {{^}} iterator_types = ["parallel", "parallel", "reduction"]}
// CHECK: arith.mulf
// CHECK: arith.addf
// CHECK-NOT: linalg.matmul
func.func @matmul(%a: tensor<4x8xf32>, %b: tensor<8x3xf32>) -> tensor<4x3xf32> {
  %zero = arith.constant 0.0 : f32
  %empty = tensor.empty() : tensor<4x3xf32>
  %init = linalg.fill ins(%zero : f32) outs(%empty : tensor<4x3xf32>) -> tensor<4x3xf32>
  %d = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x3xf32>) outs(%init : tensor<4x3xf32>) -> tensor<4x3xf32>
  return %d : tensor<4x3xf32>
}

// CHECK-LABEL: @transpose
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "parallel"]
// CHECK-NOT: linalg.transpose
func.func @transpose(%a: tensor<4x8xf32>, %out: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %t = linalg.transpose ins(%a : tensor<4x8xf32>) outs(%out : tensor<8x4xf32>) permutation = [1, 0]
  return %t : tensor<8x4xf32>
}

// CHECK-LABEL: @reduce
// CHECK: linalg.generic {{.*}}iterator_types = ["parallel", "reduction"]
func.func @reduce(%a: tensor<4x8xf32>, %out: tensor<4xf32>) -> tensor<4xf32> {
  %r = linalg.reduce { arith.addf } ins(%a : tensor<4x8xf32>) outs(%out : tensor<4xf32>) dimensions = [1]
  return %r : tensor<4xf32>
}
