// RUN: tile-opt %s --tile-shrink-dead --split-input-file 2>/dev/null | FileCheck-22 %s
// RUN: tile-opt %s --tile-shrink-dead --split-input-file -o /dev/null 2>&1 | FileCheck-22 %s --check-prefix=TOLD
// RUN: tile-opt %s --tile-shrink-dead=trials=16 --split-input-file 2>/dev/null | FileCheck-22 %s --check-prefix=TRIED
// RUN: tile-opt %s --tile-shrink-dead=trials=16 --split-input-file -o /dev/null 2>&1 \
// RUN:   | FileCheck-22 %s --check-prefix=TRIED-TOLD

// TOLD: remark: pruned weights: reductions keep 50 % of 128 terms, the others change nothing

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#v = affine_map<(m, n) -> (n)>
#i = affine_map<(m, n) -> (m, n)>

// Two rows of the second weight are zero: two columns of what it multiplies, and of all that makes them, go. The bias
// has a number there, which nobody reads.

// CHECK-LABEL: func.func @backward
// CHECK: %[[ROWS:.*]] = arith.constant dense<[0, 2]> : tensor<2xi64>
// CHECK: linalg.generic {{.*}} ins(%[[ROWS]] : tensor<2xi64>)
// CHECK: linalg.fill {{.*}} outs(%{{.*}} : tensor<8x2xf32>)
// CHECK: linalg.generic {{.*}} ins(%arg0, %{{.*}} : tensor<8x2xf32>, tensor<2x2xf32>) outs(%{{.*}} : tensor<8x2xf32>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<8x2xf32>, tensor<2xf32>) outs(%{{.*}} : tensor<8x2xf32>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<8x2xf32>, tensor<2x2xf32>) outs(%{{.*}} : tensor<8x2xf32>)
func.func @backward(%x: tensor<8x2xf32>) -> tensor<8x2xf32> {
  %v = arith.constant dense<[[1.0, 2.0], [0.0, 0.0], [3.0, 4.0], [0.0, 0.0]]> : tensor<4x2xf32>
  %d = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %w = arith.constant dense<[[1.0, 5.0, 2.0, 6.0], [3.0, 7.0, 4.0, 8.0]]> : tensor<2x4xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x4xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x4xf32>) -> tensor<8x4xf32>
  %h = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x2xf32>, tensor<2x4xf32>) outs(%f : tensor<8x4xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<8x4xf32>
  %r = linalg.generic {indexing_maps = [#i, #v, #i], iterator_types = ["parallel", "parallel"]}
      ins(%h, %d : tensor<8x4xf32>, tensor<4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.addf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<8x4xf32>
  %g = tensor.empty() : tensor<8x2xf32>
  %j = linalg.fill ins(%zero : f32) outs(%g : tensor<8x2xf32>) -> tensor<8x2xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%r, %v : tensor<8x4xf32>, tensor<4x2xf32>) outs(%j : tensor<8x2xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<8x2xf32>
  return %y : tensor<8x2xf32>
}

// -----

// A column of the first weight is zero, through a maximum with zero: a row of the second one is not needed. Numbers
// that are stored for zero are what the zero point says.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#i = affine_map<(m, n) -> (m, n)>

// CHECK-LABEL: func.func @forward
// CHECK: linalg.generic {{.*}} ins(%{{.*}} : tensor<2x2xi8>) outs(%{{.*}} : tensor<2x2xf32>)
// CHECK: arith.maximumf
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<8x2xf32>, tensor<2x5xf32>) outs(%{{.*}} : tensor<8x5xf32>)
func.func @forward(%x: tensor<8x2xf32>) -> tensor<8x5xf32> {
  %q8 = arith.constant dense<[[1, 3, 2], [5, 3, 4]]> : tensor<2x3xi8>
  %v = arith.constant dense<[[1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 2.0, 3.0, 4.0, 6.0], [1.0, 2.0, 3.0, 4.0, 7.0]]>
      : tensor<3x5xf32>
  %zero = arith.constant 0.0 : f32
  %z = arith.constant 3 : i8
  %e2 = tensor.empty() : tensor<2x3xf32>
  %w = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel", "parallel"]}
      ins(%q8 : tensor<2x3xi8>) outs(%e2 : tensor<2x3xf32>) {
  ^bb0(%p: i8, %o: f32):
    %d = arith.subi %p, %z : i8
    %s = arith.sitofp %d : i8 to f32
    linalg.yield %s : f32
  } -> tensor<2x3xf32>
  %e = tensor.empty() : tensor<8x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x3xf32>) -> tensor<8x3xf32>
  %h = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x2xf32>, tensor<2x3xf32>) outs(%f : tensor<8x3xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<8x3xf32>
  %r = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel", "parallel"]}
      ins(%h : tensor<8x3xf32>) outs(%e : tensor<8x3xf32>) {
  ^bb0(%p: f32, %o: f32):
    %s = arith.maximumf %p, %zero : f32
    linalg.yield %s : f32
  } -> tensor<8x3xf32>
  %g = tensor.empty() : tensor<8x5xf32>
  %j = linalg.fill ins(%zero : f32) outs(%g : tensor<8x5xf32>) -> tensor<8x5xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%r, %v : tensor<8x3xf32>, tensor<3x5xf32>) outs(%j : tensor<8x5xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<8x5xf32>
  return %y : tensor<8x5xf32>
}

// -----

// A normalization is a barrier: a mean subtracted from zeros is no zero. What is returned stays whole.

#i = affine_map<(m, n) -> (m, n)>
#m = affine_map<(m, n) -> (m)>
#v = affine_map<(m, n) -> (n)>

// CHECK-LABEL: func.func @barrier
// CHECK-NOT: tensor<8x3xf32>
// CHECK: return %{{.*}} : tensor<8x4xf32>
func.func @barrier(%x: tensor<8x4xf32>, %mean: tensor<8xf32>) -> tensor<8x4xf32> {
  %d = arith.constant dense<[1.0, 0.0, 3.0, 4.0]> : tensor<4xf32>
  %e = tensor.empty() : tensor<8x4xf32>
  %h = linalg.generic {indexing_maps = [#i, #v, #i], iterator_types = ["parallel", "parallel"]}
      ins(%x, %d : tensor<8x4xf32>, tensor<4xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.mulf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<8x4xf32>
  %r = linalg.generic {indexing_maps = [#i, #m, #i], iterator_types = ["parallel", "parallel"]}
      ins(%h, %mean : tensor<8x4xf32>, tensor<8xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.subf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

// -----

// Dense weights: nothing changes.

// CHECK-LABEL: func.func @dense
// CHECK-NOT: tensor.extract
// CHECK: return
#v = affine_map<(n) -> (n)>
func.func @dense(%x: tensor<4xf32>) -> tensor<4xf32> {
  %d = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %h = linalg.generic {indexing_maps = [#v, #v, #v], iterator_types = ["parallel"]}
      ins(%x, %d : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %s = arith.mulf %p, %q : f32
    linalg.yield %s : f32
  } -> tensor<4xf32>
  return %h : tensor<4xf32>
}

// -----

// relu(bias - h * h) is zero in a column whose bias is below zero: no rule says so, random trials do. Without them
// nothing changes.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
#i = affine_map<(m, n) -> (m, n)>
#v = affine_map<(m, n) -> (n)>

// CHECK-LABEL: func.func @tried
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<8x3xf32>, tensor<3x2xf32>) outs(%{{.*}} : tensor<8x2xf32>)
// TRIED-LABEL: func.func @tried
// TRIED: linalg.generic {{.*}} ins(%arg0, %{{.*}} : tensor<8x2xf32>, tensor<2x2xf32>) outs(%{{.*}} : tensor<8x2xf32>)
// TRIED: linalg.generic {{.*}} ins(%{{.*}}, %{{.*}} : tensor<8x2xf32>, tensor<2x2xf32>) outs(%{{.*}} : tensor<8x2xf32>)
// TRIED-TOLD: remark: random trials: 1 slice holds one number in all of 16, which no rule says: likely, but not proven
// TRIED-TOLD: remark: pruned weights: reductions keep 66.7 % of 96 terms
func.func @tried(%x: tensor<8x2xf32>) -> tensor<8x2xf32> {
  %w = arith.constant dense<[[0.1, -0.2, 0.3], [0.2, 0.1, -0.1]]> : tensor<2x3xf32>
  %d = arith.constant dense<[50.0, -1.0, 60.0]> : tensor<3xf32>
  %u = arith.constant dense<[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]> : tensor<3x2xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x3xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x3xf32>) -> tensor<8x3xf32>
  %h = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x2xf32>, tensor<2x3xf32>) outs(%f : tensor<8x3xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<8x3xf32>
  %r = linalg.generic {indexing_maps = [#i, #v, #i], iterator_types = ["parallel", "parallel"]}
      ins(%h, %d : tensor<8x3xf32>, tensor<3xf32>) outs(%e : tensor<8x3xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %p : f32
    %s = arith.subf %q, %t : f32
    %n = arith.maximumf %s, %zero : f32
    linalg.yield %n : f32
  } -> tensor<8x3xf32>
  %g = tensor.empty() : tensor<8x2xf32>
  %j = linalg.fill ins(%zero : f32) outs(%g : tensor<8x2xf32>) -> tensor<8x2xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%r, %u : tensor<8x3xf32>, tensor<3x2xf32>) outs(%j : tensor<8x2xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    %s = arith.addf %o, %t : f32
    linalg.yield %s : f32
  } -> tensor<8x2xf32>
  return %y : tensor<8x2xf32>
}
