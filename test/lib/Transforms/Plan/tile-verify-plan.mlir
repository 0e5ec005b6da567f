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

// -----

// What stays on the host says why; large work there is told.
#v = affine_map<(i) -> (i)>
func.func @main(%x: tensor<?xf32>, %e: tensor<?xf32>, %s: tensor<64xf32>, %n: index) -> (tensor<?xf32>, tensor<64xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  // expected-remark @below {{runs as scalar loops on the host: its sizes are known at run time only}}
  %a = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) attrs = {tile.host = "its sizes are known at run time only"} {
  ^bb0(%p: f32, %o: f32):
    linalg.yield %p : f32
  } -> tensor<?xf32>
  %b = linalg.generic {indexing_maps = [#v, #v], iterator_types = ["parallel"]}
      ins(%s : tensor<64xf32>) outs(%s : tensor<64xf32>) attrs = {tile.host = "for a test"} {
  ^bb0(%p: f32, %o: f32):
    linalg.yield %p : f32
  } -> tensor<64xf32>
  // expected-remark @below {{runs on the host: a loop over single elements}}
  %c = scf.for %i = %c0 to %n step %c1 iter_args(%t = %b) -> (tensor<64xf32>) {
    %v = tensor.extract %t[%c0] : tensor<64xf32>
    %u = tensor.insert %v into %t[%i] : tensor<64xf32>
    scf.yield %u : tensor<64xf32>
  }
  %d = scf.for %i = %c0 to %c4 step %c1 iter_args(%t = %c) -> (tensor<64xf32>) {
    %v = tensor.extract %t[%c0] : tensor<64xf32>
    %u = tensor.insert %v into %t[%i] : tensor<64xf32>
    scf.yield %u : tensor<64xf32>
  }
  return %a, %d : tensor<?xf32>, tensor<64xf32>
}
