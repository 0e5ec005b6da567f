// RUN: tile-opt %s --tile-form-epilogues -split-input-file -verify-diagnostics

// The kernel adds to what is there.
#xy = affine_map<(i, j) -> (i, j)>
#x = affine_map<(i, j) -> (i)>
tile.kernel @twice(%x: memref<8x16xf32>, %r: memref<8x16xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%i, %c0] : memref<8x16xf32>, !tile.tile<1x16xf32>
  tile.store %t, %r[%i, %c0] reduce add : !tile.tile<1x16xf32>, memref<8x16xf32>
  tile.return
}
func.func @main(%x: tensor<8x16xf32>, %c: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : tensor<8x16xf32>
  %r = tile.launch @twice grid(%c8) ins(%x : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> (tensor<8x16xf32>)
  // expected-error @below {{but this does not only store tiles into its result: it has tile.store}}
  %y = linalg.generic {indexing_maps = [#xy, #xy], iterator_types = ["parallel", "parallel"], tile.epilogue}
      ins(%r : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%p: f32, %o: f32):
    %n = arith.negf %p : f32
    linalg.yield %n : f32
  } -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// -----

// What the kernel leaves alone would not be negated.
#xy = affine_map<(i, j) -> (i, j)>
#x = affine_map<(i, j) -> (i)>
tile.kernel @twice(%x: memref<8x16xf32>, %r: memref<8x16xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%i, %c0] : memref<8x16xf32>, !tile.tile<1x16xf32>
  tile.store %t, %r[%i, %c0] : !tile.tile<1x16xf32>, memref<8x16xf32>
  tile.return
}
func.func @main(%x: tensor<8x16xf32>, %c: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : tensor<8x16xf32>
  %r = tile.launch @twice grid(%c8) ins(%x : tensor<8x16xf32>) outs(%c : tensor<8x16xf32>) -> (tensor<8x16xf32>)
  // expected-error @below {{which goes on with a tensor that has contents}}
  %y = linalg.generic {indexing_maps = [#xy, #xy], iterator_types = ["parallel", "parallel"], tile.epilogue}
      ins(%r : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%p: f32, %o: f32):
    %n = arith.negf %p : f32
    linalg.yield %n : f32
  } -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// -----

// There is no kernel before it.
#xy = affine_map<(i, j) -> (i, j)>
#x = affine_map<(i, j) -> (i)>
tile.kernel @twice(%x: memref<8x16xf32>, %r: memref<8x16xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%i, %c0] : memref<8x16xf32>, !tile.tile<1x16xf32>
  tile.store %t, %r[%i, %c0] : !tile.tile<1x16xf32>, memref<8x16xf32>
  tile.return
}
func.func @main(%x: tensor<8x16xf32>, %c: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : tensor<8x16xf32>
  %r = tile.launch @twice grid(%c8) ins(%x : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> (tensor<8x16xf32>)
  // expected-error @below {{stands on an operation that follows no tile.launch with one result}}
  %y = linalg.generic {indexing_maps = [#xy, #xy], iterator_types = ["parallel", "parallel"], tile.epilogue}
      ins(%c : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%p: f32, %o: f32):
    %n = arith.negf %p : f32
    linalg.yield %n : f32
  } -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// -----

// The product itself is a result, too.
#xy = affine_map<(i, j) -> (i, j)>
#x = affine_map<(i, j) -> (i)>
tile.kernel @twice(%x: memref<8x16xf32>, %r: memref<8x16xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%i, %c0] : memref<8x16xf32>, !tile.tile<1x16xf32>
  tile.store %t, %r[%i, %c0] : !tile.tile<1x16xf32>, memref<8x16xf32>
  tile.return
}
func.func @main(%x: tensor<8x16xf32>, %c: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : tensor<8x16xf32>
  %r = tile.launch @twice grid(%c8) ins(%x : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> (tensor<8x16xf32>)
  // expected-error @below {{but something else reads what comes before them}}
  %y = linalg.generic {indexing_maps = [#xy, #xy], iterator_types = ["parallel", "parallel"], tile.epilogue}
      ins(%r : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%p: f32, %o: f32):
    %n = arith.negf %p : f32
    linalg.yield %n : f32
  } -> tensor<8x16xf32>
  return %y, %r : tensor<8x16xf32>, tensor<8x16xf32>
}

// -----

// A sum of rows is not element by element.
#xy = affine_map<(i, j) -> (i, j)>
#x = affine_map<(i, j) -> (i)>
tile.kernel @twice(%x: memref<8x16xf32>, %r: memref<8x16xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%i, %c0] : memref<8x16xf32>, !tile.tile<1x16xf32>
  tile.store %t, %r[%i, %c0] : !tile.tile<1x16xf32>, memref<8x16xf32>
  tile.return
}
func.func @main(%x: tensor<8x16xf32>, %c: tensor<8x16xf32>) -> tensor<8xf32> {
  %c8 = arith.constant 8 : index
  %e8 = tensor.empty() : tensor<8xf32>
  %e = tensor.empty() : tensor<8x16xf32>
  %r = tile.launch @twice grid(%c8) ins(%x : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> (tensor<8x16xf32>)
  // expected-error @below {{makes no tensor of the sizes of @twice}}
  %y = linalg.generic {indexing_maps = [#xy, #x], iterator_types = ["parallel", "reduction"], tile.epilogue}
      ins(%r : tensor<8x16xf32>) outs(%e8 : tensor<8xf32>) {
  ^bb0(%p: f32, %o: f32):
    %n = arith.addf %p, %o : f32
    linalg.yield %n : f32
  } -> tensor<8xf32>
  return %y : tensor<8xf32>
}
