// RUN: tile-opt %s --tile-plan-fusion | FileCheck-22 %s
// RUN: tile-opt %s --tile-plan-fusion=large=8192 | FileCheck-22 %s --check-prefix=LARGE

// A chain of elementwise operations shares a nest; its root states the rows that tasks may cut.

#id = affine_map<(i, j) -> (i, j)>

// CHECK-LABEL: @chain
// CHECK: linalg.generic {{.*}}attrs = {tile.nest = 0 : i64, tile.rows = array<i64: 0, 1>, tile.task = 0 : i64}
// CHECK: math.exp
// CHECK: linalg.generic {{.*}}attrs = {tile.nest = 0 : i64, tile.task = 0 : i64}
// CHECK: arith.negf
func.func @chain(%x: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %e = tensor.empty() : tensor<8x64xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = math.exp %a : f32
    linalg.yield %n : f32
  } -> tensor<8x64xf32>
  %z = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%y : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<8x64xf32>
  return %z : tensor<8x64xf32>
}

// Two products that meet at the same points of their results are nests of one task.
// CHECK-LABEL: @gated
// CHECK: attrs = {tile.nest = [[A:[0-9]+]] : i64, tile.rows = array<i64: 0, 1>, tile.task = [[T:[0-9]+]] : i64}
// CHECK: attrs = {tile.nest = [[B:[0-9]+]] : i64, tile.rows = array<i64: 0, 1>, tile.task = [[T]] : i64}
// CHECK: attrs = {tile.nest = [[B]] : i64, tile.task = [[T]] : i64}
// From a number of multiply-adds on each is a task of its own; the reader's nest is that of one of them.
// LARGE-LABEL: @gated
// LARGE: "reduction"]{{.*}}attrs = {tile.nest = [[A:[0-9]+]] : i64, {{.*}}tile.task = [[S:[0-9]+]] : i64}
// LARGE: "reduction"]{{.*}}attrs = {tile.nest = [[B:[0-9]+]] : i64, {{.*}}tile.task = [[T:[0-9]+]] : i64}
// LARGE-NOT: tile.task = [[S]] : i64
// LARGE: return
#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
func.func @gated(%x: tensor<8x16xf32>, %v: tensor<16x64xf32>, %w: tensor<16x64xf32>) -> tensor<8x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x64xf32>) -> tensor<8x64xf32>
  %p = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %v : tensor<8x16xf32>, tensor<16x64xf32>) outs(%f : tensor<8x64xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %0 = arith.mulf %i, %j : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<8x64xf32>
  %q = linalg.generic {indexing_maps = [#x, #w, #y], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<8x16xf32>, tensor<16x64xf32>) outs(%f : tensor<8x64xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %0 = arith.mulf %i, %j : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<8x64xf32>
  %z = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%p, %q : tensor<8x64xf32>, tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %0 = arith.mulf %i, %j : f32
    linalg.yield %0 : f32
  } -> tensor<8x64xf32>
  return %z : tensor<8x64xf32>
}

// The sum over experts stays apart from their products: in one task, rows alone could be cut, and each would read the
// weights of all experts again.
// CHECK-LABEL: @experts
// CHECK: "reduction"]{{.*}}tile.rows = array<i64: 0, 1>, tile.task = [[T:[0-9]+]] : i64}
// CHECK: "reduction"]{{.*}}tile.block = 64 : i64, {{.*}}tile.rows = array<i64: 0, 1>, tile.task = [[T]] : i64}
// CHECK-NOT: tile.task = [[T]] : i64
// CHECK: return
#xe = affine_map<(e, m, n, k) -> (m, k)>
#ye = affine_map<(e, m, n, k) -> (e, m, n)>
#he = affine_map<(e, m, n, k) -> (e, m, k)>
#we = affine_map<(e, m, n, k) -> (e, k, n)>
#in = affine_map<(m, n, e) -> (e, m, n)>
#out = affine_map<(m, n, e) -> (m, n)>
func.func @experts(%x: tensor<64x512xf32>, %v: tensor<8x512x1024xf32>, %w: tensor<8x1024x512xf32>)
    -> tensor<64x512xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x64x1024xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x64x1024xf32>) -> tensor<8x64x1024xf32>
  %p = linalg.generic {indexing_maps = [#xe, #we, #ye],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %v : tensor<64x512xf32>, tensor<8x512x1024xf32>) outs(%f : tensor<8x64x1024xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %0 = arith.mulf %i, %j : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<8x64x1024xf32>
  %g = tensor.empty() : tensor<8x64x512xf32>
  %h = linalg.fill ins(%zero : f32) outs(%g : tensor<8x64x512xf32>) -> tensor<8x64x512xf32>
  %q = linalg.generic {indexing_maps = [#he, #we, #ye],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%p, %w : tensor<8x64x1024xf32>, tensor<8x1024x512xf32>) outs(%h : tensor<8x64x512xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %0 = arith.mulf %i, %j : f32
    %1 = arith.addf %o, %0 : f32
    linalg.yield %1 : f32
  } -> tensor<8x64x512xf32>
  %r = tensor.empty() : tensor<64x512xf32>
  %s = linalg.fill ins(%zero : f32) outs(%r : tensor<64x512xf32>) -> tensor<64x512xf32>
  %t = linalg.generic {indexing_maps = [#in, #out], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q : tensor<8x64x512xf32>) outs(%s : tensor<64x512xf32>) {
  ^bb0(%i: f32, %o: f32):
    %1 = arith.addf %o, %i : f32
    linalg.yield %1 : f32
  } -> tensor<64x512xf32>
  return %t : tensor<64x512xf32>
}
