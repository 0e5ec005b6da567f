// RUN: tile-opt %s --tile-overlap-tasks --canonicalize --split-input-file --verify-diagnostics | FileCheck-22 %s

// The quotients of a row are stored beside the exponentials of the next one. Their buffer has two slots; the factor,
// which is made after both, has one. A wide step takes several narrow ones; what the narrow loop does beyond is apart.

// CHECK-DAG: #[[$FIRST:.*]] = affine_map<(d0) -> (d0 * 4)>
// CHECK-LABEL: tile.kernel @softmax
// CHECK-SAME: grid(%[[ID:.*]]) {
// CHECK: %[[FACTOR:.*]] = tile.alloc : memref<1xf32
// CHECK: %[[ROWS:.*]] = tile.alloc : memref<2x224xf32
// The first task, but for its stores.
// CHECK: affine.apply #[[$FIRST]](%[[ID]])
// CHECK: scf.for
// CHECK: math.exp
// CHECK-NOT: tile.streamed
// CHECK: arith.divf
// CHECK: tile.store {{.*}}, %[[FACTOR]]
// CHECK: scf.for %[[R:.*]] = %c1 to %c4 step %c1
// CHECK: %[[SUMS:.*]] = scf.for %[[J:.*]] = %c0 to %c192 step %c64 iter_args
// CHECK: math.exp
// CHECK: tile.store %{{.*}}, %[[ROWS]][%[[NOW:.*]], %[[J]]]
// CHECK: math.exp
// CHECK: tile.store %{{.*}}, %[[ROWS]]
// CHECK: tile.load %[[ROWS]][%[[BEFORE:.*]], %[[J]]]
// CHECK: tile.streamed
// The loop of one step that is left is its body.
// CHECK: math.exp
// CHECK: arith.addf %[[SUMS]],
// CHECK: tile.streamed
// CHECK: arith.divf
// CHECK: tile.store {{.*}}, %[[FACTOR]]
// The stores of the last one.
// CHECK: scf.for
// CHECK-NOT: math.exp
// CHECK: tile.streamed
// CHECK: tile.return
tile.kernel @softmax(%x: memref<64x224xf32>, %y: memref<64x224xf32>) grid(%i) attributes {tile.overlap = 4 : i64} {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c192 = arith.constant 192 : index
  %c224 = arith.constant 224 : index
  %zero = arith.constant dense<0.0> : !tile.tile<1x32xf32>
  %one = arith.constant dense<1.0> : !tile.tile<1x1xf32>
  %f = tile.alloc : memref<1xf32, #tile.level<"l2">>
  %t = tile.alloc : memref<1x224xf32, #tile.level<"l2">>
  %s = scf.for %j = %c0 to %c224 step %c32 iter_args(%sum = %zero) -> (!tile.tile<1x32xf32>) {
    %a = tile.load %x[%i, %j] : memref<64x224xf32>, !tile.tile<1x32xf32>
    %e = math.exp %a : !tile.tile<1x32xf32>
    tile.store %e, %t[%c0, %j] : !tile.tile<1x32xf32>, memref<1x224xf32, #tile.level<"l2">>
    %next = arith.addf %sum, %e : !tile.tile<1x32xf32>
    scf.yield %next : !tile.tile<1x32xf32>
  }
  %total = tile.reduce add %s dims [1] : !tile.tile<1x32xf32> -> !tile.tile<1x1xf32>
  %q = arith.divf %one, %total : !tile.tile<1x1xf32>
  %q1 = tile.reshape %q : !tile.tile<1x1xf32> -> !tile.tile<1xf32>
  tile.store %q1, %f[%c0] : !tile.tile<1xf32>, memref<1xf32, #tile.level<"l2">>
  scf.for %j = %c0 to %c192 step %c64 {
    %e = tile.load %t[%c0, %j] : memref<1x224xf32, #tile.level<"l2">>, !tile.tile<1x64xf32>
    %g = tile.load %f[%c0] : memref<1xf32, #tile.level<"l2">>, !tile.tile<1xf32>
    %h = tile.reshape %g : !tile.tile<1xf32> -> !tile.tile<1x1xf32>
    %k = tile.broadcast %h : !tile.tile<1x1xf32> -> !tile.tile<1x64xf32>
    %p = arith.mulf %e, %k : !tile.tile<1x64xf32>
    tile.store %p, %y[%i, %j] {tile.streamed} : !tile.tile<1x64xf32>, memref<64x224xf32>
  }
  %e = tile.load %t[%c0, %c192] : memref<1x224xf32, #tile.level<"l2">>, !tile.tile<1x32xf32>
  %g = tile.load %f[%c0] : memref<1xf32, #tile.level<"l2">>, !tile.tile<1xf32>
  %h = tile.reshape %g : !tile.tile<1xf32> -> !tile.tile<1x1xf32>
  %k = tile.broadcast %h : !tile.tile<1x1xf32> -> !tile.tile<1x32xf32>
  %p = arith.mulf %e, %k : !tile.tile<1x32xf32>
  tile.store %p, %y[%i, %c192] {tile.streamed} : !tile.tile<1x32xf32>, memref<64x224xf32>
  tile.return
}

