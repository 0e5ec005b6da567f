// RUN: tile-opt %s --tile-plan-tiles --split-input-file --verify-diagnostics | FileCheck-22 %s
// RUN: tile-opt %s --tile-plan-tiles="lanes=8 registers=16 l2-bytes=524288" --split-input-file --verify-diagnostics \
// RUN:   | FileCheck-22 %s --check-prefix=AVX2

// Rows and lanes of the register tile follow from the machine; the weight is packed in panels of its lanes.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: @main
// CHECK: linalg.generic {{.*}}tile.layouts = [unit, #tile.layout<perm = [1, 0], inner = [1], tiles = [48]>]
// CHECK-SAME: tile.rtile = #tile.rtile<l2 = [24, 96, 64], register = [8, 48, 1]{{.*}} order = [0, 1, 2]
// AVX2-LABEL: @main
// AVX2: linalg.generic {{.*}}tile.layouts = [unit, #tile.layout<perm = [1, 0], inner = [1], tiles = [16]>]
// AVX2-SAME: tile.rtile = #tile.rtile<l2 = [24, 96, 64], register = [6, 16, 1]{{.*}} order = [0, 1, 2]
ml_program.global private @w(#ml_program.extern<tensor<64x96xf32>>) : tensor<64x96xf32>
func.func @main(%x: tensor<24x64xf32>) -> tensor<24x96xf32> {
  %w = ml_program.global_load_const @w : tensor<64x96xf32>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<24x96xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<24x96xf32>) -> tensor<24x96xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      tile.task = 0 : i64, tile.nest = 0 : i64, tile.rows = array<i64: 0>}
      ins(%x, %w : tensor<24x64xf32>, tensor<64x96xf32>) outs(%f : tensor<24x96xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<24x96xf32>
  return %y : tensor<24x96xf32>
}

// -----

// Products of bytes: the depth is cut into groups of 4 where the machine multiplies them at once.
// RUN: tile-opt %s --tile-plan-tiles="dots=i8,bf16" --split-input-file --verify-diagnostics \
// RUN:   | FileCheck-22 %s --check-prefix=DOTS
// RUN: tile-opt %s --tile-plan-tiles="dots=i8 matrix=i8,bf16" --split-input-file --verify-diagnostics \
// RUN:   | FileCheck-22 %s --check-prefix=MATRIX

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: @bytes
// CHECK: tile.rtile = #tile.rtile<l2 = [24, 96, 64], register = [8, 48, 1], unroll = [1, 1, 4], order = [0, 1, 2]>
// MATRIX-LABEL: @bytes
// MATRIX: linalg.generic {{.*}}tile.layouts = [unit, #tile.layout<perm = [1, 0], inner = [1, 0], tiles = [64, 4]>]
// MATRIX-SAME: tile.rtile = #tile.rtile<l2 = [24, 64, 64], mma = [16, 16, 64], register = [16, 64, 64],
// MATRIX-SAME: {{^}} order = [1, 0, 2]>
// DOTS-LABEL: @bytes
// DOTS: linalg.generic {{.*}}tile.layouts = [unit, #tile.layout<perm = [1, 0], inner = [1, 0], tiles = [48, 4]>]
// DOTS-SAME: tile.rtile = #tile.rtile<l2 = [24, 96, 64], mma = [1, 16, 4], register = [8, 48, 4], unroll = [1, 1, 4],
// DOTS-SAME: {{^}} order = [1, 0, 2]>
ml_program.global private @v(#ml_program.extern<tensor<64x96xi8>>) : tensor<64x96xi8>
func.func @bytes(%x: tensor<24x64xi8>) -> tensor<24x96xi32> {
  %w = ml_program.global_load_const @v : tensor<64x96xi8>
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<24x96xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<24x96xi32>) -> tensor<24x96xi32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      tile.task = 0 : i64, tile.nest = 0 : i64, tile.rows = array<i64: 0>}
      ins(%x, %w : tensor<24x64xi8>, tensor<64x96xi8>) outs(%f : tensor<24x96xi32>) {
  ^bb0(%p: i8, %q: i8, %o: i32):
    %u = arith.extui %p : i8 to i32
    %v = arith.extsi %q : i8 to i32
    %m = arith.muli %u, %v : i32
    %s = arith.addi %o, %m : i32
    linalg.yield %s : i32
  } -> tensor<24x96xi32>
  return %y : tensor<24x96xi32>
}

// -----

