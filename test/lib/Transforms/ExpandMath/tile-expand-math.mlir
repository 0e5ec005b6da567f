// RUN: tile-opt %s -tile-expand-math -split-input-file -verify-diagnostics | FileCheck-22 %s

// CHECK-LABEL: func.func @exp
// CHECK-NOT: math.exp
// CHECK: math.fma {{.*}} : vector<16xf32>
func.func @exp(%x: vector<16xf32>) -> vector<16xf32> {
  %y = math.exp %x : vector<16xf32>
  return %y : vector<16xf32>
}

// Beside 1 an exponential needs one power of two, and no zeros or denormals of its own.
// CHECK-LABEL: func.func @logistic
// CHECK-NOT: math.exp
// CHECK: arith.negf {{.*}} : vector<8xf32>
// CHECK: arith.shli {{.*}} : vector<8xi32>
// CHECK-NOT: arith.shli
// CHECK: %[[E:.*]] = arith.mulf
// CHECK: %[[S:.*]] = arith.addf %[[E]], %{{.*}} : vector<8xf32>
// CHECK: arith.divf %{{.*}}, %[[S]] : vector<8xf32>
func.func @logistic(%x: vector<8xf32>) -> vector<8xf32> {
  %one = arith.constant dense<1.0> : vector<8xf32>
  %n = arith.negf %x : vector<8xf32>
  %e = math.exp %n : vector<8xf32>
  %s = arith.addf %one, %e : vector<8xf32>
  %y = arith.divf %one, %s : vector<8xf32>
  return %y : vector<8xf32>
}

// Half precision goes through f32.
// CHECK-LABEL: func.func @half
// CHECK: arith.extf {{.*}} f16 to f32
// CHECK: math.sqrt %{{.*}} : f32
// CHECK: arith.truncf {{.*}} f32 to f16
func.func @half(%x: f16) -> f16 {
  %y = math.rsqrt %x : f16
  return %y : f16
}

// CHECK-LABEL: func.func @native
// CHECK: math.floor
func.func @native(%x: f64) -> f64 {
  %y = math.floor %x : f64
  return %y : f64
}

// -----

// In a kernel f64 has expansions of its own.
// CHECK-LABEL: tile.kernel @wide
// CHECK-NOT: math.exp
// CHECK: math.fma {{.*}} : f64
tile.kernel @wide(%x: memref<f64>) {
  %v = memref.load %x[] : memref<f64>
  %y = math.exp %v : f64
  memref.store %y, %x[] : memref<f64>
  tile.return
}

// -----

gpu.module @kernels {
  // On a GPU a remainder is one of integers, and no constant divides.
  // CHECK-LABEL: gpu.func @remainder
  // CHECK-NOT: arith.remf
  // CHECK: scf.for
  // CHECK: arith.remui
  // CHECK-NOT: arith.divf
  // CHECK: gpu.return
  gpu.func @remainder(%p: memref<f32>) kernel {
    %x = memref.load %p[] : memref<f32>
    %by = arith.constant 3.0 : f32
    %r = arith.remf %x, %by : f32
    %q = arith.divf %r, %by : f32
    memref.store %q, %p[] : memref<f32>
    gpu.return
  }
}

// -----

// The host may call the C library.
// CHECK-LABEL: func.func @host
// CHECK: math.exp
func.func @host(%x: f64) -> f64 {
  %y = math.exp %x : f64
  return %y : f64
}

// -----

func.func @unknown(%x: f32, %n: i32) -> f32 {
  // expected-error@+1 {{'math.fpowi' op on 'f32' has no expansion into arithmetic, and kernels call no math library}}
  %y = math.fpowi %x, %n : f32, i32
  return %y : f32
}

// -----

tile.kernel @unknown_wide(%x: memref<f64>, %n: i32) {
  %v = memref.load %x[] : memref<f64>
  // expected-error @below {{'math.fpowi' op on 'f64' has no expansion into arithmetic}}
  %y = math.fpowi %v, %n : f64, i32
  memref.store %y, %x[] : memref<f64>
  tile.return
}
