// RUN: tile-opt %s --tile-set-target=target=nvidia-h200 --tile-transpose-operands --split-input-file | FileCheck-22 %s

// Weights of bytes get the loop of the sum as their last dimension.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-DAG: #[[$AGAINST:.*]] = affine_map<(d0, d1) -> (d1, d0)>
// CHECK-DAG: #[[$ALONG:.*]] = affine_map<(d0, d1, d2) -> (d1, d2)>
// CHECK-LABEL: @weights
// CHECK: %[[T:.*]] = linalg.generic {indexing_maps = [#[[$AGAINST]], #{{.*}}], {{.*}}} ins(%{{.*}} : tensor<256x64xi8>)
// CHECK-SAME: {{^}} outs(%{{.*}} : tensor<64x256xi8>)
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[$ALONG]], #{{.*}}], {{.*}}}
// CHECK-SAME: {{^}} ins(%{{.*}}, %[[T]] : tensor<128x256xi8>, tensor<64x256xi8>)
// CHECK-NOT: tile.slow
ml_program.global private @w(#ml_program.extern<tensor<256x64xi8>>) : tensor<256x64xi8>
func.func @weights(%x: tensor<128x256xi8>) -> tensor<128x64xi32> {
  %w = ml_program.global_load_const @w : tensor<256x64xi8>
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<128x64xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<128x64xi32>) -> tensor<128x64xi32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<128x256xi8>, tensor<256x64xi8>) outs(%f : tensor<128x64xi32>) {
  ^bb0(%p: i8, %q: i8, %o: i32):
    %u = arith.extsi %p : i8 to i32
    %v = arith.extsi %q : i8 to i32
    %m = arith.muli %u, %v : i32
    %t = arith.addi %o, %m : i32
    linalg.yield %t : i32
  } -> tensor<128x64xi32>
  return %y : tensor<128x64xi32>
}

// -----

// What a run brings stays as it is where turning it takes longer than it saves, with the reason.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: @small
// CHECK-NOT: outs(%{{.*}} : tensor<64x256xi8>)
// CHECK: tile.slow = "reads bytes of an operand one by one, against their order in memory:
// CHECK-SAME: {{^}} {{[0-9]+}} us are predicted, {{[0-9]+}} us with a kernel that turns it"
func.func @small(%x: tensor<128x256xi8>, %w: tensor<256x64xi8>) -> tensor<128x64xi32> {
  %zero = arith.constant 0 : i32
  %e = tensor.empty() : tensor<128x64xi32>
  %f = linalg.fill ins(%zero : i32) outs(%e : tensor<128x64xi32>) -> tensor<128x64xi32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<128x256xi8>, tensor<256x64xi8>) outs(%f : tensor<128x64xi32>) {
  ^bb0(%p: i8, %q: i8, %o: i32):
    %u = arith.extsi %p : i8 to i32
    %v = arith.extsi %q : i8 to i32
    %m = arith.muli %u, %v : i32
    %t = arith.addi %o, %m : i32
    linalg.yield %t : i32
  } -> tensor<128x64xi32>
  return %y : tensor<128x64xi32>
}

// -----

// Large ones are turned.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: @large
// CHECK: %[[T:.*]] = linalg.generic
// CHECK-SAME: ins(%{{.*}} : tensor<4096x4096xf8E4M3FN>) outs(%{{.*}} : tensor<4096x4096xf8E4M3FN>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[T]] : tensor<4096x4096xf8E4M3FN>, tensor<4096x4096xf8E4M3FN>)
// CHECK-NOT: tile.slow
func.func @large(%x: tensor<4096x4096xf8E4M3FN>, %w: tensor<4096x4096xf8E4M3FN>) -> tensor<4096x4096xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<4096x4096xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<4096x4096xf32>) -> tensor<4096x4096xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<4096x4096xf8E4M3FN>, tensor<4096x4096xf8E4M3FN>) outs(%f : tensor<4096x4096xf32>) {
  ^bb0(%p: f8E4M3FN, %q: f8E4M3FN, %o: f32):
    %u = arith.extf %p : f8E4M3FN to f32
    %v = arith.extf %q : f8E4M3FN to f32
    %m = arith.mulf %u, %v : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<4096x4096xf32>
  return %y : tensor<4096x4096xf32>
}

// -----

// A vector times weights with few columns: along the sum there are rows for more CTAs.

#a = affine_map<(n, k) -> (k)>
#b = affine_map<(n, k) -> (k, n)>
#c = affine_map<(n, k) -> (n)>

