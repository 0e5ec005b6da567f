// Python passes nested under threads, timed, printed, split, and run from a reproducer.
// RUN: tile-opt %s --load-python %S/Inputs/user_passes.py \
// RUN:   --pass-pipeline="builtin.module(func.func(test-mark,cse,test-make-exp,canonicalize))" | FileCheck-22 %s
// RUN: tile-opt %s --load-python %S/Inputs/user_passes.py --pass-pipeline="builtin.module(func.func(test-mark))" \
// RUN:   --mlir-timing -o %t 2>&1 | FileCheck-22 %s --check-prefix=TIMING
// RUN: tile-opt %s --load-python %S/Inputs/user_passes.py \
// RUN:   --pass-pipeline="builtin.module(func.func(test-mark{max-rows=5}))" --dump-pass-pipeline -o %t 2>&1 \
// RUN:   | FileCheck-22 %s --check-prefix=PIPELINE
// RUN: tile-opt %s --load-python %S/Inputs/user_passes.py --pass-pipeline="any(func.func(test-mark))" \
// RUN:   --mlir-print-ir-after=test-mark --mlir-disable-threading -o %t 2>&1 | FileCheck-22 %s --check-prefix=PRINT
// RUN: tile-opt %s --load-python %S/Inputs/user_passes.py \
// RUN:   --pass-pipeline="builtin.module(func.func(test-mark{label=again}))" --mlir-generate-reproducer=%t.repro -o %t
// RUN: tile-opt %t.repro --load-python %S/Inputs/user_passes.py --run-reproducer | FileCheck-22 %s --check-prefix=REPRO
// RUN: tile-opt %s --load-python %S/Inputs/user_passes.py --split-input-file --test-mark | FileCheck-22 %s

// TIMING: func.func' Pipeline
// TIMING: test-mark
// PIPELINE: test-mark{fast=false label=none max-rows=5
// PRINT: IR Dump After {{.*}}test-mark
// REPRO-COUNT-3: test.mark = "again
// CHECK-COUNT-3: test.mark = "none 8 0.5 False 4x8"
func.func @a(%x: f32) -> f32 {
  return %x : f32
}
func.func @b(%x: f32) -> f32 {
  return %x : f32
}
// -----
func.func @c(%x: f32) -> f32 {
  return %x : f32
}
