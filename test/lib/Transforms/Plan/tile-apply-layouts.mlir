// RUN: tile-opt %s --tile-apply-layouts | FileCheck %s

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#bt = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
#i = affine_map<(m, k) -> (m, k)>
#first = affine_map<(m, k) -> (m)>
#second = affine_map<(m, k) -> (k)>

ml_program.global private @w(#ml_program.extern<tensor<64x96xf32>>) : tensor<64x96xf32>

// A weight is packed by linalg.pack, ready for compile time.
// CHECK-DAG: #[[$B:.*]] = affine_map<(d0, d1, d2) -> (d1 floordiv 32, d2, d1 mod 32)>
// CHECK-DAG: #[[$T:.*]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-DAG: #[[$I:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-DAG: #[[$P:.*]] = affine_map<(d0, d1) -> (d1 floordiv 48, d0, d1 mod 48)>
// CHECK-LABEL: func.func @weight
// CHECK: %[[P:.*]] = linalg.pack %{{.*}} padding_value({{.*}})
// CHECK-SAME: {{^}} outer_dims_perm = [1, 0] inner_dims_pos = [1] inner_tiles = [32]
// CHECK-SAME: tensor<64x96xf32> -> tensor<3x64x32xf32>
// CHECK: linalg.generic
// CHECK-SAME: indexing_maps = [#{{.*}}, #[[$B]], #{{.*}}]
// CHECK-NOT: tile.layouts
// CHECK: ins(%{{.*}}, %[[P]]
func.func @weight(%x: tensor<8x64xf32>) -> tensor<8x96xf32> {
  %w = ml_program.global_load_const @w : tensor<64x96xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x96xf32>) -> tensor<8x96xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      tile.layouts = [unit, #tile.layout<perm = [1, 0], inner = [1], tiles = [32]>]}
      ins(%x, %w : tensor<8x64xf32>, tensor<64x96xf32>) outs(%f : tensor<8x96xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<8x96xf32>
  return %y : tensor<8x96xf32>
}

// A run-time operand is copied by a task of its own where the plan says so.
// CHECK-LABEL: func.func @apart
// CHECK: linalg.generic
// CHECK-SAME: tile.kernel = "pack", tile.nest = 5 : i64
// CHECK-SAME: tile.task = 3 : i64
// CHECK: linalg.generic
// CHECK-NOT: tile.pack_apart
// CHECK-SAME: tile.nest = 4 : i64
func.func @apart(%x: tensor<8x64xf32>, %w: tensor<?x64xf32>, %n: index) -> tensor<8x?xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<8x?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x?xf32>) -> tensor<8x?xf32>
  %y = linalg.generic {indexing_maps = [#a, #bt, #c], iterator_types = ["parallel", "parallel", "reduction"],
      tile.task = 2 : i64, tile.nest = 4 : i64, tile.layouts = [unit, #tile.layout<perm = [1, 0]>], tile.pack_apart,
      tile.pack_rtiles = [unit, #tile.rtile<l2 = [64, 32], register = [16, 16], order = [0, 1]>]}
      ins(%x, %w : tensor<8x64xf32>, tensor<?x64xf32>) outs(%f : tensor<8x?xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<8x?xf32>
  return %y : tensor<8x?xf32>
}

// A run-time operand is copied in the reader's task, by a nest of its own.
// CHECK-LABEL: func.func @runtime
// CHECK: %[[COPY:.*]] = linalg.generic
// CHECK-SAME: indexing_maps = [#[[$T]],
// CHECK-SAME: tile.nest = 6 : i64, tile.rtile = #tile.rtile<l2 = [64, 32], register = [16, 16], order = [0, 1]>,
// CHECK-SAME: {{^}} tile.task = 2 : i64
// CHECK: linalg.generic
// CHECK-SAME: ins(%{{.*}}, %[[COPY]] : tensor<8x64xf32>, tensor<64x96xf32>)
// CHECK-SAME: tile.nest = 4 : i64
func.func @runtime(%x: tensor<8x64xf32>, %w: tensor<96x64xf32>) -> tensor<8x96xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x96xf32>) -> tensor<8x96xf32>
  %y = linalg.generic {indexing_maps = [#a, #bt, #c], iterator_types = ["parallel", "parallel", "reduction"],
      tile.task = 2 : i64, tile.nest = 4 : i64, tile.layouts = [unit, #tile.layout<perm = [1, 0]>],
      tile.pack_rtiles = [unit, #tile.rtile<l2 = [64, 32], register = [16, 16], order = [0, 1]>]}
      ins(%x, %w : tensor<8x64xf32>, tensor<96x64xf32>) outs(%f : tensor<8x96xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<8x96xf32>
  return %y : tensor<8x96xf32>
}

// A run-time operand in panels: its loops are the operand's own, so that the last panel is as wide as what is left.
// CHECK-LABEL: func.func @panels
// CHECK: tensor.empty() : tensor<3x64x48xf32>
// CHECK: %[[COPY:.*]] = linalg.generic
// CHECK-SAME: indexing_maps = [#[[$I]], #[[$P]]], iterator_types = ["parallel", "parallel"]
// CHECK-SAME: ins(%{{.*}} : tensor<64x100xf32>)
// CHECK: linalg.generic
// CHECK-SAME: ins(%{{.*}}, %[[COPY]] : tensor<8x64xf32>, tensor<3x64x48xf32>)
func.func @panels(%x: tensor<8x64xf32>, %w: tensor<64x100xf32>) -> tensor<8x100xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x100xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x100xf32>) -> tensor<8x100xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      tile.task = 2 : i64, tile.nest = 4 : i64,
      tile.layouts = [unit, #tile.layout<perm = [1, 0], inner = [1], tiles = [48]>],
      tile.pack_rtiles = [unit, #tile.rtile<l2 = [64, 100], register = [1, 48], order = [0, 1]>]}
      ins(%x, %w : tensor<8x64xf32>, tensor<64x100xf32>) outs(%f : tensor<8x100xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<8x100xf32>
  return %y : tensor<8x100xf32>
}

// What the reader's task gathers is gathered into its packed place: one nest, of the copy's tiles; but not where a
// tile of the copy has several rows, each of an index of its own.
// CHECK-LABEL: func.func @gathered
// CHECK: %[[JOIN:.*]] = linalg.generic
// CHECK-NOT: tile.rtile
// CHECK-SAME: tile.nest = 3 : i64, tile.task = 2 : i64
// CHECK: tensor.extract
// CHECK: %[[COPY:.*]] = linalg.generic
// CHECK-SAME: ins(%[[JOIN]] : tensor<64x100xf32>)
// CHECK-SAME: tile.nest = 3 : i64, tile.rtile = #tile.rtile<l2 = [64, 100], register = [1, 48], order = [0, 1]>
// CHECK: linalg.generic
// CHECK-SAME: ins(%{{.*}}, %[[COPY]] : tensor<8x64xf32>, tensor<3x64x48xf32>)
// CHECK: %[[OTHER:.*]] = linalg.generic
// CHECK-SAME: tile.nest = 1 : i64, tile.rtile = #tile.rtile<l2 = [64, 100], register = [1, 64], order = [0, 1]>
// CHECK: linalg.generic
// CHECK-SAME: ins(%[[OTHER]] : tensor<64x100xf32>)
// CHECK-SAME: tile.nest = {{[5-9]}} : i64
#t = affine_map<(k, n) -> (k, n)>
func.func @gathered(%x: tensor<8x64xf32>, %table: tensor<99x100xf32>) -> (tensor<8x100xf32>, tensor<8x100xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x100xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x100xf32>) -> tensor<8x100xf32>
  %j = tensor.empty() : tensor<64x100xf32>
  %w = linalg.generic {indexing_maps = [#t], iterator_types = ["parallel", "parallel"],
      tile.task = 2 : i64, tile.nest = 3 : i64,
      tile.rtile = #tile.rtile<l2 = [64, 100], register = [1, 64], order = [0, 1]>}
      outs(%j : tensor<64x100xf32>) {
  ^bb0(%o: f32):
    %c35 = arith.constant 35 : index
    %k = linalg.index 0 : index
    %at = arith.addi %k, %c35 : index
    %n = linalg.index 1 : index
    %v = tensor.extract %table[%at, %n] : tensor<99x100xf32>
    linalg.yield %v : f32
  } -> tensor<64x100xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      tile.task = 2 : i64, tile.nest = 4 : i64,
      tile.layouts = [unit, #tile.layout<perm = [1, 0], inner = [1], tiles = [48]>],
      tile.pack_rtiles = [unit, #tile.rtile<l2 = [64, 100], register = [1, 48], order = [0, 1]>]}
      ins(%x, %w : tensor<8x64xf32>, tensor<64x100xf32>) outs(%f : tensor<8x100xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<8x100xf32>
  %w2 = linalg.generic {indexing_maps = [#t], iterator_types = ["parallel", "parallel"],
      tile.task = 1 : i64, tile.nest = 1 : i64,
      tile.rtile = #tile.rtile<l2 = [64, 100], register = [1, 64], order = [0, 1]>}
      outs(%j : tensor<64x100xf32>) {
  ^bb0(%o: f32):
    %c35 = arith.constant 35 : index
    %k = linalg.index 0 : index
    %at = arith.addi %k, %c35 : index
    %n = linalg.index 1 : index
    %v = tensor.extract %table[%at, %n] : tensor<99x100xf32>
    linalg.yield %v : f32
  } -> tensor<64x100xf32>
  %z = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      tile.task = 1 : i64, tile.nest = 2 : i64,
      tile.layouts = [unit, #tile.layout<perm = [1, 0], inner = [1], tiles = [48]>],
      tile.pack_rtiles = [unit, #tile.rtile<l2 = [64, 100], register = [16, 16], order = [0, 1]>]}
      ins(%x, %w2 : tensor<8x64xf32>, tensor<64x100xf32>) outs(%f : tensor<8x100xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<8x100xf32>
  return %y, %z : tensor<8x100xf32>, tensor<8x100xf32>
}

// Sizes of what is copied are those of its maker's start: they are known before the task runs.
// CHECK-LABEL: func.func @made_in_the_task
// CHECK-SAME: %{{.*}}: tensor<?x6xf32>, %{{.*}}: tensor<6xf32>, %[[N:.*]]: index)
// CHECK-NOT: tensor.dim
// CHECK: tensor.empty(%[[N]]) : tensor<6x?xf32>
// CHECK-NOT: tensor.dim
// CHECK: return
func.func @made_in_the_task(%x: tensor<?x6xf32>, %w: tensor<6xf32>, %n: index) -> tensor<?xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty(%n) : tensor<?x6xf32>
  %made = linalg.generic {indexing_maps = [#i, #i], iterator_types = ["parallel", "parallel"],
      tile.task = 0 : i64, tile.nest = 0 : i64}
      ins(%x : tensor<?x6xf32>) outs(%e : tensor<?x6xf32>) {
  ^bb0(%p: f32, %o: f32):
    %m = arith.mulf %p, %p : f32
    linalg.yield %m : f32
  } -> tensor<?x6xf32>
  %e1 = tensor.empty(%n) : tensor<?xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e1 : tensor<?xf32>) -> tensor<?xf32>
  %y = linalg.generic {indexing_maps = [#i, #second, #first], iterator_types = ["parallel", "reduction"],
      tile.task = 0 : i64, tile.nest = 1 : i64, tile.layouts = [#tile.layout<perm = [1, 0]>, unit],
      tile.pack_rtiles = [#tile.rtile<l2 = [6, 64], register = [6, 8], order = [0, 1]>, unit]}
      ins(%made, %w : tensor<?x6xf32>, tensor<6xf32>) outs(%f : tensor<?xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<?xf32>
  return %y : tensor<?xf32>
}
