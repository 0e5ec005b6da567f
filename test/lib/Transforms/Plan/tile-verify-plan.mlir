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
func.func @main(%x: tensor<?xf32>, %e: tensor<?xf32>, %s: tensor<64xf32>, %n: index)
    -> (tensor<?xf32>, tensor<64xf32>) {
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

// -----

// A product of small numbers that is made in wide ones is told where it is large; a size of the run counts as 128.
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @main(%x: tensor<?x64xbf16>, %w: tensor<64x64xbf16>, %e: tensor<?x64xf32>, %v: tensor<8x64xbf16>,
    %s: tensor<8x64xf32>)
    -> (tensor<?x64xf32>, tensor<8x64xf32>) {
  // expected-remark @below {{multiplies bf16 in f32: its number of rows is known at run time only}}
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%x, %w : tensor<?x64xbf16>, tensor<64x64xbf16>) outs(%e : tensor<?x64xf32>)
      attrs = {tile.host = "a test",
          tile.widened = "bf16 in f32: its number of rows is known at run time only"} {
    // expected-remark @-4 {{runs as scalar loops on the host: a test}}
  ^bb0(%p: bf16, %q: bf16, %o: f32):
    %u = arith.extf %p : bf16 to f32
    %r = arith.extf %q : bf16 to f32
    %m = arith.mulf %u, %r : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<?x64xf32>
  %z = tile.group "l2" (%v1 = %v : tensor<8x64xbf16>, %w1 = %w : tensor<64x64xbf16>, %s1 = %s : tensor<8x64xf32>)
      -> (tensor<8x64xf32>) {
    %y1 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%v1, %w1 : tensor<8x64xbf16>, tensor<64x64xbf16>) outs(%s1 : tensor<8x64xf32>)
        attrs = {tile.widened = "bf16 in f32: few rows"} {
    ^bb0(%p: bf16, %q: bf16, %o: f32):
      %u = arith.extf %p : bf16 to f32
      %r = arith.extf %q : bf16 to f32
      %m = arith.mulf %u, %r : f32
      %t = arith.addf %o, %m : f32
      linalg.yield %t : f32
    } -> tensor<8x64xf32>
    tile.yield %y1 : tensor<8x64xf32>
  }
  return %y, %z : tensor<?x64xf32>, tensor<8x64xf32>
}

// -----

// So is any other reason why a large product is slow.
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (k, n)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @main(%x: tensor<128x64xf32>, %v: tensor<8x64xf32>, %w: tensor<64x64xf32>, %e: tensor<128x64xf32>,
    %s: tensor<8x64xf32>)
    -> (tensor<128x64xf32>, tensor<8x64xf32>) {
  %y = tile.group "l2" (%x1 = %x : tensor<128x64xf32>, %w1 = %w : tensor<64x64xf32>, %e1 = %e : tensor<128x64xf32>)
      -> (tensor<128x64xf32>) {
    // expected-remark @below {{reads a softmax from memory: for a test}}
    %y1 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%x1, %w1 : tensor<128x64xf32>, tensor<64x64xf32>) outs(%e1 : tensor<128x64xf32>)
        attrs = {tile.slow = "reads a softmax from memory: for a test"} {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %m = arith.mulf %p, %q : f32
      %t = arith.addf %o, %m : f32
      linalg.yield %t : f32
    } -> tensor<128x64xf32>
    tile.yield %y1 : tensor<128x64xf32>
  }
  %z = tile.group "l2" (%v1 = %v : tensor<8x64xf32>, %w1 = %w : tensor<64x64xf32>, %s1 = %s : tensor<8x64xf32>)
      -> (tensor<8x64xf32>) {
    %y1 = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
        ins(%v1, %w1 : tensor<8x64xf32>, tensor<64x64xf32>) outs(%s1 : tensor<8x64xf32>)
        attrs = {tile.slow = "reads a softmax from memory: for a test"} {
    ^bb0(%p: f32, %q: f32, %o: f32):
      %m = arith.mulf %p, %q : f32
      %t = arith.addf %o, %m : f32
      linalg.yield %t : f32
    } -> tensor<8x64xf32>
    tile.yield %y1 : tensor<8x64xf32>
  }
  return %y, %z : tensor<128x64xf32>, tensor<8x64xf32>
}
