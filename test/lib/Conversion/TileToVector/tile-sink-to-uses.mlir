// RUN: tile-opt %s --tile-sink-to-uses | FileCheck %s

// Each vector of the sums is loaded, negated and stored before the next one; the argument is read first, since what is
// stored may overlap it.

// CHECK-LABEL: @halves
// CHECK: %[[A:.*]] = vector.load %arg0
// CHECK: %[[B:.*]] = vector.load %{{.*}}[%c0]
// CHECK-NEXT: %[[C:.*]] = arith.addf %[[B]], %[[A]]
// CHECK-NEXT: vector.store %[[C]], %arg1[%c0]
// CHECK-NEXT: %[[D:.*]] = vector.load %{{.*}}[%c16]
// CHECK-NEXT: %[[E:.*]] = arith.addf %[[D]], %[[A]]
// CHECK-NEXT: vector.store %[[E]], %arg1[%c16]
tile.kernel @halves(%a: memref<32xf32>, %y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %rows = arith.constant 16 : i16
  %sums = tile.alloc : memref<32xf32>
  %block = llvm.call_intrinsic "llvm.x86.tilezero.internal"(%rows, %rows) : (i16, i16) -> !llvm.x86_amx
  %0 = vector.load %sums[%c0] : memref<32xf32>, vector<16xf32>
  %1 = vector.load %sums[%c16] : memref<32xf32>, vector<16xf32>
  %2 = vector.load %a[%c0] : memref<32xf32>, vector<16xf32>
  %3 = arith.addf %0, %2 : vector<16xf32>
  %4 = arith.addf %1, %2 : vector<16xf32>
  vector.store %3, %y[%c0] : memref<64xf32>, vector<16xf32>
  vector.store %4, %y[%c16] : memref<64xf32>, vector<16xf32>
  tile.return
}

// A store to the same buffer stays behind its loads, and nothing passes what may write anywhere.

// CHECK-LABEL: @overlap
// CHECK: %[[B:.*]] = vector.load %{{.*}}[%c16]
// CHECK: %[[A:.*]] = vector.load %{{.*}}[%c0]
// CHECK-NEXT: %[[C:.*]] = arith.negf %[[A]]
// CHECK-NEXT: vector.store %[[C]], %{{.*}}[%c16]
// CHECK-NEXT: vector.store %[[B]], %arg0
tile.kernel @overlap(%y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %rows = arith.constant 16 : i16
  %sums = tile.alloc : memref<32xf32>
  %block = llvm.call_intrinsic "llvm.x86.tilezero.internal"(%rows, %rows) : (i16, i16) -> !llvm.x86_amx
  %0 = vector.load %sums[%c0] : memref<32xf32>, vector<16xf32>
  %1 = vector.load %sums[%c16] : memref<32xf32>, vector<16xf32>
  %2 = arith.negf %0 : vector<16xf32>
  vector.store %2, %sums[%c16] : memref<32xf32>, vector<16xf32>
  vector.store %1, %y[%c0] : memref<64xf32>, vector<16xf32>
  tile.return
}

// Zeros hold no register of the unit through a loop that begins new sums in each of its turns.

// CHECK-LABEL: @zeros
// CHECK-NOT: tilezero
// CHECK: scf.for
// CHECK-NEXT: %[[Z:.*]] = llvm.call_intrinsic "llvm.x86.tilezero.internal"
// CHECK-NEXT: scf.for {{.*}} iter_args(%{{.*}} = %[[Z]])
tile.kernel @zeros(%y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %rows = arith.constant 16 : i16
  %zero = llvm.call_intrinsic "llvm.x86.tilezero.internal"(%rows, %rows) : (i16, i16) -> !llvm.x86_amx
  scf.for %i = %c0 to %c16 step %c1 {
    %sum = scf.for %k = %c0 to %c16 step %c1 iter_args(%s = %zero) -> !llvm.x86_amx {
      %t = llvm.call_intrinsic "llvm.x86.tdpbssd.internal"(%rows, %rows, %rows, %s, %s, %s)
        : (i16, i16, i16, !llvm.x86_amx, !llvm.x86_amx, !llvm.x86_amx) -> !llvm.x86_amx
      scf.yield %t : !llvm.x86_amx
    }
  }
  tile.return
}

// Without a matrix unit, the order stays.

// CHECK-LABEL: @vectors
// CHECK: vector.load
// CHECK-NEXT: vector.load
tile.kernel @vectors(%y: memref<64xf32>) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %sums = tile.alloc : memref<32xf32>
  %0 = vector.load %sums[%c0] : memref<32xf32>, vector<16xf32>
  %1 = vector.load %sums[%c16] : memref<32xf32>, vector<16xf32>
  vector.store %0, %y[%c0] : memref<64xf32>, vector<16xf32>
  vector.store %1, %y[%c16] : memref<64xf32>, vector<16xf32>
  tile.return
}
