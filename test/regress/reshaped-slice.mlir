// RUN: tile-opt %s --tile-set-target=target=cpu:x86-64-v3 --tile-cpu-plan --tile-cpu-tile --tile-cpu-schedule \
// RUN:   | FileCheck-22 %s

// A kernel that reads a slice in another shape: its argument has the slice's offset.
// CHECK: tile.launch @map_exp_2x8 ins(%{{.*}} : memref<2x8xf32, strided<[8, 1], offset: 16>>)
#id = affine_map<(i) -> (i)>
#id2 = affine_map<(i, j) -> (i, j)>
func.func @main(%x: tensor<48xf32>, %t: tensor<48xf32>)
    -> (tensor<48xf32> {tile.name = "a"}, tensor<2x8xf32> {tile.name = "b"}) {
  %e = tensor.empty() : tensor<48xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<48xf32>) outs(%e : tensor<48xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.negf %a : f32
    linalg.yield %n : f32
  } -> tensor<48xf32>
  %s = tensor.extract_slice %y[16] [16] [1] : tensor<48xf32> to tensor<16xf32>
  %r = tensor.expand_shape %s [[0, 1]] output_shape [2, 8] : tensor<16xf32> into tensor<2x8xf32>
  %f = tensor.empty() : tensor<2x8xf32>
  %z = linalg.generic {indexing_maps = [#id2, #id2], iterator_types = ["parallel", "parallel"]}
      ins(%r : tensor<2x8xf32>) outs(%f : tensor<2x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = math.exp %a : f32
    linalg.yield %n : f32
  } -> tensor<2x8xf32>
  return %y, %z : tensor<48xf32>, tensor<2x8xf32>
}
