// RUN: tile-opt %s -convert-tile-to-gpu -canonicalize -cse -split-input-file -verify-diagnostics | FileCheck-22 %s

!global = memref<256xf32, #gpu.address_space<global>>
!four = !tile.tile<256xf32, #tile.distributed<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]],
    warp = [[128]]>>
!one = !tile.tile<1xf32, #tile.distributed<register = [], lane = [[0], [0], [0], [0], [0]], warp = [[0]]>>

// Sixteen bytes at once; a sum of registers, then lanes, then warps through scratch.
// CHECK-LABEL: gpu.func @sum
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK-COUNT-3: arith.addf
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK: gpu.barrier
// CHECK: llvm.store %{{.*}} : f32, !llvm.ptr<3>
// CHECK: gpu.barrier
// CHECK-COUNT-2: llvm.load %{{.*}} : !llvm.ptr<3> -> f32
// CHECK-NOT: tile.load
gpu.module @kernels {
  memref.global @tile_shared : memref<0xi8, #gpu.address_space<workgroup>> {alignment = 1024 : i64}
  gpu.func @sum(%x: !global {tile.align = 16 : i64}) kernel attributes {tile.threads = 64 : i64} {
    %c0 = arith.constant 0 : index
    %t = tile.load %x[%c0] : !global, !four
    %s = tile.reduce add %t dims [0] {tile.scratch = 0 : i64} : !four -> !one
    tile.store %s, %x[%c0] : !one, !global
    gpu.return
  }
}

// -----

// A fragment of sums as the next product's operand: the same registers.
!sum = !tile.tile<16x16xf32, #tile.distributed<register = [[0, 1], [8, 0], [0, 8]],
    lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = []>>
!a = !tile.tile<16x16xf16, #tile.distributed<register = [[0, 1], [8, 0], [0, 8]],
    lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = []>>
!b = !tile.tile<16x16xf16, #tile.distributed<register = [[1, 0], [8, 0], [0, 8]],
    lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = []>>
