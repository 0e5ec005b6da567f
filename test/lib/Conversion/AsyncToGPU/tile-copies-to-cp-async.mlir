// RUN: tile-opt %s --tile-copies-to-cp-async --split-input-file --verify-diagnostics | FileCheck-22 %s

// A ring of three slots: a step waits for all groups but the last. A step that starts nothing closes a group, too.

// CHECK-LABEL: gpu.func @ring
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 16, cache = cg :
// CHECK: nvvm.cp.async.commit.group
// CHECK: nvvm.cp.async.commit.group
// CHECK: scf.for
// CHECK-NEXT: nvvm.cp.async.wait.group 1
// CHECK-NEXT: gpu.barrier
// CHECK: scf.if
// CHECK-COUNT-4: nvvm.cp.async.shared.global
// CHECK-NOT: nvvm.cp.async.shared.global
// CHECK: } else {
// CHECK: }
// CHECK-NEXT: nvvm.cp.async.commit.group
// CHECK-NOT: tile.token
gpu.module @kernels {
  gpu.func @ring(%x: memref<512x64xf16>) kernel attributes {tile.threads = 128 : i64} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %c8 = arith.constant 8 : index
    %c64 = arith.constant 64 : index
    %s = tile.alloc {tile.layouts = [#tile.layout<swizzle = 128>]} : memref<3x64x64xf16, #tile.level<"shared">>
    %x0 = memref.subview %x[0, 0] [64, 64] [1, 1] : memref<512x64xf16> to memref<64x64xf16, strided<[64, 1]>>
    %x1 = memref.subview %x[64, 0] [64, 64] [1, 1] : memref<512x64xf16>
        to memref<64x64xf16, strided<[64, 1], offset: 4096>>
    %s0 = memref.subview %s[0, 0, 0] [1, 64, 64] [1, 1, 1] : memref<3x64x64xf16, #tile.level<"shared">>
        to memref<64x64xf16, strided<[64, 1]>, #tile.level<"shared">>
    %s1 = memref.subview %s[1, 0, 0] [1, 64, 64] [1, 1, 1] : memref<3x64x64xf16, #tile.level<"shared">>
        to memref<64x64xf16, strided<[64, 1], offset: 4096>, #tile.level<"shared">>
    %t0 = tile.async {
      tile.copy %x0 to %s0 : memref<64x64xf16, strided<[64, 1]>>,
          memref<64x64xf16, strided<[64, 1]>, #tile.level<"shared">>
    }
    %t1 = tile.async {
      tile.copy %x1 to %s1 : memref<64x64xf16, strided<[64, 1], offset: 4096>>,
          memref<64x64xf16, strided<[64, 1], offset: 4096>, #tile.level<"shared">>
    }
    %last:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%w0 = %t0, %w1 = %t1) -> (!tile.token, !tile.token) {
      tile.await %w0
      %ahead = arith.addi %i, %c2 : index
      %more = arith.cmpi slt, %ahead, %c8 : index
      %next = scf.if %more -> (!tile.token) {
        %row = arith.muli %ahead, %c64 : index
        %slot = arith.remui %ahead, %c3 : index
        %xn = memref.subview %x[%row, 0] [64, 64] [1, 1] : memref<512x64xf16>
            to memref<64x64xf16, strided<[64, 1], offset: ?>>
        %sn = memref.subview %s[%slot, 0, 0] [1, 64, 64] [1, 1, 1] : memref<3x64x64xf16, #tile.level<"shared">>
            to memref<64x64xf16, strided<[64, 1], offset: ?>, #tile.level<"shared">>
        %t = tile.async {
          tile.copy %xn to %sn : memref<64x64xf16, strided<[64, 1], offset: ?>>,
              memref<64x64xf16, strided<[64, 1], offset: ?>, #tile.level<"shared">>
        }
        scf.yield %t : !tile.token
      } else {
        scf.yield %w0 : !tile.token
      }
      scf.yield %w1, %next : !tile.token, !tile.token
    }
    gpu.return
  }
}

// -----

// Bounds: the bytes that there are of a chunk, the rest is zeros. Rows that start at multiples of 8 bytes move 8 at
// once. What starts anywhere is copied at once.

// CHECK-LABEL: gpu.func @ragged
// CHECK: arith.maxsi
// CHECK: arith.minsi
// CHECK: arith.select
// CHECK: nvvm.cp.async.shared.global %{{.*}}, %{{.*}}, 8, cache = ca, %{{.*}} :
// CHECK: nvvm.cp.async.commit.group
// CHECK: tile.copy
// CHECK: nvvm.cp.async.wait.group 0
// CHECK-NEXT: gpu.barrier
gpu.module @kernels {
  gpu.func @ragged(%x: memref<30x36xf16>, %y: memref<30x35xf16>, %n: index) kernel
      attributes {tile.threads = 128 : i64} {
    %s = tile.alloc : memref<1x16x32xf16, #tile.level<"shared">>
    %xn = memref.subview %x[%n, 0] [%n, 32] [1, 1] : memref<30x36xf16> to memref<?x32xf16, strided<[36, 1], offset: ?>>
    %sn = memref.subview %s[0, 0, 0] [1, 16, 32] [1, 1, 1] : memref<1x16x32xf16, #tile.level<"shared">>
        to memref<16x32xf16, strided<[32, 1]>, #tile.level<"shared">>
    %t = tile.async {
      tile.copy %xn to %sn fill : memref<?x32xf16, strided<[36, 1], offset: ?>>,
          memref<16x32xf16, strided<[32, 1]>, #tile.level<"shared">>
    }
    %yn = memref.subview %y[%n, 0] [16, 32] [1, 1] : memref<30x35xf16> to memref<16x32xf16, strided<[35, 1], offset: ?>>
    %u = tile.async {
      // expected-remark@+1 {{is done at once: cp.async moves rows that start at multiples of 4 bytes}}
      tile.copy %yn to %sn : memref<16x32xf16, strided<[35, 1], offset: ?>>,
          memref<16x32xf16, strided<[32, 1]>, #tile.level<"shared">>
    }
    tile.await %t, %u
    gpu.return
  }
}
