// RUN: tile-opt %s -convert-tile-to-gpu -canonicalize -cse -split-input-file -verify-diagnostics | FileCheck-22 %s

// 256 elements, 128 threads: two for each thread.
// CHECK: gpu.module @kernels
// CHECK: gpu.func @double(%[[X:.*]]: memref<4x256xf32>, %{{.*}}: memref<4x256xf32>) kernel
// CHECK-SAME: known_block_size = array<i32: 128, 1, 1>
// CHECK-DAG: %[[B:.*]] = gpu.block_id x
// CHECK-DAG: %[[T:.*]] = gpu.thread_id x
// CHECK: memref.load %[[X]][%[[B]], %[[T]]]
// CHECK: memref.load %[[X]][%[[B]], %{{.*}}]
// CHECK-COUNT-2: arith.addf {{.*}} : f32
// CHECK-COUNT-2: memref.store
// CHECK-NOT: tile.
tile.kernel @double(%x: memref<4x256xf32>, %y: memref<4x256xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%i, %c0] : memref<4x256xf32>, !tile.tile<256xf32>
  %d = arith.addf %t, %t : !tile.tile<256xf32>
  tile.store %d, %y[%i, %c0] : !tile.tile<256xf32>, memref<4x256xf32>
  tile.return
}

// -----

// A reduction reads other threads' elements through shared memory.
// CHECK: gpu.func @sum
// CHECK-SAME: workgroup(%[[S:.*]] : memref<256xf32, #gpu.address_space<workgroup>> {llvm.align = 16 : i64})
// CHECK: gpu.barrier
// CHECK: memref.store %{{.*}}, %[[S]]
// CHECK: gpu.barrier
// CHECK: scf.for
// CHECK: memref.load %[[S]]
// CHECK: arith.addf
tile.kernel @sum(%x: memref<256xf32>, %y: memref<1xf32>) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0] : memref<256xf32>, !tile.tile<256xf32>
  %s = tile.reduce add %t dims [0] : !tile.tile<256xf32> -> !tile.tile<1xf32>
  tile.store %s, %y[%c0] : !tile.tile<1xf32>, memref<1xf32>
  tile.return
}

// -----

// expected-error @below {{but the GPU lowering passes bare pointers}}
tile.kernel @dynamic(%x: memref<?xf32>) {
  tile.return
}
