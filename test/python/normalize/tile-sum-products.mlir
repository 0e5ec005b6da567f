// RUN: tile-opt %s --tile-sum-products --split-input-file | FileCheck-22 %s

// Blocks of two matrices as lists hold them: the inner sum runs once, the outer one over what the first product made.
// The sum turns its result, and adds in the other order.

#x = affine_map<(i, l, j, m, n, k) -> (i, l, m, k)>
#y = affine_map<(i, l, j, m, n, k) -> (j, l, k, n)>
#p = affine_map<(i, l, j, m, n, k) -> (i, l, j, m, n)>
#all = affine_map<(n, m, j, i, l) -> (i, l, j, m, n)>
#sum = affine_map<(n, m, j, i, l) -> (j, i, n, m)>
// CHECK: #[[$X:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d0, d1, d3, d5)>
// CHECK: #[[$Y:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d2, d1, d5, d4)>
// CHECK: #[[$S:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d2, d0, d4, d3)>
// CHECK-LABEL: @blocks
// CHECK: linalg.generic {indexing_maps = [#[[$X]], #[[$Y]], #[[$S]]],
// CHECK-SAME: ["parallel", "reduction", "parallel", "parallel", "parallel", "reduction"]
// CHECK-SAME: outs(%{{.*}} : tensor<2x3x7x5xi32>)
// CHECK-NOT: linalg.generic
func.func @blocks(%x: tensor<3x4x5x6xi8>, %y: tensor<2x4x6x7xi8>) -> tensor<2x3x7x5xi32> {
  %zero = arith.constant 0 : i32
  %d = tensor.empty() : tensor<3x4x2x5x7xi32>
  %f = linalg.fill ins(%zero : i32) outs(%d : tensor<3x4x2x5x7xi32>) -> tensor<3x4x2x5x7xi32>
  %q = linalg.generic {indexing_maps = [#x, #y, #p],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %y : tensor<3x4x5x6xi8>, tensor<2x4x6x7xi8>) outs(%f : tensor<3x4x2x5x7xi32>) {
  ^bb0(%a: i8, %b: i8, %o: i32):
    %v = arith.extsi %a : i8 to i32
    %w = arith.extui %b : i8 to i32
    %t = arith.muli %v, %w : i32
    %u = arith.addi %t, %o : i32
    linalg.yield %u : i32
  } -> tensor<3x4x2x5x7xi32>
  %e = tensor.empty() : tensor<2x3x7x5xi32>
  %g = linalg.fill ins(%zero : i32) outs(%e : tensor<2x3x7x5xi32>) -> tensor<2x3x7x5xi32>
  %s = linalg.generic {indexing_maps = [#all, #sum],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction"]}
      ins(%q : tensor<3x4x2x5x7xi32>) outs(%g : tensor<2x3x7x5xi32>) {
  ^bb0(%a: i32, %o: i32):
    %u = arith.addi %a, %o : i32
    linalg.yield %u : i32
  } -> tensor<2x3x7x5xi32>
  return %s : tensor<2x3x7x5xi32>
}

// -----

// Only rows of the first operand are summed: the second one would be multiplied once for each.

#x = affine_map<(m, n, k) -> (m, k)>
#y = affine_map<(m, n, k) -> (k, n)>
#p = affine_map<(m, n, k) -> (m, n)>
#all = affine_map<(n, m) -> (m, n)>
#sum = affine_map<(n, m) -> (n)>
// CHECK-LABEL: @rows
// CHECK: iterator_types = ["parallel", "parallel", "reduction"]
// CHECK: iterator_types = ["parallel", "reduction"]
func.func @rows(%x: tensor<4x6xf32>, %y: tensor<6x8xf32>) -> tensor<8xf32> {
  %zero = arith.constant 0.0 : f32
  %d = tensor.empty() : tensor<4x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%d : tensor<4x8xf32>) -> tensor<4x8xf32>
  %q = linalg.generic {indexing_maps = [#x, #y, #p],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %y : tensor<4x6xf32>, tensor<6x8xf32>) outs(%f : tensor<4x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    %u = arith.addf %o, %t : f32
    linalg.yield %u : f32
  } -> tensor<4x8xf32>
  %e = tensor.empty() : tensor<8xf32>
  %g = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %s = linalg.generic {indexing_maps = [#all, #sum],
      iterator_types = ["parallel", "reduction"]}
      ins(%q : tensor<4x8xf32>) outs(%g : tensor<8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %u = arith.addf %o, %a : f32
    linalg.yield %u : f32
  } -> tensor<8xf32>
  return %s : tensor<8xf32>
}

// -----

// Nothing is a sum from zero of what nothing else reads: one starts from a tensor, one is a maximum, one is of what is
// returned, too.

#x = affine_map<(b, m, n, k) -> (b, m, k)>
#y = affine_map<(b, m, n, k) -> (b, k, n)>
#p = affine_map<(b, m, n, k) -> (b, m, n)>
#all = affine_map<(m, n, b) -> (b, m, n)>
#sum = affine_map<(m, n, b) -> (m, n)>
// CHECK-LABEL: @stay
// CHECK-COUNT-3: iterator_types = ["parallel", "parallel", "parallel", "reduction"]
// CHECK-COUNT-3: iterator_types = ["parallel", "parallel", "reduction"]
func.func @stay(%x: tensor<4x5x6xf32>, %y: tensor<4x6x7xf32>, %start: tensor<5x7xf32>)
    -> (tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<4x5x7xf32>) {
  %zero = arith.constant 0.0 : f32
  %d = tensor.empty() : tensor<4x5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%d : tensor<4x5x7xf32>) -> tensor<4x5x7xf32>
  %q = linalg.generic {indexing_maps = [#x, #y, #p],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %y : tensor<4x5x6xf32>, tensor<4x6x7xf32>) outs(%f : tensor<4x5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    %u = arith.addf %o, %t : f32
    linalg.yield %u : f32
  } -> tensor<4x5x7xf32>
  %r = linalg.generic {indexing_maps = [#x, #y, #p],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %y : tensor<4x5x6xf32>, tensor<4x6x7xf32>) outs(%f : tensor<4x5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    %u = arith.addf %o, %t : f32
    linalg.yield %u : f32
  } -> tensor<4x5x7xf32>
  %s = linalg.generic {indexing_maps = [#x, #y, #p],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %y : tensor<4x5x6xf32>, tensor<4x6x7xf32>) outs(%f : tensor<4x5x7xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %t = arith.mulf %a, %b : f32
    %u = arith.addf %o, %t : f32
    linalg.yield %u : f32
  } -> tensor<4x5x7xf32>
  %e = tensor.empty() : tensor<5x7xf32>
  %g = linalg.fill ins(%zero : f32) outs(%e : tensor<5x7xf32>) -> tensor<5x7xf32>
  %one = linalg.generic {indexing_maps = [#all, #sum],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q : tensor<4x5x7xf32>) outs(%start : tensor<5x7xf32>) {
  ^bb0(%a: f32, %o: f32):
    %u = arith.addf %o, %a : f32
    linalg.yield %u : f32
  } -> tensor<5x7xf32>
  %two = linalg.generic {indexing_maps = [#all, #sum],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%r : tensor<4x5x7xf32>) outs(%g : tensor<5x7xf32>) {
  ^bb0(%a: f32, %o: f32):
    %u = arith.maximumf %o, %a : f32
    linalg.yield %u : f32
  } -> tensor<5x7xf32>
  %three = linalg.generic {indexing_maps = [#all, #sum],
      iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s : tensor<4x5x7xf32>) outs(%g : tensor<5x7xf32>) {
  ^bb0(%a: f32, %o: f32):
    %u = arith.addf %o, %a : f32
    linalg.yield %u : f32
  } -> tensor<5x7xf32>
  return %one, %two, %three, %s : tensor<5x7xf32>, tensor<5x7xf32>, tensor<5x7xf32>, tensor<4x5x7xf32>
}
