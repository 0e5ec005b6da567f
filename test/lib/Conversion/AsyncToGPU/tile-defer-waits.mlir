// RUN: tile-opt %s --tile-defer-waits --split-input-file | FileCheck-22 %s

// Scores are waited for while the sums are still multiplied, the sums where they are read.

// CHECK-LABEL: gpu.func @two
// CHECK: %[[S:.*]] = tile.mma {{.*}} {tile.pending = 1 : i64, tile.unit = "wgmma"}
// CHECK-NEXT: %[[O:.*]] = tile.mma {{.*}} {tile.pending = 2 : i64, tile.unit = "wgmma"}
// CHECK-NEXT: %[[T:.*]] = tile.mma_wait %[[S]] {tile.pending = 1 : i64}
// CHECK-NEXT: %[[E:.*]] = math.exp %[[T]]
// CHECK-NEXT: %[[R:.*]] = tile.mma_wait %[[O]] :
// CHECK-NEXT: arith.mulf %[[R]], %[[E]]
gpu.module @kernels {
  gpu.func @two(%a: !tile.tile<64x64xf16>, %c: !tile.tile<64x64xf32>, %y: memref<64x64xf32>) kernel {
    %c0 = arith.constant 0 : index
    %s = tile.mma %a, %a, %c {tile.unit = "wgmma"} : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
    %o = tile.mma %a, %a, %c {tile.unit = "wgmma"} : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
    %e = math.exp %s : !tile.tile<64x64xf32>
    %p = arith.mulf %o, %e : !tile.tile<64x64xf32>
    tile.store %p, %y[%c0, %c0] : !tile.tile<64x64xf32>, memref<64x64xf32>
    gpu.return
  }
}

// -----

// What is carried to the next step is complete by then.

// CHECK-LABEL: gpu.func @carried
// CHECK: scf.for
// CHECK: %[[S:.*]] = tile.mma {{.*}} {tile.pending = 1 : i64
// CHECK: %[[O:.*]] = tile.mma {{.*}} {tile.pending = 2 : i64
// CHECK: %[[T:.*]] = tile.mma_wait %[[S]] {tile.pending = 1 : i64}
// CHECK: %[[E:.*]] = math.exp %[[T]]
// CHECK: %[[R:.*]] = tile.mma_wait %[[O]] :
// CHECK: scf.yield %[[R]], %[[E]]
gpu.module @kernels {
  gpu.func @carried(%a: !tile.tile<64x64xf16>, %c: !tile.tile<64x64xf32>, %y: memref<64x64xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c4 = arith.constant 4 : index
    %r:2 = scf.for %i = %c0 to %c4 step %c1 iter_args(%o = %c, %x = %c)
        -> (!tile.tile<64x64xf32>, !tile.tile<64x64xf32>) {
      %s = tile.mma %a, %a, %x {tile.unit = "wgmma"}
          : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
      %n = tile.mma %a, %a, %o {tile.unit = "wgmma"}
          : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
      %e = math.exp %s : !tile.tile<64x64xf32>
      scf.yield %n, %e : !tile.tile<64x64xf32>, !tile.tile<64x64xf32>
    }
    tile.store %r#0, %y[%c0, %c0] : !tile.tile<64x64xf32>, memref<64x64xf32>
    gpu.return
  }
}

// -----

// One product that the next one reads, products of other units, and products that are waited for late already: as they
// are.

// CHECK-LABEL: gpu.func @others
// CHECK-NOT: tile.pending = 1
// CHECK-NOT: tile.mma_wait
gpu.module @kernels {
  gpu.func @others(%a: !tile.tile<64x64xf16>, %c: !tile.tile<64x64xf32>, %y: memref<64x64xf32>) kernel {
    %c0 = arith.constant 0 : index
    %s = tile.mma %a, %a, %c {tile.unit = "wgmma"} : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
    %o = tile.mma %a, %a, %s {tile.unit = "wgmma"} : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
    %m = tile.mma %a, %a, %c : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
    %n = tile.mma %a, %a, %m {tile.pending = 3 : i64, tile.unit = "wgmma"}
        : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
    %t = arith.addf %o, %n : !tile.tile<64x64xf32>
    tile.store %t, %y[%c0, %c0] : !tile.tile<64x64xf32>, memref<64x64xf32>
    gpu.return
  }
}
