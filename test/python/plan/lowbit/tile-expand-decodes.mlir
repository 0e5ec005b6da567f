// RUN: tile-opt %s --tile-expand-decodes | FileCheck %s

// What decodes stand for, step by step: differences of integers are exact, the rest is in f32.

// CHECK-LABEL: @zero_points
// CHECK-SAME: %[[C:.*]]: i8, %[[Z:.*]]: i8, %[[S:.*]]: f32
// CHECK: %[[CW:.*]] = arith.extui %[[C]] : i8 to i32
// CHECK: %[[ZW:.*]] = arith.extui %[[Z]] : i8 to i32
// CHECK: %[[D:.*]] = arith.subi %[[CW]], %[[ZW]] : i32
// CHECK: %[[F:.*]] = arith.sitofp %[[D]] : i32 to f32
// CHECK: arith.mulf %[[F]], %[[S]] : f32
func.func @zero_points(%c: i8, %z: i8, %s: f32) -> f32 {
  %x = sparse_tile.decode unsigned %c zero_point %z : i8 scale %s : f32 : i8 to f32
  return %x : f32
}

// A constant's bits have a sign where the code has one; one of 32 bits has its own.

// CHECK-LABEL: @constants
// CHECK-DAG: arith.constant 200 : i32
// CHECK-DAG: arith.constant -56 : i32
// CHECK-DAG: arith.constant -7 : i32
func.func @constants(%c: i8) -> (i32, i32, i32) {
  %byte = arith.constant -56 : i8
  %word = arith.constant -7 : i32
  %x = sparse_tile.decode unsigned %c zero_point %byte : i8 : i8 to i32
  %y = sparse_tile.decode %c zero_point %byte : i8 : i8 to i32
  %z = sparse_tile.decode unsigned %c zero_point %word : i32 : i8 to i32
  return %x, %y, %z : i32, i32, i32
}

// CHECK-LABEL: @floats
// CHECK-SAME: %[[C:.*]]: i8, %[[Q:.*]]: f8E4M3FN, %[[Z:.*]]: f16, %[[S:.*]]: bf16
// CHECK: %[[F:.*]] = arith.sitofp %[[C]] : i8 to f32
// CHECK: %[[ZF:.*]] = arith.extf %[[Z]] : f16 to f32
// CHECK: %[[D:.*]] = arith.subf %[[F]], %[[ZF]] : f32
// CHECK: %[[SF:.*]] = arith.extf %[[S]] : bf16 to f32
// CHECK: %[[M:.*]] = arith.mulf %[[D]], %[[SF]] : f32
// CHECK: arith.truncf %[[M]] : f32 to f16
// CHECK: arith.extf %[[Q]] : f8E4M3FN to f32
// CHECK-NOT: sparse_tile
func.func @floats(%c: i8, %q: f8E4M3FN, %z: f16, %s: bf16) -> (f16, f32) {
  %x = sparse_tile.decode %c zero_point %z : f16 scale %s : bf16 : i8 to f16
  %y = sparse_tile.decode %q scale %s : bf16 : f8E4M3FN to f32
  return %x, %y : f16, f32
}
