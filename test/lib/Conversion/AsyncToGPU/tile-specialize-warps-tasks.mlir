// RUN: tile-opt %s --tile-specialize-warps --split-input-file --verify-diagnostics | FileCheck-22 %s

// A block with several tasks: both branches carry the slot and its phase from one task to the next, and the slot of a
// task's last step is given back behind the wait for its products. No barrier stands behind the loop: slots stay slots.

// CHECK-LABEL: gpu.func @tasks
// CHECK: nvvm.setmaxregister decrease
// CHECK: scf.for %[[T:.*]] = %{{.*}} to %{{.*}} step
// CHECK-SAME: {{^}} %{{.*}} iter_args(%[[S:.*]] = %{{.*}}, %[[P:.*]] = %{{.*}}) -> (i32, i32)
// CHECK: %[[L:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %[[S]], %{{.*}} = %[[P]])
// CHECK: nvvm.cp.async.bulk.tensor
// CHECK: scf.yield %[[L]]#0, %[[L]]#1
// CHECK: } else {
// CHECK: scf.for {{.*}} iter_args(%[[S:.*]] = %{{.*}}, %[[P:.*]] = %{{.*}}) -> (i32, i32)
// CHECK: %[[L:.*]]:4 = scf.for
// CHECK-SAME: iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %[[S]], %{{.*}} = %[[P]], %{{.*}} = %[[S]])
// CHECK: tile.mma_wait %[[L]]#0
// CHECK-NOT: gpu.barrier
// CHECK: arith.muli %[[L]]#3
// CHECK: nvvm.mbarrier.arrive
// CHECK: tile.store
// CHECK: scf.yield %[[L]]#1, %[[L]]#2
// CHECK: } {tile.tasks}
gpu.module @kernels {
  gpu.func @tasks(%a: memref<512x64xf16>, %o: memref<640x64xf32>) kernel
      attributes {tile.specialized, tile.threads = 128 : i64,
                  tile.params = [{kind = "pointer", arg = 0 : i64}, {kind = "pointer", arg = 1 : i64}]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c10 = arith.constant 10 : index
    %c64 = arith.constant 64 : index
    %s = tile.alloc {tile.layouts = [#tile.layout<swizzle = 128>]} : memref<2x64x64xf16, #tile.level<"shared">>
    %zero = arith.constant dense<0.0> : !tile.tile<64x64xf32>
    %block = gpu.block_id x
    %blocks = gpu.grid_dim x
    scf.for %task = %block to %c10 step %blocks {
      %place = arith.muli %task, %c64 : index
      %x0 = memref.subview %a[0, 0] [64, 64] [1, 1] : memref<512x64xf16> to memref<64x64xf16, strided<[64, 1]>>
      %s0 = memref.subview %s[0, 0, 0] [1, 64, 64] [1, 1, 1] : memref<2x64x64xf16, #tile.level<"shared">>
          to memref<64x64xf16, strided<[64, 1]>, #tile.level<"shared">>
      %t0 = tile.async {
        tile.copy %x0 to %s0 : memref<64x64xf16, strided<[64, 1]>>,
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
            tile.copy %xn to %sn : memref<64x64xf16, strided<[64, 1], offset: ?>>,
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
      tile.store %last#0, %o[%place, %c0] : !tile.tile<64x64xf32>, memref<640x64xf32>
    } {tile.tasks}
    gpu.return
  }
}

// -----

// A matrix that comes once in each task: the thread that starts copies does so behind those of the loop, once all four
// warps have read that of the task before, and warps wait for it by the parity of the task's number.

// CHECK-LABEL: gpu.func @residual
// CHECK-COUNT-6: nvvm.mbarrier.init
// CHECK: nvvm.setmaxregister decrease
// CHECK: scf.for %[[T:.*]] = %{{.*}} to %{{.*}} step
// CHECK-SAME: {{^}} %{{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %[[PARITY:.*]] = %c1_i32{{[_0-9]*}})
// CHECK-SAME: {{^}} -> (i32, i32, i32)
// CHECK: scf.for
// CHECK: nvvm.cp.async.bulk.tensor
// CHECK: scf.yield
// CHECK: nvvm.mbarrier.try_wait.parity %{{.*}}, %[[PARITY]]
// CHECK: nvvm.mbarrier.arrive.expect_tx
// CHECK: nvvm.cp.async.bulk.tensor
// CHECK: %[[NEXT:.*]] = arith.xori %[[PARITY]]
// CHECK: scf.yield %{{.*}}, %{{.*}}, %[[NEXT]]
// CHECK: } else {
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}, %[[PARITY:.*]] = %c0_i32{{[_0-9]*}})
// CHECK-SAME: {{^}} -> (i32, i32, i32)
// CHECK: tile.mma_wait
// CHECK: nvvm.mbarrier.try_wait.parity %{{.*}}, %[[PARITY]]
// CHECK: tile.load
// CHECK: nvvm.bar.warp.sync
// CHECK: nvvm.mbarrier.arrive
// CHECK: tile.store
// CHECK: arith.xori %[[PARITY]]
gpu.module @kernels {
  gpu.func @residual(%a: memref<512x64xf16>, %r: memref<640x32xf32>, %o: memref<640x32xf32>) kernel
      attributes {tile.specialized, tile.threads = 128 : i64,
                  tile.params = [{kind = "pointer", arg = 0 : i64}, {kind = "pointer", arg = 1 : i64},
                      {kind = "pointer", arg = 2 : i64}]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c10 = arith.constant 10 : index
    %c64 = arith.constant 64 : index
    %s = tile.alloc {tile.layouts = [#tile.layout<swizzle = 128>]} : memref<2x64x64xf16, #tile.level<"shared">>
    %b = tile.alloc {tile.layouts = [#tile.layout<swizzle = 64>]} : memref<1x64x32xf16, #tile.level<"shared">>
    %m = tile.alloc {tile.layouts = [#tile.layout<swizzle = 128>]} : memref<1x64x32xf32, #tile.level<"shared">>
    %zero = arith.constant dense<0.0> : !tile.tile<64x32xf32>
    %y = tile.load %b[%c0, %c0, %c0] : memref<1x64x32xf16, #tile.level<"shared">>,
        !tile.tile<64x32xf16, #tile.level<"shared">>
    %block = gpu.block_id x
    %blocks = gpu.grid_dim x
    scf.for %task = %block to %c10 step %blocks {
      %place = arith.muli %task, %c64 : index
      %x0 = memref.subview %a[0, 0] [64, 64] [1, 1] : memref<512x64xf16> to memref<64x64xf16, strided<[64, 1]>>
      %s0 = memref.subview %s[0, 0, 0] [1, 64, 64] [1, 1, 1] : memref<2x64x64xf16, #tile.level<"shared">>
          to memref<64x64xf16, strided<[64, 1]>, #tile.level<"shared">>
      %t0 = tile.async {
        tile.copy %x0 to %s0 : memref<64x64xf16, strided<[64, 1]>>,
            memref<64x64xf16, strided<[64, 1]>, #tile.level<"shared">>
      }
      %last:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%acc = %zero, %w0 = %t0)
          -> (!tile.tile<64x32xf32>, !tile.token) {
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
            tile.copy %xn to %sn : memref<64x64xf16, strided<[64, 1], offset: ?>>,
                memref<64x64xf16, strided<[64, 1], offset: ?>, #tile.level<"shared">>
          }
          scf.yield %t : !tile.token
        } else {
          scf.yield %w0 : !tile.token
        }
        %slot = arith.remui %i, %c2 : index
        %v = tile.load %s[%slot, %c0, %c0] : memref<2x64x64xf16, #tile.level<"shared">>,
            !tile.tile<64x64xf16, #tile.level<"shared">>
        %d = tile.mma %v, %y, %acc {tile.unit = "wgmma"}
            : !tile.tile<64x64xf16, #tile.level<"shared">>, !tile.tile<64x32xf16, #tile.level<"shared">>,
            !tile.tile<64x32xf32>
        scf.yield %d, %next : !tile.tile<64x32xf32>, !tile.token
      }
      %rp = memref.subview %r[%place, 0] [64, 32] [1, 1] : memref<640x32xf32>
          to memref<64x32xf32, strided<[32, 1], offset: ?>>
      %mp = memref.subview %m[0, 0, 0] [1, 64, 32] [1, 1, 1] : memref<1x64x32xf32, #tile.level<"shared">>
          to memref<64x32xf32, strided<[32, 1]>, #tile.level<"shared">>
      %tr = tile.async {
        tile.copy %rp to %mp : memref<64x32xf32, strided<[32, 1], offset: ?>>,
            memref<64x32xf32, strided<[32, 1]>, #tile.level<"shared">>
      }
      tile.await %tr
      %e = tile.load %m[%c0, %c0, %c0] : memref<1x64x32xf32, #tile.level<"shared">>, !tile.tile<64x32xf32>
      %f = arith.addf %last#0, %e : !tile.tile<64x32xf32>
      tile.store %f, %o[%place, %c0] : !tile.tile<64x32xf32>, memref<640x32xf32>
    } {tile.tasks}
    gpu.return
  }
}
