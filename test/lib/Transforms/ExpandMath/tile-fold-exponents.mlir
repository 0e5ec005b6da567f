// RUN: tile-opt %s --tile-fold-exponents --split-input-file | FileCheck-22 %s

// The scale leaves scores and maximum; roundings of scores are gone, sums add what is not rounded; the factor of
// earlier steps is a power, too. What reads the maximum behind the loop multiplies.

// CHECK-LABEL: tile.kernel @masked
// CHECK: %[[L:.*]]:2 = scf.for {{.*}} iter_args(%[[N:.*]] = {{.*}}, %[[M:.*]] = %{{.*}})
// CHECK: %[[S:.*]] = tile.mma
// CHECK: %[[U:.*]] = tile.select %{{.*}}, %[[S]], %{{.*}} : {{.*}}xf32>
// CHECK: %[[R:.*]] = tile.reduce max %[[U]]
// CHECK: %[[T:.*]] = arith.maximumf %[[M]], %[[R]]
// CHECK: %[[D:.*]] = arith.subf %[[M]], %[[T]]
// CHECK: %[[F:.*]] = arith.mulf %[[D]], %{{.*}} : !tile.tile<64x1xf32>
// CHECK: math.exp2 %[[F]] {tile.approximate}
// CHECK: %[[K:.*]] = arith.mulf %[[T]], %{{.*}} : !tile.tile<64x1xf32>
// CHECK: %[[G:.*]] = arith.negf %[[K]]
// CHECK: %[[B:.*]] = tile.broadcast %[[G]]
// CHECK: %[[A:.*]] = math.fma %[[U]], %{{.*}}, %[[B]]
// CHECK: %[[E:.*]] = math.exp2 %[[A]] {tile.approximate}
// CHECK: tile.reduce add %[[E]]
// CHECK: arith.mulf %[[L]]#1, %{{.*}} : !tile.tile<64x1xf32>
tile.kernel @masked(%x: memref<64x64xf16>, %y: memref<64x64xf16>, %z: memref<64x1xf32>, %w: memref<64x1xf32>,
    %h: memref<64x64xi1>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  %zero = arith.constant dense<0.0> : !tile.tile<64x64xf32>
  %none = arith.constant dense<0.0> : !tile.tile<64x1xf32>
  %low = arith.constant dense<-3.40282347E+38> : !tile.tile<64x1xf32>
  %off = arith.constant dense<0xFC00> : !tile.tile<64x64xf16>
  %c = arith.constant dense<0.125> : !tile.tile<64x64xf32>
  %a = tile.load %x[%c0, %c0] : memref<64x64xf16>, !tile.tile<64x64xf16>
  %i = tile.load %h[%c0, %c0] : memref<64x64xi1>, !tile.tile<64x64xi1>
  %r:2 = scf.for %j = %c0 to %c4 step %c1 iter_args(%n = %none, %m = %low) ->
      (!tile.tile<64x1xf32>, !tile.tile<64x1xf32>) {
    %s = tile.mma %a, %a, %zero : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
    %t = arith.mulf %s, %c : !tile.tile<64x64xf32>
    %u = tile.convert %t : !tile.tile<64x64xf32> -> !tile.tile<64x64xf16>
    %v = tile.select %i, %u, %off : !tile.tile<64x64xi1>, !tile.tile<64x64xf16>
    %k = tile.convert %v : !tile.tile<64x64xf16> -> !tile.tile<64x64xf32>
    %q = tile.reduce max %k dims [1] : !tile.tile<64x64xf32> -> !tile.tile<64x1xf32>
    %top = arith.maximumf %m, %q : !tile.tile<64x1xf32>
    %d = arith.subf %m, %top : !tile.tile<64x1xf32>
    %f = math.exp %d : !tile.tile<64x1xf32>
    %b = tile.broadcast %top : !tile.tile<64x1xf32> -> !tile.tile<64x64xf32>
    %e = arith.subf %k, %b : !tile.tile<64x64xf32>
    %p = math.exp %e {tile.approximate} : !tile.tile<64x64xf32>
    %o = tile.convert %p : !tile.tile<64x64xf32> -> !tile.tile<64x64xf16>
    tile.store %o, %y[%c0, %c0] : !tile.tile<64x64xf16>, memref<64x64xf16>
    %wide = tile.convert %o : !tile.tile<64x64xf16> -> !tile.tile<64x64xf32>
    %sum = tile.reduce add %wide dims [1] : !tile.tile<64x64xf32> -> !tile.tile<64x1xf32>
    %less = arith.mulf %n, %f : !tile.tile<64x1xf32>
    %more = arith.addf %less, %sum : !tile.tile<64x1xf32>
    scf.yield %more, %top : !tile.tile<64x1xf32>, !tile.tile<64x1xf32>
  }
  tile.store %r#0, %z[%c0, %c0] : !tile.tile<64x1xf32>, memref<64x1xf32>
  tile.store %r#1, %w[%c0, %c0] : !tile.tile<64x1xf32>, memref<64x1xf32>
  tile.return
}

// -----

// Numbers that are added may be the lowest ones, in all of a row: its maximum has no product. Without the attribute
// nothing changes.

// CHECK-LABEL: tile.kernel @added
// CHECK: %[[D:.*]] = arith.subf
// CHECK: %[[X:.*]] = math.exp %[[D]] : !tile.tile<64x64xf32>
// CHECK: %[[F:.*]] = arith.mulf %[[D]], %{{.*}}
// CHECK: math.exp2 %[[F]] {tile.approximate}
tile.kernel @added(%x: memref<64x64xf32>, %y: memref<64x64xf16>, %z: memref<64x64xf32>) {
  %c0 = arith.constant 0 : index
  %s = tile.load %x[%c0, %c0] : memref<64x64xf32>, !tile.tile<64x64xf32>
  %t = arith.addf %s, %s : !tile.tile<64x64xf32>
  %m = tile.reduce max %t dims [1] : !tile.tile<64x64xf32> -> !tile.tile<64x1xf32>
  %b = tile.broadcast %m : !tile.tile<64x1xf32> -> !tile.tile<64x64xf32>
  %d = arith.subf %t, %b : !tile.tile<64x64xf32>
  %e = math.exp %d : !tile.tile<64x64xf32>
  tile.store %e, %z[%c0, %c0] : !tile.tile<64x64xf32>, memref<64x64xf32>
  %f = math.exp %d {tile.approximate} : !tile.tile<64x64xf32>
  %p = tile.convert %f : !tile.tile<64x64xf32> -> !tile.tile<64x64xf16>
  tile.store %p, %y[%c0, %c0] : !tile.tile<64x64xf16>, memref<64x64xf16>
  tile.return
}
