// RUN: tile-opt %s --tile-plan-epilogues | FileCheck-22 %s

#xy = affine_map<(i, j) -> (i, j)>
#y = affine_map<(i, j) -> (j)>
#x = affine_map<(i, j) -> (i)>
tile.kernel @stores(%x: memref<8x16xf32>, %r: memref<8x16xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%i, %c0] : memref<8x16xf32>, !tile.tile<1x16xf32>
  tile.store %t, %r[%i, %c0] : !tile.tile<1x16xf32>, memref<8x16xf32>
  tile.return
}
tile.kernel @adds(%x: memref<8x16xf32>, %r: memref<8x16xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%i, %c0] : memref<8x16xf32>, !tile.tile<1x16xf32>
  tile.store %t, %r[%i, %c0] reduce add : !tile.tile<1x16xf32>, memref<8x16xf32>
  tile.return
}

// A bias and a residual are; what sums rows of them, and what scales them by that sum, is not.
// CHECK-LABEL: func.func @norm
// CHECK: tile.launch
// CHECK: tile.epilogue
// CHECK: tile.epilogue
// CHECK-NOT: tile.epilogue
// CHECK-LABEL: func.func @other
func.func @norm(%x: tensor<8x16xf32>, %b: tensor<16xf32>, %q: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %c8 = arith.constant 8 : index
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8x16xf32>
  %r = tile.launch @stores grid(%c8) ins(%x : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> (tensor<8x16xf32>)
  %a = linalg.generic {indexing_maps = [#y, #xy, #xy], iterator_types = ["parallel", "parallel"]}
      ins(%b, %r : tensor<16xf32>, tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%p: f32, %s: f32, %o: f32):
    %t = arith.addf %p, %s : f32
    linalg.yield %t : f32
  } -> tensor<8x16xf32>
  %c = linalg.generic {indexing_maps = [#xy, #xy, #xy], iterator_types = ["parallel", "parallel"]}
      ins(%a, %q : tensor<8x16xf32>, tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%p: f32, %s: f32, %o: f32):
    %t = arith.addf %p, %s : f32
    linalg.yield %t : f32
  } -> tensor<8x16xf32>
  %e8 = tensor.empty() : tensor<8xf32>
  %f8 = linalg.fill ins(%zero : f32) outs(%e8 : tensor<8xf32>) -> tensor<8xf32>
  %m = linalg.generic {indexing_maps = [#xy, #x], iterator_types = ["parallel", "reduction"]}
      ins(%c : tensor<8x16xf32>) outs(%f8 : tensor<8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = arith.addf %p, %o : f32
    linalg.yield %t : f32
  } -> tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#xy, #x, #xy], iterator_types = ["parallel", "parallel"]}
      ins(%c, %m : tensor<8x16xf32>, tensor<8xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%p: f32, %s: f32, %o: f32):
    %t = arith.mulf %p, %s : f32
    linalg.yield %t : f32
  } -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// A sum in memory is no result before all tasks are done; a result that someone reads is kept as it is; reading it
// transposed takes other tasks' elements.
// CHECK-NOT: tile.epilogue
func.func @other(%x: tensor<8x16xf32>, %q: tensor<16x8xf32>)
    -> (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<16x8xf32>) {
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : tensor<8x16xf32>
  %f = tensor.empty() : tensor<16x8xf32>
  %r = tile.launch @adds grid(%c8) ins(%x : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> (tensor<8x16xf32>)
  %a = linalg.generic {indexing_maps = [#xy, #xy], iterator_types = ["parallel", "parallel"]}
      ins(%r : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = arith.negf %p : f32
    linalg.yield %t : f32
  } -> tensor<8x16xf32>
  %s = tile.launch @stores grid(%c8) ins(%x : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> (tensor<8x16xf32>)
  %b = linalg.generic {indexing_maps = [#xy, #xy], iterator_types = ["parallel", "parallel"]}
      ins(%s : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = arith.negf %p : f32
    linalg.yield %t : f32
  } -> tensor<8x16xf32>
  %u = tile.launch @stores grid(%c8) ins(%x : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> (tensor<8x16xf32>)
  %c = linalg.generic {indexing_maps = [affine_map<(i, j) -> (j, i)>, #xy, #xy],
      iterator_types = ["parallel", "parallel"]}
      ins(%u, %q : tensor<8x16xf32>, tensor<16x8xf32>) outs(%f : tensor<16x8xf32>) {
  ^bb0(%p: f32, %v: f32, %o: f32):
    %t = arith.addf %p, %v : f32
    linalg.yield %t : f32
  } -> tensor<16x8xf32>
  return %a, %s, %b, %c : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>, tensor<16x8xf32>
}

// A gate follows from two launches: each computes what is left to it.
// CHECK-LABEL: func.func @gate
// CHECK: tile.epilogue
// CHECK: math.tanh
// CHECK: tile.epilogue
// CHECK: arith.mulf
func.func @gate(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : tensor<8x16xf32>
  %u = tile.launch @stores grid(%c8) ins(%x : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> (tensor<8x16xf32>)
  %v = tile.launch @stores grid(%c8) ins(%x : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> (tensor<8x16xf32>)
  %a = linalg.generic {indexing_maps = [#xy, #xy], iterator_types = ["parallel", "parallel"]}
      ins(%v : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = math.tanh %p : f32
    linalg.yield %t : f32
  } -> tensor<8x16xf32>
  %y = linalg.generic {indexing_maps = [#xy, #xy, #xy], iterator_types = ["parallel", "parallel"]}
      ins(%a, %u : tensor<8x16xf32>, tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    linalg.yield %t : f32
  } -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}
