// RUN: tile-opt %s --tile-plan-reductions 2> %t | FileCheck-22 %s
// RUN: FileCheck-22 %s --check-prefix=SAID < %t
// RUN: not tile-opt %s --tile-plan-reductions=channels=1 2>&1 | FileCheck-22 %s --check-prefix=FEW

#line = #coremesh.layout<grid(2, 64), [y, x, *]>
#all = #coremesh.layout<grid(2, 64), [y, *]>
#root = #coremesh.layout<grid(2, 64), [y, *], at x = 0>
#x = #coremesh.layout<grid(2, 64), [x]>
#a = #coremesh.layout<grid(2, 64), [x, y]>
#y = #coremesh.layout<grid(2, 64), [y]>

// Four wavelets: few stages matter most. A thousand: one pass.
// SAID: remark: 4 wavelets along 64 cores by k_tree k 2: {{[0-9]+}} cycles by the model
// SAID: remark: 1000 wavelets along 64 cores by chain: {{[0-9]+}} cycles by the model
// CHECK-LABEL: func.func @short_and_long
// CHECK: coremesh.allreduce add %{{.*}} dim 1 by k_tree k 2 :
// CHECK: coremesh.reduce max %{{.*}} dim 1 by chain :
// CHECK: coremesh.gemv %{{.*}}, %{{.*}} by k_tree k 2 :
func.func @short_and_long(%p: tensor<2x64x4xf32, #line>, %q: tensor<2x64x2000xf16, #line>,
                          %v: tensor<640xf16, #x>, %w: tensor<640x20xf16, #a>)
    -> (tensor<2x4xf32, #all>, tensor<2x2000xf16, #root>, tensor<20xf16, #y>) {
  %0 = coremesh.allreduce add %p dim 1 by chain : tensor<2x64x4xf32, #line> to tensor<2x4xf32, #all>
  %1 = coremesh.reduce max %q dim 1 by k_tree k 2 groups [4] : tensor<2x64x2000xf16, #line> to tensor<2x2000xf16, #root>
  %2 = coremesh.gemv %v, %w by star : tensor<640xf16, #x>, tensor<640x20xf16, #a> to tensor<20xf16, #y>
  return %0, %1, %2 : tensor<2x4xf32, #all>, tensor<2x2000xf16, #root>, tensor<20xf16, #y>
}

// A decision that someone made stays.
// CHECK-LABEL: func.func @fixed
// CHECK: coremesh.allreduce add %{{.*}} dim 1 by chain {fixed} :
func.func @fixed(%p: tensor<2x64x4xf32, #line>) -> tensor<2x4xf32, #all> {
  %0 = coremesh.allreduce add %p dim 1 by chain {fixed} : tensor<2x64x4xf32, #line> to tensor<2x4xf32, #all>
  return %0 : tensor<2x4xf32, #all>
}

// FEW: error: An allreduce along 64 cores needs at least 3 channels, and 1 are free.