// CHECK-LABEL: gpu.func @chain
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.f32.f32"
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.nvvm.ff2f16x2.rn"
// CHECK-NOT: shfl
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.f32.f32"
gpu.module @kernels {
  gpu.func @chain(%x: memref<16x16xf16, #gpu.address_space<global>>,
      %y: memref<16x16xf32, #gpu.address_space<global>>) kernel attributes {tile.threads = 32 : i64} {
    %c0 = arith.constant 0 : index
    %a = tile.load %x[%c0, %c0] : memref<16x16xf16, #gpu.address_space<global>>, !a
    %b = tile.load %x[%c0, %c0] : memref<16x16xf16, #gpu.address_space<global>>, !b
    %zero = arith.constant dense<0.0> : !sum
    %c = tile.mma %a, %b, %zero : !a, !b, !sum
    %h = tile.convert %c : !sum -> !a
    %d = tile.mma %h, %b, %zero : !a, !b, !sum
    tile.store %d, %y[%c0, %c0] : !sum, memref<16x16xf32, #gpu.address_space<global>>
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @plain(%x: memref<64xf32, #gpu.address_space<global>>) kernel attributes {tile.threads = 64 : i64} {
    %c0 = arith.constant 0 : index
    // expected-error @below {{has a tile without a #tile.distributed; run tile-assign-distributed-layouts before}}
    %t = tile.load %x[%c0] : memref<64xf32, #gpu.address_space<global>>, !tile.tile<64xf32>
    gpu.return
  }
}

// -----

#sums = #tile.distributed<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64]],
    lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

// Each warp fills a slot by stmatrix and its first lane has TMA store it; the second box waits until the slot is read.

// CHECK: gpu.func @staged
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.nvvm.stmatrix.sync.aligned.m8n8.x4.b16.p3"
// CHECK: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async.shared>
// CHECK: nvvm.bar.warp.sync
// CHECK: scf.if
// CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta %arg2
// CHECK: nvvm.cp.async.bulk.commit.group
// CHECK: nvvm.cp.async.bulk.wait_group 0 {read}
// CHECK: nvvm.bar.warp.sync
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.nvvm.stmatrix
// CHECK: nvvm.cp.async.bulk.tensor.global.shared.cta %arg2
// CHECK: nvvm.cp.async.bulk.wait_group 0 {read}
// CHECK-NOT: tile.store
gpu.module @kernels {
  memref.global @tile_shared : memref<0xi8, #gpu.address_space<workgroup>> {alignment = 1024 : i64}
  gpu.func @staged(%p: memref<f16, #gpu.address_space<global>>, %i: index, %map: !llvm.ptr) kernel
      attributes {tile.threads = 128 : i64, tile.shared_bytes = 8192 : i64} {
    %c0 = arith.constant 0 : index
    %y = memref.reinterpret_cast %p to offset: [0], sizes: [200, 128], strides: [128, 1]
        : memref<f16, #gpu.address_space<global>> to memref<200x128xf16, #gpu.address_space<global>>
    %t = arith.constant dense<1.0> : !tile.tile<64x128xf16, #sums>
    tile.store %t, %y[%i, %c0] {tile.box = {map = 2 : i64, slots = 1 : i64}, tile.scratch = 0 : i64}
        : !tile.tile<64x128xf16, #sums>, memref<200x128xf16, #gpu.address_space<global>>
    gpu.return
  }
}

// -----

!bytes = !tile.tile<256xi8, #tile.distributed<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]],
    warp = [[128]]>>
!floats = !tile.tile<256xf32, #tile.distributed<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]],
    warp = [[128]]>>
!halves = !tile.tile<256xf16, #tile.distributed<register = [[1], [2]], lane = [[4], [8], [16], [32], [64]],
    warp = [[128]]>>

// Bytes become floats by a permutation of a word's bytes and a difference: 2^23 + 128 of signed ones, 1024 of others.
// CHECK-LABEL: gpu.func @bytes
// CHECK-DAG: %[[HALVES:.*]] = llvm.mlir.constant(dense<1.024000e+03> : vector<2xf16>)
// CHECK-DAG: %[[SINGLE:.*]] = llvm.mlir.constant(0x4B000080 : f32)
// CHECK: llvm.xor
// CHECK: llvm.call_intrinsic "llvm.nvvm.prmt"
// CHECK: llvm.fsub %{{.*}}, %[[SINGLE]] : f32
// CHECK-COUNT-3: llvm.call_intrinsic "llvm.nvvm.prmt"
// CHECK-NOT: llvm.xor
// CHECK-COUNT-2: llvm.fsub %{{.*}}, %[[HALVES]] : vector<2xf16>
// CHECK-NOT: tofp
gpu.module @kernels {
  gpu.func @bytes(%x: memref<256xi8, #gpu.address_space<global>> {tile.align = 16 : i64},
      %y: memref<256xf32, #gpu.address_space<global>>,
      %z: memref<256xf16, #gpu.address_space<global>>) kernel attributes {tile.threads = 64 : i64} {
    %c0 = arith.constant 0 : index
    %t = tile.load %x[%c0] : memref<256xi8, #gpu.address_space<global>>, !bytes
    %f = tile.convert %t : !bytes -> !floats
    tile.store %f, %y[%c0] : !floats, memref<256xf32, #gpu.address_space<global>>
    %h = tile.convert %t unsigned : !bytes -> !halves
    tile.store %h, %z[%c0] : !halves, memref<256xf16, #gpu.address_space<global>>
    gpu.return
  }
}

// -----

// A 2:4 sparse product over 64 terms: two instructions, whose metadata are in one word of each lane, the halves of
// which are two elements of the tile; the selector says which lanes count. On sm_80 positions need not ascend.
!sum = !tile.tile<16x8xf32, #tile.distributed<register = [[0, 1], [8, 0]],
    lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = []>>
!kept = !tile.tile<16x32xf16, #tile.distributed<register = [[0, 1], [8, 0], [0, 8], [0, 16]],
    lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = []>>
!meta = !tile.tile<16x4xi16, #tile.distributed<register = [[8, 0]],
    lane = [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], warp = []>>
!right = !tile.tile<64x8xf16, #tile.distributed<register = [[1, 0], [8, 0], [16, 0], [32, 0]],
    lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = []>>
// CHECK-LABEL: gpu.func @sparse
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK: %[[LOW:.*]] = arith.extui %{{.*}} : i16 to i32
// CHECK: %[[NEXT:.*]] = arith.extui %{{.*}} : i16 to i32
// CHECK: %[[HIGH:.*]] = arith.shli %[[NEXT]], %{{.*}} : i32
// CHECK: %[[WORD:.*]] = arith.ori %[[LOW]], %[[HIGH]] : i32
// CHECK: llvm.call_intrinsic "llvm.nvvm.mma.sp.m16n8k32.row.col.f32.f32"({{.*}}, %[[WORD]], %[[ZERO]])
// CHECK: llvm.call_intrinsic "llvm.nvvm.mma.sp.m16n8k32.row.col.f32.f32"({{.*}}, %[[WORD]], %[[ONE]])
gpu.module @kernels {
  gpu.func @sparse(%x: memref<16x32xf16, #gpu.address_space<global>>, %m: memref<16x4xi16, #gpu.address_space<global>>,
      %y: memref<64x8xf16, #gpu.address_space<global>>, %z: memref<16x8xf32, #gpu.address_space<global>>)
      kernel attributes {tile.threads = 32 : i64} {
    %c0 = arith.constant 0 : index
    %a = tile.load %x[%c0, %c0] : memref<16x32xf16, #gpu.address_space<global>>, !kept
    %w = tile.load %m[%c0, %c0] : memref<16x4xi16, #gpu.address_space<global>>, !meta
    %b = tile.load %y[%c0, %c0] : memref<64x8xf16, #gpu.address_space<global>>, !right
    %zero = arith.constant dense<0.0> : !sum
    %d = tile.mma %a, %b, %zero meta %w sparsity [2, 4] : !kept, !right, !sum, !meta
    tile.store %d, %z[%c0, %c0] : !sum, memref<16x8xf32, #gpu.address_space<global>>
    gpu.return
  }
}
