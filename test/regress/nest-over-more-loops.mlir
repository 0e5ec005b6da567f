// RUN: tile-opt %s --tile-groups-to-kernels --verify-diagnostics

// The producer is parallel in %j too, but its result does not say where: the walk to its operands met a null
// expression.

#id = affine_map<(i, j) -> (i, j)>
#row = affine_map<(i, j) -> (i)>
func.func @main(%x: tensor<8x100xf32>) -> tensor<8x100xf32> {
  %y = tile.group "l2" (%x1 = %x : tensor<8x100xf32>) -> (tensor<8x100xf32>) attributes {tile.kernel = "normalize"} {
    %r = tile.group "register" (%x2 = %x1 : tensor<8x100xf32>) -> (tensor<8x100xf32>) {
      %d = tensor.empty() : tensor<8xf32>
      // expected-error @below {{a nest needs a permutation of its parallel loops}}
      %p = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "parallel"]}
          ins(%x2 : tensor<8x100xf32>) outs(%d : tensor<8xf32>) {
      ^bb0(%q: f32, %o: f32):
        linalg.yield %q : f32
      } -> tensor<8xf32>
      %e = tensor.empty() : tensor<8x100xf32>
      %g = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]}
          ins(%x2, %p : tensor<8x100xf32>, tensor<8xf32>) outs(%e : tensor<8x100xf32>)
          attrs = {tile.rtile = #tile.rtile<l2 = [4, 100], register = [1, 64], order = [0, 1]>} {
      ^bb0(%q: f32, %u: f32, %o: f32):
        %t = arith.divf %q, %u : f32
        linalg.yield %t : f32
      } -> tensor<8x100xf32>
      tile.yield %g : tensor<8x100xf32>
    }
    tile.yield %r : tensor<8x100xf32>
  }
  return %y : tensor<8x100xf32>
}
