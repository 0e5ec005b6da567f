// RUN: tile-opt %s --tile-promote-sums --split-input-file --verify-diagnostics | FileCheck-22 %s

!a = !tile.tile<64x128xf8E4M3FN>
!b = !tile.tile<128x64xf8E4M3FN>
!s = !tile.tile<64x64xf32>

// Each step of the loop begins anew in the unit, and adds to what the loop carries.

// CHECK-LABEL: gpu.func @steps
// CHECK: scf.for {{.*}} iter_args(%[[S:.*]] = %{{.*}}) -> (!tile.tile<64x64xf32>) {
// CHECK: %[[Z:.*]] = arith.constant dense<0.000000e+00> : !tile.tile<64x64xf32>
// CHECK: %[[P:.*]] = tile.mma %{{.*}}, %{{.*}}, %[[Z]] {tile.unit = "wgmma"}
// CHECK: %[[T:.*]] = arith.addf %[[S]], %[[P]]
// CHECK: scf.yield %[[T]]
gpu.module @kernels {
  gpu.func @steps(%a: !a, %b: !b, %y: memref<64x64xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c8 = arith.constant 8 : index
    %zero = arith.constant dense<0.0> : !s
    %d = scf.for %i = %c0 to %c8 step %c1 iter_args(%s = %zero) -> (!s) {
      %p = tile.mma %a, %b, %s {tile.promotion = 128 : i64, tile.unit = "wgmma"} : !a, !b, !s
      scf.yield %p : !s
    }
    tile.store %d, %y[%c0, %c0] : !s, memref<64x64xf32>
    gpu.return
  }
}

// -----

!a = !tile.tile<64x64xf8E5M2>
!b = !tile.tile<64x64xf8E5M2>
!s = !tile.tile<64x64xf32>

// Two steps in the unit, which begins anew behind them; the last step's are added, too.

// CHECK-LABEL: gpu.func @two_steps
// CHECK: %[[U0:.*]] = ub.poison : !tile.tile<64x64xf32>
// CHECK: scf.for %[[I:[^ ]+]] = %{{.*}} to %[[END:[^ ]+]] step %[[STEP:[^ ]+]]
// CHECK-SAME: iter_args(%[[S:[^ ]+]] = %{{[^ ]+}}, %[[U:[^ ]+]] = %[[U0]])
// CHECK: %[[P:.*]] = tile.mma %{{.*}}, %{{.*}}, %[[U]] {tile.starts = 2 : i64, tile.unit = "wgmma"}
// CHECK: %[[REST:.*]] = arith.remui
// CHECK: %[[FULL:.*]] = arith.cmpi eq, %[[REST]]
// CHECK: %[[NEXT:.*]] = arith.addi %[[I]], %[[STEP]]
// CHECK: %[[OVER:.*]] = arith.cmpi sge, %[[NEXT]], %[[END]]
// CHECK: %[[LAST:.*]] = arith.ori %[[FULL]], %[[OVER]]
// CHECK: %[[R:.*]] = scf.if %[[LAST]]
// CHECK: %[[T:.*]] = arith.addf %[[S]], %[[P]]
// CHECK: scf.yield %[[T]]
// CHECK: } else {
// CHECK: scf.yield %[[S]]
// CHECK: scf.yield %[[R]], %[[P]]
gpu.module @kernels {
  gpu.func @two_steps(%a: !a, %b: !b, %y: memref<64x64xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c7 = arith.constant 7 : index
    %zero = arith.constant dense<0.0> : !s
    %d = scf.for %i = %c0 to %c7 step %c1 iter_args(%s = %zero) -> (!s) {
      %p = tile.mma %a, %b, %s {tile.promotion = 128 : i64, tile.unit = "wgmma"} : !a, !b, !s
      scf.yield %p : !s
    }
    tile.store %d, %y[%c0, %c0] : !s, memref<64x64xf32>
    gpu.return
  }
}

// -----

!a = !tile.tile<64x128xf8E4M3FN>
!b = !tile.tile<128x64xf8E4M3FN>
!s = !tile.tile<64x64xf32>

// As they are: fast accumulation, one product alone, another unit. One product with too many terms says so.

// CHECK-LABEL: gpu.func @others
// CHECK: %[[F:.*]] = tile.mma %{{.*}}, %{{.*}}, %[[C:.*]] {tile.unit = "wgmma"}
// CHECK: %[[O:.*]] = tile.mma %{{.*}}, %{{.*}}, %[[Z:.*]] {tile.unit = "wgmma"}
// CHECK: %[[M:.*]] = tile.mma %{{.*}}, %{{.*}}, %[[C]] {tile.promotion = 128 : i64, tile.unit = "mma"}
// CHECK: %[[L:.*]] = tile.mma %{{.*}}, %{{.*}}, %{{.*}} {tile.unit = "wgmma"}
// CHECK: arith.addf %[[C]], %[[L]]
gpu.module @kernels {
  gpu.func @others(%a: !a, %b: !b, %c: !s, %y: memref<4x64x64xf32>) kernel {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %c2 = arith.constant 2 : index
    %c3 = arith.constant 3 : index
    %zero = arith.constant dense<0.0> : !s
    %f = tile.mma %a, %b, %c {tile.promotion = 0 : i64, tile.unit = "wgmma"} : !a, !b, !s
    %o = tile.mma %a, %b, %zero {tile.promotion = 128 : i64, tile.unit = "wgmma"} : !a, !b, !s
    %m = tile.mma %a, %b, %c {tile.promotion = 128 : i64, tile.unit = "mma"} : !a, !b, !s
    // expected-remark@+1 {{adds 128 terms in one product, where tile.promotion asks for 64}}
    %l = tile.mma %a, %b, %c {tile.promotion = 64 : i64, tile.unit = "wgmma"} : !a, !b, !s
    tile.store %f, %y[%c0, %c0, %c0] dims [1, 2] : !s, memref<4x64x64xf32>
    tile.store %o, %y[%c1, %c0, %c0] dims [1, 2] : !s, memref<4x64x64xf32>
    tile.store %m, %y[%c2, %c0, %c0] dims [1, 2] : !s, memref<4x64x64xf32>
    tile.store %l, %y[%c3, %c0, %c0] dims [1, 2] : !s, memref<4x64x64xf32>
    gpu.return
  }
}

// -----

// Whole instructions.

gpu.module @kernels {
  gpu.func @terms(%a: !tile.tile<64x64xf8E5M2>, %c: !tile.tile<64x64xf32>) kernel {
    // expected-error@+1 {{attribute tile.promotion must be an i64: 0, or a multiple of 32, got 40 : i64}}
    %p = tile.mma %a, %a, %c {tile.promotion = 40 : i64}
        : !tile.tile<64x64xf8E5M2>, !tile.tile<64x64xf8E5M2>, !tile.tile<64x64xf32>
    gpu.return
  }
}
