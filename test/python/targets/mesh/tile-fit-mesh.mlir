// RUN: tile-opt %s --tile-set-target=target=mesh:toy8x8 --tile-expand-collectives --tile-fit-mesh 2>&1 \
// RUN:   | FileCheck-22 %s

#tile = #coremesh.layout<grid(8, 8), [y ring, x ring]>
#skewed = #coremesh.layout<grid(8, 8), [y ring skew, x ring]>

// Two weights of 12,996 bytes a core do not fit beside each other and what a product needs: the first one streams.
// CHECK: remark: 12996 bytes a core stream in from outside in each call: the cores of toy8x8 cannot keep them
// CHECK-LABEL: func.func @weights
// CHECK: coremesh.distribute %arg1 {coremesh.fixed{{.*}}} :
// CHECK: coremesh.program "meshgemm"
// CHECK: coremesh.buffer @A : {{.*}} slots 2 address {{[0-9]+}}
// CHECK: coremesh.route @x_backward along x ring from (p + 1) mod 8 colors [
// CHECK: coremesh.colors = {{[0-9]+}} : i64, coremesh.memory = {{[0-9]+}} : i64
func.func @weights(%x: tensor<8x456xf32, #tile>, %w: tensor<456x456xf32>, %v: tensor<456x456xf32>)
    -> tensor<8x456xf32, #tile> {
  %0 = coremesh.distribute %w {coremesh.fixed} : tensor<456x456xf32> to tensor<456x456xf32, #skewed>
  %1 = coremesh.gemm %x, %0 by meshgemm
      : tensor<8x456xf32, #tile>, tensor<456x456xf32, #skewed> to tensor<8x456xf32, #tile>
  %2 = coremesh.distribute %v {coremesh.fixed} : tensor<456x456xf32> to tensor<456x456xf32, #skewed>
  %3 = coremesh.gemm %1, %2 by meshgemm
      : tensor<8x456xf32, #tile>, tensor<456x456xf32, #skewed> to tensor<8x456xf32, #tile>
  return %3 : tensor<8x456xf32, #tile>
}
