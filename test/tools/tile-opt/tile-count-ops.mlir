// RUN: tile-opt %s --tile-count-ops | FileCheck-22 %s --check-prefix=ALL
// RUN: tile-opt %s --pass-pipeline="builtin.module(func.func(tile-count-ops{only=arith.addf attribute=test.adds}))" \
// RUN:   | FileCheck-22 %s --check-prefix=ONLY

// ALL: module attributes {tile.op_count = {arith.addf = 2 : i64, arith.mulf = 1 : i64, func.func = 1 : i64,
// ALL-SAME: {{^}} func.return = 1 : i64}}
// ONLY: func.func @f({{.*}} attributes {test.adds = {arith.addf = 2 : i64}}
func.func @f(%x: f32) -> f32 {
  %0 = arith.addf %x, %x : f32
  %1 = arith.addf %0, %x : f32
  %2 = arith.mulf %1, %x : f32
  return %2 : f32
}
