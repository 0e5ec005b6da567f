// RUN: tile-opt %s -tile-open-strides -split-input-file | FileCheck-22 %s

// The slice behind the output, seen through another launch, has an offset; the input is the caller's and stays.
// CHECK: tile.kernel @k(%{{.*}}: memref<?xf32>, %{{.*}}: memref<?xf32, strided<[?], offset: ?>>)
// CHECK: tile.kernel @l(%{{.*}}: memref<?xf32, strided<[?], offset: ?>>)
tile.kernel @k(%x: memref<?xf32>, %y: memref<?xf32>) {
  tile.return
}
tile.kernel @l(%x: memref<?xf32>) {
  tile.return
}
func.func @main(%x: tensor<?xf32>, %t: tensor<2x?xf32>, %n: index) -> tensor<2x?xf32> {
  %s = tensor.extract_slice %t[1, 0] [1, %n] [1, 1] : tensor<2x?xf32> to tensor<?xf32>
  %a = tile.launch @k ins(%x : tensor<?xf32>) outs(%s : tensor<?xf32>) -> (tensor<?xf32>)
  %b = tile.launch @l outs(%a : tensor<?xf32>) -> (tensor<?xf32>)
  %y = tensor.insert_slice %b into %t[1, 0] [1, %n] [1, 1] : tensor<?xf32> into tensor<2x?xf32>
  return %y : tensor<2x?xf32>
}

// -----

// What fits stays as it is, offsets of zero and strides that are known included.
// CHECK: tile.kernel @fits(%{{.*}}: memref<4xf32>, %{{.*}}: memref<2xf32, strided<[2], offset: ?>>)
tile.kernel @fits(%x: memref<4xf32>, %y: memref<2xf32, strided<[2], offset: ?>>) {
  tile.return
}
func.func @main(%x: tensor<4xf32>, %t: tensor<4xf32>) -> tensor<2xf32> {
  %s = tensor.extract_slice %t[1] [2] [2] : tensor<4xf32> to tensor<2xf32>
  %a = tile.launch @fits ins(%x : tensor<4xf32>) outs(%s : tensor<2xf32>) -> (tensor<2xf32>)
  return %a : tensor<2xf32>
}

// -----

// The rows of a slice lie as far apart as those of its source, not as a tensor of its own size would have them: unknown
// strides are not equal.
// CHECK: tile.kernel @rows(%{{.*}}: memref<2x?xf32, strided<[?, ?], offset: ?>>)
tile.kernel @rows(%x: memref<2x?xf32>) {
  tile.return
}
func.func @main(%t: tensor<2x?xf32>, %n: index) -> tensor<2x?xf32> {
  %s = tensor.extract_slice %t[0, 0] [2, %n] [1, 1] : tensor<2x?xf32> to tensor<2x?xf32>
  %a = tile.launch @rows outs(%s : tensor<2x?xf32>) -> (tensor<2x?xf32>)
  %y = tensor.insert_slice %a into %t[0, 0] [2, %n] [1, 1] : tensor<2x?xf32> into tensor<2x?xf32>
  return %y : tensor<2x?xf32>
}
