// RUN: tile-opt %s --tile-assign-distributed-layouts="arch=942" | FileCheck-22 %s

// Fragments of v_mfma_f32_16x16x16_f16: of the result a lane holds column l mod
// 16 and rows 4 (l / 16) on, of the operands row or column l mod 16 and depths
// 4 (l / 16) on. The wave's sixth lane bit is the first bit of the warp.
// CHECK: tile.mma
// CHECK-SAME: !tile.tile<32x16xf16,
// CHECK-SAME: {{^}} #tile.distributed<register = {{\[}}[0, 1], [0, 2]
// CHECK-SAME: lane = {{\[}}[1, 0], [2, 0], [4, 0], [8, 0], [0, 4]], warp = {{\[}}[0, 8], [16, 0]]>>
// CHECK-SAME: !tile.tile<16x16xf16,
// CHECK-SAME: {{^}} #tile.distributed<register = {{\[}}[1, 0], [2, 0]],
// CHECK-SAME: {{^}} lane = {{\[}}[0, 1], [0, 2], [0, 4], [0, 8], [4, 0]], warp = {{\[}}[8, 0], [0, 0]]>>
// CHECK-SAME: !tile.tile<32x16xf32,
// CHECK-SAME: {{^}} #tile.distributed<register = {{\[}}[1, 0], [2, 0]],
// CHECK-SAME: {{^}} lane = {{\[}}[0, 1], [0, 2], [0, 4], [0, 8], [4, 0]], warp = {{\[}}[8, 0], [16, 0]]>>
gpu.module @m {
  gpu.func @product(%x: memref<32x16xf16, #gpu.address_space<global>>,
      %y: memref<16x16xf16, #gpu.address_space<global>>,
                    %z: memref<32x16xf32, #gpu.address_space<global>>) kernel attributes {tile.threads = 128 : i64} {
    %c0 = arith.constant 0 : index
    %zero = arith.constant dense<0.0> : !tile.tile<32x16xf32>
    %a = tile.load %x[%c0, %c0] : memref<32x16xf16, #gpu.address_space<global>>, !tile.tile<32x16xf16>
    %b = tile.load %y[%c0, %c0] : memref<16x16xf16, #gpu.address_space<global>>, !tile.tile<16x16xf16>
    %c = tile.mma %a, %b, %zero : !tile.tile<32x16xf16>, !tile.tile<16x16xf16>, !tile.tile<32x16xf32>
    tile.store %c, %z[%c0, %c0] : !tile.tile<32x16xf32>, memref<32x16xf32, #gpu.address_space<global>>
    gpu.return
  }
}
