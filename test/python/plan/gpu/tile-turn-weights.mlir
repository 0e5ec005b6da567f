// RUN: tile-opt %s --tile-turn-weights --split-input-file | FileCheck-22 %s

// Filters of a convolution of bytes, two of which read the same ones; channels become their last dimension, once.

#image = affine_map<(i, j, o, p, q, c) -> (i + p, j + q, c)>
#filter = affine_map<(i, j, o, p, q, c) -> (p, q, c, o)>
#result = affine_map<(i, j, o, p, q, c) -> (i, j, o)>

// CHECK: #[[$TURN:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3, d2)>
// CHECK: #[[$FILTER:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d3, d4, d2, d5)>
// CHECK-LABEL: @convolutions
// CHECK: %[[W:.*]] = ml_program.global_load_const @w
// CHECK: %[[T:.*]] = linalg.generic {indexing_maps = [#[[$TURN]], #{{.*}}], {{.*}}} ins(%[[W]] : tensor<3x3x32x8xi8>) outs(%{{.*}} : tensor<3x3x8x32xi8>)
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[$FILTER]], #{{.*}}], {{.*}}} ins(%arg0, %[[T]] : tensor<16x16x32xi8>, tensor<3x3x8x32xi8>)
// CHECK-NOT: tensor<3x3x8x32xi8>) {
// CHECK: linalg.generic {{.*}} ins(%arg1, %[[T]] : tensor<16x16x32xi8>, tensor<3x3x8x32xi8>)
ml_program.global private @w(#ml_program.extern<tensor<3x3x32x8xi8>>) : tensor<3x3x32x8xi8>
func.func @convolutions(%x: tensor<16x16x32xi8>, %v: tensor<16x16x32xi8>) -> (tensor<14x14x8xi32>, tensor<14x14x8xi32>) {
  %w = ml_program.global_load_const @w : tensor<3x3x32x8xi8>
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<14x14x8xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<14x14x8xi32>) -> tensor<14x14x8xi32>
  %y = linalg.generic {indexing_maps = [#image, #filter, #result],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%x, %w : tensor<16x16x32xi8>, tensor<3x3x32x8xi8>) outs(%f : tensor<14x14x8xi32>) {
  ^bb0(%a: i8, %b: i8, %o: i32):
    %u = arith.extui %a : i8 to i32
    %s = arith.extsi %b : i8 to i32
    %m = arith.muli %u, %s : i32
    %t = arith.addi %o, %m : i32
    linalg.yield %t : i32
  } -> tensor<14x14x8xi32>
  %z = linalg.generic {indexing_maps = [#image, #filter, #result],
      iterator_types = ["parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]}
      ins(%v, %w : tensor<16x16x32xi8>, tensor<3x3x32x8xi8>) outs(%f : tensor<14x14x8xi32>) {
  ^bb0(%a: i8, %b: i8, %o: i32):
    %u = arith.extui %a : i8 to i32
    %s = arith.extsi %b : i8 to i32
    %m = arith.muli %u, %s : i32
    %t = arith.addi %o, %m : i32
    linalg.yield %t : i32
  } -> tensor<14x14x8xi32>
  return %y, %z : tensor<14x14x8xi32>, tensor<14x14x8xi32>
}

// -----

// What stays: factors of 16 bits, which units turn; f32 that must stay f32; a factor of the run; one row, which is read
// as a stream. What may be rounded to tf32 is turned.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: @others
// CHECK: %[[F:.*]] = ml_program.global_load_const @f
// CHECK: linalg.generic {{.*}} ins(%arg0, %[[F]] : tensor<16x64xf32>, tensor<64x32xf32>)
// CHECK: linalg.generic {{.*}} ins(%arg1, %{{.*}} : tensor<16x64xf16>, tensor<64x32xf16>)
// CHECK: linalg.generic {{.*}} ins(%arg2, %arg3 : tensor<16x64xi8>, tensor<64x32xi8>)
// CHECK: linalg.generic {{.*}} ins(%arg4, %{{.*}} : tensor<1x64xi8>, tensor<64x32xi8>)
// CHECK: %[[T:.*]] = linalg.generic {{.*}} ins(%[[F]] : tensor<64x32xf32>) outs(%{{.*}} : tensor<32x64xf32>)
// CHECK: linalg.generic {{.*}} ins(%arg0, %[[T]] : tensor<16x64xf32>, tensor<32x64xf32>) {{.*}}attrs = {tile.tf32}
ml_program.global private @f(#ml_program.extern<tensor<64x32xf32>>) : tensor<64x32xf32>
ml_program.global private @h(#ml_program.extern<tensor<64x32xf16>>) : tensor<64x32xf16>
ml_program.global private @i(#ml_program.extern<tensor<64x32xi8>>) : tensor<64x32xi8>
func.func @others(%x: tensor<16x64xf32>, %hx: tensor<16x64xf16>, %ix: tensor<16x64xi8>, %iw: tensor<64x32xi8>,
                  %row: tensor<1x64xi8>, %s: tensor<16x32xf32>, %t: tensor<16x32xi32>, %r: tensor<1x32xi32>)
    -> (tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xi32>, tensor<1x32xi32>, tensor<16x32xf32>) {
  %f = ml_program.global_load_const @f : tensor<64x32xf32>
  %h = ml_program.global_load_const @h : tensor<64x32xf16>
  %i = ml_program.global_load_const @i : tensor<64x32xi8>
  %0 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %f : tensor<16x64xf32>, tensor<64x32xf32>) outs(%s : tensor<16x32xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %n = arith.addf %o, %m : f32
    linalg.yield %n : f32
  } -> tensor<16x32xf32>
  %1 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%hx, %h : tensor<16x64xf16>, tensor<64x32xf16>) outs(%s : tensor<16x32xf32>) {
  ^bb0(%p: f16, %q: f16, %o: f32):
    %u = arith.extf %p : f16 to f32
    %v = arith.extf %q : f16 to f32
    %m = arith.mulf %u, %v : f32
    %n = arith.addf %o, %m : f32
    linalg.yield %n : f32
  } -> tensor<16x32xf32>
  %2 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%ix, %iw : tensor<16x64xi8>, tensor<64x32xi8>) outs(%t : tensor<16x32xi32>) {
  ^bb0(%p: i8, %q: i8, %o: i32):
    %u = arith.extui %p : i8 to i32
    %v = arith.extsi %q : i8 to i32
    %m = arith.muli %u, %v : i32
    %n = arith.addi %o, %m : i32
    linalg.yield %n : i32
  } -> tensor<16x32xi32>
  %3 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%row, %i : tensor<1x64xi8>, tensor<64x32xi8>) outs(%r : tensor<1x32xi32>) {
  ^bb0(%p: i8, %q: i8, %o: i32):
    %u = arith.extui %p : i8 to i32
    %v = arith.extsi %q : i8 to i32
    %m = arith.muli %u, %v : i32
    %n = arith.addi %o, %m : i32
    linalg.yield %n : i32
  } -> tensor<1x32xi32>
  %4 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %f : tensor<16x64xf32>, tensor<64x32xf32>) outs(%s : tensor<16x32xf32>) attrs = {tile.tf32} {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %n = arith.addf %o, %m : f32
    linalg.yield %n : f32
  } -> tensor<16x32xf32>
  return %0, %1, %2, %3, %4 : tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xi32>, tensor<1x32xi32>, tensor<16x32xf32>
}
