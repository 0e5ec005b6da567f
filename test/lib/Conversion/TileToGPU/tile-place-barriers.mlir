// RUN: tile-opt %s -tile-place-barriers | FileCheck-22 %s

!shared = memref<64xf32, #gpu.address_space<workgroup>>
!t = !tile.tile<64xf32, #tile.spread<register = [[32]], lane = [[1], [2], [4], [8], [16]], warp = []>>
!u = !tile.tile<64xf32, #tile.spread<register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = []>>

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
}
