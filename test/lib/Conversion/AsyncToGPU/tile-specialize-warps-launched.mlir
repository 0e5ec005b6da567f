// RUN: tile-opt %s --tile-specialize-warps --split-input-file --verify-diagnostics | FileCheck-22 %s

// A kernel that another one launches again and again: each thread keeps the slot and the phase from one launch to the
// next, the phase as it is for its role before the first one. The slot of the last step is given back; no barrier says
// that slots are free, since they stay slots. Registers are the launching kernel's matter.

// CHECK-LABEL: gpu.func @step
// CHECK: nvvm.mbarrier.init
// CHECK: gpu.barrier
// CHECK: %[[PRODUCING:.*]] = arith.cmpi uge
// CHECK: %[[PHASE:.*]] = arith.extui %[[PRODUCING]]
// CHECK: %[[RING:.*]] = memref.alloca() : memref<2xi32>
// CHECK: memref.store %c0_i32{{.*}}, %[[RING]]
// CHECK: memref.store %[[PHASE]], %[[RING]]
// CHECK: scf.if %[[PRODUCING]] {
// CHECK-NOT: setmaxregister
// CHECK: %[[S:.*]] = memref.load %[[RING]]
// CHECK: %[[P:.*]] = memref.load %[[RING]]
// CHECK: %[[L:.*]]:2 = scf.for {{.*}} iter_args(%{{.*}} = %[[S]], %{{.*}} = %[[P]])
// CHECK: nvvm.cp.async.bulk.tensor
// CHECK: memref.store %[[L]]#0, %[[RING]]
// CHECK: memref.store %[[L]]#1, %[[RING]]
// CHECK: } else {
// CHECK-NOT: setmaxregister
// CHECK: %[[S:.*]] = memref.load %[[RING]]
// CHECK: %[[P:.*]] = memref.load %[[RING]]
// CHECK: %[[L:.*]]:4 = scf.for
// CHECK-SAME: iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %[[S]], %{{.*}} = %[[P]], %{{.*}} = %[[S]])
// CHECK: memref.store %[[L]]#1, %[[RING]]
// CHECK: memref.store %[[L]]#2, %[[RING]]
// CHECK: tile.mma_wait %[[L]]#0
// CHECK-NOT: gpu.barrier
// CHECK: arith.muli %[[L]]#3
// CHECK: nvvm.mbarrier.arrive
// CHECK: } {tile.roles}
!global = memref<512x64xf16, #gpu.address_space<global>>
!part = memref<64x64xf16, strided<[64, 1]>, #gpu.address_space<global>>
!place = memref<64x64xf16, strided<[64, 1], offset: ?>, #gpu.address_space<global>>
!slot = memref<64x64xf16, strided<[64, 1]>, #tile.level<"shared">>
!any_slot = memref<64x64xf16, strided<[64, 1], offset: ?>, #tile.level<"shared">>
gpu.module @kernels {
  gpu.func @step(%a: !global, %o: memref<64x64xf32>, %task: index)
      attributes {tile.code, tile.specialized, tile.threads = 128 : i64,
                  tile.params = [{kind = "pointer", arg = 0 : i64}, {kind = "pointer", arg = 1 : i64},
                                 {kind = "task"}]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c8 = arith.constant 8 : index
    %c64 = arith.constant 64 : index
    %s = tile.alloc {tile.layouts = [#tile.layout<swizzle = 128>]} : memref<2x64x64xf16, #tile.level<"shared">>
    %zero = arith.constant dense<0.0> : !tile.tile<64x64xf32>
    %x0 = memref.subview %a[0, 0] [64, 64] [1, 1] : !global to !part
    %s0 = memref.subview %s[0, 0, 0] [1, 64, 64] [1, 1, 1] : memref<2x64x64xf16, #tile.level<"shared">> to !slot
    %t0 = tile.async {
      tile.copy %x0 to %s0 : !part, !slot
    }
    %last:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%acc = %zero, %w0 = %t0)
        -> (!tile.tile<64x64xf32>, !tile.token) {
      tile.await %w0
      %ahead = arith.addi %i, %c1 : index
      %more = arith.cmpi slt, %ahead, %c8 : index
      %next = scf.if %more -> (!tile.token) {
        %row = arith.muli %ahead, %c64 : index
        %free = arith.remui %ahead, %c2 : index
        %xn = memref.subview %a[%row, 0] [64, 64] [1, 1] : !global to !place
        %sn = memref.subview %s[%free, 0, 0] [1, 64, 64] [1, 1, 1] : memref<2x64x64xf16, #tile.level<"shared">>
            to !any_slot
        %t = tile.async {
          tile.copy %xn to %sn : !place, !any_slot
        }
        scf.yield %t : !tile.token
      } else {
        scf.yield %w0 : !tile.token
      }
      %slot = arith.remui %i, %c2 : index
      %x = tile.load %s[%slot, %c0, %c0] : memref<2x64x64xf16, #tile.level<"shared">>,
          !tile.tile<64x64xf16, #tile.level<"shared">>
      %sum = tile.mma %x, %x, %acc {tile.unit = "wgmma"} : !tile.tile<64x64xf16, #tile.level<"shared">>,
          !tile.tile<64x64xf16, #tile.level<"shared">>, !tile.tile<64x64xf32>
      scf.yield %sum, %next : !tile.tile<64x64xf32>, !tile.token
    }
    tile.store %last#0, %o[%c0, %c0] : !tile.tile<64x64xf32>, memref<64x64xf32>
    gpu.return
  }
  // Two buffers that a loop hands round are known, as parts of one that the host gives.
  gpu.func @loop(%arena: memref<131072xi8, #gpu.address_space<global>>, %o: memref<64x64xf32>, %n: index) kernel
      attributes {tile.threads = 128 : i64,
                  tile.params = [{kind = "pointer", arg = 0 : i64}, {kind = "pointer", arg = 1 : i64},
                                 {kind = "scalar", arg = 2 : i64}]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c65536 = arith.constant 65536 : index
    %x = memref.view %arena[%c0][] : memref<131072xi8, #gpu.address_space<global>> to !global
    %y = memref.view %arena[%c65536][] : memref<131072xi8, #gpu.address_space<global>> to !global
    %l:2 = scf.for %t = %c0 to %n step %c1 iter_args(%now = %x, %next = %y) -> (!global, !global) {
      tile.launch @step ins(%now : !global) outs(%o : memref<64x64xf32>)
      scf.yield %next, %now : !global, !global
    }
    gpu.return
  }
}

// -----

// What is launched on a part of a buffer that each iteration chooses has no descriptor: all threads copy.

// CHECK-LABEL: gpu.func @chosen
// CHECK-NOT: tile.specialized
// CHECK-NOT: nvvm
!global = memref<64x64xf16, #gpu.address_space<global>>
!any = memref<64x64xf16, strided<[64, 1], offset: ?>, #gpu.address_space<global>>
!slot = memref<64x64xf16, strided<[64, 1]>, #tile.level<"shared">>
gpu.module @kernels {
  // expected-remark @below {{launched on a part of a buffer whose place or sizes only a run knows}}
  gpu.func @chosen(%a: !any, %o: memref<64x64xf16>, %task: index)
      attributes {tile.code, tile.specialized, tile.threads = 128 : i64,
                  tile.params = [{kind = "pointer", arg = 0 : i64}, {kind = "pointer", arg = 1 : i64},
                                 {kind = "task"}]} {
    %c0 = arith.constant 0 : index
    %s = tile.alloc {tile.layouts = [#tile.layout<swizzle = 128>]} : memref<1x64x64xf16, #tile.level<"shared">>
    %x0 = memref.subview %a[0, 0] [64, 64] [1, 1] : !any to !any
    %s0 = memref.subview %s[0, 0, 0] [1, 64, 64] [1, 1, 1] : memref<1x64x64xf16, #tile.level<"shared">> to !slot
    %t0 = tile.async {
      tile.copy %x0 to %s0 : !any, !slot
    }
    tile.await %t0
    %x = tile.load %s[%c0, %c0, %c0] : memref<1x64x64xf16, #tile.level<"shared">>, !tile.tile<64x64xf16>
    tile.store %x, %o[%c0, %c0] : !tile.tile<64x64xf16>, memref<64x64xf16>
    gpu.return
  }
  gpu.func @loop(%x: memref<512x64xf16, #gpu.address_space<global>>, %o: memref<64x64xf16>, %n: index) kernel
      attributes {tile.threads = 128 : i64,
                  tile.params = [{kind = "pointer", arg = 0 : i64}, {kind = "pointer", arg = 1 : i64},
                                 {kind = "scalar", arg = 2 : i64}]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    scf.for %t = %c0 to %n step %c1 {
      %part = memref.subview %x[%t, 0] [64, 64] [1, 1] : memref<512x64xf16, #gpu.address_space<global>> to !any
      tile.launch @chosen ins(%part : !any) outs(%o : memref<64x64xf16>)
    }
    gpu.return
  }
}
