// RUN: tile-opt %s --tile-stagger-products --split-input-file --verify-diagnostics | FileCheck-22 %s

// Scores of a step stand before the product of the step before, whose values are loaded from there; what the sums are
// scaled with follows. The first scores stand before the loop, the last product behind it.

// CHECK-LABEL: tile.kernel @attention
// CHECK-SAME: (%[[Q:[^:]*]]: {{.*}}, %[[K:[^:]*]]: memref<256x64xf16>, %[[V:[^:]*]]: memref<256x64xf16>,
// CHECK-NOT: tile.stagger
// CHECK: %[[K0:.*]] = tile.load %[[K]][%c0{{.*}}
// CHECK: %[[S0:.*]] = tile.mma %{{.*}}, %[[K0]],
// CHECK: %[[E0:.*]] = math.exp %[[S0]]
// CHECK: %[[O0:.*]] = arith.mulf %{{.*}}, %[[E0]]
// CHECK: %[[P0:.*]] = tile.convert %[[E0]]
// CHECK: %[[R:.*]]:2 = scf.for %[[J:.*]] = %c64{{.*}} to %c256 step %c64
// CHECK-SAME: {{^}} iter_args(%[[O:.*]] = %[[O0]], %[[P:.*]] = %[[P0]])
// CHECK: %[[B:.*]] = tile.load %[[K]][%[[J]],
// CHECK: %[[S:.*]] = tile.mma %{{.*}}, %[[B]],
// CHECK: %[[BEFORE:.*]] = arith.subi %[[J]], %c64
// CHECK: %[[C:.*]] = tile.load %[[V]][%[[BEFORE]],
// CHECK: %[[N:.*]] = tile.mma %[[P]], %[[C]], %[[O]]
// CHECK: %[[E:.*]] = math.exp %[[S]]
// CHECK: %[[M:.*]] = arith.mulf %[[N]], %[[E]]
// CHECK: %[[H:.*]] = tile.convert %[[E]]
// CHECK: scf.yield %[[M]], %[[H]]
// CHECK: tile.stages = 2
// CHECK: %[[D:.*]] = tile.load %[[V]][%c192{{.*}},
// CHECK: %[[Y:.*]] = tile.mma %[[R]]#1, %[[D]], %[[R]]#0
// CHECK: tile.store %[[Y]]
tile.kernel @attention(%q: memref<64x64xf16>, %k: memref<256x64xf16>, %v: memref<256x64xf16>, %y: memref<64x64xf32>)
    attributes {tile.stagger} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant dense<0.0> : !tile.tile<64x64xf32>
  %a = tile.load %q[%c0, %c0] : memref<64x64xf16>, !tile.tile<64x64xf16>
  %sum = scf.for %j = %c0 to %c256 step %c64 iter_args(%o = %zero) -> (!tile.tile<64x64xf32>) {
    %b = tile.load %k[%j, %c0] dims [1, 0] : memref<256x64xf16>, !tile.tile<64x64xf16>
    %s = tile.mma %a, %b, %zero : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
    %e = math.exp %s : !tile.tile<64x64xf32>
    %m = arith.mulf %o, %e : !tile.tile<64x64xf32>
    %p = tile.convert %e : !tile.tile<64x64xf32> -> !tile.tile<64x64xf16>
    %c = tile.load %v[%j, %c0] : memref<256x64xf16>, !tile.tile<64x64xf16>
    %n = tile.mma %p, %c, %m : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
    scf.yield %n : !tile.tile<64x64xf32>
  } {tile.stages = 2 : i64}
  tile.store %sum, %y[%c0, %c0] : !tile.tile<64x64xf32>, memref<64x64xf32>
  tile.return
}

// -----

// A number of steps that is not known: without any there are no first scores.

