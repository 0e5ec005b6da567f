// RUN: tile-opt %s -tile-plan-arena -split-input-file -verify-diagnostics | FileCheck-22 %s

// %a and %c do not live together and share a place; %b lives with both.
// CHECK: tile.arena_bytes = 192 : i64
// CHECK: func.func @main(%{{.*}}, %[[ARENA:.*]]: memref<192xi8> {tile.arena})
// CHECK: memref.view %[[ARENA]][%c0_0][] : memref<192xi8> to memref<32xf32>
// CHECK: %[[A:.*]] = arith.constant 128 : index
// CHECK: memref.view %[[ARENA]][%[[A]]][] : memref<192xi8> to memref<16xf32>
// CHECK: %[[C:.*]] = arith.constant 128 : index
// CHECK: memref.view %[[ARENA]][%[[C]]][] : memref<192xi8> to memref<16xf32>
func.func @main(%v: f32) {
  %c0 = arith.constant 0 : index
  %b = memref.alloc() : memref<32xf32>
  %a = memref.alloc() : memref<16xf32>
  %c = memref.alloc() : memref<16xf32>
  memref.store %v, %a[%c0] : memref<16xf32>
  memref.store %v, %b[%c0] : memref<32xf32>
  %0 = memref.load %a[%c0] : memref<16xf32>
  memref.store %0, %c[%c0] : memref<16xf32>
  %1 = memref.load %c[%c0] : memref<16xf32>
  memref.store %1, %b[%c0] : memref<32xf32>
  return
}

// -----

// What has no size yet, and what one iteration hands to the next, stays allocated.
// CHECK: tile.arena_bytes = 0 : i64
// CHECK: memref.alloc(%{{.*}}) : memref<?xf32>
// CHECK: scf.for
// CHECK: memref.alloc() : memref<4xf32>
func.func @main(%n: index, %x: memref<4xf32>) {
  %a = memref.alloc(%n) : memref<?xf32>
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %0 = memref.load %a[%c0] : memref<?xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %x) -> (memref<4xf32>) {
    %new = memref.alloc() : memref<4xf32>
    memref.store %0, %new[%c0] : memref<4xf32>
    scf.yield %new : memref<4xf32>
  }
  return
}

// -----

// Code that checks its accesses: 64 bytes before the first place and behind each (%b 256, %a and %c 4 together), all
// poisoned until a buffer begins to live. What lives in a loop does so as long as the loop: there, %c has the place
// of %a.
// CHECK: tile.arena_bytes = 512 : i64
// CHECK: func.func private @__asan_unpoison_memory_region(index, index)
// CHECK: func.func private @__asan_poison_memory_region(index, index)
// CHECK: func.func @main(
// CHECK: %[[ARENA:.*]] = memref.extract_aligned_pointer_as_index
// CHECK: %[[ALL:.*]] = arith.constant 512 : index
// CHECK: call @__asan_poison_memory_region(%{{.*}}, %[[ALL]])
// CHECK: arith.constant 64 : index
// CHECK: %[[B:.*]] = arith.constant 256 : index
// CHECK: call @__asan_unpoison_memory_region(%{{.*}}, %[[B]])
// CHECK: memref.store
// CHECK: arith.constant 384 : index
// CHECK: %[[A:.*]] = arith.constant 4 : index
// CHECK: call @__asan_unpoison_memory_region(%{{.*}}, %[[A]])
// CHECK: call @__asan_unpoison_memory_region
// CHECK: scf.for
// CHECK-NOT: func.call
// CHECK: }
// CHECK: call @__asan_poison_memory_region
// CHECK: call @__asan_poison_memory_region
// CHECK: memref.load
// CHECK: call @__asan_poison_memory_region
// CHECK: return
module attributes {tile.options = {sanitize = "address"}} {
  func.func @main(%v: f32, %out: memref<1xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %b = memref.alloc() : memref<64xf32>
    memref.store %v, %b[%c0] : memref<64xf32>
    scf.for %i = %c0 to %c1 step %c1 {
      %a = memref.alloc() : memref<1xf32>
      memref.store %v, %a[%c0] : memref<1xf32>
      %0 = memref.load %a[%c0] : memref<1xf32>
      %c = memref.alloc() : memref<1xf32>
      memref.store %0, %c[%c0] : memref<1xf32>
      %1 = memref.load %c[%c0] : memref<1xf32>
      memref.store %1, %out[%c0] : memref<1xf32>
    }
    %2 = memref.load %b[%c0] : memref<64xf32>
    memref.store %2, %out[%c0] : memref<1xf32>
    return
  }
}

// -----

// What teams of blocks run, they run at any time: %b, of the second one, has a place of its own beside %a. Behind them
// %c has the place of one of both.
// CHECK: tile.arena_bytes = 128 : i64
module {
  tile.kernel @k(%x: memref<16xf32>, %y: memref<16xf32>) {
    tile.return
  }
  func.func @main(%x: memref<16xf32>, %y: memref<16xf32>, %z: memref<16xf32>) {
    %a = memref.alloc() : memref<16xf32>
    tile.launch @k ins(%x : memref<16xf32>) outs(%a : memref<16xf32>) {tile.team = array<i64: 0, 1>}
    tile.launch @k ins(%a : memref<16xf32>) outs(%y : memref<16xf32>) {tile.team = array<i64: 0, 1>}
    %b = memref.alloc() : memref<16xf32>
    tile.launch @k ins(%x : memref<16xf32>) outs(%b : memref<16xf32>) {tile.team = array<i64: 1, 1>}
    tile.launch @k ins(%b : memref<16xf32>) outs(%z : memref<16xf32>) {tile.team = array<i64: 1, 1>}
    %c = memref.alloc() : memref<16xf32>
    tile.launch @k ins(%y : memref<16xf32>) outs(%c : memref<16xf32>)
    tile.launch @k ins(%c : memref<16xf32>) outs(%z : memref<16xf32>)
    return
  }
}
