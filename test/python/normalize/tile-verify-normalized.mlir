// RUN: not tile-opt %s --tile-verify-normalized --split-input-file 2>&1 | FileCheck-22 %s

#id = affine_map<(d0, d1) -> (d0, d1)>
#swap = affine_map<(d0, d1) -> (d1, d0)>
func.func @good(%x: tensor<4x8xf32>) -> tensor<8x4xf32> {
  %e = tensor.empty() : tensor<8x4xf32>
  %r = linalg.generic {indexing_maps = [#swap, #id], iterator_types = ["parallel", "parallel"]}
      ins(%x : tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%a: f32, %b: f32):
    linalg.yield %a : f32
  } -> tensor<8x4xf32>
  return %r : tensor<8x4xf32>
}

// -----

func.func @named(%a: tensor<4x8xf32>, %b: tensor<8x3xf32>, %c: tensor<4x3xf32>) -> tensor<4x3xf32> {
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: {{.*}}'linalg.matmul' must not be here after phase normalize
  %d = linalg.matmul ins(%a, %b : tensor<4x8xf32>, tensor<8x3xf32>) outs(%c : tensor<4x3xf32>) -> tensor<4x3xf32>
  return %d : tensor<4x3xf32>
}

// -----

func.func @concat(%a: tensor<4xf32>) -> tensor<8xf32> {
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: {{.*}}'tensor.concat' must not be here after phase normalize
  %p = tensor.concat dim(0) %a, %a : (tensor<4xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %p : tensor<8xf32>
}

// -----

// Sizes that are known at run time only, single elements, control flow and assertions may stay.
func.func @dynamic(%a: tensor<?xf32>, %i: index) -> tensor<?x1xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?xf32>
  %ok = arith.cmpi ult, %i, %n : index
  cf.assert %ok, "out of range"
  %x = tensor.extract %a[%i] : tensor<?xf32>
  %b = scf.if %ok -> (tensor<?xf32>) {
    %c = tensor.insert %x into %a[%c0] : tensor<?xf32>
    scf.yield %c : tensor<?xf32>
  } else {
    scf.yield %a : tensor<?xf32>
  }
  %r = tensor.expand_shape %b [[0, 1]] output_shape [%n, 1] : tensor<?xf32> into tensor<?x1xf32>
  return %r : tensor<?x1xf32>
}

// -----

func.func @text() -> tensor<65xf32> {
  // CHECK: [[@LINE+2]]:{{[0-9]+}}: error:
  // CHECK-SAME: holds 260 bytes as text; constants above 256 bytes are ml_program globals
  %c = arith.constant dense<[1.0, 2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
      0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
      0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0,
      0.0]> : tensor<65xf32>
  return %c : tensor<65xf32>
}

// -----

func.func @splat() -> tensor<1000xf32> {
  %c = arith.constant dense<1.0> : tensor<1000xf32>
  return %c : tensor<1000xf32>
}
