// RUN: tile-opt %s --tile-approximate-exponentials --split-input-file | FileCheck-22 %s
// RUN: tile-opt %s --tile-approximate-exponentials --split-input-file -o /dev/null 2>&1 \
// RUN:   | FileCheck-22 %s --check-prefix=TOLD

// TOLD: remark: 1 exponential that a product reads in 16 bits: {{.*}} relative error below 1.9e-06

#ij = affine_map<(i, j) -> (i, j)>
#i = affine_map<(i, j) -> (i)>
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>

// A product reads it in 16 bits.

// CHECK-LABEL: func.func @main
// CHECK: math.exp %{{.*}} {tile.approximate} : f32
func.func @main(%s: tensor<8x64xf32>, %m: tensor<8xf32>, %v: tensor<64x32xf16>, %o: tensor<8x32xf32>)
    -> tensor<8x32xf32> {
  %e = tensor.empty() : tensor<8x64xf16>
  %p = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%s, %m : tensor<8x64xf32>, tensor<8xf32>) outs(%e : tensor<8x64xf16>) {
  ^bb0(%x: f32, %t: f32, %q: f16):
    %d = arith.subf %x, %t : f32
    %r = math.exp %d : f32
    %h = arith.truncf %r : f32 to f16
    linalg.yield %h : f16
  } -> tensor<8x64xf16>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p, %v : tensor<8x64xf16>, tensor<64x32xf16>) outs(%o : tensor<8x32xf32>) {
  ^bb0(%x: f16, %w: f16, %q: f32):
    %xw = arith.extf %x : f16 to f32
    %ww = arith.extf %w : f16 to f32
    %m2 = arith.mulf %xw, %ww : f32
    %t = arith.addf %q, %m2 : f32
    linalg.yield %t : f32
  } -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}

// What follows the exponential is more than a rounding.

// CHECK-LABEL: func.func @wide
// CHECK: math.exp %{{[0-9]+}} : f32
func.func @wide(%s: tensor<8x64xf32>, %m: tensor<8xf32>, %v: tensor<64x32xf16>, %o: tensor<8x32xf32>)
    -> tensor<8x32xf32> {
  %e = tensor.empty() : tensor<8x64xf16>
  %p = linalg.generic {indexing_maps = [#ij, #i, #ij], iterator_types = ["parallel", "parallel"]}
      ins(%s, %m : tensor<8x64xf32>, tensor<8xf32>) outs(%e : tensor<8x64xf16>) {
  ^bb0(%x: f32, %t: f32, %q: f16):
    %d = arith.subf %x, %t : f32
    %r = math.exp %d : f32
    %n = arith.negf %r : f32
    %h = arith.truncf %n : f32 to f16
    linalg.yield %h : f16
  } -> tensor<8x64xf16>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%p, %v : tensor<8x64xf16>, tensor<64x32xf16>) outs(%o : tensor<8x32xf32>) {
  ^bb0(%x: f16, %w: f16, %q: f32):
    %xw = arith.extf %x : f16 to f32
    %ww = arith.extf %w : f16 to f32
    %m2 = arith.mulf %xw, %ww : f32
    %t = arith.addf %q, %m2 : f32
    linalg.yield %t : f32
  } -> tensor<8x32xf32>
  return %y : tensor<8x32xf32>
}
