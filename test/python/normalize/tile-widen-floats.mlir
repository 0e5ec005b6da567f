// RUN: tile-opt %s --tile-widen-floats | FileCheck-22 %s

#row = affine_map<(i, j) -> (i)>
#id = affine_map<(i, j) -> (i, j)>

// What the sum starts from is widened before, the sum narrowed after it.
// CHECK-LABEL: func.func @sum
// CHECK: %[[WIDE:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<4xf16>) outs(%{{.*}} : tensor<4xf32>)
// CHECK: arith.extf
// CHECK: %[[SUM:.*]] = linalg.generic {{.*}} ins(%{{.*}} : tensor<4x8xf16>) outs(%[[WIDE]] : tensor<4xf32>)
// CHECK-NOT: arith.truncf
// CHECK: -> tensor<4xf32>
// CHECK: %[[NARROW:.*]] = linalg.generic {{.*}} ins(%[[SUM]] : tensor<4xf32>) outs(%{{.*}} : tensor<4xf16>)
// CHECK: arith.truncf
// CHECK: return %[[NARROW]]
func.func @sum(%x: tensor<4x8xf16>, %e: tensor<4xf16>) -> tensor<4xf16> {
  %y = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf16>) outs(%e : tensor<4xf16>) {
  ^bb0(%a: f16, %o: f16):
    %old = arith.extf %o : f16 to f32
    %new = arith.extf %a : f16 to f32
    %m = arith.addf %old, %new : f32
    %r = arith.truncf %m : f32 to f16
    linalg.yield %r : f16
  } -> tensor<4xf16>
  return %y : tensor<4xf16>
}

// An accumulator that is used as it is stays.
// CHECK-LABEL: func.func @kept
// CHECK: outs(%{{.*}} : tensor<4xf16>)
// CHECK: arith.maximumf %{{.*}} : f16
func.func @kept(%x: tensor<4x8xf16>, %e: tensor<4xf16>) -> tensor<4xf16> {
  %y = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]}
      ins(%x : tensor<4x8xf16>) outs(%e : tensor<4xf16>) {
  ^bb0(%a: f16, %o: f16):
    %m = arith.maximumf %o, %a : f16
    linalg.yield %m : f16
  } -> tensor<4xf16>
  return %y : tensor<4xf16>
}