// CHECK-LABEL: func.func @main
// CHECK: tile.launch @softmax grid(%c16)
func.func @main(%x: memref<64x224xf32>, %y: memref<64x224xf32>) {
  %c64 = arith.constant 64 : index
  tile.launch @softmax grid(%c64) ins(%x : memref<64x224xf32>) outs(%y : memref<64x224xf32>)
  return
}

// -----

// Rows of a task: the loops over rows become one; what a task has in registers is handed on to its tail.

// CHECK-LABEL: tile.kernel @blocks
// CHECK: %[[FIRST:.*]] = tile.load %{{.*}}[%{{.*}}] : memref<8xf32>, !tile.tile<1xf32>
// CHECK: %[[LAST:.*]] = scf.for %{{.*}} = %c1 to %c4 step %c1
// CHECK-SAME: {{^}} iter_args(%[[KEPT:.*]] = %{{.*}}) -> (!tile.tile<1x16xf32>)
// CHECK: scf.for %{{.*}} = %c0 to %c4 step %c1
// CHECK: scf.for %{{.*}} = %c0 to %c64 step %c16
// CHECK: math.exp
// CHECK: arith.mulf %{{.*}}, %[[KEPT]]
// CHECK: scf.yield %{{.*}} : !tile.tile<1x16xf32>
// CHECK: arith.mulf %{{.*}}, %[[LAST]]
tile.kernel @blocks(%x: memref<32x64xf32>, %w: memref<8xf32>, %y: memref<32x64xf32>) grid(%i)
    attributes {tile.overlap = 4 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %t = tile.alloc : memref<4x64xf32, #tile.level<"l2">>
  scf.for %r = %c0 to %c4 step %c1 {
    %row = affine.apply affine_map<(i)[r] -> (i * 4 + r)>(%i)[%r]
    scf.for %j = %c0 to %c64 step %c16 {
      %a = tile.load %x[%row, %j] : memref<32x64xf32>, !tile.tile<1x16xf32>
      %e = math.exp %a : !tile.tile<1x16xf32>
      tile.store %e, %t[%r, %j] : !tile.tile<1x16xf32>, memref<4x64xf32, #tile.level<"l2">>
    }
  }
  %v = tile.load %w[%i] : memref<8xf32>, !tile.tile<1xf32>
  %v1 = tile.reshape %v : !tile.tile<1xf32> -> !tile.tile<1x1xf32>
  %k = tile.broadcast %v1 : !tile.tile<1x1xf32> -> !tile.tile<1x16xf32>
  scf.for %r = %c0 to %c4 step %c1 {
    %row = affine.apply affine_map<(i)[r] -> (i * 4 + r)>(%i)[%r]
    scf.for %j = %c0 to %c64 step %c16 {
      %e = tile.load %t[%r, %j] : memref<4x64xf32, #tile.level<"l2">>, !tile.tile<1x16xf32>
      %p = arith.mulf %e, %k : !tile.tile<1x16xf32>
      tile.store %p, %y[%row, %j] {tile.streamed} : !tile.tile<1x16xf32>, memref<32x64xf32>
    }
  }
  tile.return
}
func.func @main(%x: memref<32x64xf32>, %w: memref<8xf32>, %y: memref<32x64xf32>) {
  %c8 = arith.constant 8 : index
  tile.launch @blocks grid(%c8) ins(%x, %w : memref<32x64xf32>, memref<8xf32>) outs(%y : memref<32x64xf32>)
  return
}

// -----

// A kernel whose launches have other grids, or whose nests do not fit, stays as it is.

// CHECK-LABEL: tile.kernel @odd
// CHECK-SAME: {
// expected-remark@+1 {{its tasks run one after the other: the last bound of its grid is no multiple of `tile.overlap`}}
tile.kernel @odd(%x: memref<6x64xf32>) grid(%i) attributes {tile.overlap = 4 : i64} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : !tile.tile<1x64xf32>
  tile.store %zero, %x[%i, %c0] : !tile.tile<1x64xf32>, memref<6x64xf32>
  tile.return
}
// expected-remark@+1 {{its tasks run one after the other: it has no nest before the last one}}
tile.kernel @single(%x: memref<8x64xf32>) grid(%i) attributes {tile.overlap = 4 : i64} {
  %c0 = arith.constant 0 : index
  %zero = arith.constant dense<0.0> : !tile.tile<1x64xf32>
  tile.store %zero, %x[%i, %c0] : !tile.tile<1x64xf32>, memref<8x64xf32>
  tile.return
}
// CHECK-LABEL: func.func @main
// CHECK: tile.launch @odd grid(%c6)
// CHECK: tile.launch @single grid(%c8)
func.func @main(%x: memref<6x64xf32>, %y: memref<8x64xf32>) {
  %c6 = arith.constant 6 : index
  %c8 = arith.constant 8 : index
  tile.launch @odd grid(%c6) outs(%x : memref<6x64xf32>)
  tile.launch @single grid(%c8) outs(%y : memref<8x64xf32>)
  return
}
