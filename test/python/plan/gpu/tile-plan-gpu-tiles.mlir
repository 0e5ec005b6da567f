// RUN: tile-opt %s --tile-set-target=target=nvidia-sm80 --tile-plan-gpu-tiles --split-input-file | FileCheck-22 %s
// RUN: tile-opt %s --tile-set-target=target=nvidia-h200 --tile-plan-gpu-tiles --split-input-file \
// RUN:   | FileCheck-22 %s --check-prefix=H200

// A large product: on an H200, two warpgroups of 64 rows with a third one that loads, 128 bytes of depth per step; a
// cluster of two tiles loads its lanes once.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: @main
// CHECK: tile.kernel = "product_4096x4096x4096", {{.*}}tile.padded, tile.prediction = {{.*}}bound = {{.*}}runner_up
// CHECK-SAME: tile.rtile = #tile.rtile<mma = [1, 1, 64], register = [128, 128, 64], shared = [128, 128, 4096],
// CHECK-SAME: {{^}} order = [0, 1, 2]>
// CHECK-SAME: tile.stages = 3 : i64, {{.*}}tile.warps = 8 : i64
// H200-LABEL: @main
// H200: tile.cluster = array<i64: 2, 1, 1>, {{.*}}tile.persistent = 1 : i64, tile.prediction = {{.*}}bound =
// H200-SAME: cluster = "2x1", {{.*}}other_cluster = "1x1"
// H200-SAME: tile.raster = 16 : i64
// H200-SAME: tile.rtile = #tile.rtile<mma = [1, 1, 64], register = [128, 256, 64], shared = [128, 256, 4096],
// H200-SAME: {{^}} order = [0, 1, 2]>
// H200-SAME: tile.specialized, tile.staged = 2 : i64, tile.stages = 4 : i64, {{.*}}tile.warps = 8 : i64
func.func @main(%x: tensor<4096x4096xbf16>, %w: tensor<4096x4096xbf16>) -> tensor<4096x4096xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096x4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"],
      tile.task = 0 : i64, tile.nest = 0 : i64, tile.rows = array<i64: 0, 1>}
      ins(%x, %w : tensor<4096x4096xbf16>, tensor<4096x4096xbf16>) outs(%f : tensor<4096x4096xf32>) {
  ^bb0(%p: bf16, %q: bf16, %o: f32):
    %pw = arith.extf %p : bf16 to f32
    %qw = arith.extf %q : bf16 to f32
    %m = arith.mulf %pw, %qw : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<4096x4096xf32>
  return %y : tensor<4096x4096xf32>
}

// -----

// A convolution over channels that lie side by side: rows are places of the image, the depth is that of the channels.

#image = affine_map<(n, h, w, f, r, s, c) -> (n, h + r, w + s, c)>
#filter = affine_map<(n, h, w, f, r, s, c) -> (f, r, s, c)>
#result = affine_map<(n, h, w, f, r, s, c) -> (n, h, w, f)>

// CHECK-LABEL: @conv
// CHECK: tile.rtile = #tile.rtile<mma = [1, 1, 1, 1, 1, 1, [[D:[0-9]+]]],
// CHECK-SAME: {{^}} register = [1, {{[0-9]+}}, {{[0-9]+}}, {{[0-9]+}}, 1, 1, [[D]]]
// CHECK-SAME: order = [0, 1, 2, 3, 4, 5, 6]>
// H200-LABEL: @conv
func.func @conv(%x: tensor<1x30x30x64xf16>, %k: tensor<64x3x3x64xf16>) -> tensor<1x28x28x64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<1x28x28x64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<1x28x28x64xf32>) -> tensor<1x28x28x64xf32>
  %y = linalg.generic {indexing_maps = [#image, #filter, #result],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"],
      tile.task = 0 : i64, tile.nest = 0 : i64, tile.rows = array<i64: 0, 1, 2, 3>}
      ins(%x, %k : tensor<1x30x30x64xf16>, tensor<64x3x3x64xf16>) outs(%f : tensor<1x28x28x64xf32>) {
  ^bb0(%p: f16, %q: f16, %o: f32):
    %pw = arith.extf %p : f16 to f32
    %qw = arith.extf %q : f16 to f32
    %m = arith.mulf %pw, %qw : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<1x28x28x64xf32>
  return %y : tensor<1x28x28x64xf32>
}

// -----

// A matrix times a vector is a reduction: its rows are whole in registers.

#a = affine_map<(n, k) -> (n, k)>
#b = affine_map<(n, k) -> (k)>
#c = affine_map<(n, k) -> (n)>

// CHECK-LABEL: @vector
// CHECK: tile.rtile = #tile.rtile<register = [1, 8192], shared = [1, 8192], order = [0, 1]>
// H200-LABEL: @vector
func.func @vector(%x: tensor<64x8192xf32>, %v: tensor<8192xf32>) -> tensor<64xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "reduction"],
      tile.task = 0 : i64, tile.nest = 0 : i64, tile.rows = array<i64: 0>}
      ins(%x, %v : tensor<64x8192xf32>, tensor<8192xf32>) outs(%f : tensor<64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %s = arith.addf %o, %m : f32
    linalg.yield %s : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}

// -----

// A product that reads exponentials of another task says so.

// CHECK-LABEL: @apart
// CHECK: math.exp
// CHECK: linalg.generic
// CHECK-SAME: tile.slow = "reads a softmax from memory: it is shared by too few tasks"
#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#x = affine_map<(i, n, j) -> (i, j)>
#v = affine_map<(i, n, j) -> (j, n)>
#y = affine_map<(i, n, j) -> (i, n)>
func.func @apart(%s: tensor<64x64xf32>, %v: tensor<64x8xf32>) -> tensor<64x8xf32> {
  %zero = arith.constant 0.0 : f32
  %low = arith.constant 0xFF800000 : f32
  %r = tensor.empty() : tensor<64xf32>
  %g = linalg.fill ins(%low : f32) outs(%r : tensor<64xf32>) -> tensor<64xf32>
  %m = linalg.generic {indexing_maps = [#ij, #i], iterator_types = ["parallel", "reduction"],
      tile.task = 0 : i64, tile.nest = 0 : i64, tile.rows = array<i64: 0>}
      ins(%s : tensor<64x64xf32>) outs(%g : tensor<64xf32>) {
  ^bb0(%a: f32, %o: f32):
    %t = arith.maximumf %o, %a : f32
    linalg.yield %t : f32
  } -> tensor<64xf32>
  %e = tensor.empty() : tensor<64x64xf32>
  %p = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"],
      tile.task = 0 : i64, tile.nest = 1 : i64, tile.rows = array<i64: 0>}
      ins(%s, %m : tensor<64x64xf32>, tensor<64xf32>) outs(%e : tensor<64x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %t = math.exp %d : f32
    linalg.yield %t : f32
  } -> tensor<64x64xf32>
  %h = tensor.empty() : tensor<64x8xf32>
  %k = linalg.fill ins(%zero : f32) outs(%h : tensor<64x8xf32>) -> tensor<64x8xf32>
  %z = linalg.generic {indexing_maps = [#x, #v, #y], iterator_types = ["parallel", "parallel", "reduction"],
      tile.task = 1 : i64, tile.nest = 2 : i64, tile.rows = array<i64: 0, 1>}
      ins(%p, %v : tensor<64x64xf32>, tensor<64x8xf32>) outs(%k : tensor<64x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %q = arith.mulf %a, %b : f32
    %t = arith.addf %o, %q : f32
    linalg.yield %t : f32
  } -> tensor<64x8xf32>
  return %z : tensor<64x8xf32>
}
