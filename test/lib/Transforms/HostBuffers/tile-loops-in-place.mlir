// RUN: tile-opt %s -tile-loops-in-place | FileCheck-22 %s

// What a loop yields is placed in its argument; what it only passes on is left alone.
// CHECK: scf.for {{.*}} iter_args(%[[H:.*]] = %{{.*}}, %[[K:.*]] = %{{.*}})
// CHECK: %[[N:.*]] = tile.launch @k
// CHECK: %[[P:.*]] = bufferization.materialize_in_destination %[[N]] in %[[H]]
// CHECK: scf.yield %[[P]], %[[K]]
tile.kernel @k(%x: memref<4xf32>, %y: memref<4xf32>) {
  tile.return
}
func.func @main(%h0: tensor<4xf32>, %k0: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c8 = arith.constant 8 : index
  %r:2 = scf.for %i = %c0 to %c8 step %c1 iter_args(%h = %h0, %k = %k0) -> (tensor<4xf32>, tensor<4xf32>) {
    %e = tensor.empty() : tensor<4xf32>
    %n = tile.launch @k ins(%h : tensor<4xf32>) outs(%e : tensor<4xf32>) -> (tensor<4xf32>)
    scf.yield %n, %k : tensor<4xf32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}
