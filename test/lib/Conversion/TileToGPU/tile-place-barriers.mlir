// RUN: tile-opt %s -tile-place-barriers | FileCheck-22 %s

!shared = memref<64xf32, #gpu.address_space<workgroup>>
!t = !tile.tile<64xf32, #tile.distributed<register = [[32]], lane = [[1], [2], [4], [8], [16]], warp = []>>
!u = !tile.tile<64xf32, #tile.distributed<register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = []>>
!r = !tile.tile<4xf32, #tile.distributed<register = [[1], [2]], lane = [[0], [0], [0], [0], [0]], warp = []>>
!v = !tile.tile<128xf32, #tile.distributed<register = [], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]]>>
!w = !tile.tile<1xf32, #tile.distributed<register = [], lane = [[0], [0], [0], [0], [0]], warp = [[0], [0]]>>
!sums = !tile.tile<64x128xf16, #tile.distributed<register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64]],
    lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>>
!f = !tile.tile<16x16xf32, #tile.distributed<register = [[0, 8]], lane = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0]],
    warp = [[4, 0], [8, 0]]>>
!in_shared = !tile.tile<16x16xf32, #tile.level<"shared">>

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
  // Blocks that do not overlap: the next iteration's are others.
  // CHECK-LABEL: @next_block
  // CHECK-NOT: gpu.barrier
  // CHECK: gpu.return
  gpu.func @next_block(%s: memref<512xf32, #gpu.address_space<workgroup>>, %t: !t)
      attributes {tile.threads = 32 : i64} {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %c448 = arith.constant 448 : index
    scf.for %i = %c0 to %c448 step %c64 {
      %o = arith.addi %i, %c64 : index
      %a = tile.load %s[%o] : memref<512xf32, #gpu.address_space<workgroup>>, !t
      tile.store %a, %s[%o] : !t, memref<512xf32, #gpu.address_space<workgroup>>
    }
    gpu.return
  }
  // The same op, and the same number: but in the next iteration its elements are other threads'.
  // CHECK-LABEL: @sliding
  // CHECK: scf.for
  // CHECK: gpu.barrier
  // CHECK-NEXT: tile.load
  // CHECK-NEXT: tile.store
  gpu.func @sliding(%s: memref<512xf32, #gpu.address_space<workgroup>>, %t: !t) attributes {tile.threads = 32 : i64} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c16 = arith.constant 16 : index
    scf.for %i = %c0 to %c8 step %c1 {
      %o = arith.muli %i, %c16 : index
      %a = tile.load %s[%o] : memref<512xf32, #gpu.address_space<workgroup>>, !t
      tile.store %a, %s[%o] : !t, memref<512xf32, #gpu.address_space<workgroup>>
    }
    gpu.return
  }
  // Offsets that a loop inside moves, too: rows are apart by more than it spans, or are not.
  // CHECK-LABEL: @rows
  // CHECK: scf.for
  // CHECK: scf.for
  // CHECK-NOT: gpu.barrier
  // CHECK: tile.store
  // CHECK-NOT: gpu.barrier
  // CHECK: gpu.return
  gpu.func @rows(%s: memref<512xf32, #gpu.address_space<workgroup>>, %t: !t) attributes {tile.threads = 32 : i64} {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %c128 = arith.constant 128 : index
    %c512 = arith.constant 512 : index
    scf.for %i = %c0 to %c512 step %c128 {
      scf.for %j = %c0 to %c128 step %c64 {
        %o = arith.addi %i, %j : index
        tile.store %t, %s[%o] : !t, memref<512xf32, #gpu.address_space<workgroup>>
      }
    }
    gpu.return
  }
  // CHECK-LABEL: @overlapping_rows
  // CHECK: scf.for
  // CHECK: scf.for
  // CHECK: gpu.barrier
  // CHECK-NEXT: tile.store
  gpu.func @overlapping_rows(%s: memref<512xf32, #gpu.address_space<workgroup>>, %t: !t)
      attributes {tile.threads = 32 : i64} {
    %c0 = arith.constant 0 : index
    %c64 = arith.constant 64 : index
    %c96 = arith.constant 96 : index
    %c128 = arith.constant 128 : index
    %c384 = arith.constant 384 : index
    scf.for %i = %c0 to %c384 step %c96 {
      scf.for %j = %c0 to %c128 step %c64 {
        %o = arith.addi %i, %j : index
        tile.store %t, %s[%o] : !t, memref<512xf32, #gpu.address_space<workgroup>>
      }
    }
    gpu.return
  }
  // What the condition of a loop reads was written by its body.
  // CHECK-LABEL: @while
  // CHECK: scf.while
  // CHECK: gpu.barrier
  // CHECK-NEXT: tile.load
  gpu.func @while(%s: !shared, %t: !t) attributes {tile.threads = 32 : i64} {
    %c0 = arith.constant 0 : index
    scf.while : () -> () {
      %a = tile.load %s[%c0] : !shared, !u
      %x = tile.extract %a [0] : !u -> f32
      %zero = arith.constant 0.0 : f32
      %more = arith.cmpf ogt, %x, %zero : f32
      scf.condition(%more)
    } do {
      tile.store %t, %s[%c0] : !t, !shared
      scf.yield
    }
    gpu.return
  }
  // Tasks hand nothing on in memory, only in that of the block.
  // CHECK-LABEL: @tasks
  // CHECK: scf.for
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: tile.store {{.*}}workgroup
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: tile.load
  // CHECK-NEXT: tile.store
  // CHECK-NEXT: }
  gpu.func @tasks(%s: !shared, %y: memref<64xf32, 1>, %t: !t) attributes {tile.threads = 32 : i64} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    scf.for %i = %c0 to %c8 step %c1 {
      tile.store %t, %s[%c0] : !t, !shared
      %a = tile.load %s[%c0] : !shared, !u
      tile.store %a, %y[%i] : !u, memref<64xf32, 1>
    } {tile.tasks}
    gpu.return
  }
  // Scratch that nobody has used yet needs no barrier before; where it is used again, it does.
  // CHECK-LABEL: @scratch
  // CHECK: tile.reduce {{.*}} {tile.scratch = 0 : i64, tile.scratch_free}
  // CHECK: tile.reduce {{.*}} {tile.scratch = 0 : i64}
  // CHECK: tile.reduce {{.*}} {tile.scratch = 128 : i64, tile.scratch_free}
  // CHECK: scf.for
  // CHECK: tile.reduce {{.*}} {tile.scratch = 256 : i64}
  gpu.func @scratch(%t: !v) attributes {tile.threads = 128 : i64} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %a = tile.reduce add %t dims [0] {tile.scratch = 0 : i64} : !v -> !w
    %b = tile.reduce max %t dims [0] {tile.scratch = 0 : i64} : !v -> !w
    %c = tile.reduce min %t dims [0] {tile.scratch = 128 : i64} : !v -> !w
    scf.for %i = %c0 to %c8 step %c1 {
      %d = tile.reduce add %t dims [0] {tile.scratch = 256 : i64} : !v -> !w
    }
    gpu.return
  }
  // Boxes for TMA, where other warps may still read what was exchanged before.
  // CHECK-LABEL: @staged
  // CHECK: tile.reduce
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: tile.store {{.*}}tile.scratch = 0
  // CHECK: tile.reduce
  // CHECK-NEXT: tile.store {{.*}}tile.scratch = 32768
  gpu.func @staged(%y: memref<200x128xf16>, %v: !v, %t: !sums, %map: !llvm.ptr) attributes {tile.threads = 128 : i64} {
    %c0 = arith.constant 0 : index
    %a = tile.reduce add %v dims [0] {tile.scratch = 0 : i64} : !v -> !w
    tile.store %t, %y[%c0, %c0] {tile.box = {map = 3 : i64, slots = 1 : i64}, tile.scratch = 0 : i64}
        : !sums, memref<200x128xf16>
    %b = tile.reduce add %v dims [0] {tile.scratch = 16384 : i64} : !v -> !w
    tile.store %t, %y[%c0, %c0] {tile.scratch = 32768 : i64, tile.box = {map = 3 : i64, slots = 1 : i64}}
        : !sums, memref<200x128xf16>
    gpu.return
  }
  // Two tiles for a product: who writes the first waits for the last product, who reads them waits for both.
  // CHECK-LABEL: @factors
  // CHECK: scf.for
  // CHECK-NEXT: tile.convert {{.*}} {tile.scratch = 0 : i64}
  // CHECK-NEXT: tile.convert {{.*}} {tile.scratch = 4096 : i64, tile.scratch_free}
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: tile.mma
  gpu.func @factors(%a: !f, %b: !f, %c: !f) attributes {tile.threads = 128 : i64} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %c) -> !f {
      %x = tile.convert %a {tile.scratch = 0 : i64} : !f -> !in_shared
      %y = tile.convert %b {tile.scratch = 4096 : i64} : !f -> !in_shared
      %p = tile.mma %x, %y, %s : !in_shared, !in_shared, !f
      scf.yield %p : !f
    }
    gpu.return
  }
  // Two pieces of a buffer by turns: what an iteration reads, other threads wrote in the one before. A third piece is
  // apart from both.
  // CHECK-LABEL: @by_turns
  // CHECK: scf.for
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: tile.load
  // CHECK-NEXT: gpu.barrier
  // CHECK-NEXT: tile.store
  // CHECK-NEXT: tile.store
  // CHECK-NEXT: scf.yield
  gpu.func @by_turns(%all: memref<6144xi8>) attributes {tile.threads = 128 : i64} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %c128 = arith.constant 128 : index
    %c2048 = arith.constant 2048 : index
    %c4096 = arith.constant 4096 : index
    %one = memref.view %all[%c0][] : memref<6144xi8> to memref<512xf32>
    %other = memref.view %all[%c2048][] : memref<6144xi8> to memref<512xf32>
    %third = memref.view %all[%c4096][] : memref<6144xi8> to memref<512xf32>
    %r:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%a = %one, %b = %other)
        -> (memref<512xf32>, memref<512xf32>) {
      %x = tile.load %a[%c128] : memref<512xf32>, !v
      tile.store %x, %b[%c0] : !v, memref<512xf32>
      tile.store %x, %third[%c0] : !v, memref<512xf32>
      scf.yield %b, %a : memref<512xf32>, memref<512xf32>
    }
    gpu.return
  }
}
