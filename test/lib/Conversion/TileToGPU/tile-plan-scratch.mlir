// RUN: tile-opt %s -tile-plan-scratch -split-input-file | FileCheck-22 %s

!t = !tile.tile<128xf32, #tile.distributed<register = [], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]]>>
!s = !tile.tile<1xf32, #tile.distributed<register = [], lane = [[0], [0], [0], [0], [0]], warp = [[0], [0]]>>
!w = !tile.tile<128xf32, #tile.distributed<register = [], lane = [[4], [8], [16], [32], [64]], warp = [[1], [2]]>>

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

// -----

!t = !tile.tile<128xf32, #tile.distributed<register = [], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]]>>
!w = !tile.tile<128xf32, #tile.distributed<register = [], lane = [[4], [8], [16], [32], [64]], warp = [[1], [2]]>>
#sums = #tile.distributed<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64]],
    lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

// Boxes of the kernel's end lie beside what was exchanged before: no barrier stands between them.
// CHECK: gpu.func @beside
// CHECK: tile.convert {{.*}}tile.scratch = 128 : i64
// CHECK: tile.store {{.*}}tile.scratch = 1024 : i64
gpu.module @kernels {
  gpu.func @beside(%y: memref<200x128xf16>, %v: !t, %t: !tile.tile<64x128xf16, #sums>, %map: !llvm.ptr) kernel
      attributes {tile.threads = 128 : i64, tile.shared_bytes = 64 : i64} {
    %c0 = arith.constant 0 : index
    %w = tile.convert %v : !t -> !w
    tile.store %t, %y[%c0, %c0] {tile.box = {map = 3 : i64, slots = 4 : i64}}
        : !tile.tile<64x128xf16, #sums>, memref<200x128xf16>
    gpu.return
  }
}

// -----

#sums = #tile.distributed<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64]],
    lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

// Boxes on their way to memory: a warp has two of 16 rows by 128 bytes, at multiples of the swizzle's 1024 bytes. What
// TMA may still read when the next task begins is nobody else's.

// CHECK: gpu.func @staged
// CHECK-SAME: tile.shared_bytes = 17408
// CHECK: tile.store {{.*}}tile.scratch = 1024 : i64
gpu.module @kernels {
  gpu.func @staged(%y: memref<200x128xf16>, %t: !tile.tile<64x128xf16, #sums>, %map: !llvm.ptr) kernel
      attributes {tile.threads = 128 : i64, tile.shared_bytes = 64 : i64} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    scf.for %i = %c0 to %c4 step %c1 {
      tile.store %t, %y[%i, %c0] {tile.box = {map = 2 : i64, slots = 4 : i64}}
          : !tile.tile<64x128xf16, #sums>, memref<200x128xf16>
    } {tile.tasks}
    gpu.return
  }
}
