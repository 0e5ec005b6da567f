// RUN: tile-opt %s --tile-plan-teams="units=4" --split-input-file --verify-diagnostics | FileCheck-22 %s

// A multiprocessor surely holds two blocks of 128 threads: eight in all.
tile.kernel @k(%x: memref<64xf32>, %y: memref<64xf32>) grid(%i) {
  tile.return
}

// Loops of unequal lengths that touch nothing of each other, with a launch in front that only one of them needs. What
// needs both is all blocks'.
// CHECK-LABEL: func.func @apart
// CHECK: tile.launch @k {{.*}} {tile.team = array<i64: 0, [[A:[0-9]+]]>}
// CHECK: scf.for
// CHECK: } {tile.team = array<i64: 0, [[A]]>}
// CHECK: scf.for
// CHECK: } {tile.team = array<i64: [[A]], {{[0-9]+}}>}
// CHECK: tile.launch
// CHECK-NOT: tile.team
// CHECK: return
func.func @apart(%x: memref<64xf32>, %a: memref<64xf32>, %b: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %h = memref.alloc() : memref<64xf32>
  // expected-remark@+1 {{by teams of 4, 4 blocks: predicted are 20 us in turn, 14 us as teams}}
  tile.launch @k grid(%c4) ins(%x : memref<64xf32>) outs(%a : memref<64xf32>)
  %r:2 = scf.for %t = %c0 to %c8 step %c1 iter_args(%f = %a, %g = %h) -> (memref<64xf32>, memref<64xf32>) {
    tile.launch @k grid(%c4) ins(%f : memref<64xf32>) outs(%g : memref<64xf32>)
    scf.yield %g, %f : memref<64xf32>, memref<64xf32>
  }
  scf.for %t = %c0 to %c4 step %c1 {
    tile.launch @k grid(%c4) ins(%x : memref<64xf32>) outs(%b : memref<64xf32>)
  }
  tile.launch @k grid(%c4) ins(%b : memref<64xf32>) outs(%a : memref<64xf32>)
  return
}

// The second loop reads what the first one writes; of the third, which ends by data, others need to know the result.
// CHECK-LABEL: func.func @in_turn
// CHECK-NOT: tile.team
// CHECK: return
func.func @in_turn(%x: memref<64xf32>, %a: memref<64xf32>, %b: memref<64xf32>, %go: memref<i1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %t = %c0 to %c8 step %c1 {
    tile.launch @k grid(%c8) ins(%x : memref<64xf32>) outs(%a : memref<64xf32>)
  }
  scf.for %t = %c0 to %c8 step %c1 {
    tile.launch @k grid(%c8) ins(%a : memref<64xf32>) outs(%b : memref<64xf32>)
  }
  %r:2 = scf.while (%f = %x, %g = %a) : (memref<64xf32>, memref<64xf32>) -> (memref<64xf32>, memref<64xf32>) {
    %more = memref.load %go[] : memref<i1>
    scf.condition(%more) %f, %g : memref<64xf32>, memref<64xf32>
  } do {
  ^bb0(%f: memref<64xf32>, %g: memref<64xf32>):
    tile.launch @k grid(%c8) ins(%f : memref<64xf32>) outs(%g : memref<64xf32>)
    scf.yield %g, %f : memref<64xf32>, memref<64xf32>
  }
  tile.launch @k grid(%c8) ins(%r#0 : memref<64xf32>) outs(%b : memref<64xf32>)
  return
}

// Two chains in a body: in turn their blocks meet three times (the second launch of the first chain is beside the first
// one of the second chain), as teams twice.
// CHECK-LABEL: func.func @in_a_body
// CHECK: scf.for
// CHECK-COUNT-2: tile.launch {{.*}} {tile.team = array<i64: 0, 2>}
// CHECK-COUNT-2: tile.launch {{.*}} {tile.team = array<i64: 2, 2>}
// CHECK-NEXT: }
// CHECK-NOT: tile.team
// CHECK: return
func.func @in_a_body(%a: memref<64xf32>, %b: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %f = memref.alloc() : memref<64xf32>
  %g = memref.alloc() : memref<64xf32>
  scf.for %t = %c0 to %c8 step %c1 {
    // expected-remark@+1 {{2 chains of launches run beside each other, by teams of 2, 2 blocks}}
    tile.launch @k grid(%c2) ins(%a : memref<64xf32>) outs(%f : memref<64xf32>)
    tile.launch @k grid(%c2) ins(%f : memref<64xf32>) outs(%a : memref<64xf32>)
    tile.launch @k grid(%c2) ins(%b : memref<64xf32>) outs(%g : memref<64xf32>)
    tile.launch @k grid(%c2) ins(%g : memref<64xf32>) outs(%b : memref<64xf32>)
  }
  return
}

// A number that is read between two nests which touch nothing of each other: all blocks do that, and the branch.
// CHECK-LABEL: func.func @by_a_number
// CHECK-NOT: tile.team
// CHECK: return
func.func @by_a_number(%a: memref<64xf32>, %b: memref<64xf32>, %go: memref<i1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  scf.for %t = %c0 to %c8 step %c1 {
    tile.launch @k grid(%c2) ins(%a : memref<64xf32>) outs(%a : memref<64xf32>)
  }
  %is = memref.load %go[] : memref<i1>
  // expected-remark@+1 {{all blocks run it in turn, not a team: a number in memory is read or written in front of it}}
  scf.if %is {
    tile.launch @k grid(%c2) ins(%b : memref<64xf32>) outs(%b : memref<64xf32>)
  }
  return
}

// A loop that ends by data, and gives a buffer that others need to know.
// CHECK-LABEL: func.func @by_data
// CHECK-NOT: tile.team
// CHECK: return
func.func @by_data(%a: memref<64xf32>, %b: memref<64xf32>, %x: memref<64xf32>, %go: memref<i1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  scf.for %t = %c0 to %c8 step %c1 {
    tile.launch @k grid(%c2) ins(%x : memref<64xf32>) outs(%x : memref<64xf32>)
  }
  // expected-remark@+1 {{in turn, not a team: numbers in memory decide what a loop or a branch gives}}
  %r:2 = scf.while (%f = %a, %g = %b) : (memref<64xf32>, memref<64xf32>) -> (memref<64xf32>, memref<64xf32>) {
    %more = memref.load %go[] : memref<i1>
    scf.condition(%more) %f, %g : memref<64xf32>, memref<64xf32>
  } do {
  ^bb0(%f: memref<64xf32>, %g: memref<64xf32>):
    tile.launch @k grid(%c2) ins(%f : memref<64xf32>) outs(%g : memref<64xf32>)
    scf.yield %g, %f : memref<64xf32>, memref<64xf32>
  }
  tile.launch @k grid(%c2) ins(%r#0 : memref<64xf32>) outs(%x : memref<64xf32>)
  return
}
