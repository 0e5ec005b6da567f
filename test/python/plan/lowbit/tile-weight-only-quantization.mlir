// RUN: tile-opt %s -split-input-file --tile-weight-only-quantization="lanes=16 rate=3.7 memory-rate=30" | FileCheck %s

// Scales of blocks, zero points of rows of the result: the reduced loop is split into blocks, in which both are the
// same. The weights are read as they are stored; their bytes are not known here, so they may need all 8 bits.

// CHECK-DAG: #[[$X:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-DAG: #[[$W:.*]] = affine_map<(d0, d1, d2) -> (d1, d2, d0)>
// CHECK-DAG: #[[$S:.*]] = affine_map<(d0, d1, d2) -> (d1, d0)>
// CHECK-DAG: #[[$Z:.*]] = affine_map<(d0, d1, d2) -> (d0)>
// CHECK-LABEL: @row
// CHECK-SAME: %[[A:.*]]: tensor<256xf32>
// CHECK: %[[BYTES:.*]] = ml_program.global_load_const @w
// CHECK: %[[SCALES:.*]] = ml_program.global_load_const @s
// CHECK: %[[ZEROS:.*]] = ml_program.global_load_const @z
// CHECK-NOT: sparse_tile.decode
// CHECK: %[[PARTS:.*]] = tensor.expand_shape %[[A]] {{.*}} output_shape [8, 32]
// CHECK: %[[BLOCKS:.*]] = tensor.expand_shape %[[BYTES]] {{.*}} output_shape [8, 32, 64]
// CHECK: linalg.generic {indexing_maps = [#[[$X]], #[[$W]], #[[$S]], #[[$Z]], #[[$Z]]],
// CHECK-SAME: {{^}} iterator_types = ["parallel", "reduction", "reduction"]}
// CHECK-SAME: ins(%[[PARTS]], %[[BLOCKS]], %[[SCALES]], %[[ZEROS]]
// CHECK-SAME: tile.packed = {bits = 8 : i64, block = 32 : i64, inner = 1 : i64, ns = {{[0-9]+}} : i64,
// CHECK-SAME: {{^}} wide_ns = {{[0-9]+}} : i64}
// CHECK: ^bb0(%[[XK:.*]]: f32, %[[Q:.*]]: i8, %[[SK:.*]]: f32, %[[ZK:.*]]: i8, %[[ACC:.*]]: f32):
// CHECK: %[[F:.*]] = arith.uitofp %[[Q]] : i8 to f32
// CHECK: %[[ZI:.*]] = arith.extui %[[ZK]] : i8 to i32
// CHECK: %[[ZF:.*]] = arith.sitofp %[[ZI]] : i32 to f32
// CHECK: %[[C:.*]] = arith.subf %[[F]], %[[ZF]]
// CHECK: %[[V:.*]] = arith.mulf %[[C]], %[[SK]]
// CHECK: %[[M:.*]] = arith.mulf %[[XK]], %[[V]]
// CHECK: arith.addf %[[ACC]], %[[M]]
#id = affine_map<(i, j) -> (i, j)>
#s = affine_map<(i, j) -> (i floordiv 32, j)>
#z = affine_map<(i, j) -> (j)>
#a = affine_map<(n, k) -> (k)>
#b = affine_map<(n, k) -> (k, n)>
#c = affine_map<(n, k) -> (n)>
ml_program.global private @w(#ml_program.extern<tensor<256x64xi8>>) : tensor<256x64xi8>
ml_program.global private @s(#ml_program.extern<tensor<8x64xf32>>) : tensor<8x64xf32>
ml_program.global private @z(#ml_program.extern<tensor<64xi8>>) : tensor<64xi8>
func.func @row(%x: tensor<256xf32>) -> tensor<64xf32> {
  %w = ml_program.global_load_const @w : tensor<256x64xi8>
  %s = ml_program.global_load_const @s : tensor<8x64xf32>
  %zp = ml_program.global_load_const @z : tensor<64xi8>
  %zero = arith.constant 0.0 : f32
  %d = tensor.empty() : tensor<256x64xf32>
  %r = linalg.generic {indexing_maps = [#s, #id], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<8x64xf32>) outs(%d : tensor<256x64xf32>) {
  ^bb0(%p: f32, %o: f32):
    linalg.yield %p : f32
  } -> tensor<256x64xf32>
  %g = linalg.generic {indexing_maps = [#id, #id, #z, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w, %r, %zp : tensor<256x64xi8>, tensor<256x64xf32>, tensor<64xi8>) outs(%d : tensor<256x64xf32>) {
  ^bb0(%p: i8, %q: f32, %n: i8, %o: f32):
    %v = sparse_tile.decode unsigned %p zero_point %n : i8 scale %q : f32 : i8 to f32
    linalg.yield %v : f32
  } -> tensor<256x64xf32>
  %e = tensor.empty() : tensor<64xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<64xf32>) -> tensor<64xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "reduction"]}
      ins(%x, %g : tensor<256xf32>, tensor<256x64xf32>) outs(%f : tensor<64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<64xf32>
  return %y : tensor<64xf32>
}

// -----

// 512 rows meet each weight: it is widened once, and a remark will tell that.

// CHECK-LABEL: @many
// CHECK: sparse_tile.decode
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%{{.*}}, %{{.*}} : tensor<512x256xf32>, tensor<256x64xf32>)
// CHECK-SAME: tile.widened = "weights of 8 bits in f32, 4 times the memory: each meets 512 rows,
// CHECK-SAME: {{^}} and widening it for these again and again would take {{1\.[0-9]}} times as long"

// Rows that a run brings may be one.

// CHECK-LABEL: @open
// CHECK: linalg.generic
// CHECK-SAME: "reduction"]} ins(%{{.*}}, %{{.*}}, %{{.*}} : tensor<?x256xf32>, tensor<256x64xi8>, tensor<64xf32>)
// CHECK-SAME: tile.packed

// Neighbouring lanes would share a scale.

// CHECK-LABEL: @lanes
// CHECK: linalg.generic {{.*}}"reduction"]} ins(%{{.*}}, %{{.*}} : tensor<2x256xf32>, tensor<256x64xf32>)
// CHECK-SAME: tile.widened = "small weights in f32: neighbours along a row of the result share scales, and are lanes"
#id = affine_map<(i, j) -> (i, j)>
#n = affine_map<(i, j) -> (j)>
#l = affine_map<(i, j) -> (i, j floordiv 32)>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
ml_program.global private @w(#ml_program.extern<tensor<256x64xi8>>) : tensor<256x64xi8>
ml_program.global private @s(#ml_program.extern<tensor<64xf32>>) : tensor<64xf32>
ml_program.global private @t(#ml_program.extern<tensor<256x2xf32>>) : tensor<256x2xf32>
func.func @many(%x: tensor<512x256xf32>, %e: tensor<512x64xf32>) -> tensor<512x64xf32> {
  %w = ml_program.global_load_const @w : tensor<256x64xi8>
  %s = ml_program.global_load_const @s : tensor<64xf32>
  %d = tensor.empty() : tensor<256x64xf32>
  %g = linalg.generic {indexing_maps = [#id, #n, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w, %s : tensor<256x64xi8>, tensor<64xf32>) outs(%d : tensor<256x64xf32>) {
  ^bb0(%p: i8, %q: f32, %o: f32):
    %v = sparse_tile.decode %p scale %q : f32 : i8 to f32
    linalg.yield %v : f32
  } -> tensor<256x64xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %g : tensor<512x256xf32>, tensor<256x64xf32>) outs(%e : tensor<512x64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<512x64xf32>
  return %y : tensor<512x64xf32>
}
func.func @open(%x: tensor<?x256xf32>, %e: tensor<?x64xf32>) -> tensor<?x64xf32> {
  %w = ml_program.global_load_const @w : tensor<256x64xi8>
  %s = ml_program.global_load_const @s : tensor<64xf32>
  %d = tensor.empty() : tensor<256x64xf32>
  %g = linalg.generic {indexing_maps = [#id, #n, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w, %s : tensor<256x64xi8>, tensor<64xf32>) outs(%d : tensor<256x64xf32>) {
  ^bb0(%p: i8, %q: f32, %o: f32):
    %v = sparse_tile.decode %p scale %q : f32 : i8 to f32
    linalg.yield %v : f32
  } -> tensor<256x64xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %g : tensor<?x256xf32>, tensor<256x64xf32>) outs(%e : tensor<?x64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<?x64xf32>
  return %y : tensor<?x64xf32>
}
func.func @lanes(%x: tensor<2x256xf32>, %e: tensor<2x64xf32>) -> tensor<2x64xf32> {
  %w = ml_program.global_load_const @w : tensor<256x64xi8>
  %s = ml_program.global_load_const @t : tensor<256x2xf32>
  %d = tensor.empty() : tensor<256x64xf32>
  %g = linalg.generic {indexing_maps = [#id, #l, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w, %s : tensor<256x64xi8>, tensor<256x2xf32>) outs(%d : tensor<256x64xf32>) {
  ^bb0(%p: i8, %q: f32, %o: f32):
    %v = sparse_tile.decode %p scale %q : f32 : i8 to f32
    linalg.yield %v : f32
  } -> tensor<256x64xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %g : tensor<2x256xf32>, tensor<256x64xf32>) outs(%e : tensor<2x64xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<2x64xf32>
  return %y : tensor<2x64xf32>
}
