// RUN: tile-opt --tile-expand-floats --verify-diagnostics %s

func.func @rounding(%x: f32) -> f8E5M2 {
  // expected-error @below {{to 'f8E5M2' has no expansion of this rounding mode; leave it out}}
  %y = arith.truncf %x toward_zero : f32 to f8E5M2
  return %y : f8E5M2
}
