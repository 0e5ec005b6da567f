// RUN: tile-opt %s --tile-expand-locals | FileCheck-22 %s
// RUN: tile-opt %s --tile-expand-locals | tile-opt | FileCheck-22 %s

#tile = #coremesh.layout<grid(3, 2), [y ring, x ring]>
#row = #coremesh.layout<grid(3, 2), [x ring]>
#map = affine_map<(i, j) -> (i, j)>
#last = affine_map<(i, j) -> (j)>

// What a body reads of its surroundings comes along; a row is the same in all rows of cores.
// CHECK-LABEL: func.func @biased
// CHECK-NOT: coremesh.local
// CHECK: %[[R:.*]] = coremesh.program "local" grid(3, 2) (%[[A:.*]] = %arg0, %[[B:.*]] = %arg1) :
// CHECK: coremesh.buffer @in0 : tensor<3x4xf32>
// CHECK: coremesh.buffer @in1 : tensor<4xf32>
// CHECK: coremesh.buffer @out0 : tensor<3x4xf32>
// CHECK: coremesh.place %[[A]] in @in0 block(y, x) ring
// CHECK: coremesh.place %[[B]] in @in1 block(x) ring
// CHECK: coremesh.compute "local" (%[[X:.*]] = @in0 : tensor<3x4xf32>, %[[Y:.*]] = @in1 : tensor<4xf32>) to (@out0)
// CHECK: %[[TWO:.*]] = arith.constant 2.0
// CHECK: linalg.generic {{.*}} ins(%[[X]], %[[Y]] :
// CHECK: arith.mulf %{{.*}}, %[[TWO]]
// CHECK: coremesh.collect @out0 block(y, x) ring
// CHECK: return %[[R]]
func.func @biased(%a: tensor<7x8xf32, #tile>, %b: tensor<8xf32, #row>) -> tensor<7x8xf32, #tile> {
  %0 = coremesh.local (%x = %a, %y = %b)
      : (tensor<7x8xf32, #tile>, tensor<8xf32, #row>) -> tensor<7x8xf32, #tile> {
    %two = arith.constant 2.0 : f32
    %e = tensor.empty() : tensor<3x4xf32>
    %1 = linalg.generic {indexing_maps = [#map, #last, #map], iterator_types = ["parallel", "parallel"]}
        ins(%x, %y : tensor<3x4xf32>, tensor<4xf32>) outs(%e : tensor<3x4xf32>) {
    ^bb0(%u: f32, %v: f32, %out: f32):
      %p = arith.mulf %u, %two : f32
      %q = arith.addf %p, %v : f32
      linalg.yield %q : f32
    } -> tensor<3x4xf32>
    coremesh.yield %1 : tensor<3x4xf32>
  }
  return %0 : tensor<7x8xf32, #tile>
}
