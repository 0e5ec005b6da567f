// RUN: tile-opt %s -cse | FileCheck-22 %s --check-prefix=CSE
// RUN: tile-opt %s -loop-invariant-code-motion | FileCheck-22 %s --check-prefix=LICM
// RUN: tile-opt %s -symbol-dce | FileCheck-22 %s --check-prefix=DCE
// RUN: tile-opt %s -sccp | FileCheck-22 %s --check-prefix=SCCP

// Loads are merged unless a write lies between them; atomic and reducing stores, copies, waits and barriers are writes.
// CSE-LABEL: tile.kernel @effects
// CSE: %[[A:.*]] = tile.load
// CSE-NOT: tile.load
// CSE: tile.store %[[A]]
// CSE: tile.load
// CSE: tile.barrier
// CSE: tile.load
// CSE: tile.copy
// CSE: tile.load
tile.kernel @effects(%x: memref<8xf32>, %y: memref<8xf32>) grid(%i) {
  %a = tile.load %x[%i] : memref<8xf32>, !tile.tile<1xf32>
  %b = tile.load %x[%i] : memref<8xf32>, !tile.tile<1xf32>
  %s = arith.addf %a, %b : !tile.tile<1xf32>
  tile.store %a, %y[%i] : !tile.tile<1xf32>, memref<8xf32>
  %c = tile.load %x[%i] : memref<8xf32>, !tile.tile<1xf32>
  tile.barrier
  %d = tile.load %x[%i] : memref<8xf32>, !tile.tile<1xf32>
  tile.copy %y to %x : memref<8xf32>, memref<8xf32>
  %e = tile.load %x[%i] : memref<8xf32>, !tile.tile<1xf32>
  %0 = arith.addf %s, %c : !tile.tile<1xf32>
  %1 = arith.addf %d, %e : !tile.tile<1xf32>
  %2 = arith.addf %0, %1 : !tile.tile<1xf32>
  tile.store %2, %y[%i] : !tile.tile<1xf32>, memref<8xf32>
}

// What has no effects leaves the loop, a load stays.
// LICM-LABEL: tile.kernel @hoist
// LICM: tile.splat
// LICM: tile.broadcast
// LICM: scf.for
// LICM: tile.load
tile.kernel @hoist(%x: memref<8xf32>, %f: f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %k = %c0 to %c8 step %c1 {
    %a = tile.load %x[%c0] : memref<8xf32>, !tile.tile<8xf32>
    %s = tile.splat %f : f32 -> !tile.tile<1xf32>
    %b = tile.broadcast %s : !tile.tile<1xf32> -> !tile.tile<8xf32>
    %r = arith.addf %a, %b : !tile.tile<8xf32>
    tile.store %r, %x[%c0] : !tile.tile<8xf32>, memref<8xf32>
  }
}

// DCE-NOT: @unused
// DCE: tile.kernel private @used
tile.kernel private @unused() {
}
tile.kernel private @used() {
}
func.func @main() {
  tile.launch @used
  return
}

// Constants go into a group and come out of it.
// SCCP-LABEL: func.func @group
// SCCP: %[[C:.*]] = arith.constant 5 : index
// SCCP: return %[[C]]
func.func @group() -> index {
  %c2 = arith.constant 2 : index
  %r = tile.group "l1" (%a = %c2 : index) -> (index) {
    %c3 = arith.constant 3 : index
    %s = arith.addi %a, %c3 : index
    tile.yield %s : index
  }
  return %r : index
}
