// RUN: tile-opt %s --tile-plan-tiles --split-input-file | FileCheck-22 %s

// All columns are one tile: each tile of rows is new to the caches, and the next one is fetched meanwhile. More columns
// than that meet each tile of rows again, whose next one is fetched just so.

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: @few_columns
// CHECK: tile.prefetch = array<i64: 0>
// CHECK: register = [{{[0-9]+}}, 48, 1]
func.func @few_columns(%x: tensor<1024x512xf32>, %w: tensor<512x48xf32>) -> tensor<1024x48xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1024x48xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1024x48xf32>) -> tensor<1024x48xf32>
  %r = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "reduction"],
      tile.task = 0 : i64, tile.nest = 0 : i64, tile.rows = array<i64: 0>}
      ins(%x, %w : tensor<1024x512xf32>, tensor<512x48xf32>) outs(%f : tensor<1024x48xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.mulf %a, %b : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<1024x48xf32>
  return %r : tensor<1024x48xf32>
}

// -----

// One tile of rows has no next one.

#x = affine_map<(m, n, k) -> (m, k)>
#w = affine_map<(m, n, k) -> (k, n)>
#y = affine_map<(m, n, k) -> (m, n)>
// CHECK-LABEL: @one_tile
// CHECK-NOT: tile.prefetch
func.func @one_tile(%x: tensor<4x512xf32>, %w: tensor<512x48xf32>) -> tensor<4x48xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4x48xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4x48xf32>) -> tensor<4x48xf32>
  %r = linalg.generic {indexing_maps = [#x, #w, #y],
      iterator_types = ["parallel", "parallel", "reduction"],
      tile.task = 0 : i64, tile.nest = 0 : i64, tile.rows = array<i64: 0>}
      ins(%x, %w : tensor<4x512xf32>, tensor<512x48xf32>) outs(%f : tensor<4x48xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.mulf %a, %b : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<4x48xf32>
  return %r : tensor<4x48xf32>
}

// -----

// Two products in a task. Values of 512 numbers lie 2 KiB apart, in two sets of the L1 cache: they are copied.

#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#v = affine_map<(b, m, n, k) -> (b, k, n)>
#y = affine_map<(b, m, n, k) -> (b, m, n)>
// CHECK-LABEL: @far
// CHECK: tile.layouts = [unit, #tile.layout<perm = [1, 0, 2],
// CHECK: tile.layouts = [unit, #tile.layout<perm = [2, 0, 1],
func.func @far(%q: tensor<12x64x64xf32>, %k: tensor<12x320x64xf32>, %v: tensor<12x320x512xf32>)
    -> tensor<12x64x512xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<12x64x320xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<12x64x320xf32>) -> tensor<12x64x320xf32>
  %p = linalg.generic {indexing_maps = [#q, #k, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"],
      tile.task = 0 : i64, tile.nest = 0 : i64, tile.rows = array<i64: 0, 1>}
      ins(%q, %k : tensor<12x64x64xf32>, tensor<12x320x64xf32>) outs(%f : tensor<12x64x320xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.mulf %a, %b : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<12x64x320xf32>
  %g = tensor.empty() : tensor<12x64x512xf32>
  %h = linalg.fill ins(%zero : f32) outs(%g : tensor<12x64x512xf32>) -> tensor<12x64x512xf32>
  %r = linalg.generic {indexing_maps = [#q, #v, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"],
      tile.task = 0 : i64, tile.nest = 1 : i64, tile.rows = array<i64: 0, 1>, tile.block = 64 : i64}
      ins(%p, %v : tensor<12x64x320xf32>, tensor<12x320x512xf32>) outs(%h : tensor<12x64x512xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.mulf %a, %b : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<12x64x512xf32>
  return %r : tensor<12x64x512xf32>
}

// -----

// Those of 128 numbers are read as they lie.

#q = affine_map<(b, m, n, k) -> (b, m, k)>
#k = affine_map<(b, m, n, k) -> (b, n, k)>
#v = affine_map<(b, m, n, k) -> (b, k, n)>
#y = affine_map<(b, m, n, k) -> (b, m, n)>
// CHECK-LABEL: @near
// CHECK: tile.layouts = [unit, #tile.layout<perm = [1, 0, 2],
// CHECK-NOT: tile.layouts
func.func @near(%q: tensor<12x64x64xf32>, %k: tensor<12x320x64xf32>, %v: tensor<12x320x128xf32>)
    -> tensor<12x64x128xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<12x64x320xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<12x64x320xf32>) -> tensor<12x64x320xf32>
  %p = linalg.generic {indexing_maps = [#q, #k, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"],
      tile.task = 0 : i64, tile.nest = 0 : i64, tile.rows = array<i64: 0, 1>}
      ins(%q, %k : tensor<12x64x64xf32>, tensor<12x320x64xf32>) outs(%f : tensor<12x64x320xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.mulf %a, %b : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<12x64x320xf32>
  %g = tensor.empty() : tensor<12x64x128xf32>
  %h = linalg.fill ins(%zero : f32) outs(%g : tensor<12x64x128xf32>) -> tensor<12x64x128xf32>
  %r = linalg.generic {indexing_maps = [#q, #v, #y],
      iterator_types = ["parallel", "parallel", "parallel", "reduction"],
      tile.task = 0 : i64, tile.nest = 1 : i64, tile.rows = array<i64: 0, 1>, tile.block = 64 : i64}
      ins(%p, %v : tensor<12x64x320xf32>, tensor<12x320x128xf32>) outs(%h : tensor<12x64x128xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.mulf %a, %b : f32
    %t = arith.addf %o, %s : f32
    linalg.yield %t : f32
  } -> tensor<12x64x128xf32>
  return %r : tensor<12x64x128xf32>
}
