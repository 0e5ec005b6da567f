// RUN: tile-opt %s --tile-set-target=target=cpu:x86-64-v3 | FileCheck-22 %s
// RUN: tile-opt %s --tile-set-target="target=cuda:sm_90a accuracy=fast opt-level=2 choices=a:1,b:2" \
// RUN:   | FileCheck-22 %s --check-prefix=GPU
// RUN: tile-opt %s --tile-set-target=target=cuda:sm_90a --tile-set-target=target=cpu:%S/Inputs/small.toml \
// RUN:   | FileCheck-22 %s --check-prefix=FILE
// RUN: not tile-opt %s --tile-set-target=target=cpu:vax 2>&1 | FileCheck-22 %s --check-prefix=NONE
// RUN: not tile-opt %s --tile-set-target=target=reference 2>&1 | FileCheck-22 %s --check-prefix=REFERENCE

// CHECK: tile.device = #tile.device<name = "x86-64-v3", cpu = "x86-64-v3"
// CHECK-SAME: vector_bits = 256 : i64}>, tile.options = {accuracy = "exact", opt_level = 3 : i64, precision = "f32"}}

// GPU: tile.device = #tile.device<name = "nvidia-h100", cpu = "sm_90a"
// GPU-SAME: tile.options = {accuracy = "fast", choices = ["a:1", "b:2"], opt_level = 2 : i64, precision = "f32"}

// A description in a file, in the place of what the module said before.
// FILE: tile.device = #tile.device<name = "small"
// FILE-NOT: sm_90a

// NONE: error: LLVM knows no x86 CPU named 'vax'
// REFERENCE: error: target 'reference' has no device

func.func @main() {
  return
}
