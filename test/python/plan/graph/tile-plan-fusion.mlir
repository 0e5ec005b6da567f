// RUN: tile-opt %s --tile-plan-fusion | FileCheck-22 %s
// RUN: tile-opt %s --tile-plan-fusion=large=8192 | FileCheck-22 %s --check-prefix=LARGE
// RUN: tile-opt %s --tile-plan-fusion="task-bytes=524288 task-rate=58.7 last-rate=31.3 memory-rate=20" \
// RUN:   | FileCheck-22 %s --check-prefix=SMALL

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

// What only gathers joins the task of the softmax and the products that read it, as its first nests: each task makes
// the keys and values of its own row of the batch. All queries are one block, and no row of the task any more.
// CHECK-LABEL: func.func @gathers
// CHECK: linalg.generic
// CHECK-SAME: tile.gathers = array<i64: 1>, {{.*}} tile.rows = array<i64: 0>, tile.task = [[T:[0-9]+]] : i64
// CHECK: linalg.generic
// CHECK-SAME: tile.gathers = array<i64: 1>, {{.*}} tile.rows = array<i64: 0>, tile.task = [[T]] : i64
// CHECK: linalg.generic
// CHECK-SAME: tile.rows = array<i64: 0>, tile.task = [[T]] : i64
// CHECK: arith.divf
// CHECK: linalg.generic
// CHECK-SAME: tile.block = 1 : i64, {{.*}} tile.rows = array<i64: 0>, tile.task = [[T]] : i64
#bmk = affine_map<(b, m, n, k) -> (b, m, k)>
#bnk = affine_map<(b, m, n, k) -> (b, n, k)>
#bmn = affine_map<(b, m, n, k) -> (b, m, n)>
#bkn = affine_map<(b, m, n, k) -> (b, k, n)>
#all = affine_map<(b, m, n) -> (b, m, n)>
#row = affine_map<(b, m, n) -> (b, m)>
func.func @gathers(%q: tensor<64x32x64xf32>, %k: tensor<64x300x64xf32>, %v: tensor<64x300x64xf32>)
    -> tensor<64x32x64xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e0 = tensor.empty() : tensor<64x256x64xf32>
  %keys = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel", "parallel"]}
      outs(%e0 : tensor<64x256x64xf32>) {
  ^bb0(%o: f32):
    %b = linalg.index 0 : index
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %c9 = arith.constant 9 : index
    %at = arith.addi %i, %c9 : index
    %x = tensor.extract %k[%b, %at, %j] : tensor<64x300x64xf32>
    linalg.yield %x : f32
  } -> tensor<64x256x64xf32>
  %values = linalg.generic {indexing_maps = [#all], iterator_types = ["parallel", "parallel", "parallel"]}
      outs(%e0 : tensor<64x256x64xf32>) {
  ^bb0(%o: f32):
    %b = linalg.index 0 : index
    %i = linalg.index 1 : index
    %j = linalg.index 2 : index
    %c9 = arith.constant 9 : index
    %at = arith.addi %i, %c9 : index
    %x = tensor.extract %v[%b, %at, %j] : tensor<64x300x64xf32>
    linalg.yield %x : f32
  } -> tensor<64x256x64xf32>
  %e1 = tensor.empty() : tensor<64x32x256xf32>
  %e2 = tensor.empty() : tensor<64x32xf32>
  %e3 = tensor.empty() : tensor<64x32x64xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<64x32x256xf32>) -> tensor<64x32x256xf32>
  %s = linalg.generic {indexing_maps = [#bmk, #bnk, #bmn],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %keys : tensor<64x32x64xf32>, tensor<64x256x64xf32>) outs(%f1 : tensor<64x32x256xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<64x32x256xf32>
  %f2 = linalg.fill ins(%low : f32) outs(%e2 : tensor<64x32xf32>) -> tensor<64x32xf32>
  %top = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s : tensor<64x32x256xf32>) outs(%f2 : tensor<64x32xf32>) {
  ^bb0(%i: f32, %o: f32):
    %m = arith.maximumf %o, %i : f32
    linalg.yield %m : f32
  } -> tensor<64x32xf32>
  %x = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %top : tensor<64x32x256xf32>, tensor<64x32xf32>) outs(%e1 : tensor<64x32x256xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %d = arith.subf %i, %j : f32
    %m = math.exp %d : f32
    linalg.yield %m : f32
  } -> tensor<64x32x256xf32>
  %f3 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<64x32xf32>) -> tensor<64x32xf32>
  %sum = linalg.generic {indexing_maps = [#all, #row], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<64x32x256xf32>) outs(%f3 : tensor<64x32xf32>) {
  ^bb0(%i: f32, %o: f32):
    %m = arith.addf %o, %i : f32
    linalg.yield %m : f32
  } -> tensor<64x32xf32>
  %w = linalg.generic {indexing_maps = [#all, #row, #all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%x, %sum : tensor<64x32x256xf32>, tensor<64x32xf32>) outs(%e1 : tensor<64x32x256xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.divf %i, %j : f32
    linalg.yield %m : f32
  } -> tensor<64x32x256xf32>
  %f4 = linalg.fill ins(%zero : f32) outs(%e3 : tensor<64x32x64xf32>) -> tensor<64x32x64xf32>
  %y = linalg.generic {indexing_maps = [#bmk, #bkn, #bmn],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%w, %values : tensor<64x32x256xf32>, tensor<64x256x64xf32>) outs(%f4 : tensor<64x32x64xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<64x32x64xf32>
  return %y : tensor<64x32x64xf32>
}

// Under many keys scores share a task with their softmax and the second product though each block of queries reads
// keys and values again, which do not stay in a small L2 cache: scores then never go through memory, and neither do
// exponentials, which their sum reads, too.
// CHECK-LABEL: @attention
// SMALL-LABEL: @attention
// SMALL: "reduction"]{{.*}}tile.rows = array<i64: 0, 1>, tile.task = [[T:[0-9]+]] : i64}
// SMALL: "reduction"]{{.*}}tile.task = [[T]] : i64}
// SMALL: arith.maximumf
// SMALL: linalg.generic{{.*}}tile.task = [[T]] : i64}
// SMALL: math.exp
// SMALL: "reduction"]{{.*}}tile.task = [[T]] : i64}
// SMALL: arith.mulf
// SMALL: "reduction"]{{.*}}tile.task = [[T]] : i64}
#h_all = affine_map<(h, i, j) -> (h, i, j)>
#h_one = affine_map<(h, i, j) -> (h, i)>
#h_left = affine_map<(h, i, j, k) -> (h, i, k)>
#h_keys = affine_map<(h, i, j, k) -> (h, j, k)>
#h_values = affine_map<(h, i, j, k) -> (h, k, j)>
#h_made = affine_map<(h, i, j, k) -> (h, i, j)>
func.func @attention(%q: tensor<8x1024x128xf32>, %k: tensor<8x1024x128xf32>, %v: tensor<8x1024x128xf32>)
    -> (tensor<8x1024x128xf32>, tensor<8x1024xf32>) {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %e0 = tensor.empty() : tensor<8x1024x1024xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<8x1024x1024xf32>) -> tensor<8x1024x1024xf32>
  %s = linalg.generic {indexing_maps = [#h_left, #h_keys, #h_made],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%q, %k : tensor<8x1024x128xf32>, tensor<8x1024x128xf32>) outs(%f0 : tensor<8x1024x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<8x1024x1024xf32>
  %e1 = tensor.empty() : tensor<8x1024xf32>
  %f1 = linalg.fill ins(%low : f32) outs(%e1 : tensor<8x1024xf32>) -> tensor<8x1024xf32>
  %top = linalg.generic {indexing_maps = [#h_all, #h_one], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%s : tensor<8x1024x1024xf32>) outs(%f1 : tensor<8x1024xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.maximumf %o, %a : f32
    linalg.yield %m : f32
  } -> tensor<8x1024xf32>
  %x = linalg.generic {indexing_maps = [#h_all, #h_one, #h_all], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%s, %top : tensor<8x1024x1024xf32>, tensor<8x1024xf32>) outs(%e0 : tensor<8x1024x1024xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %p = math.exp %d : f32
    linalg.yield %p : f32
  } -> tensor<8x1024x1024xf32>
  %e2 = tensor.empty() : tensor<8x1024x128xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<8x1024x128xf32>) -> tensor<8x1024x128xf32>
  %y = linalg.generic {indexing_maps = [#h_left, #h_values, #h_made],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"]}
      ins(%x, %v : tensor<8x1024x1024xf32>, tensor<8x1024x128xf32>) outs(%f2 : tensor<8x1024x128xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<8x1024x128xf32>
  %f3 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<8x1024xf32>) -> tensor<8x1024xf32>
  %sum = linalg.generic {indexing_maps = [#h_all, #h_one], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x : tensor<8x1024x1024xf32>) outs(%f3 : tensor<8x1024xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.addf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<8x1024xf32>
  return %y, %sum : tensor<8x1024x128xf32>, tensor<8x1024xf32>
}
