// RUN: tile-opt %s --tile-apply-layouts --split-input-file --verify-diagnostics

// Operands were cast to tensors, and their dimensions taken from the layout.

#id = affine_map<(i, j) -> (i, j)>
func.func @buffer(%x: memref<4x8xf32>, %y: memref<4x8xf32>) {
  // expected-error @below {{a tensor of known sizes is needed}}
  linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"],
      tile.task = 0 : i64, tile.nest = 0 : i64, tile.layouts = [#tile.layout<perm = [1, 0]>]}
      ins(%x : memref<4x8xf32>) outs(%y : memref<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  }
  return
}

// -----

#id = affine_map<(i, j) -> (i, j)>
func.func @rank(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-error @below {{has a layout for more dimensions than those of}}
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"],
      tile.task = 0 : i64, tile.nest = 0 : i64, tile.layouts = [#tile.layout<perm = [2, 1, 0]>]}
      ins(%x : tensor<4x8xf32>) outs(%y : tensor<4x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    linalg.yield %a : f32
  } -> tensor<4x8xf32>
  return %r : tensor<4x8xf32>
}
