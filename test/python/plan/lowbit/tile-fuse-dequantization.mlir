// RUN: tile-opt %s --tile-set-target=target=nvidia-h200 --tile-fuse-dequantization --split-input-file | FileCheck-22 %s

// Functions are computed once, at compile time.

#id = affine_map<(i, j) -> (i, j)>
#a = affine_map<(n, k) -> (k)>
#b = affine_map<(n, k) -> (k, n)>
#c = affine_map<(n, k) -> (n)>

// CHECK-LABEL: @wide
// CHECK: %[[G:.*]] = linalg.generic
// CHECK: math.exp
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[G]] : tensor<512xf32>, tensor<512x512xf32>)
ml_program.global private @w(#ml_program.extern<tensor<512x512xf16>>) : tensor<512x512xf16>
func.func @wide(%x: tensor<512xf32>) -> tensor<512xf32> {
  %w = ml_program.global_load_const @w : tensor<512x512xf16>
  %zero = arith.constant 0.0 : f32
  %d = tensor.empty() : tensor<512x512xf32>
  %g = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w : tensor<512x512xf16>) outs(%d : tensor<512x512xf32>) {
  ^bb0(%p: f16, %o: f32):
    %u = arith.extf %p : f16 to f32
    %v = math.exp %u : f32
    linalg.yield %v : f32
  } -> tensor<512x512xf32>
  %e = tensor.empty() : tensor<512xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<512xf32>) -> tensor<512xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "reduction"]}
      ins(%x, %g : tensor<512xf32>, tensor<512x512xf32>) outs(%f : tensor<512xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<512xf32>
  return %y : tensor<512xf32>
}

// -----

// Several rows: a product of tiles, its factors first, weights along the sum, in f16 what has its bits.

#id = affine_map<(i, j) -> (i, j)>
#s = affine_map<(i, j) -> (j)>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: @rows
// CHECK: %[[T:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<4096x4096xi8>)
// CHECK: linalg.generic
// CHECK-SAME: ins(%arg0, %[[T]], %{{.*}} : tensor<8x4096xf16>, tensor<4096x4096xi8>, tensor<4096xf16>)
// CHECK-SAME: attrs = {tile.packed}
// CHECK-NEXT: ^bb0(%[[X:.*]]: f16, %[[B:.*]]: i8, %[[S:.*]]: f16, %[[O:.*]]: f32):
// CHECK: %[[U:.*]] = arith.sitofp %[[B]] : i8 to f16
// CHECK: %[[V:.*]] = arith.mulf %[[U]], %[[S]] : f16
// CHECK: arith.extf %[[V]] : f16 to f32
ml_program.global private @w(#ml_program.extern<tensor<4096x4096xi8>>) : tensor<4096x4096xi8>
ml_program.global private @s(#ml_program.extern<tensor<4096xf16>>) : tensor<4096xf16>
func.func @rows(%x: tensor<8x4096xf16>) -> tensor<8x4096xf32> {
  %w = ml_program.global_load_const @w : tensor<4096x4096xi8>
  %s = ml_program.global_load_const @s : tensor<4096xf16>
  %zero = arith.constant 0.0 : f32
  %d = tensor.empty() : tensor<4096x4096xf16>
  %g = linalg.generic {indexing_maps = [#id, #s, #id], iterator_types = ["parallel", "parallel"]}
      ins(%w, %s : tensor<4096x4096xi8>, tensor<4096xf16>) outs(%d : tensor<4096x4096xf16>) {
  ^bb0(%p: i8, %q: f16, %o: f16):
    %t = sparse_tile.decode %p scale %q : f16 : i8 to f16
    linalg.yield %t : f16
  } -> tensor<4096x4096xf16>
  %e = tensor.empty() : tensor<8x4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x4096xf32>) -> tensor<8x4096xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %g : tensor<8x4096xf16>, tensor<4096x4096xf16>) outs(%f : tensor<8x4096xf32>) {
  ^bb0(%p: f16, %q: f16, %o: f32):
    %u = arith.extf %p : f16 to f32
    %v = arith.extf %q : f16 to f32
    %m = arith.mulf %u, %v : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<8x4096xf32>
  return %y : tensor<8x4096xf32>
}

// -----

// Scales and zero points of blocks of 128 terms: the sum is one over blocks and places in them.

#id = affine_map<(b, i, j) -> (b, i, j)>
#s = affine_map<(b, i, j) -> (b, j)>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: @blocks
// CHECK: %[[X:.*]] = tensor.expand_shape %arg0 {{.*}} : tensor<8x4096xf32> into tensor<8x32x128xf32>
// CHECK: linalg.generic
// CHECK-SAME: iterator_types = ["parallel", "parallel", "reduction", "reduction"]}
// CHECK-SAME: {{^}} ins(%[[X]], %{{.*}}, %{{.*}}, %{{.*}} : tensor<8x32x128xf32>, tensor<32x128x4096xi8>,
// CHECK-SAME: {{^}} tensor<32x4096xf32>, tensor<32x4096xi8>) {{.*}} attrs = {tile.packed}
// CHECK-NEXT: ^bb0(%{{.*}}: f32, %[[B:.*]]: i8, %[[S:.*]]: f32, %[[Z:.*]]: i8, %{{.*}}: f32):
// CHECK-DAG: %[[U:.*]] = arith.uitofp %[[B]] : i8 to f32
// CHECK-DAG: %[[V:.*]] = arith.uitofp %[[Z]] : i8 to f32
// CHECK: %[[D:.*]] = arith.subf %[[U]], %[[V]] : f32
// CHECK: arith.mulf %[[D]], %[[S]] : f32
ml_program.global private @w(#ml_program.extern<tensor<32x128x4096xi8>>) : tensor<32x128x4096xi8>
ml_program.global private @s(#ml_program.extern<tensor<32x4096xf32>>) : tensor<32x4096xf32>
ml_program.global private @z(#ml_program.extern<tensor<32x4096xi8>>) : tensor<32x4096xi8>
func.func @blocks(%x: tensor<8x4096xf32>) -> tensor<8x4096xf32> {
  %w = ml_program.global_load_const @w : tensor<32x128x4096xi8>
  %s = ml_program.global_load_const @s : tensor<32x4096xf32>
  %z = ml_program.global_load_const @z : tensor<32x4096xi8>
  %zero = arith.constant 0.0 : f32
  %d = tensor.empty() : tensor<32x128x4096xf32>
  %g = linalg.generic {indexing_maps = [#id, #s, #s, #id], iterator_types = ["parallel", "parallel", "parallel"]}
      ins(%w, %s, %z : tensor<32x128x4096xi8>, tensor<32x4096xf32>, tensor<32x4096xi8>)
          outs(%d : tensor<32x128x4096xf32>) {
  ^bb0(%p: i8, %q: f32, %r: i8, %o: f32):
    %v = sparse_tile.decode unsigned %p zero_point %r : i8 scale %q : f32 : i8 to f32
    linalg.yield %v : f32
  } -> tensor<32x128x4096xf32>
  %h = tensor.collapse_shape %g [[0, 1], [2]] : tensor<32x128x4096xf32> into tensor<4096x4096xf32>
  %e = tensor.empty() : tensor<8x4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8x4096xf32>) -> tensor<8x4096xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %h : tensor<8x4096xf32>, tensor<4096x4096xf32>) outs(%f : tensor<8x4096xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<8x4096xf32>
  return %y : tensor<8x4096xf32>
}
