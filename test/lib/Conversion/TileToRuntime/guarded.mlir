// RUN: tile-opt %s -convert-tile-kernel-to-func | FileCheck-22 %s

// Local memory of code that checks its accesses: 64 bytes before the first place and behind each.
// CHECK-LABEL: func.func @k
// CHECK-SAME: tile.scratch_bytes = 320 : i64
// CHECK: %[[SCRATCH:.*]] = memref.extract_aligned_pointer_as_index
// CHECK: %[[ALL:.*]] = arith.constant 320 : index
// CHECK: call @__asan_poison_memory_region(%{{.*}}, %[[ALL]])
// CHECK: arith.constant 64 : index
// CHECK: %[[A:.*]] = arith.constant 20 : index
// CHECK: call @__asan_unpoison_memory_region(%{{.*}}, %[[A]])
// CHECK: arith.constant 192 : index
// CHECK: %[[B:.*]] = arith.constant 64 : index
// CHECK: call @__asan_unpoison_memory_region(%{{.*}}, %[[B]])
// CHECK: scf.for
// CHECK-DAG: %[[PLACE:.*]] = arith.constant 192 : index
// CHECK-DAG: memref.view %{{.*}}[%[[PLACE]]][] : memref<320xi8> to memref<16xf32>
// CHECK: return
module attributes {tile.options = {sanitize = "address"}} {
  tile.kernel @k(%x: memref<4xf32>) grid(%i) {
    %a = tile.alloc : memref<5xf32, #tile.level<"l1">>
    %b = tile.alloc : memref<16xf32, #tile.level<"l1">>
    %v = memref.load %x[%i] : memref<4xf32>
    memref.store %v, %a[%i] : memref<5xf32, #tile.level<"l1">>
    memref.store %v, %b[%i] : memref<16xf32, #tile.level<"l1">>
    tile.return
  }
  func.func @main(%x: memref<4xf32>) {
    %c4 = arith.constant 4 : index
    tile.launch @k grid(%c4) outs(%x : memref<4xf32>)
    return
  }
}
