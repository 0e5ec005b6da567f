// RUN: tile-opt %s -tile-place-barriers | FileCheck-22 %s

!shared = memref<64xf32, #gpu.address_space<workgroup>>
!t = !tile.tile<64xf32, #tile.spread<register = [[32]], lane = [[1], [2], [4], [8], [16]], warp = []>>
!u = !tile.tile<64xf32, #tile.spread<register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = []>>
!r = !tile.tile<4xf32, #tile.spread<register = [[1], [2]], lane = [[0], [0], [0], [0], [0]], warp = []>>

gpu.module @kernels {
  // The same thread reads what it has written; another one does not.
  // CHECK-LABEL: @order
  // CHECK: tile.store
  // CHECK-NEXT: tile.load
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: tile.load
  gpu.func @order(%s: !shared, %t: !t) attributes {tile.threads = 32 : i64} {
    %c0 = arith.constant 0 : index
    tile.store %t, %s[%c0] : !t, !shared
    %a = tile.load %s[%c0] : !shared, !t
    %b = tile.load %s[%c0] : !shared, !u
    gpu.return
  }
  // Of threads that hold the same elements one stores them, and the others must wait to read them.
  // CHECK-LABEL: @replicas
  // CHECK: tile.store
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: tile.load
  gpu.func @replicas(%s: !shared, %t: !r) attributes {tile.threads = 32 : i64} {
    %c0 = arith.constant 0 : index
    tile.store %t, %s[%c0] : !r, !shared
    %a = tile.load %s[%c0] : !shared, !r
    gpu.return
  }
  // What an iteration has read, the next one must not overwrite too early.
  // CHECK-LABEL: @loop
  // CHECK: scf.for
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: tile.store
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: tile.load
  gpu.func @loop(%s: !shared, %t: !t) attributes {tile.threads = 32 : i64} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    scf.for %i = %c0 to %c8 step %c1 {
      tile.store %t, %s[%c0] : !t, !shared
      %b = tile.load %s[%c0] : !shared, !u
    }
    gpu.return
  }
  // A result in the place of an operand: no other thread's elements may be
  // overwritten before it has read them.
  // CHECK-LABEL: @in_place
  // CHECK: tile.load
  // CHECK-NEXT: tile.store
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: tile.store
  gpu.func @in_place(%p: memref<f32, 1>, %q: memref<f32, 1>, %t: !t, %u: !u) attributes {
      tile.threads = 32 : i64, tile.same_memory = [array<i64: 0, 1>],
      tile.params = [{arg = 0 : i64, kind = "pointer"}, {arg = 1 : i64, kind = "pointer"}]} {
    %c0 = arith.constant 0 : index
    %x = memref.reinterpret_cast %p to offset: [0], sizes: [64], strides: [1] : memref<f32, 1> to memref<64xf32, 1>
    %y = memref.reinterpret_cast %q to offset: [0], sizes: [64], strides: [1] : memref<f32, 1> to memref<64xf32, 1>
    %a = tile.load %x[%c0] : memref<64xf32, 1>, !t
    tile.store %t, %y[%c0] : !t, memref<64xf32, 1>
    tile.store %u, %y[%c0] : !u, memref<64xf32, 1>
    gpu.return
  }
  // Parts of one buffer: equal indices are not equal places.
  // CHECK-LABEL: @parts
  // CHECK: tile.load
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: tile.store
  gpu.func @parts(%p: memref<f32, 1>, %q: memref<f32, 1>, %t: !t) attributes {
      tile.threads = 32 : i64, tile.may_overlap = [array<i64: 0, 1>],
      tile.params = [{arg = 0 : i64, kind = "pointer"}, {arg = 1 : i64, kind = "pointer"}]} {
    %c0 = arith.constant 0 : index
    %x = memref.reinterpret_cast %p to offset: [0], sizes: [64], strides: [1] : memref<f32, 1> to memref<64xf32, 1>
    %y = memref.reinterpret_cast %q to offset: [0], sizes: [64], strides: [1] : memref<f32, 1> to memref<64xf32, 1>
    %a = tile.load %x[%c0] : memref<64xf32, 1>, !t
    tile.store %t, %y[%c0] : !t, memref<64xf32, 1>
    gpu.return
  }
}
