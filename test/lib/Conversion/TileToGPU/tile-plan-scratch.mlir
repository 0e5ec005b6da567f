// RUN: tile-opt %s -tile-plan-scratch | FileCheck-22 %s

!t = !tile.tile<128xf32, #tile.spread<register = [], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]]>>
!s = !tile.tile<1xf32, #tile.spread<register = [], lane = [[0], [0], [0], [0], [0]], warp = [[0], [0]]>>
!w = !tile.tile<128xf32, #tile.spread<register = [], lane = [[4], [8], [16], [32], [64]], warp = [[1], [2]]>>

// Two exchanges, one after the other, share bytes behind the kernel's buffers; what stays inside a warp needs none.
// CHECK: tile.shared_bytes = 768 : i64
// CHECK: tile.reduce {{.*}} {tile.scratch = 256 : i64}
// CHECK: tile.convert {{.*}} {tile.scratch = 256 : i64}
gpu.module @kernels {
  gpu.func @k(%t: !t) attributes {tile.shared_bytes = 200 : i64} {
    %s = tile.reduce add %t dims [0] : !t -> !s
    %w = tile.convert %t : !t -> !w
    gpu.return
  }
}
