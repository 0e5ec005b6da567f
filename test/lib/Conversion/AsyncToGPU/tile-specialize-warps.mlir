// RUN: tile-opt %s --tile-specialize-warps --split-input-file --verify-diagnostics | FileCheck-22 %s

// One thread of the warps on top fills slots: rows of 128 columns are two panels of 64. The others multiply, with one
// product in flight while the next step begins, and give a slot back a step late, one thread per warpgroup.

// CHECK-LABEL: gpu.func @gemm
// CHECK-SAME: (%[[A:.*]]: memref<512x128xf16>, %[[O:.*]]: memref<128x64xf32>, %[[MAP:.*]]: !llvm.ptr)
// CHECK-SAME: known_block_size = array<i32: 384, 1, 1>
// CHECK-SAME: {arg = 0 : i64, box = [64, 64], fill = "zero", kind = "tensor_map", swizzle = 128 : i64}

// CHECK-COUNT-4: nvvm.mbarrier.init
// CHECK: nvvm.fence.mbarrier.init
// CHECK: gpu.barrier
// CHECK: nvvm.shfl.sync
// CHECK: scf.if %{{.*}} {
// CHECK: nvvm.setmaxregister decrease 40
// CHECK: nvvm.elect.sync
// CHECK: nvvm.prefetch tensormap, %[[MAP]]
// CHECK: scf.for %[[T:.*]] = {{.*}} iter_args(%[[SLOT:.*]] = %{{.*}}, %[[PHASE:.*]] = %{{.*}}) -> (i32, i32)
// CHECK: nvvm.mbarrier.try_wait.parity %{{.*}}, %[[PHASE]]
// CHECK: %[[BYTES:.*]] = arith.constant 16384 : i32
// CHECK: nvvm.mbarrier.arrive.expect_tx %{{.*}}, %[[BYTES]]
// CHECK: arith.muli %[[T]]
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[MAP]], %{{.*}}, box[%[[X:.*]], %[[Y:.*]]]
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %[[MAP]], %{{.*}}, box[%{{.*}}, %[[Y]]]
// CHECK-NOT: tile.
// CHECK: } else {
// CHECK: nvvm.setmaxregister increase 232
// CHECK: ub.poison : !tile.tile<128x64xf32>
// CHECK-NOT: tile.async
// CHECK: %[[R:.*]]:4 = scf.for
// CHECK-SAME: iter_args(%[[ACC:.*]] = %{{.*}}, %[[S:.*]] = %{{.*}}, %[[P:.*]] = %{{.*}}, %[[BEFORE:.*]] = %{{.*}})
// CHECK: nvvm.mbarrier.try_wait.parity %{{.*}}, %[[P]]
// CHECK: %[[N:.*]] = arith.index_cast %[[S]] : i32 to index
// CHECK-NOT: arith.remui
// CHECK: tile.load %{{.*}}[%[[N]],
// CHECK: %[[D:.*]] = tile.mma {{.*}}, %[[ACC]] {tile.pending = 1 : i64, tile.starts, tile.unit = "wgmma"}
// CHECK: arith.constant 127
// CHECK: scf.if
// CHECK: nvvm.mbarrier.arrive
// CHECK: scf.yield %[[D]]
// CHECK: %[[W:.*]] = tile.mma_wait %[[R]]#0
// CHECK: tile.store %[[W]]
// CHECK: } {tile.roles}
gpu.module @kernels {
  gpu.func @gemm(%a: memref<512x128xf16>, %o: memref<128x64xf32>) kernel
      attributes {tile.specialized, tile.threads = 256 : i64,
                  tile.params = [{kind = "pointer", arg = 0 : i64}, {kind = "pointer", arg = 1 : i64}]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c64 = arith.constant 64 : index
    %s = tile.alloc {tile.layouts = [#tile.layout<perm = [0, 2, 1], inner = [2], tiles = [64], swizzle = 128>]}
        : memref<2x64x128xf16, #tile.level<"shared">>
    %b = tile.alloc {tile.layouts = [#tile.layout<swizzle = 128>]} : memref<1x64x64xf16, #tile.level<"shared">>
    %zero = arith.constant dense<0.0> : !tile.tile<128x64xf32>
    %y = tile.load %b[%c0, %c0, %c0] : memref<1x64x64xf16, #tile.level<"shared">>,
        !tile.tile<64x64xf16, #tile.level<"shared">>
    %x0 = memref.subview %a[0, 0] [64, 128] [1, 1] : memref<512x128xf16> to memref<64x128xf16, strided<[128, 1]>>
    %s0 = memref.subview %s[0, 0, 0] [1, 64, 128] [1, 1, 1] : memref<2x64x128xf16, #tile.level<"shared">>
        to memref<64x128xf16, strided<[128, 1]>, #tile.level<"shared">>
    %t0 = tile.async {
      tile.copy %x0 to %s0 : memref<64x128xf16, strided<[128, 1]>>,
          memref<64x128xf16, strided<[128, 1]>, #tile.level<"shared">>
    }
    %last:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%acc = %zero, %w0 = %t0)
        -> (!tile.tile<128x64xf32>, !tile.token) {
      tile.await %w0
      %ahead = arith.addi %i, %c1 : index
      %more = arith.cmpi slt, %ahead, %c8 : index
      %next = scf.if %more -> (!tile.token) {
        %row = arith.muli %ahead, %c64 : index
        %free = arith.remui %ahead, %c2 : index
        %xn = memref.subview %a[%row, 0] [64, 128] [1, 1] : memref<512x128xf16>
            to memref<64x128xf16, strided<[128, 1], offset: ?>>
        %sn = memref.subview %s[%free, 0, 0] [1, 64, 128] [1, 1, 1] : memref<2x64x128xf16, #tile.level<"shared">>
            to memref<64x128xf16, strided<[128, 1], offset: ?>, #tile.level<"shared">>
        %t = tile.async {
          tile.copy %xn to %sn : memref<64x128xf16, strided<[128, 1], offset: ?>>,
              memref<64x128xf16, strided<[128, 1], offset: ?>, #tile.level<"shared">>
        }
        scf.yield %t : !tile.token
      } else {
        scf.yield %w0 : !tile.token
      }
      %slot = arith.remui %i, %c2 : index
      %x = tile.load %s[%slot, %c0, %c0] dims [2, 1]
          : memref<2x64x128xf16, #tile.level<"shared">>, !tile.tile<128x64xf16, #tile.level<"shared">>
      %d = tile.mma %x, %y, %acc {tile.unit = "wgmma"}
          : !tile.tile<128x64xf16, #tile.level<"shared">>, !tile.tile<64x64xf16, #tile.level<"shared">>,
          !tile.tile<128x64xf32>
      scf.yield %d, %next : !tile.tile<128x64xf32>, !tile.token
    }
    tile.store %last#0, %o[%c0, %c0] : !tile.tile<128x64xf32>, memref<128x64xf32>
    gpu.return
  }
}

// -----

// Slots that other instructions read are given back by each warp, at the end of their step. Bounds that are the
// argument's end are TMA's business.

// CHECK-LABEL: gpu.func @sum
// CHECK: nvvm.cp.async.bulk.tensor
// CHECK: nvvm.setmaxregister increase 240
// CHECK: tile.load
// CHECK: nvvm.bar.warp.sync
// CHECK: arith.constant 31
// CHECK: nvvm.mbarrier.arrive
// CHECK-NOT: tile.mma_wait
gpu.module @kernels {
  gpu.func @sum(%x: memref<200x32xf32>, %o: memref<64x32xf32>) kernel
      attributes {tile.specialized, tile.threads = 128 : i64,
                  tile.params = [{kind = "pointer", arg = 0 : i64}, {kind = "pointer", arg = 1 : i64}]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c4 = arith.constant 4 : index
    %c64 = arith.constant 64 : index
    %c200 = arith.constant 200 : index
    %s = tile.alloc {tile.layouts = [#tile.layout<swizzle = 128>]} : memref<2x64x32xf32, #tile.level<"shared">>
    %zero = arith.constant dense<0.0> : !tile.tile<64x32xf32>
    %x0 = memref.subview %x[0, 0] [64, 32] [1, 1] : memref<200x32xf32> to memref<64x32xf32, strided<[32, 1]>>
    %s0 = memref.subview %s[0, 0, 0] [1, 64, 32] [1, 1, 1] : memref<2x64x32xf32, #tile.level<"shared">>
        to memref<64x32xf32, strided<[32, 1]>, #tile.level<"shared">>
    %t0 = tile.async {
      tile.copy %x0 to %s0 : memref<64x32xf32, strided<[32, 1]>>,
          memref<64x32xf32, strided<[32, 1]>, #tile.level<"shared">>
    }
    %last:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%acc = %zero, %w0 = %t0)
        -> (!tile.tile<64x32xf32>, !tile.token) {
      tile.await %w0
      %ahead = arith.addi %i, %c1 : index
      %more = arith.cmpi slt, %ahead, %c4 : index
      %next = scf.if %more -> (!tile.token) {
        %row = arith.muli %ahead, %c64 : index
        %free = arith.remui %ahead, %c2 : index
        %left = arith.subi %c200, %row : index
        %some = arith.minsi %left, %c64 : index
        %rows = arith.maxsi %some, %c0 : index
        %xn = memref.subview %x[%row, 0] [%rows, 32] [1, 1] : memref<200x32xf32>
            to memref<?x32xf32, strided<[32, 1], offset: ?>>
        %sn = memref.subview %s[%free, 0, 0] [1, 64, 32] [1, 1, 1] : memref<2x64x32xf32, #tile.level<"shared">>
            to memref<64x32xf32, strided<[32, 1], offset: ?>, #tile.level<"shared">>
        %t = tile.async {
          tile.copy %xn to %sn fill : memref<?x32xf32, strided<[32, 1], offset: ?>>,
              memref<64x32xf32, strided<[32, 1], offset: ?>, #tile.level<"shared">>
        }
        scf.yield %t : !tile.token
      } else {
        scf.yield %w0 : !tile.token
      }
      %slot = arith.remui %i, %c2 : index
      %v = tile.load %s[%slot, %c0, %c0] : memref<2x64x32xf32, #tile.level<"shared">>, !tile.tile<64x32xf32>
      %d = arith.addf %acc, %v : !tile.tile<64x32xf32>
      scf.yield %d, %next : !tile.tile<64x32xf32>, !tile.token
    }
    tile.store %last#0, %o[%c0, %c0] : !tile.tile<64x32xf32>, memref<64x32xf32>
    gpu.return
  }
}

// -----

// A copy that is started once has an mbarrier for itself, and nobody gives it back; a branch around it is the
// producers', too. Where three blocks share a processor, each thread begins with 80 registers.

// CHECK-LABEL: gpu.func @once
// CHECK: nvvm.mbarrier.init %[[BAR:.*]], %{{.*}} : !llvm.ptr<3>, i32
// CHECK-NOT: nvvm.mbarrier.init
// CHECK: nvvm.setmaxregister decrease 40
// CHECK: scf.if %{{.*}} {
// CHECK: nvvm.mbarrier.arrive.expect_tx %[[BAR]]
// CHECK: nvvm.cp.async.bulk.tensor
// CHECK: nvvm.setmaxregister increase 120
// CHECK-NOT: tile.async
// CHECK: scf.if %{{.*}} {
// CHECK: nvvm.mbarrier.try_wait.parity %[[BAR]], %{{.*}}, %{{.*}}
// CHECK: tile.load
// CHECK-NOT: nvvm.mbarrier.arrive
gpu.module @kernels {
  gpu.func @once(%x: memref<64x32xf32>, %o: memref<64x32xf32>, %p: i1) kernel
      attributes {tile.specialized, tile.occupancy = 3 : i64, tile.threads = 128 : i64,
                  tile.params = [{kind = "pointer", arg = 0 : i64}, {kind = "pointer", arg = 1 : i64},
                      {kind = "scalar", arg = 2 : i64}]} {
    %c0 = arith.constant 0 : index
    %s = tile.alloc {tile.layouts = [#tile.layout<swizzle = 128>]} : memref<1x64x32xf32, #tile.level<"shared">>
    scf.if %p {
      %from = memref.subview %x[0, 0] [64, 32] [1, 1] : memref<64x32xf32> to memref<64x32xf32, strided<[32, 1]>>
      %to = memref.subview %s[0, 0, 0] [1, 64, 32] [1, 1, 1] : memref<1x64x32xf32, #tile.level<"shared">>
          to memref<64x32xf32, strided<[32, 1]>, #tile.level<"shared">>
      %t = tile.async {
        tile.copy %from to %to : memref<64x32xf32, strided<[32, 1]>>,
            memref<64x32xf32, strided<[32, 1]>, #tile.level<"shared">>
      }
      tile.await %t
      %v = tile.load %s[%c0, %c0, %c0] : memref<1x64x32xf32, #tile.level<"shared">>, !tile.tile<64x32xf32>
      tile.store %v, %o[%c0, %c0] : !tile.tile<64x32xf32>, memref<64x32xf32>
    }
    gpu.return
  }
}

// -----

// Two blocks of a cluster: each loads 32 of the 64 rows of %a into the slots of both, and a slot is empty once the
// warpgroups of both have told so; the first two threads of a warpgroup tell a block each. All meet at the start and
// before the end.

// CHECK-LABEL: gpu.func @cluster
// CHECK-SAME: {arg = 0 : i64, box = [32, 64], fill = "zero", kind = "tensor_map", swizzle = 128 : i64}
// CHECK: %[[READERS:.*]] = arith.constant 2 : i32
// CHECK: nvvm.mbarrier.init %{{.*}}, %[[READERS]]
// CHECK: nvvm.fence.mbarrier.init
// CHECK-NOT: gpu.barrier
// CHECK: nvvm.cluster.arrive {aligned}
// CHECK-NEXT: nvvm.cluster.wait {aligned}
// CHECK-NEXT: %[[RANK:.*]] = nvvm.read.ptx.sreg.cluster.ctarank : i32
// CHECK: nvvm.setmaxregister decrease
// CHECK: llvm.inline_asm has_side_effects {{.*}}mbarrier.try_wait.parity.acquire.cluster
// CHECK: arith.constant 8192 : i32
// CHECK: nvvm.mbarrier.arrive.expect_tx
// CHECK: arith.muli %[[RANK]]
// CHECK: %[[ROW:.*]] = arith.addi
// CHECK: %[[ALL:.*]] = arith.constant 3 : i16
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global {{.*}}, box[%{{.*}}, %[[ROW]]] multicast_mask = %[[ALL]]
// CHECK: nvvm.setmaxregister increase
// CHECK: %[[PEER:.*]] = nvvm.mapa %{{.*}}, %{{.*}} : !llvm.ptr<3> -> !llvm.ptr<7>
// CHECK: nvvm.mbarrier.try_wait.parity
// CHECK: llvm.getelementptr %[[PEER]]
// CHECK: nvvm.mbarrier.arrive %{{.*}} {scope = #nvvm.mem_scope<cluster>} : !llvm.ptr<7>
// CHECK: } {tile.roles}
// CHECK-NEXT: nvvm.cluster.arrive
// CHECK-NEXT: nvvm.cluster.wait
// CHECK-NEXT: gpu.return
gpu.module @kernels {
  gpu.func @cluster(%a: memref<512x64xf16>, %o: memref<64x64xf32>) kernel
      attributes {tile.specialized, tile.threads = 128 : i64, tile.cluster = array<i64: 2, 1, 1>,
                  tile.params = [{kind = "pointer", arg = 0 : i64}, {kind = "pointer", arg = 1 : i64}]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c64 = arith.constant 64 : index
    %s = tile.alloc {tile.layouts = [#tile.layout<swizzle = 128>]} : memref<2x64x64xf16, #tile.level<"shared">>
    %zero = arith.constant dense<0.0> : !tile.tile<64x64xf32>
    %x0 = memref.subview %a[0, 0] [64, 64] [1, 1] : memref<512x64xf16> to memref<64x64xf16, strided<[64, 1]>>
    %s0 = memref.subview %s[0, 0, 0] [1, 64, 64] [1, 1, 1] : memref<2x64x64xf16, #tile.level<"shared">>
        to memref<64x64xf16, strided<[64, 1]>, #tile.level<"shared">>
    %t0 = tile.async {
      tile.copy %x0 to %s0 {tile.multicast} : memref<64x64xf16, strided<[64, 1]>>,
          memref<64x64xf16, strided<[64, 1]>, #tile.level<"shared">>
    }
    %last:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%acc = %zero, %w0 = %t0)
        -> (!tile.tile<64x64xf32>, !tile.token) {
      tile.await %w0
      %ahead = arith.addi %i, %c1 : index
      %more = arith.cmpi slt, %ahead, %c8 : index
      %next = scf.if %more -> (!tile.token) {
        %row = arith.muli %ahead, %c64 : index
        %free = arith.remui %ahead, %c2 : index
        %xn = memref.subview %a[%row, 0] [64, 64] [1, 1] : memref<512x64xf16>
            to memref<64x64xf16, strided<[64, 1], offset: ?>>
        %sn = memref.subview %s[%free, 0, 0] [1, 64, 64] [1, 1, 1] : memref<2x64x64xf16, #tile.level<"shared">>
            to memref<64x64xf16, strided<[64, 1], offset: ?>, #tile.level<"shared">>
        %t = tile.async {
          tile.copy %xn to %sn {tile.multicast} : memref<64x64xf16, strided<[64, 1], offset: ?>>,
              memref<64x64xf16, strided<[64, 1], offset: ?>, #tile.level<"shared">>
        }
        scf.yield %t : !tile.token
      } else {
        scf.yield %w0 : !tile.token
      }
      %slot = arith.remui %i, %c2 : index
      %v = tile.load %s[%slot, %c0, %c0] : memref<2x64x64xf16, #tile.level<"shared">>,
          !tile.tile<64x64xf16, #tile.level<"shared">>
      %d = tile.mma %v, %v, %acc {tile.unit = "wgmma"}
          : !tile.tile<64x64xf16, #tile.level<"shared">>, !tile.tile<64x64xf16, #tile.level<"shared">>,
          !tile.tile<64x64xf32>
      scf.yield %d, %next : !tile.tile<64x64xf32>, !tile.token
    }
    tile.store %last#0, %o[%c0, %c0] : !tile.tile<64x64xf32>, memref<64x64xf32>
    gpu.return
  }
}

// -----

// Eight rows cannot be cut into two parts: swizzles exchange eight.

// CHECK-LABEL: gpu.func @whole
// CHECK-NOT: nvvm.cluster
// CHECK-NOT: multicast_mask
gpu.module @kernels {
  gpu.func @whole(%a: memref<64x64xf16>, %o: memref<8x64xf16>) kernel
      attributes {tile.specialized, tile.threads = 128 : i64, tile.cluster = array<i64: 2, 1, 1>,
                  tile.params = [{kind = "pointer", arg = 0 : i64}, {kind = "pointer", arg = 1 : i64}]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %s = tile.alloc {tile.layouts = [#tile.layout<swizzle = 128>]} : memref<2x8x64xf16, #tile.level<"shared">>
    %zero = arith.constant dense<0.0> : !tile.tile<8x64xf16>
    %x0 = memref.subview %a[0, 0] [8, 64] [1, 1] : memref<64x64xf16> to memref<8x64xf16, strided<[64, 1]>>
    %s0 = memref.subview %s[0, 0, 0] [1, 8, 64] [1, 1, 1] : memref<2x8x64xf16, #tile.level<"shared">>
        to memref<8x64xf16, strided<[64, 1]>, #tile.level<"shared">>
    %t0 = tile.async {
      tile.copy %x0 to %s0 : memref<8x64xf16, strided<[64, 1]>>,
          memref<8x64xf16, strided<[64, 1]>, #tile.level<"shared">>
    }
    %last:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%acc = %zero, %w0 = %t0)
        -> (!tile.tile<8x64xf16>, !tile.token) {
      tile.await %w0
      %ahead = arith.addi %i, %c1 : index
      %more = arith.cmpi slt, %ahead, %c8 : index
      %next = scf.if %more -> (!tile.token) {
        %row = arith.muli %ahead, %c8 : index
        %free = arith.remui %ahead, %c2 : index
        %xn = memref.subview %a[%row, 0] [8, 64] [1, 1] : memref<64x64xf16>
            to memref<8x64xf16, strided<[64, 1], offset: ?>>
        %sn = memref.subview %s[%free, 0, 0] [1, 8, 64] [1, 1, 1] : memref<2x8x64xf16, #tile.level<"shared">>
            to memref<8x64xf16, strided<[64, 1], offset: ?>, #tile.level<"shared">>
        %t = tile.async {
          // expected-remark@+1 {{is done by each block of the cluster, since its box cannot be cut into 2 parts}}
          tile.copy %xn to %sn {tile.multicast} : memref<8x64xf16, strided<[64, 1], offset: ?>>,
              memref<8x64xf16, strided<[64, 1], offset: ?>, #tile.level<"shared">>
        }
        scf.yield %t : !tile.token
      } else {
        scf.yield %w0 : !tile.token
      }
      %slot = arith.remui %i, %c2 : index
      %v = tile.load %s[%slot, %c0, %c0] : memref<2x8x64xf16, #tile.level<"shared">>, !tile.tile<8x64xf16>
      %d = arith.addf %acc, %v : !tile.tile<8x64xf16>
      scf.yield %d, %next : !tile.tile<8x64xf16>, !tile.token
    }
    tile.store %last#0, %o[%c0, %c0] : !tile.tile<8x64xf16>, memref<8x64xf16>
    gpu.return
  }
}

// -----

// CHECK-LABEL: gpu.func @none
// CHECK-NOT: tile.specialized
gpu.module @kernels {
  // expected-remark@+1 {{gets no warps that only move data, since it loads nothing ahead of time}}
  gpu.func @none() kernel attributes {tile.specialized, tile.threads = 128 : i64, tile.params = []} {
    gpu.return
  }
}

// -----

gpu.module @kernels {
  // expected-error@+1 {{has tile.threads = 64 : i64: warps that compute come in one to three groups of 128 threads}}
  gpu.func @threads() kernel attributes {tile.specialized, tile.threads = 64 : i64, tile.params = []} {
    gpu.return
  }
}

// -----

// Rows of a slot that are places of an image, of which a window takes every second one: a box with steps.

// CHECK-LABEL: gpu.func @steps
// CHECK-SAME: {arg = 0 : i64, box = [8, 16, 64], fill = "zero", kind = "tensor_map",
// CHECK-SAME: {{^}} steps = [2, 2, 1], swizzle = 128 : i64}
// CHECK: nvvm.cp.async.bulk.tensor.shared.cluster.global %{{.*}}, %{{.*}}, %{{.*}}, box[%{{.*}}, %{{.*}}, %{{.*}}]
gpu.module @kernels {
  gpu.func @steps(%x: memref<15x31x64xf16>, %o: memref<32x64xf16>) kernel
      attributes {tile.specialized, tile.threads = 128 : i64,
                  tile.params = [{kind = "pointer", arg = 0 : i64}, {kind = "pointer", arg = 1 : i64}]} {
    %c0 = arith.constant 0 : index
    %s = tile.alloc {tile.layouts = [#tile.layout<swizzle = 128>]} : memref<1x32x64xf16, #tile.level<"shared">>
    %from = memref.subview %x[1, 1, 0] [4, 8, 64] [2, 2, 1] : memref<15x31x64xf16>
        to memref<4x8x64xf16, strided<[3968, 128, 1], offset: 2048>>
    %to = memref.subview %s[0, 0, 0] [1, 32, 64] [1, 1, 1] : memref<1x32x64xf16, #tile.level<"shared">>
        to memref<32x64xf16, strided<[64, 1]>, #tile.level<"shared">>
    %places = memref.expand_shape %to [[0, 1], [2]] output_shape [4, 8, 64]
        : memref<32x64xf16, strided<[64, 1]>, #tile.level<"shared">>
        into memref<4x8x64xf16, strided<[512, 64, 1]>, #tile.level<"shared">>
    %t = tile.async {
      tile.copy %from to %places bounded [0, 1]
          : memref<4x8x64xf16, strided<[3968, 128, 1], offset: 2048>>,
          memref<4x8x64xf16, strided<[512, 64, 1]>, #tile.level<"shared">>
    }
    tile.await %t
    %v = tile.load %s[%c0, %c0, %c0] : memref<1x32x64xf16, #tile.level<"shared">>, !tile.tile<32x64xf16>
    tile.store %v, %o[%c0, %c0] : !tile.tile<32x64xf16>, memref<32x64xf16>
    gpu.return
  }
}
