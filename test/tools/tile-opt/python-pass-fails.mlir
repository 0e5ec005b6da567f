// RUN: not tile-opt %s --load-python %S/Inputs/user_passes.py --test-fail 2>&1 | FileCheck-22 %s --check-prefix=RAISE
// RUN: not tile-opt %s --load-python %S/Inputs/user_passes.py --test-fail=how=unsupported 2>&1 \
// RUN:   | FileCheck-22 %s --check-prefix=LOCATED
// RUN: not tile-opt %s --load-python %S/Inputs/user_passes.py --test-fail=how=break 2>&1 \
// RUN:   | FileCheck-22 %s --check-prefix=BREAK

// RAISE: python-pass-fails.mlir:[[#@LINE+10]]:{{[0-9]+}}: error:
// RAISE-SAME: {{^}} python pass 'test-fail' failed: ValueError: a bad function
// RAISE: note: Traceback (most recent call last):
// RAISE: user_passes.py
// LOCATED: python-pass-fails.mlir:[[#@LINE+7]]:{{[0-9]+}}: error: this function is too bad to compile
// BREAK: error: 'func.func' op requires attribute 'function_type'
func.func @good(%x: f32) -> f32 {
  return %x : f32
}

func.func @bad(%x: f32) -> f32 {
  %0 = arith.addf %x, %x : f32
  return %0 : f32
}
