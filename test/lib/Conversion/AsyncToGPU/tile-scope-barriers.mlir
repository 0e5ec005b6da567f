// RUN: tile-opt %s --tile-scope-barriers | FileCheck-22 %s

// CHECK: gpu.func @split
// CHECK-SAME: tile.threads = 384 : i64
// CHECK: gpu.barrier
// CHECK: scf.if
// CHECK: gpu.barrier
// CHECK: } else {
// CHECK: %[[ID:.*]] = arith.constant 1 : i32
// CHECK: %[[N:.*]] = arith.constant 256 : i32
// CHECK: nvvm.barrier id = %[[ID]] number_of_threads = %[[N]]
// CHECK-NOT: gpu.barrier
// CHECK: gpu.func @whole
// CHECK-SAME: tile.threads = 128 : i64
// CHECK: gpu.barrier
gpu.module @kernels {
  gpu.func @split(%p: i1) kernel attributes {known_block_size = array<i32: 384, 1, 1>, tile.specialized,
      tile.threads = 256 : i64} {
    gpu.barrier
    scf.if %p {
      gpu.barrier
    } else {
      gpu.barrier
    } {tile.roles}
    gpu.return
  }
  gpu.func @whole(%p: i1) kernel attributes {known_block_size = array<i32: 128, 1, 1>, tile.threads = 128 : i64} {
    scf.if %p {
    } else {
      gpu.barrier
    }
    gpu.return
  }
}