// CHECK-LABEL: tile.kernel @some
// CHECK-SAME: %[[END:[^:]*]]: index)
// CHECK: %[[ANY:.*]] = arith.cmpi slt, %c0, %[[END]]
// CHECK: %[[R:.*]] = scf.if %[[ANY]] -> (!tile.tile<64x64xf32>) {
// CHECK: tile.mma
// CHECK: scf.for
// CHECK: tile.mma
// CHECK: tile.mma
// CHECK: %[[Y:.*]] = tile.mma
// CHECK: scf.yield %[[Y]]
// CHECK: } else {
// CHECK-NEXT: scf.yield %{{.*}} : !tile.tile<64x64xf32>
// CHECK: tile.store %[[R]]
tile.kernel @some(%q: memref<64x64xf16>, %k: memref<256x64xf16>, %y: memref<64x64xf32>, %end: index)
    attributes {tile.stagger} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !tile.tile<64x64xf32>
  %a = tile.load %q[%c0, %c0] : memref<64x64xf16>, !tile.tile<64x64xf16>
  %sum = scf.for %j = %c0 to %end step %c64 iter_args(%o = %zero) -> (!tile.tile<64x64xf32>) {
    %b = tile.load %k[%j, %c0] dims [1, 0] : memref<256x64xf16>, !tile.tile<64x64xf16>
    %s = tile.mma %a, %b, %zero : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
    %p = tile.convert %s : !tile.tile<64x64xf32> -> !tile.tile<64x64xf16>
    %c = tile.load %k[%j, %c0] : memref<256x64xf16>, !tile.tile<64x64xf16>
    %n = tile.mma %p, %c, %o : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
    scf.yield %n : !tile.tile<64x64xf32>
  } {tile.stages = 2 : i64}
  tile.store %sum, %y[%c0, %c0] : !tile.tile<64x64xf32>, memref<64x64xf32>
  tile.return
}

// -----

// CHECK-LABEL: tile.kernel @apart
// CHECK: scf.for
// CHECK: tile.mma
// CHECK-NOT: tile.mma
tile.kernel @apart(%k: memref<256x64xf16>, %y: memref<64x64xf32>) attributes {tile.stagger} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant dense<0.0> : !tile.tile<64x64xf32>
  // expected-remark@+1 {{after the other, since it has no two products, of which one makes an operand of the other}}
  %sum = scf.for %j = %c0 to %c256 step %c64 iter_args(%o = %zero) -> (!tile.tile<64x64xf32>) {
    %b = tile.load %k[%j, %c0] : memref<256x64xf16>, !tile.tile<64x64xf16>
    %n = tile.mma %b, %b, %o : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
    scf.yield %n : !tile.tile<64x64xf32>
  } {tile.stages = 2 : i64}
  tile.store %sum, %y[%c0, %c0] : !tile.tile<64x64xf32>, memref<64x64xf32>
  tile.return
}

// -----

// CHECK-LABEL: tile.kernel @seen
tile.kernel @seen(%k: memref<256x64xf16>, %y: memref<64x64xf32>) attributes {tile.stagger} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant dense<0.0> : !tile.tile<64x64xf32>
  // expected-remark@+1 {{since it does more with its sums than to carry them to the next step}}
  %sum = scf.for %j = %c0 to %c256 step %c64 iter_args(%o = %zero) -> (!tile.tile<64x64xf32>) {
    %b = tile.load %k[%j, %c0] : memref<256x64xf16>, !tile.tile<64x64xf16>
    %s = tile.mma %b, %b, %zero : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
    %p = tile.convert %s : !tile.tile<64x64xf32> -> !tile.tile<64x64xf16>
    %c = tile.load %k[%j, %c0] : memref<256x64xf16>, !tile.tile<64x64xf16>
    %n = tile.mma %p, %c, %o : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
    %m = arith.negf %n : !tile.tile<64x64xf32>
    scf.yield %m : !tile.tile<64x64xf32>
  } {tile.stages = 2 : i64}
  tile.store %sum, %y[%c0, %c0] : !tile.tile<64x64xf32>, memref<64x64xf32>
  tile.return
}
