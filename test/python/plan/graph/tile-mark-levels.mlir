// RUN: tile-opt %s --tile-mark-levels=l1-bytes=32768 | FileCheck %s

// CHECK-LABEL: @one_nest
// CHECK: tile.levels = ["memory"]
// CHECK: tile.levels = ["register", "memory"]

#id = affine_map<(i) -> (i)>
func.func @one_nest(%x: tensor<64xf32>) -> tensor<64xf32> {
  %y = tile.group "l2" (%x0 = %x : tensor<64xf32>) -> (tensor<64xf32>) {
    %r = tile.group "register" (%x1 = %x0 : tensor<64xf32>) -> (tensor<64xf32>) {
      %e = tensor.empty() : tensor<64xf32>
      %a = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
          ins(%x1 : tensor<64xf32>) outs(%e : tensor<64xf32>) {
      ^bb0(%p: f32, %o: f32):
        %n = arith.negf %p : f32
        linalg.yield %n : f32
      } -> tensor<64xf32>
      %b = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel"],
          tile.rtile = #tile.rtile<l2 = [64], register = [64], order = [0]>}
          ins(%a, %x1 : tensor<64xf32>, tensor<64xf32>) outs(%e : tensor<64xf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %n = arith.mulf %p, %q : f32
        linalg.yield %n : f32
      } -> tensor<64xf32>
      tile.yield %b : tensor<64xf32>
    }
    tile.yield %r : tensor<64xf32>
  }
  return %y : tensor<64xf32>
}

// A task of two nests: 32 rows of 64 numbers stay in the L1 cache, 32 rows of 1024 do not.
// CHECK-LABEL: @two_nests
// CHECK: tile.levels = ["memory"]
// CHECK: tile.levels = ["memory"]
// CHECK: tile.levels = ["l1", "l2"]
#ij = affine_map<(i, j) -> (i, j)>
#left = affine_map<(i, j, k) -> (i, j)>
#right = affine_map<(i, j, k) -> (i, k)>
#all = affine_map<(i, j, k) -> (i, j, k)>
func.func @two_nests(%x: tensor<64x64xf32>, %y: tensor<64x1024xf32>) -> tensor<64x64x1024xf32> {
  %z = tile.group "l2" (%x0 = %x : tensor<64x64xf32>, %y0 = %y : tensor<64x1024xf32>) -> (tensor<64x64x1024xf32>) {
    %a = tile.group "register" (%x1 = %x0 : tensor<64x64xf32>) -> (tensor<64x64xf32>) {
      %e = tensor.empty() : tensor<64x64xf32>
      %r = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"],
          tile.rtile = #tile.rtile<l2 = [32, 64], register = [1, 64], order = [0, 1]>}
          ins(%x1 : tensor<64x64xf32>) outs(%e : tensor<64x64xf32>) {
      ^bb0(%p: f32, %o: f32):
        %n = arith.negf %p : f32
        linalg.yield %n : f32
      } -> tensor<64x64xf32>
      tile.yield %r : tensor<64x64xf32>
    }
    %b = tile.group "register" (%y1 = %y0 : tensor<64x1024xf32>) -> (tensor<64x1024xf32>) {
      %e = tensor.empty() : tensor<64x1024xf32>
      %r = linalg.generic {indexing_maps = [#ij, #ij], iterator_types = ["parallel", "parallel"],
          tile.rtile = #tile.rtile<l2 = [32, 1024], register = [1, 64], order = [0, 1]>}
          ins(%y1 : tensor<64x1024xf32>) outs(%e : tensor<64x1024xf32>) {
      ^bb0(%p: f32, %o: f32):
        %n = arith.negf %p : f32
        linalg.yield %n : f32
      } -> tensor<64x1024xf32>
      tile.yield %r : tensor<64x1024xf32>
    }
    %c = tile.group "register" (%a1 = %a : tensor<64x64xf32>, %b1 = %b : tensor<64x1024xf32>)
        -> (tensor<64x64x1024xf32>) {
      %e = tensor.empty() : tensor<64x64x1024xf32>
      %r = linalg.generic {indexing_maps = [#left, #right, #all], iterator_types = ["parallel", "parallel", "parallel"],
          tile.rtile = #tile.rtile<l2 = [32, 64, 1024], register = [1, 1, 64], order = [0, 1, 2]>}
          ins(%a1, %b1 : tensor<64x64xf32>, tensor<64x1024xf32>) outs(%e : tensor<64x64x1024xf32>) {
      ^bb0(%p: f32, %q: f32, %o: f32):
        %n = arith.mulf %p, %q : f32
        linalg.yield %n : f32
      } -> tensor<64x64x1024xf32>
      tile.yield %r : tensor<64x64x1024xf32>
    }
    tile.yield %c : tensor<64x64x1024xf32>
  }
  return %z : tensor<64x64x1024xf32>
}
