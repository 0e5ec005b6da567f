// RUN: tile-opt %s --tile-set-target=target=cpu:x86-64-v3 --tile-verify-target=kind=cpu | FileCheck-22 %s
// RUN: not tile-opt %s --tile-verify-target 2>&1 | FileCheck-22 %s --check-prefix=NONE
// RUN: not tile-opt %s --tile-set-target=target=cuda:sm_80 --tile-verify-target=kind=cpu 2>&1 \
// RUN:   | FileCheck-22 %s --check-prefix=KIND
// RUN: not tile-opt %s --tile-cpu-lower 2>&1 | FileCheck-22 %s --check-prefix=NONE
// RUN: not tile-opt %s --tile-cuda-schedule 2>&1 | FileCheck-22 %s --check-prefix=NONE

// CHECK: func.func @main
// NONE: error: this phase needs to know the device,
// NONE-SAME: {{^}} and the module names none in `tile.device`: run the pass tile-set-target
// KIND: error: this phase makes code for a CPU, and the module's device 'nvidia-sm80' is a GPU

func.func @main() {
  return
}
