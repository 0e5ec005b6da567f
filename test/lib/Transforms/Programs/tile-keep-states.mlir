// RUN: tile-opt %s --tile-keep-states="register-bytes=128" --split-input-file --verify-diagnostics | FileCheck-22 %s

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
// expected-remark@+1 {{goes through memory, not registers: tiles are ragged, and padding would reach other elements}}
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
// expected-remark@+1 {{goes through memory, not registers: threads read what others wrote: the places differ}}
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
// expected-remark@+1 {{an iteration accesses what it reads 2 times, and what the next one reads 1 times}}
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
// expected-remark@+1 {{the loop or what is behind it may read or write the same bytes elsewhere}}
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

// Registers: half of 128 bytes of a thread hold 16 numbers of f32, the first state and not the second one.
// CHECK-LABEL: tile.kernel @full
// CHECK-SAME: tile.level = "thread"
// CHECK: scf.for {{.*}} -> (memref<64xf32>, memref<64xf32>, memref<64xf32>, memref<64xf32>, !tile.tile<16xf32>) {
// expected-remark@+1 {{64 bytes of it beside 64 that are kept are more than 64, half of the registers of a task}}
tile.kernel @full(%h: memref<64xf32>, %n: memref<64xf32>, %g: memref<64xf32>, %m: memref<64xf32>) grid(%i)
    attributes {tile.level = "thread"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r:4 = scf.for %t = %c0 to %c8 step %c1 iter_args(%a = %h, %b = %n, %c = %g, %d = %m)
      -> (memref<64xf32>, memref<64xf32>, memref<64xf32>, memref<64xf32>) {
    %s = tile.load %a[%c0] : memref<64xf32>, !tile.tile<16xf32>
    %e = math.tanh %s : !tile.tile<16xf32>
    tile.store %e, %b[%c0] : !tile.tile<16xf32>, memref<64xf32>
    %z = tile.load %c[%c0] : memref<64xf32>, !tile.tile<16xf32>
    %f = math.exp %z : !tile.tile<16xf32>
    tile.store %f, %d[%c0] : !tile.tile<16xf32>, memref<64xf32>
    scf.yield %b, %a, %d, %c : memref<64xf32>, memref<64xf32>, memref<64xf32>, memref<64xf32>
  }
  tile.return
}

// 64 numbers are two registers of each of 32 threads, which have room for 16.
// CHECK-LABEL: tile.kernel @threads
// CHECK-SAME: tile.level = "thread"
tile.kernel @threads(%h: memref<64xf32>, %n: memref<64xf32>) grid(%i)
    attributes {tile.level = "thread", tile.threads = 32 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r:2 = scf.for %t = %c0 to %c8 step %c1 iter_args(%a = %h, %b = %n) -> (memref<64xf32>, memref<64xf32>) {
    %s = tile.load %a[%c0] : memref<64xf32>, !tile.tile<64xf32>
    %e = math.tanh %s : !tile.tile<64xf32>
    tile.store %e, %b[%c0] : !tile.tile<64xf32>, memref<64xf32>
    scf.yield %b, %a : memref<64xf32>, memref<64xf32>
  }
  tile.return
}

// Written where it is read, and in a loop inside of the iteration.
// CHECK-LABEL: tile.kernel @in_place
// CHECK-SAME: tile.level = "task"
// expected-remark@+1 {{goes through memory, not registers: a buffer is read and written in place}}
tile.kernel @in_place(%h: memref<64xf32>) grid(%i) attributes {tile.level = "thread"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  scf.for %t = %c0 to %c8 step %c1 {
    %s = tile.load %h[%c0] : memref<64xf32>, !tile.tile<8xf32>
    %e = math.tanh %s : !tile.tile<8xf32>
    tile.store %e, %h[%c0] : !tile.tile<8xf32>, memref<64xf32>
  }
  tile.return
}
// CHECK-LABEL: tile.kernel @vectors
// CHECK-SAME: tile.level = "task"
// expected-remark@+1 {{goes through memory, not registers: each iteration has a loop or a branch around its tiles}}
tile.kernel @vectors(%h: memref<64xf32>, %n: memref<64xf32>) grid(%i) attributes {tile.level = "thread"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %r:2 = scf.for %t = %c0 to %c8 step %c1 iter_args(%a = %h, %b = %n) -> (memref<64xf32>, memref<64xf32>) {
    scf.for %v = %c0 to %c64 step %c8 {
      %s = tile.load %a[%v] : memref<64xf32>, !tile.tile<8xf32>
      %e = math.tanh %s : !tile.tile<8xf32>
      tile.store %e, %b[%v] : !tile.tile<8xf32>, memref<64xf32>
    }
    scf.yield %b, %a : memref<64xf32>, memref<64xf32>
  }
  tile.return
}

// What stands behind the loop reads the state before the last one: registers no longer hold it.
// CHECK-LABEL: tile.kernel @behind
// CHECK-SAME: tile.level = "task"
// CHECK: scf.for
// CHECK: tile.store
// CHECK: scf.yield
// expected-remark@+1 {{the loop or what is behind it may read or write the same bytes elsewhere}}
tile.kernel @behind(%h: memref<64xf32>, %n: memref<64xf32>, %z: memref<64xf32>) grid(%i)
    attributes {tile.level = "thread"} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r:2 = scf.for %t = %c0 to %c8 step %c1 iter_args(%a = %h, %b = %n) -> (memref<64xf32>, memref<64xf32>) {
    %s = tile.load %a[%c0] : memref<64xf32>, !tile.tile<8xf32>
    %e = math.tanh %s : !tile.tile<8xf32>
    tile.store %e, %b[%c0] : !tile.tile<8xf32>, memref<64xf32>
    scf.yield %b, %a : memref<64xf32>, memref<64xf32>
  }
  %last = tile.load %n[%c0] : memref<64xf32>, !tile.tile<8xf32>
  tile.store %last, %z[%c0] : !tile.tile<8xf32>, memref<64xf32>
  tile.return
}
