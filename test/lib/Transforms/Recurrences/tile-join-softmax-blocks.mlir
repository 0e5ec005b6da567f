// RUN: tile-opt %s --tile-join-softmax-blocks --split-input-file --verify-diagnostics | FileCheck-22 %s

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
!list = !fractal.array<[4] of tensor<8x5xf32>>

// Lists of rows stand side by side: the level goes in front of what rows are reduced along.
// CHECK-LABEL: @sums(
// CHECK: %[[LIST:.*]] = fractal.to_tensor %arg0 : {{.*}} -> tensor<4x8x5xf32>
// CHECK: %[[ROWS:.*]] = linalg.transpose ins(%[[LIST]] : tensor<4x8x5xf32>) {{.*}} permutation = [1, 0, 2]
// CHECK: %[[X:.*]] = tensor.collapse_shape %[[ROWS]] {{\[}}[0], [1, 2]] : tensor<8x4x5xf32> into tensor<8x20xf32>
// CHECK: %[[M:.*]] = linalg.generic {{.*}}"reduction"]} ins(%[[X]] : tensor<8x20xf32>)
// CHECK: arith.maximumf
// CHECK: %[[P:.*]] = linalg.generic {{.*}}"parallel"]} ins(%[[X]], %[[M]] : tensor<8x20xf32>, tensor<8xf32>)
// CHECK: arith.subf
// CHECK: math.exp
// CHECK: %[[S:.*]] = linalg.generic {{.*}}"reduction"]} ins(%[[P]] : tensor<8x20xf32>)
// CHECK: arith.addf
// CHECK-NOT: fractal.fold
// CHECK: return %[[S]]
func.func @sums(%xs: !list) -> tensor<8xf32> {
  %neg = arith.constant dense<0xFF800000> : tensor<8xf32>
  %low = arith.constant dense<0xFF800000> : tensor<8xf32>
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %two = arith.constant dense<2.0> : tensor<8xf32>
  %m, %s = fractal.fold left (%m0 = %low, %s0 = %zero) over (%x = %xs)
      : (tensor<8xf32>, tensor<8xf32>, !list) -> (tensor<8xf32>, tensor<8xf32>) {
    %top = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
        ins(%x : tensor<8x5xf32>) outs(%neg : tensor<8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %t = arith.maximumf %o, %a : f32
      linalg.yield %t : f32
    } -> tensor<8xf32>
    %m1 = arith.maximumf %m0, %top : tensor<8xf32>
    %d = arith.subf %m0, %m1 : tensor<8xf32>
    %f = math.exp %d : tensor<8xf32>
    %old = arith.mulf %f, %s0 : tensor<8xf32>
    %s1 = linalg.generic {indexing_maps = [#ij, #i, #i], iterator_types = ["parallel", "reduction"]}
        ins(%x, %m1 : tensor<8x5xf32>, tensor<8xf32>) outs(%old : tensor<8xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %e = arith.subf %a, %b : f32
      %p = math.exp %e : f32
      %t = arith.addf %o, %p : f32
      linalg.yield %t : f32
    } -> tensor<8xf32>
    fractal.yield %m1, %s1 : tensor<8xf32>, tensor<8xf32>
  }
  return %s : tensor<8xf32>
}

// -----

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
!list = !fractal.array<[4] of tensor<8x5xf32>>

// Only what is read is made.
// CHECK-LABEL: @maximum(
// CHECK: %[[M:.*]] = linalg.generic {{.*}}"reduction"]}
// CHECK-NOT: fractal.fold
// CHECK: return %[[M]]
func.func @maximum(%xs: !list) -> tensor<8xf32> {
  %neg = arith.constant dense<0xFF800000> : tensor<8xf32>
  %low = arith.constant dense<0xFF800000> : tensor<8xf32>
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %two = arith.constant dense<2.0> : tensor<8xf32>
  %m, %s = fractal.fold left (%m0 = %low, %s0 = %zero) over (%x = %xs)
      : (tensor<8xf32>, tensor<8xf32>, !list) -> (tensor<8xf32>, tensor<8xf32>) {
    %top = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
        ins(%x : tensor<8x5xf32>) outs(%neg : tensor<8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %t = arith.maximumf %o, %a : f32
      linalg.yield %t : f32
    } -> tensor<8xf32>
    %m1 = arith.maximumf %m0, %top : tensor<8xf32>
    %d = arith.subf %m0, %m1 : tensor<8xf32>
    %f = math.exp %d : tensor<8xf32>
    %old = arith.mulf %f, %s0 : tensor<8xf32>
    %s1 = linalg.generic {indexing_maps = [#ij, #i, #i], iterator_types = ["parallel", "reduction"]}
        ins(%x, %m1 : tensor<8x5xf32>, tensor<8xf32>) outs(%old : tensor<8xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %e = arith.subf %a, %b : f32
      %p = math.exp %e : f32
      %t = arith.addf %o, %p : f32
      linalg.yield %t : f32
    } -> tensor<8xf32>
    fractal.yield %m1, %s1 : tensor<8xf32>, tensor<8xf32>
  }
  return %m : tensor<8xf32>
}

// -----

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
!list = !fractal.array<[4] of tensor<8x5xf32>>

// The old sum is scaled by another power than the new one.
// CHECK-LABEL: @other(
// CHECK: fractal.fold
func.func @other(%xs: !list) -> tensor<8xf32> {
  %neg = arith.constant dense<0xFF800000> : tensor<8xf32>
  %low = arith.constant dense<0xFF800000> : tensor<8xf32>
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %two = arith.constant dense<2.0> : tensor<8xf32>
  // expected-remark @+1 {{not one softmax over all of them: state 1 is neither the running maximum of scores nor}}
  %m, %s = fractal.fold left (%m0 = %low, %s0 = %zero) over (%x = %xs)
      : (tensor<8xf32>, tensor<8xf32>, !list) -> (tensor<8xf32>, tensor<8xf32>) {
    %top = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
        ins(%x : tensor<8x5xf32>) outs(%neg : tensor<8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %t = arith.maximumf %o, %a : f32
      linalg.yield %t : f32
    } -> tensor<8xf32>
    %m1 = arith.maximumf %m0, %top : tensor<8xf32>
    %d = arith.subf %m0, %m1 : tensor<8xf32>
    %d2 = arith.mulf %d, %two : tensor<8xf32>
    %f = math.exp %d2 : tensor<8xf32>
    %old = arith.mulf %f, %s0 : tensor<8xf32>
    %s1 = linalg.generic {indexing_maps = [#ij, #i, #i], iterator_types = ["parallel", "reduction"]}
        ins(%x, %m1 : tensor<8x5xf32>, tensor<8xf32>) outs(%old : tensor<8xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %e = arith.subf %a, %b : f32
      %p = math.exp %e : f32
      %t = arith.addf %o, %p : f32
      linalg.yield %t : f32
    } -> tensor<8xf32>
    fractal.yield %m1, %s1 : tensor<8xf32>, tensor<8xf32>
  }
  return %s : tensor<8xf32>
}

// -----

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
!list = !fractal.array<[4] of tensor<8x5xf32>>

// CHECK-LABEL: @starts(
// CHECK: fractal.fold
func.func @starts(%xs: !list) -> tensor<8xf32> {
  %neg = arith.constant dense<0xFF800000> : tensor<8xf32>
  %low = arith.constant dense<0.0> : tensor<8xf32>
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %two = arith.constant dense<2.0> : tensor<8xf32>
  // expected-remark @+1 {{state 0 does not start at minus infinity}}
  %m, %s = fractal.fold left (%m0 = %low, %s0 = %zero) over (%x = %xs)
      : (tensor<8xf32>, tensor<8xf32>, !list) -> (tensor<8xf32>, tensor<8xf32>) {
    %top = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
        ins(%x : tensor<8x5xf32>) outs(%neg : tensor<8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %t = arith.maximumf %o, %a : f32
      linalg.yield %t : f32
    } -> tensor<8xf32>
    %m1 = arith.maximumf %m0, %top : tensor<8xf32>
    %d = arith.subf %m0, %m1 : tensor<8xf32>
    %f = math.exp %d : tensor<8xf32>
    %old = arith.mulf %f, %s0 : tensor<8xf32>
    %s1 = linalg.generic {indexing_maps = [#ij, #i, #i], iterator_types = ["parallel", "reduction"]}
        ins(%x, %m1 : tensor<8x5xf32>, tensor<8xf32>) outs(%old : tensor<8xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %e = arith.subf %a, %b : f32
      %p = math.exp %e : f32
      %t = arith.addf %o, %p : f32
      linalg.yield %t : f32
    } -> tensor<8xf32>
    fractal.yield %m1, %s1 : tensor<8xf32>, tensor<8xf32>
  }
  return %s : tensor<8xf32>
}

// -----

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
!list = !fractal.array<[4] of tensor<8x5xf32>>

// CHECK-LABEL: @sink(
// CHECK: fractal.fold
func.func @sink(%xs: !list) -> tensor<8xf32> {
  %neg = arith.constant dense<0xFF800000> : tensor<8xf32>
  %low = arith.constant dense<0xFF800000> : tensor<8xf32>
  %zero = arith.constant dense<1.0> : tensor<8xf32>
  %two = arith.constant dense<2.0> : tensor<8xf32>
  // expected-remark @+1 {{state 1 does not start at zero}}
  %m, %s = fractal.fold left (%m0 = %low, %s0 = %zero) over (%x = %xs)
      : (tensor<8xf32>, tensor<8xf32>, !list) -> (tensor<8xf32>, tensor<8xf32>) {
    %top = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
        ins(%x : tensor<8x5xf32>) outs(%neg : tensor<8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %t = arith.maximumf %o, %a : f32
      linalg.yield %t : f32
    } -> tensor<8xf32>
    %m1 = arith.maximumf %m0, %top : tensor<8xf32>
    %d = arith.subf %m0, %m1 : tensor<8xf32>
    %f = math.exp %d : tensor<8xf32>
    %old = arith.mulf %f, %s0 : tensor<8xf32>
    %s1 = linalg.generic {indexing_maps = [#ij, #i, #i], iterator_types = ["parallel", "reduction"]}
        ins(%x, %m1 : tensor<8x5xf32>, tensor<8xf32>) outs(%old : tensor<8xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %e = arith.subf %a, %b : f32
      %p = math.exp %e : f32
      %t = arith.addf %o, %p : f32
      linalg.yield %t : f32
    } -> tensor<8xf32>
    fractal.yield %m1, %s1 : tensor<8xf32>, tensor<8xf32>
  }
  return %s : tensor<8xf32>
}

// -----

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
!list = !fractal.array<[4] of tensor<8x5xf32>>

// No block: the states are what they start as. How many are not known: there may be none.
// CHECK-LABEL: @empty(
// CHECK: fractal.fold
func.func @empty(%xs: !fractal.array<[0] of tensor<8x5xf32>>) -> tensor<8xf32> {
  %neg = arith.constant dense<0xFF800000> : tensor<8xf32>
  %low = arith.constant dense<0xFF800000> : tensor<8xf32>
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %two = arith.constant dense<2.0> : tensor<8xf32>
  %m, %s = fractal.fold left (%m0 = %low, %s0 = %zero) over (%x = %xs)
      : (tensor<8xf32>, tensor<8xf32>, !fractal.array<[0] of tensor<8x5xf32>>) -> (tensor<8xf32>, tensor<8xf32>) {
    %top = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
        ins(%x : tensor<8x5xf32>) outs(%neg : tensor<8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %t = arith.maximumf %o, %a : f32
      linalg.yield %t : f32
    } -> tensor<8xf32>
    %m1 = arith.maximumf %m0, %top : tensor<8xf32>
    %d = arith.subf %m0, %m1 : tensor<8xf32>
    %f = math.exp %d : tensor<8xf32>
    %old = arith.mulf %f, %s0 : tensor<8xf32>
    %s1 = linalg.generic {indexing_maps = [#ij, #i, #i], iterator_types = ["parallel", "reduction"]}
        ins(%x, %m1 : tensor<8x5xf32>, tensor<8xf32>) outs(%old : tensor<8xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %e = arith.subf %a, %b : f32
      %p = math.exp %e : f32
      %t = arith.addf %o, %p : f32
      linalg.yield %t : f32
    } -> tensor<8xf32>
    fractal.yield %m1, %s1 : tensor<8xf32>, tensor<8xf32>
  }
  return %s : tensor<8xf32>
}

// CHECK-LABEL: @unknown(
// CHECK: fractal.fold
func.func @unknown(%xs: !fractal.array<[?] of tensor<8x5xf32>>) -> tensor<8xf32> {
  %neg = arith.constant dense<0xFF800000> : tensor<8xf32>
  %low = arith.constant dense<0xFF800000> : tensor<8xf32>
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %two = arith.constant dense<2.0> : tensor<8xf32>
  %m, %s = fractal.fold left (%m0 = %low, %s0 = %zero) over (%x = %xs)
      : (tensor<8xf32>, tensor<8xf32>, !fractal.array<[?] of tensor<8x5xf32>>) -> (tensor<8xf32>, tensor<8xf32>) {
    %top = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
        ins(%x : tensor<8x5xf32>) outs(%neg : tensor<8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %t = arith.maximumf %o, %a : f32
      linalg.yield %t : f32
    } -> tensor<8xf32>
    %m1 = arith.maximumf %m0, %top : tensor<8xf32>
    %d = arith.subf %m0, %m1 : tensor<8xf32>
    %f = math.exp %d : tensor<8xf32>
    %old = arith.mulf %f, %s0 : tensor<8xf32>
    %s1 = linalg.generic {indexing_maps = [#ij, #i, #i], iterator_types = ["parallel", "reduction"]}
        ins(%x, %m1 : tensor<8x5xf32>, tensor<8xf32>) outs(%old : tensor<8xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %e = arith.subf %a, %b : f32
      %p = math.exp %e : f32
      %t = arith.addf %o, %p : f32
      linalg.yield %t : f32
    } -> tensor<8xf32>
    fractal.yield %m1, %s1 : tensor<8xf32>, tensor<8xf32>
  }
  return %s : tensor<8xf32>
}

// -----

!list = !fractal.array<[4] of tensor<8xf32>>

// A recurrence with a maximum of its own elements is none of scores: nothing to remark.
// CHECK-LABEL: @largest(
// CHECK: fractal.fold
func.func @largest(%xs: !list, %h0: tensor<8xf32>) -> tensor<8xf32> {
  %r = fractal.fold left (%h = %h0) over (%x = %xs) : (tensor<8xf32>, !list) -> tensor<8xf32> {
    %m = arith.maximumf %h, %x : tensor<8xf32>
    fractal.yield %m : tensor<8xf32>
  }
  return %r : tensor<8xf32>
}

// -----

#ij = affine_map<(i, j) -> (i, j)>
#ji = affine_map<(i, j) -> (j, i)>
#ijk = affine_map<(i, j, k) -> (i, j, k)>
#ij3 = affine_map<(i, j, k) -> (i, j)>
!list = !fractal.array<[4] of tensor<8x8x5xf32>>

// The maximum of other rows than the state's own.
// CHECK-LABEL: func.func @transposed_max(
// CHECK: fractal.fold
func.func @transposed_max(%xs: !list) -> tensor<8x8xf32> {
  %low = arith.constant dense<0xFF800000> : tensor<8x8xf32>
  %m = fractal.fold left (%m0 = %low) over (%x = %xs)
      : (tensor<8x8xf32>, !list) -> (tensor<8x8xf32>) {
    %top = linalg.generic {indexing_maps = [#ijk, #ij3], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x : tensor<8x8x5xf32>) outs(%low : tensor<8x8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %t = arith.maximumf %o, %a : f32
      linalg.yield %t : f32
    } -> tensor<8x8xf32>
    %e = tensor.empty() : tensor<8x8xf32>
    %m1 = linalg.generic {indexing_maps = [#ji, #ij, #ij], iterator_types = ["parallel", "parallel"]}
        ins(%m0, %top : tensor<8x8xf32>, tensor<8x8xf32>) outs(%e : tensor<8x8xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %t = arith.maximumf %a, %b : f32
      linalg.yield %t : f32
    } -> tensor<8x8xf32>
    fractal.yield %m1 : tensor<8x8xf32>
  }
  return %m : tensor<8x8xf32>
}

// -----

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
!list = !fractal.array<[4] of tensor<6x5xf32>>
!qs = !fractal.array<[4] of tensor<8x6xf32>>

// An operand that varies with the blocks, but has no dimension to join.
// CHECK-LABEL: func.func @products_of_two_elements(
// CHECK: fractal.fold
func.func @products_of_two_elements(%xs: !list, %q: !qs) -> tensor<8xf32> {
  %low = arith.constant dense<0xFF800000> : tensor<8xf32>
  %zero = arith.constant dense<0.0> : tensor<8x5xf32>
  // expected-remark @+1 {{scores or weights are not made row by row of its elements}}
  %m = fractal.fold left (%m0 = %low) over (%k = %xs, %qq = %q)
      : (tensor<8xf32>, !list, !qs) -> (tensor<8xf32>) {
    %x = linalg.matmul ins(%qq, %k : tensor<8x6xf32>, tensor<6x5xf32>) outs(%zero : tensor<8x5xf32>) -> tensor<8x5xf32>
    %top = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
        ins(%x : tensor<8x5xf32>) outs(%low : tensor<8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %t = arith.maximumf %o, %a : f32
      linalg.yield %t : f32
    } -> tensor<8xf32>
    %m1 = arith.maximumf %m0, %top : tensor<8xf32>
    fractal.yield %m1 : tensor<8xf32>
  }
  return %m : tensor<8xf32>
}

// -----

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#ik = affine_map<(i, j, k) -> (i, k)>
#kj = affine_map<(i, j, k) -> (k, j)>
#oi = affine_map<(i, j, k) -> (i)>
#oij = affine_map<(i, j, k) -> (i, j)>
#a = affine_map<(i, j) -> (i)>
#b = affine_map<(i, j) -> (j)>
!xs = !fractal.array<[4] of tensor<8x5xf32>>
!vs = !fractal.array<[4] of tensor<5x8xf32>>

// Divided by the sum of other rows.
// CHECK-LABEL: func.func @other_rows_below(
// CHECK: fractal.fold
func.func @other_rows_below(%xs: !xs, %vs: !vs) -> tensor<8x8xf32> {
  %low = arith.constant dense<0xFF800000> : tensor<8xf32>
  %z = arith.constant dense<0.0> : tensor<8xf32>
  %zz = arith.constant dense<0.0> : tensor<8x8xf32>
  // expected-remark @+1 {{state 2 is neither the running maximum}}
  %m, %s, %q = fractal.fold left (%m0 = %low, %s0 = %z, %o0 = %zz) over (%x = %xs, %v = %vs)
      : (tensor<8xf32>, tensor<8xf32>, tensor<8x8xf32>, !xs, !vs) -> (tensor<8xf32>, tensor<8xf32>, tensor<8x8xf32>) {
    %top = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"]}
        ins(%x : tensor<8x5xf32>) outs(%low : tensor<8xf32>) {
    ^bb0(%a: f32, %o: f32):
      %t = arith.maximumf %o, %a : f32
      linalg.yield %t : f32
    } -> tensor<8xf32>
    %m1 = arith.maximumf %m0, %top : tensor<8xf32>
    %d = arith.subf %m0, %m1 : tensor<8xf32>
    %f = math.exp %d : tensor<8xf32>
    %old = arith.mulf %f, %s0 : tensor<8xf32>
    %s1 = linalg.generic {indexing_maps = [#ij, #i, #i], iterator_types = ["parallel", "reduction"]}
        ins(%x, %m1 : tensor<8x5xf32>, tensor<8xf32>) outs(%old : tensor<8xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %e = arith.subf %a, %b : f32
      %p = math.exp %e : f32
      %t = arith.addf %o, %p : f32
      linalg.yield %t : f32
    } -> tensor<8xf32>
    %e = tensor.empty() : tensor<8x8xf32>
    // exp(m_i - m'_i) s_j o_ij
    %oo = linalg.generic {indexing_maps = [#a, #a, #b, #ij, #ij], iterator_types = ["parallel", "parallel"]}
        ins(%m0, %m1, %s0, %o0 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x8xf32>)
        outs(%e : tensor<8x8xf32>) {
    ^bb0(%a: f32, %b: f32, %c: f32, %g: f32, %o: f32):
      %dd = arith.subf %a, %b : f32
      %p = math.exp %dd : f32
      %t = arith.mulf %p, %c : f32
      %u = arith.mulf %t, %g : f32
      linalg.yield %u : f32
    } -> tensor<8x8xf32>
    %acc = linalg.generic {indexing_maps = [#ik, #oi, #kj, #oij],
                           iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x, %m1, %v : tensor<8x5xf32>, tensor<8xf32>, tensor<5x8xf32>) outs(%oo : tensor<8x8xf32>) {
    ^bb0(%a: f32, %b: f32, %w: f32, %o: f32):
      %dd = arith.subf %a, %b : f32
      %p = math.exp %dd : f32
      %qq = arith.mulf %p, %w : f32
      %t = arith.addf %o, %qq : f32
      linalg.yield %t : f32
    } -> tensor<8x8xf32>
    // over s'_j
    %o1 = linalg.generic {indexing_maps = [#ij, #b, #ij], iterator_types = ["parallel", "parallel"]}
        ins(%acc, %s1 : tensor<8x8xf32>, tensor<8xf32>) outs(%e : tensor<8x8xf32>) {
    ^bb0(%a: f32, %b: f32, %o: f32):
      %t = arith.divf %a, %b : f32
      linalg.yield %t : f32
    } -> tensor<8x8xf32>
    fractal.yield %m1, %s1, %o1 : tensor<8xf32>, tensor<8xf32>, tensor<8x8xf32>
  }
  return %q : tensor<8x8xf32>
}
