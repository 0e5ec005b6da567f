// RUN: tile-opt %s -tile-own-places -split-input-file | FileCheck-22 %s

// Two tensors that are put together of parts: the first part of each goes into an undefined tensor of its own.
// CHECK-LABEL: func.func @main
// CHECK: %[[F:.*]] = tensor.empty()
// CHECK: %[[T:.*]] = tensor.extract_slice %[[F]][0] [4]
// CHECK: %[[E:.*]] = tensor.empty()
// CHECK: %[[S:.*]] = tensor.extract_slice %[[E]][0] [4]
// CHECK: %[[A:.*]] = tile.launch @k {{.*}} outs(%[[S]]
// CHECK: %[[Y:.*]] = tensor.insert_slice %[[A]] into %[[E]][0]
// CHECK: tensor.insert_slice %{{.*}} into %[[Y]][4]
// CHECK: %[[B:.*]] = tile.launch @k {{.*}} outs(%[[T]]
// CHECK: tensor.insert_slice %[[B]] into %[[F]][0]
tile.kernel @k(%x: memref<4xf32>, %y: memref<4xf32, strided<[?], offset: ?>>) {
  tile.return
}
func.func @main(%x: tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %e = tensor.empty() : tensor<8xf32>
  %s = tensor.extract_slice %e[0] [4] [1] : tensor<8xf32> to tensor<4xf32>
  %a = tile.launch @k ins(%x : tensor<4xf32>) outs(%s : tensor<4xf32>) -> (tensor<4xf32>)
  %y = tensor.insert_slice %a into %e[0] [4] [1] : tensor<4xf32> into tensor<8xf32>
  %y2 = tensor.insert_slice %x into %y[4] [4] [1] : tensor<4xf32> into tensor<8xf32>
  %b = tile.launch @k ins(%x : tensor<4xf32>) outs(%s : tensor<4xf32>) -> (tensor<4xf32>)
  %z = tensor.insert_slice %b into %e[0] [4] [1] : tensor<4xf32> into tensor<8xf32>
  return %y2, %z : tensor<8xf32>, tensor<8xf32>
}

// -----

// Two tensors that are filled alike, with a part in each: one more is filled.
// CHECK-LABEL: func.func @main
// CHECK: %[[F:.*]] = linalg.fill
// CHECK: %[[G:.*]] = linalg.fill
// CHECK: %[[Y:.*]] = tensor.insert_slice %{{.*}} into %[[G]][0]
// CHECK: %[[Z:.*]] = tensor.insert_slice %{{.*}} into %[[F]][0]
// CHECK: return %[[Y]], %[[Z]]
func.func @main(%x: tensor<4xf32>, %w: tensor<4xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<8xf32>) -> tensor<8xf32>
  %y = tensor.insert_slice %x into %f[0] [4] [1] : tensor<4xf32> into tensor<8xf32>
  %z = tensor.insert_slice %w into %f[0] [4] [1] : tensor<4xf32> into tensor<8xf32>
  return %y, %z : tensor<8xf32>, tensor<8xf32>
}
