// RUN: tile-opt %s --tile-buffers-to-registers --split-input-file | FileCheck-22 %s

// A row's maximum meets its reader in registers; no buffer is left.

// CHECK-LABEL: tile.kernel @straight
// CHECK-NOT: tile.alloc
// CHECK: %[[M:.*]] = tile.reduce max
// CHECK: tile.broadcast %[[M]]
// CHECK-NOT: tile.alloc
// CHECK: tile.return
tile.kernel @straight(%x: memref<8x64xf32>, %y: memref<8x64xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %b = tile.alloc : memref<1x1xf32, #tile.level<"shared">>
  %a = tile.load %x[%i, %c0] : memref<8x64xf32>, !tile.tile<1x64xf32>
  %m = tile.reduce max %a dims [1] : !tile.tile<1x64xf32> -> !tile.tile<1x1xf32>
  tile.store %m, %b[%c0, %c0] : !tile.tile<1x1xf32>, memref<1x1xf32, #tile.level<"shared">>
  %s = tile.load %b[%c0, %c0] : memref<1x1xf32, #tile.level<"shared">>, !tile.tile<1x1xf32>
  %u = tile.broadcast %s : !tile.tile<1x1xf32> -> !tile.tile<1x64xf32>
  %d = arith.subf %a, %u : !tile.tile<1x64xf32>
  tile.store %d, %y[%i, %c0] : !tile.tile<1x64xf32>, memref<8x64xf32>
  tile.return
}

// -----

// A loop that changes the tile carries it; its attributes stay. A loop that only reads it does not.

// CHECK-LABEL: tile.kernel @carried
// CHECK: %[[R:.*]] = scf.for {{.*}} iter_args(%[[A:.*]] = %{{.*}}) -> (!tile.tile<4x4xf32>) {
// CHECK: %[[N:.*]] = arith.addf %[[A]], %[[A]]
// CHECK: scf.yield %[[N]]
// CHECK: {tile.stages = 3 : i64}
// CHECK: scf.for
// CHECK-NOT: iter_args
// CHECK: tile.store %[[R]], %{{.*}} : !tile.tile<4x4xf32>, memref<4x4xf32>
tile.kernel @carried(%y: memref<4x4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %b = tile.alloc : memref<4x4xf32, #tile.level<"shared">>
  %zero = arith.constant dense<1.0> : !tile.tile<4x4xf32>
  tile.store %zero, %b[%c0, %c0] : !tile.tile<4x4xf32>, memref<4x4xf32, #tile.level<"shared">>
  scf.for %k = %c0 to %c8 step %c1 {
    %o = tile.load %b[%c0, %c0] : memref<4x4xf32, #tile.level<"shared">>, !tile.tile<4x4xf32>
    %n = arith.addf %o, %o : !tile.tile<4x4xf32>
    tile.store %n, %b[%c0, %c0] : !tile.tile<4x4xf32>, memref<4x4xf32, #tile.level<"shared">>
  } {tile.stages = 3 : i64}
  scf.for %k = %c0 to %c8 step %c1 {
    %o = tile.load %b[%c0, %c0] : memref<4x4xf32, #tile.level<"shared">>, !tile.tile<4x4xf32>
    tile.store %o, %y[%c0, %c0] : !tile.tile<4x4xf32>, memref<4x4xf32>
  }
  tile.return
}

// -----

// Behind the bounds a load reads its padding, not what was computed there.

// CHECK-LABEL: tile.kernel @ragged
// CHECK-NOT: tile.alloc
// CHECK: %[[R:.*]] = tile.iota dim 0 : !tile.tile<8xi32>
// CHECK: %[[M:.*]] = arith.cmpi slt, %[[R]]
// CHECK: %[[S:.*]] = tile.select %[[M]], %{{.*}}, %{{.*}} : !tile.tile<8xi1>, !tile.tile<8xf32>
// CHECK: tile.store %[[S]]
tile.kernel @ragged(%x: memref<8xf32>, %y: memref<8xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %b = tile.alloc : memref<8xf32, #tile.level<"shared">>
  %a = tile.load %x[%c0] : memref<8xf32>, !tile.tile<8xf32>
  tile.store %a, %b[%c0] valid (%n) : !tile.tile<8xf32>, memref<8xf32, #tile.level<"shared">>
  %s = tile.load %b[%c0] valid (%n) : memref<8xf32, #tile.level<"shared">>, !tile.tile<8xf32>
  tile.store %s, %y[%c0] : !tile.tile<8xf32>, memref<8xf32>
  tile.return
}

// -----

// A branch yields it; without an else, the other way is what it was.

// CHECK-LABEL: tile.kernel @branch
// CHECK: %[[R:.*]] = scf.if %{{.*}} -> (!tile.tile<8xf32>) {
// CHECK: scf.yield %{{.*}} : !tile.tile<8xf32>
// CHECK: } else {
// CHECK: scf.yield %[[Z:.*]] : !tile.tile<8xf32>
// CHECK: tile.store %[[R]]
tile.kernel @branch(%x: memref<8xf32>, %y: memref<8xf32>, %n: i1) {
  %c0 = arith.constant 0 : index
  %b = tile.alloc : memref<8xf32, #tile.level<"shared">>
  %zero = arith.constant dense<0.0> : !tile.tile<8xf32>
  tile.store %zero, %b[%c0] : !tile.tile<8xf32>, memref<8xf32, #tile.level<"shared">>
  scf.if %n {
    %a = tile.load %x[%c0] : memref<8xf32>, !tile.tile<8xf32>
    tile.store %a, %b[%c0] : !tile.tile<8xf32>, memref<8xf32, #tile.level<"shared">>
  }
  %s = tile.load %b[%c0] : memref<8xf32, #tile.level<"shared">>, !tile.tile<8xf32>
  tile.store %s, %y[%c0] : !tile.tile<8xf32>, memref<8xf32>
  tile.return
}

// -----

// Parts of a buffer, other places in each round, and loads before any store stay in memory.

// CHECK-LABEL: tile.kernel @kept
// CHECK-COUNT-3: tile.alloc
// CHECK-NOT: tile.alloc
tile.kernel @kept(%x: memref<8xf32>, %y: memref<8xf32>) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c8 = arith.constant 8 : index
  %parts = tile.alloc : memref<8xf32, #tile.level<"shared">>
  %places = tile.alloc : memref<8xf32, #tile.level<"shared">>
  %early = tile.alloc : memref<4xf32, #tile.level<"shared">>
  %a = tile.load %x[%c0] : memref<8xf32>, !tile.tile<8xf32>
  tile.store %a, %parts[%c0] : !tile.tile<8xf32>, memref<8xf32, #tile.level<"shared">>
  scf.for %k = %c0 to %c8 step %c4 {
    %p = tile.load %parts[%k] : memref<8xf32, #tile.level<"shared">>, !tile.tile<4xf32>
    tile.store %p, %places[%k] : !tile.tile<4xf32>, memref<8xf32, #tile.level<"shared">>
    %q = tile.load %places[%k] : memref<8xf32, #tile.level<"shared">>, !tile.tile<4xf32>
    %e = tile.load %early[%c0] : memref<4xf32, #tile.level<"shared">>, !tile.tile<4xf32>
    %s = arith.addf %q, %e : !tile.tile<4xf32>
    tile.store %s, %early[%c0] : !tile.tile<4xf32>, memref<4xf32, #tile.level<"shared">>
    tile.store %s, %y[%k] : !tile.tile<4xf32>, memref<8xf32>
  }
  tile.return
}
