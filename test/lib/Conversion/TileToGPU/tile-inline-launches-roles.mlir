// RUN: tile-opt %s --allow-unregistered-dialect --tile-inline-launches --split-input-file --verify-diagnostics \
// RUN:   | FileCheck-22 %s

// Warps part before the loop, and both kinds run it. What a launched kernel sets up is there once, its mbarrier behind
// the shared memory of all. Before its copies all threads meet, and what was written is handed to the asynchronous
// proxy; other kernels are those of the warps that compute, whose barriers leave out the rest. Where blocks meet, the
// warps that load wait for the one thread that tells. The descriptor is that of the buffer which the loop hands on.

!f16s = memref<64x64xf16, #gpu.address_space<global>>
!bytes = memref<16384xi8, #gpu.address_space<global>>
!shared = memref<0xi8, #gpu.address_space<workgroup>>
gpu.module @kernels {
  memref.global @tile_shared : !shared
  // CHECK-LABEL: gpu.func @loop(
  // CHECK-SAME: %[[ARENA:[a-z0-9]*]]: memref<16384xi8, #gpu.address_space<global>>, %[[N:[a-z0-9]*]]: index,
  // CHECK-SAME: %[[MAP:[a-z0-9]*]]: !llvm.ptr, %[[OTHER:[a-z0-9]*]]: !llvm.ptr)
  // CHECK-SAME: known_block_size = array<i32: 256, 1, 1>
  // CHECK-SAME: {arg = 0 : i64, box = [64, 64], element = "f16", fill = "zero", kind = "tensor_map", shift = 0 : i64,
  // CHECK-SAME: sizes = [64, 64], strides = [64, 1], swizzle = 128 : i64}
  // CHECK-SAME: shift = 8192 : i64
  // CHECK-SAME: tile.shared_bytes = 520 : i64, tile.specialized, tile.threads = 256 : i64, tile.waits
  // CHECK: %[[BLOCK:.*]] = gpu.block_id x
  // CHECK: %[[PLACE:.*]] = arith.constant 512 : index
  // CHECK: memref.view %{{.*}}[%[[PLACE]]]
  // CHECK: "test.make"
  // CHECK-NEXT: nvvm.fence.mbarrier.init
  // CHECK: %[[PRODUCING:.*]] = arith.cmpi uge
  // CHECK: scf.if %[[PRODUCING]] {
  // CHECK-NEXT: nvvm.setmaxregister decrease 40
  // CHECK: scf.for {{.*}} iter_args(%[[NOW:.*]] = %{{.*}}, %{{.*}} = %{{.*}})
  // CHECK: nvvm.barrier{{$}}
  // CHECK-NEXT: nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}
  // CHECK: scf.for %{{.*}} = %[[BLOCK]]
  // CHECK: %[[HERE:.*]] = memref.extract_aligned_pointer_as_index %[[NOW]]
  // CHECK: %[[START:.*]] = memref.extract_aligned_pointer_as_index %[[ARENA]]
  // CHECK: %[[SECOND:.*]] = arith.addi %[[START]]
  // CHECK: %[[IS:.*]] = arith.cmpi eq, %[[HERE]], %[[SECOND]]
  // CHECK: %[[CHOSEN:.*]] = arith.select %[[IS]], %[[OTHER]], %[[MAP]]
  // CHECK: "test.load"(%[[CHOSEN]])
  // CHECK-NEXT: }
  // CHECK-NEXT: nvvm.barrier
  // CHECK-NEXT: nvvm.barrier
  // CHECK: nvvm.barrier{{$}}
  // CHECK-NEXT: nvvm.barrier
  // CHECK-NEXT: scf.yield
  // CHECK: } else {
  // CHECK-NEXT: nvvm.setmaxregister increase 240
  // CHECK: scf.for
  // CHECK: nvvm.barrier{{$}}
  // CHECK-NOT: nvvm.fence
  // CHECK: scf.for %{{.*}} = %[[BLOCK]]
  // CHECK: "test.compute"
  // CHECK: nvvm.barrier id = %{{.*}} number_of_threads = %{{.*}}
  // CHECK: nvvm.barrier{{$}}
  // CHECK: atom.release
  // CHECK: nvvm.barrier{{$}}
  // CHECK: scf.for
  // CHECK: nvvm.barrier id = %{{.*}} number_of_threads = %{{.*}}
  // CHECK: memref.store
  // CHECK: nvvm.barrier{{$}}
  // CHECK: atom.release
  // CHECK: nvvm.barrier{{$}}
  // CHECK: } {tile.roles}
  // CHECK-NEXT: gpu.return
  gpu.func @loop(%arena: !bytes, %n: index) kernel attributes {tile.threads = 128 : i64,
      tile.params = [{kind = "pointer", arg = 0 : i64}, {kind = "scalar", arg = 1 : i64}]} {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8192 = arith.constant 8192 : index
    %x = memref.view %arena[%c0][] : !bytes to !f16s
    %y = memref.view %arena[%c8192][] : !bytes to !f16s
    %l:2 = scf.for %t = %c0 to %n step %c1 iter_args(%now = %x, %next = %y) -> (!f16s, !f16s) {
      tile.launch @rings grid(%n) ins(%now : !f16s) outs(%next : !f16s)
      tile.launch @plain grid(%n) outs(%next : !f16s)
      scf.yield %next, %now : !f16s, !f16s
    }
    gpu.return
  }
  gpu.func @rings(%a: !f16s, %o: !f16s, %task: index, %map: !llvm.ptr) attributes {tile.code,
      tile.shared_bytes = 100 : i64, tile.specialized, tile.threads = 128 : i64,
      tile.params = [{kind = "pointer", arg = 0 : i64}, {kind = "pointer", arg = 1 : i64}, {kind = "task"},
                     {kind = "tensor_map", arg = 0 : i64, box = [64, 64], fill = "zero", swizzle = 128 : i64}]} {
    %id = gpu.thread_id x
    %thread = arith.index_castui %id : index to i32
    %c92 = arith.constant 92 : index
    %c128 = arith.constant 128 : i32
    %all = memref.get_global @tile_shared : !shared
    %barriers = memref.view %all[%c92][] : !shared to memref<1xi64, #gpu.address_space<workgroup>>
    "test.make"(%barriers) : (memref<1xi64, #gpu.address_space<workgroup>>) -> ()
    nvvm.fence.mbarrier.init
    %producing = arith.cmpi uge, %thread, %c128 : i32
    scf.if %producing {
      "test.load"(%map) : (!llvm.ptr) -> ()
    } else {
      "test.compute"(%a, %o) : (!f16s, !f16s) -> ()
    } {tile.roles}
    gpu.return
  }
  gpu.func @plain(%o: !f16s, %task: index) attributes {tile.code, tile.shared_bytes = 512 : i64,
      tile.threads = 128 : i64, tile.params = [{kind = "pointer", arg = 0 : i64}, {kind = "task"}]} {
    %v = arith.constant 0.0 : f16
    %c0 = arith.constant 0 : index
    gpu.barrier
    memref.store %v, %o[%task, %c0] : !f16s
    gpu.return
  }
}
