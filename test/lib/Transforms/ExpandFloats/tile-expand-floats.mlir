// RUN: tile-opt --tile-expand-floats %s | FileCheck %s
// RUN: tile-opt --tile-expand-floats=f16=true %s | FileCheck %s --check-prefix=F16

// CHECK-LABEL: @extend
// CHECK-SAME: (%[[X:.*]]: f8E5M2)
// CHECK: %[[CODE:.*]] = arith.bitcast %[[X]] : f8E5M2 to i8
// CHECK: arith.extui %[[CODE]] : i8 to i32
// CHECK-NOT: arith.extf
// CHECK: arith.bitcast %{{.*}} : i32 to f32
// CHECK: return
func.func @extend(%x: f8E5M2) -> f32 {
  %y = arith.extf %x : f8E5M2 to f32
  return %y : f32
}

// The upper half of an f32.
// CHECK-LABEL: @bf16
// CHECK: arith.shli %{{.*}}, %{{.*}} : vector<8xi32>
// CHECK-NEXT: arith.bitcast %{{.*}} : vector<8xi32> to vector<8xf32>
// CHECK-NEXT: return
func.func @bf16(%x: vector<8xbf16>) -> vector<8xf32> {
  %y = arith.extf %x : vector<8xbf16> to vector<8xf32>
  return %y : vector<8xf32>
}

// Infinity and the sign are what a carry makes of them; only NaN is apart.
// CHECK-LABEL: @round_bf16
// CHECK: %[[HIGH:.*]] = arith.shrui %{{.*}}, %{{.*}} : vector<16xi32>
// CHECK: %[[NAN:.*]] = arith.cmpf uno, %{{.*}} : vector<16xf32>
// CHECK-NOT: arith.cmpi
// CHECK: arith.select %[[NAN]]
// CHECK-NEXT: arith.trunci %{{.*}} : vector<16xi32> to vector<16xi16>
func.func @round_bf16(%x: vector<16xf32>) -> vector<16xbf16> {
  %y = arith.truncf %x : vector<16xf32> to vector<16xbf16>
  return %y : vector<16xbf16>
}

// CHECK-LABEL: @truncate
// CHECK-NOT: arith.truncf
// CHECK: arith.trunci %{{.*}} : vector<4xi32> to vector<4xi8>
// CHECK-NEXT: arith.bitcast %{{.*}} : vector<4xi8> to vector<4xf8E4M3FN>
func.func @truncate(%x: vector<4xf32>) -> vector<4xf8E4M3FN> {
  %y = arith.truncf %x : vector<4xf32> to vector<4xf8E4M3FN>
  return %y : vector<4xf8E4M3FN>
}

// Conversions of f16 are the processor's, but only from f32.
// CHECK-LABEL: @half
// CHECK: arith.truncf %{{.*}} : f64 to f32
// CHECK: arith.cmpf one
// CHECK: arith.truncf %{{.*}} : f32 to f16
// F16-LABEL: @half
// F16: arith.trunci %{{.*}} : i32 to i16
// F16: arith.bitcast %{{.*}} : i16 to f16
func.func @half(%x: f64) -> f16 {
  %y = arith.truncf %x : f64 to f16
  return %y : f16
}

// CHECK-LABEL: @others
// CHECK-NEXT: arith.extf %{{.*}} : f32 to f64
// CHECK-NEXT: arith.truncf %{{.*}} : f64 to f32
// CHECK-NEXT: arith.extf %{{.*}} : f16 to f32
// CHECK-NEXT: return
func.func @others(%x: f32, %y: f64, %z: f16) -> (f64, f32, f32) {
  %a = arith.extf %x : f32 to f64
  %b = arith.truncf %y : f64 to f32
  %c = arith.extf %z : f16 to f32
  return %a, %b, %c : f64, f32, f32
}

// CHECK-LABEL: @between_small_floats
// CHECK-NOT: f8E4M3FN to bf16
// CHECK: arith.bitcast %{{.*}} : i16 to bf16
func.func @between_small_floats(%x: f8E4M3FN) -> bf16 {
  %y = arith.extf %x : f8E4M3FN to bf16
  return %y : bf16
}
