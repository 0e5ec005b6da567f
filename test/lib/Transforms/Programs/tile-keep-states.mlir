// RUN: tile-opt %s --tile-keep-states --split-input-file | FileCheck-22 %s

// Two buffers change places: the tile is loaded before the loop, and stored behind it into the one that is the last
// then. What each step gives is stored as before.
// CHECK-LABEL: tile.kernel @state
// CHECK-SAME: (%[[H:.*]]: memref<64xf32>, %[[N:.*]]: memref<64xf32>, %[[OUT:.*]]: memref<9x64xf32>)
// CHECK-SAME: tile.level = "thread"
// CHECK: %[[O:.*]] = affine.apply
// CHECK: %[[S:.*]] = tile.load %[[H]][%[[O]]]
// CHECK: %[[R:.*]]:3 = scf.for {{.*}} iter_args(%[[A:.*]] = %[[H]], %[[B:.*]] = %[[N]], %[[V:.*]] = %[[S]])
// CHECK-NOT: tile.load
// CHECK: %[[E:.*]] = math.tanh %[[V]]
// CHECK-NEXT: tile.store %[[E]], %[[OUT]]
// CHECK-NEXT: scf.yield %[[B]], %[[A]], %[[E]]
// CHECK: tile.store %[[R]]#2, %[[R]]#0[%[[O]]]
tile.kernel @state(%h: memref<64xf32>, %n: memref<64xf32>, %out: memref<9x64xf32>) grid(%i)
    attributes {tile.level = "thread"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r:2 = scf.for %t = %c0 to %c8 step %c1 iter_args(%a = %h, %b = %n) -> (memref<64xf32>, memref<64xf32>) {
    %o = affine.apply affine_map<(d0) -> (d0 * 8)>(%i)
    %s = tile.load %a[%o] : memref<64xf32>, !tile.tile<8xf32>
    %e = math.tanh %s : !tile.tile<8xf32>
    tile.store %e, %b[%o] : !tile.tile<8xf32>, memref<64xf32>
    tile.store %e, %out[%t, %o] : !tile.tile<8xf32>, memref<9x64xf32>
    scf.yield %b, %a : memref<64xf32>, memref<64xf32>
  }
  tile.return
}

// Elements out of bounds: what is computed is elementwise.
// CHECK-LABEL: tile.kernel @ragged
// CHECK: scf.for {{.*}} iter_args(%{{.*}}, %{{.*}}, %{{.*}})
// CHECK: tile.store {{.*}} valid
// CHECK: tile.return
tile.kernel @ragged(%h: memref<60xf32>, %n: memref<60xf32>) grid(%i) attributes {tile.level = "thread"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %o = affine.apply affine_map<(d0) -> (d0 * 8)>(%i)
  %left = affine.apply affine_map<(d0) -> (d0 * -8 + 60)>(%i)
  %r:2 = scf.for %t = %c0 to %c8 step %c1 iter_args(%a = %h, %b = %n) -> (memref<60xf32>, memref<60xf32>) {
    %s = tile.load %a[%o] valid (%left) : memref<60xf32>, !tile.tile<8xf32>
    %e = math.tanh %s : !tile.tile<8xf32>
    tile.store %e, %b[%o] valid (%left) : !tile.tile<8xf32>, memref<60xf32>
    scf.yield %b, %a : memref<60xf32>, memref<60xf32>
  }
  tile.return
}

// A sum along the row would take what padding became: it is read anew.
// CHECK-LABEL: tile.kernel @padded
// CHECK-SAME: tile.level = "task"
// CHECK: scf.for {{.*}} -> (memref<60xf32>, memref<60xf32>) {
tile.kernel @padded(%h: memref<60xf32>, %n: memref<60xf32>) grid(%i) attributes {tile.level = "thread"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %left = affine.apply affine_map<(d0) -> (d0 * -64 + 60)>(%i)
  %r:2 = scf.for %t = %c0 to %c8 step %c1 iter_args(%a = %h, %b = %n) -> (memref<60xf32>, memref<60xf32>) {
    %s = tile.load %a[%c0] valid (%left) : memref<60xf32>, !tile.tile<64xf32>
    %sum = tile.reduce add %s dims [0] : !tile.tile<64xf32> -> !tile.tile<1xf32>
    %all = tile.broadcast %sum : !tile.tile<1xf32> -> !tile.tile<64xf32>
    %e = arith.addf %s, %all : !tile.tile<64xf32>
    tile.store %e, %b[%c0] valid (%left) : !tile.tile<64xf32>, memref<60xf32>
    scf.yield %b, %a : memref<60xf32>, memref<60xf32>
  }
  tile.return
}

// Places that differ, a second read, and one buffer of both views: through memory.
// CHECK-COUNT-3: tile.level = "task"
// CHECK-NOT: :3 = scf.for
tile.kernel @moved(%h: memref<64xf32>, %n: memref<64xf32>) grid(%i) attributes {tile.level = "thread"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r:2 = scf.for %t = %c0 to %c8 step %c1 iter_args(%a = %h, %b = %n) -> (memref<64xf32>, memref<64xf32>) {
    %s = tile.load %a[%c0] : memref<64xf32>, !tile.tile<8xf32>
    tile.store %s, %b[%c8] : !tile.tile<8xf32>, memref<64xf32>
    scf.yield %b, %a : memref<64xf32>, memref<64xf32>
  }
  tile.return
}
tile.kernel @twice(%h: memref<64xf32>, %n: memref<64xf32>) grid(%i) attributes {tile.level = "thread"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r:2 = scf.for %t = %c0 to %c8 step %c1 iter_args(%a = %h, %b = %n) -> (memref<64xf32>, memref<64xf32>) {
    %s = tile.load %a[%c0] : memref<64xf32>, !tile.tile<8xf32>
    %z = tile.load %a[%c8] : memref<64xf32>, !tile.tile<8xf32>
    %e = arith.addf %s, %z : !tile.tile<8xf32>
    tile.store %e, %b[%c0] : !tile.tile<8xf32>, memref<64xf32>
    scf.yield %b, %a : memref<64xf32>, memref<64xf32>
  }
  tile.return
}
tile.kernel @beside(%h: memref<64xf32>, %n: memref<64xf32>) grid(%i) attributes {tile.level = "thread"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r:2 = scf.for %t = %c0 to %c8 step %c1 iter_args(%a = %h, %b = %n) -> (memref<64xf32>, memref<64xf32>) {
    %s = tile.load %a[%c0] : memref<64xf32>, !tile.tile<8xf32>
    %z = tile.load %h[%c8] : memref<64xf32>, !tile.tile<8xf32>
    %e = arith.addf %s, %z : !tile.tile<8xf32>
    tile.store %e, %b[%c0] : !tile.tile<8xf32>, memref<64xf32>
    scf.yield %b, %a : memref<64xf32>, memref<64xf32>
  }
  tile.return
}
