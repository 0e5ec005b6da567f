// RUN: tile-opt %s --tile-shuffles-to-amdgcn -split-input-file -verify-diagnostics | FileCheck-22 %s

// CHECK-LABEL: gpu.func @bfly(
// CHECK-SAME: %[[X:.*]]: i32,
// CHECK: %[[LOW:.*]] = llvm.call_intrinsic "llvm.amdgcn.mbcnt.lo"(%{{.*}}, %{{.*}})
// CHECK: %[[LANE:.*]] = llvm.call_intrinsic "llvm.amdgcn.mbcnt.hi"(%{{.*}}, %[[LOW]])
// CHECK: %[[FROM:.*]] = arith.xori %[[LANE]], %{{.*}} : i32
// CHECK: %[[AT:.*]] = arith.shli %[[FROM]], %{{.*}} : i32
// CHECK: %[[Y:.*]] = llvm.call_intrinsic "llvm.amdgcn.ds.bpermute"(%[[AT]], %[[X]])
// CHECK: memref.store %[[Y]]
gpu.module @m {
  gpu.func @bfly(%x: i32, %out: memref<i32>) kernel {
    %all = llvm.mlir.constant(-1 : i32) : i32
    %mask = llvm.mlir.constant(8 : i32) : i32
    %last = llvm.mlir.constant(31 : i32) : i32
    %y = nvvm.shfl.sync bfly %all, %x, %mask, %last : i32 -> i32
    memref.store %y, %out[] : memref<i32>
    gpu.return
  }
}

// -----

// A lane of the same half of the wave.
// CHECK-LABEL: gpu.func @idx(
// CHECK-SAME: %{{.*}}: i32, %[[FROM:.*]]: i32
// CHECK: %[[HALF:.*]] = arith.andi %{{.*}}, %{{.*}} : i32
// CHECK: %[[OTHER:.*]] = arith.andi %[[FROM]], %{{.*}} : i32
// CHECK: arith.ori %[[HALF]], %[[OTHER]] : i32
gpu.module @m {
  gpu.func @idx(%x: i32, %from: i32, %out: memref<i32>) kernel {
    %all = arith.constant -1 : i32
    %last = arith.constant 31 : i32
    %y = nvvm.shfl.sync idx %all, %x, %from, %last : i32 -> i32
    memref.store %y, %out[] : memref<i32>
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @down(%x: i32, %from: i32) kernel {
    %all = arith.constant -1 : i32
    %last = arith.constant 31 : i32
    // expected-error @below {{has no form for a wave of 64 lanes: only modes bfly and idx}}
    %y = nvvm.shfl.sync down %all, %x, %from, %last : i32 -> i32
    gpu.return
  }
}

// -----

gpu.module @m {
  gpu.func @float(%x: f32, %from: i32) kernel {
    %all = arith.constant -1 : i32
    %last = arith.constant 31 : i32
    // expected-error @below {{of 'f32': exchange words of i32}}
    %y = nvvm.shfl.sync bfly %all, %x, %from, %last : f32 -> f32
    gpu.return
  }
}
