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

func.func @pad(%a: tensor<4xf32>) -> tensor<6xf32> {
  %zero = arith.constant 0.0 : f32
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: {{.*}}'tensor.pad' must not be here after phase normalize
  %p = tensor.pad %a low[1] high[1] {
  ^bb0(%i: index):
    tensor.yield %zero : f32
  } : tensor<4xf32> to tensor<6xf32>
  return %p : tensor<6xf32>
}

// -----

func.func @dynamic(%a: tensor<?xf32>) -> tensor<?x1xf32> {
  %c0 = arith.constant 0 : index
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: {{.*}}must not be here after phase normalize
  %n = tensor.dim %a, %c0 : tensor<?xf32>
  %r = tensor.expand_shape %a [[0, 1]] output_shape [%n, 1] : tensor<?xf32> into tensor<?x1xf32>
  return %r : tensor<?x1xf32>
}

// -----

func.func @dynamic_slice(%a: tensor<8xf32>, %n: index) -> tensor<?xf32> {
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: {{.*}}has the dynamic type tensor<?xf32>; all shapes are static after phase normalize
  %s = tensor.extract_slice %a[0] [%n] [1] : tensor<8xf32> to tensor<?xf32>
  return %s : tensor<?xf32>
}

// -----

func.func @text() -> tensor<65xf32> {
  // CHECK: [[@LINE+1]]:{{[0-9]+}}: error: {{.*}}holds 260 bytes as text; constants above 256 bytes are ml_program globals
  %c = arith.constant dense<"0x0000803F00000040000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000"> : tensor<65xf32>
  return %c : tensor<65xf32>
}

// -----

func.func @splat() -> tensor<1000xf32> {
  %c = arith.constant dense<1.0> : tensor<1000xf32>
  return %c : tensor<1000xf32>
}
