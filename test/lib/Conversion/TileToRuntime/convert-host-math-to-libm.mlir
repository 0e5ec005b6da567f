// RUN: tile-opt %s --convert-host-math-to-libm | FileCheck-22 %s

// CHECK-DAG: func.func private @exp(f64) -> f64
// CHECK-DAG: func.func private @atan2(f64, f64) -> f64
// CHECK-LABEL: func.func @main
// CHECK: call @exp
// CHECK: call @atan2
// CHECK: math.sqrt
// CHECK: math.floor
func.func @main(%x: f64) -> f64 {
  %a = math.exp %x : f64
  %b = math.atan2 %a, %x : f64
  %c = math.sqrt %b : f64
  %d = math.floor %c : f64
  return %d : f64
}
