// RUN: tile-opt %s --tile-verify-plan -split-input-file -verify-diagnostics

#v = affine_map<(i) -> (i)>
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %e = tensor.empty() : tensor<64xf32>
  // expected-error @below {{is in no tile.group after `plan`: no kernel would compute it}}
  %a = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%x : tensor<64xf32>) outs(%e : tensor<64xf32>) {
  ^bb0(%p: f32, %o: f32):
    linalg.yield %p : f32
  } -> tensor<64xf32>
  return %a : tensor<64xf32>
}

// -----

#v = affine_map<(i) -> (i)>
func.func @main(%x: tensor<64xf32>) -> tensor<64xf32> {
  %y = tile.group "l2" (%x1 = %x : tensor<64xf32>) -> (tensor<64xf32>) {
    // expected-error @below {{is a register group without exactly one root}}
    %r = tile.group "register" (%x2 = %x1 : tensor<64xf32>) -> (tensor<64xf32>) {
      %e = tensor.empty() : tensor<64xf32>
      %a = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
          ins(%x2 : tensor<64xf32>) outs(%e : tensor<64xf32>) {
      ^bb0(%p: f32, %o: f32):
        linalg.yield %p : f32
      } -> tensor<64xf32>
      tile.yield %a : tensor<64xf32>
    }
    tile.yield %r : tensor<64xf32>
  }
  return %y : tensor<64xf32>
}