// CHECK-LABEL: @vector
// CHECK: %[[T:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<3072x256xf16>) outs(%{{.*}} : tensor<256x3072xf16>)
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[T]] : tensor<3072xf16>, tensor<256x3072xf16>)
ml_program.global private @w(#ml_program.extern<tensor<3072x256xf16>>) : tensor<3072x256xf16>
func.func @vector(%x: tensor<3072xf16>) -> tensor<256xf32> {
  %w = ml_program.global_load_const @w : tensor<3072x256xf16>
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<256xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<256xf32>) -> tensor<256xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "reduction"]}
      ins(%x, %w : tensor<3072xf16>, tensor<3072x256xf16>) outs(%f : tensor<256xf32>) {
  ^bb0(%p: f16, %q: f16, %o: f32):
    %u = arith.extf %p : f16 to f32
    %v = arith.extf %q : f16 to f32
    %m = arith.mulf %u, %v : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<256xf32>
  return %y : tensor<256xf32>
}

// -----

// Filters of a convolution of bytes, two of which read the same ones; channels become their last dimension, once.

#image = affine_map<(i, j, o, p, q, c) -> (i + p, j + q, c)>
#filter = affine_map<(i, j, o, p, q, c) -> (p, q, c, o)>
#result = affine_map<(i, j, o, p, q, c) -> (i, j, o)>

// CHECK: #[[$TURN:.*]] = affine_map<(d0, d1, d2, d3) -> (d0, d1, d3, d2)>
// CHECK: #[[$FILTER:.*]] = affine_map<(d0, d1, d2, d3, d4, d5) -> (d3, d4, d2, d5)>
// CHECK-LABEL: @convolutions
// CHECK: %[[W:.*]] = ml_program.global_load_const @w
// CHECK: %[[T:.*]] = linalg.generic {indexing_maps = [#[[$TURN]], #{{.*}}], {{.*}}} ins(%[[W]] : tensor<3x3x32x8xi8>)
// CHECK-SAME: {{^}} outs(%{{.*}} : tensor<3x3x8x32xi8>)
// CHECK: linalg.generic {indexing_maps = [#{{.*}}, #[[$FILTER]], #{{.*}}], {{.*}}}
// CHECK-SAME: {{^}} ins(%arg0, %[[T]] : tensor<16x16x32xi8>, tensor<3x3x8x32xi8>)
// CHECK-NOT: tensor<3x3x8x32xi8>) {
// CHECK: linalg.generic {{.*}} ins(%arg1, %[[T]] : tensor<16x16x32xi8>, tensor<3x3x8x32xi8>)
ml_program.global private @w(#ml_program.extern<tensor<3x3x32x8xi8>>) : tensor<3x3x32x8xi8>
func.func @convolutions(%x: tensor<16x16x32xi8>, %v: tensor<16x16x32xi8>)
    -> (tensor<14x14x8xi32>, tensor<14x14x8xi32>) {
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

// What stays: operands of 16 bits, which units transpose, and f32 that must stay f32. What may be rounded to tf32 is
// transposed.

#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// CHECK-LABEL: @others
// CHECK: %[[F:.*]] = ml_program.global_load_const @f
// CHECK: linalg.generic {{.*}} ins(%arg0, %[[F]] : tensor<16x64xf32>, tensor<64x32xf32>)
// CHECK: linalg.generic {{.*}} ins(%arg1, %{{.*}} : tensor<16x64xf16>, tensor<64x32xf16>)
// CHECK: %[[T:.*]] = linalg.generic {{.*}} ins(%[[F]] : tensor<64x32xf32>) outs(%{{.*}} : tensor<32x64xf32>)
// CHECK: linalg.generic {{.*}} ins(%arg0, %[[T]] : tensor<16x64xf32>, tensor<32x64xf32>) {{.*}}attrs = {tile.tf32}
ml_program.global private @f(#ml_program.extern<tensor<64x32xf32>>) : tensor<64x32xf32>
ml_program.global private @h(#ml_program.extern<tensor<64x32xf16>>) : tensor<64x32xf16>
func.func @others(%x: tensor<16x64xf32>, %hx: tensor<16x64xf16>, %s: tensor<16x32xf32>)
    -> (tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>) {
  %f = ml_program.global_load_const @f : tensor<64x32xf32>
  %h = ml_program.global_load_const @h : tensor<64x32xf16>
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
      ins(%x, %f : tensor<16x64xf32>, tensor<64x32xf32>) outs(%s : tensor<16x32xf32>) attrs = {tile.tf32} {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %n = arith.addf %o, %m : f32
    linalg.yield %n : f32
  } -> tensor<16x32xf32>
  return %0, %1, %2 : tensor<16x32xf32>, tensor<16x32xf32>, tensor<16x32xf32>
}
