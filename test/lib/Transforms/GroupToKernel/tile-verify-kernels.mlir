// RUN: tile-opt %s --tile-verify-kernels -split-input-file -verify-diagnostics

tile.kernel @fine(%x: memref<4xf32>) grid(%i) {
  tile.return
}

// -----

tile.kernel @left(%x: memref<4xf32>, %z: f32) {
  // expected-error @below {{is in a kernel after `tile`}}
  linalg.fill ins(%z : f32) outs(%x : memref<4xf32>)
  tile.return
}

// -----

func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{is left after `tile`}}
  %y = tile.group "l2" (%a = %x : tensor<4xf32>) -> (tensor<4xf32>) {
    %e = tensor.empty() : tensor<4xf32>
    tile.yield %a : tensor<4xf32>
  }
  return %y : tensor<4xf32>
}