func.func @no_root(%e: tensor<64xf32>) -> tensor<64xf32> {
  // expected-error @below {{is in a task of which no operation has `tile.rows`}}
  %y = linalg.generic {indexing_maps = [affine_map<(i) -> (i)>], iterator_types = ["parallel"],
      tile.task = 0 : i64, tile.nest = 0 : i64} outs(%e : tensor<64xf32>) {
  ^bb0(%o: f32):
    linalg.yield %o : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}

// -----

// Many rows and lanes: lanes that fill half of the L2 cache stay near, under tasks of rows that follow each other.
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// MATRIX-LABEL: @many
// MATRIX: linalg.generic {{.*}}tile.grid = array<i64: 1, 0>
// MATRIX-SAME: tile.rtile = #tile.rtile<l2 = [512, 256, 1024], mma = [16, 16, 32], register = [32, 32, 32],
// MATRIX-SAME: {{^}} order = [0, 1, 2]>
// MATRIX-LABEL: @few
// MATRIX: linalg.generic {{.*}}tile.grid = array<i64: 0, 1>
// MATRIX-SAME: tile.rtile = #tile.rtile<l2 = [128, 64, 1024], mma = [16, 16, 32], register = [32, 32, 32],
// MATRIX-SAME: {{^}} order = [1, 0, 2]>
ml_program.global private @v(#ml_program.extern<tensor<1024x1024xbf16>>) : tensor<1024x1024xbf16>
func.func @many(%x: tensor<2048x1024xbf16>) -> tensor<2048x1024xf32> {
  %w = ml_program.global_load_const @v : tensor<1024x1024xbf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<2048x1024xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2048x1024xf32>) -> tensor<2048x1024xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      tile.task = 0 : i64, tile.nest = 0 : i64, tile.rows = array<i64: 0>}
      ins(%x, %w : tensor<2048x1024xbf16>, tensor<1024x1024xbf16>) outs(%f : tensor<2048x1024xf32>) {
  ^bb0(%p: bf16, %q: bf16, %o: f32):
    %g = arith.extf %p : bf16 to f32
    %h = arith.extf %q : bf16 to f32
    %r = arith.mulf %g, %h : f32
    %s = arith.addf %o, %r : f32
    linalg.yield %s : f32
  } -> tensor<2048x1024xf32>
  return %y : tensor<2048x1024xf32>
}
func.func @few(%x: tensor<128x1024xbf16>) -> tensor<128x1024xf32> {
  %w = ml_program.global_load_const @v : tensor<1024x1024xbf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<128x1024xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<128x1024xf32>) -> tensor<128x1024xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      tile.task = 0 : i64, tile.nest = 0 : i64, tile.rows = array<i64: 0>}
      ins(%x, %w : tensor<128x1024xbf16>, tensor<1024x1024xbf16>) outs(%f : tensor<128x1024xf32>) {
  ^bb0(%p: bf16, %q: bf16, %o: f32):
    %g = arith.extf %p : bf16 to f32
    %h = arith.extf %q : bf16 to f32
    %r = arith.mulf %g, %h : f32
    %s = arith.addf %o, %r : f32
    linalg.yield %s : f32
  } -> tensor<128x1024xf32>
  return %y : tensor<128x1024xf32>
}

// -----

// A norm over an image whose channels lie side by side: a task takes a line of them, never a part of one.

#whole = affine_map<(h, w, c) -> (h, w, c)>
#turned = affine_map<(c, h, w) -> (h, w, c)>
#channel = affine_map<(c, h, w) -> (c)>
#along = affine_map<(h, w, c) -> (c)>

// CHECK-LABEL: @lines
// CHECK: "reduction"]{{.*}}tile.rtile = #tile.rtile<l2 = [16, 56, 56], register = [16, 1, 1], order = [0, 1, 2]>
// CHECK: tile.rtile = #tile.rtile<l2 = [56, 56, 16], register = [1, 1, 16], order = [0, 1, 2]>
func.func @lines(%x: tensor<56x56x40xf32>) -> tensor<56x56x40xf32> {
  %zero = arith.constant 0.0 : f32
  %s = tensor.empty() : tensor<40xf32>
  %f = linalg.fill ins(%zero : f32) outs(%s : tensor<40xf32>) -> tensor<40xf32>
  %sum = linalg.generic {indexing_maps = [#turned, #channel], iterator_types = ["parallel", "reduction", "reduction"],
      tile.task = 0 : i64, tile.nest = 0 : i64, tile.rows = array<i64: 0>}
      ins(%x : tensor<56x56x40xf32>) outs(%f : tensor<40xf32>) {
  ^bb0(%p: f32, %o: f32):
    %a = arith.addf %o, %p : f32
    linalg.yield %a : f32
  } -> tensor<40xf32>
  %e = tensor.empty() : tensor<56x56x40xf32>
  %y = linalg.generic {indexing_maps = [#whole, #along, #whole], iterator_types = ["parallel", "parallel", "parallel"],
      tile.task = 0 : i64, tile.nest = 1 : i64, tile.rows = array<i64: 2>}
      ins(%x, %sum : tensor<56x56x40xf32>, tensor<40xf32>) outs(%e : tensor<56x56x40xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %a = arith.subf %p, %q : f32
    linalg.yield %a : f32
  } -> tensor<56x56x40xf32>
  return %y : tensor<56x56x40xf32>
}

// -----

#id = affine_map<(i) -> (i)>
func.func @two_nests(%x: tensor<64xf32>, %e: tensor<64xf32>) -> tensor<64xf32> {
  // expected-error @below {{is in a nest of which no operation has `tile.rows`}}
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"],
      tile.task = 0 : i64, tile.nest = 0 : i64} ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  %z = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"],
      tile.task = 0 : i64, tile.nest = 1 : i64, tile.rows = array<i64: 0>}
      ins(%y : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<64xf32>
  return %z : tensor<64xf32>
}
