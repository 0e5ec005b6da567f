// RUN: tile-opt %s -tile-reuse-operands -split-input-file | FileCheck-22 %s

// A residual that ends in a sum lends it its place. A later nest of the kernel reads the sum, not the residual. The
// result of @main has a place of its own, and so has what an argument would have to lend its place.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:.*]]: tensor<8x16xf32>
// CHECK: %[[A:.*]]:2 = tile.launch @add grid(%{{.*}}) ins(%[[X]] {{.*}} outs(%{{.*}}, %{{.*}} :
// CHECK: %[[B:.*]]:2 = tile.launch @add grid(%{{.*}}) ins(%[[A]]#0 {{.*}} outs(%[[A]]#0, %[[E:.*]] : {{.*}}
// CHECK: %[[C:.*]]:2 = tile.launch @add grid(%{{.*}}) ins(%[[B]]#0 {{.*}} outs(%[[B]]#0, %{{.*}} : {{.*}}
// CHECK: return %[[C]]#1
tile.kernel @add(%x: memref<8x16xf32>, %y: memref<8x16xf32>, %s: memref<8xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c16 = arith.constant 16 : index
  scf.for %j = %c0 to %c16 step %c8 {
    %t = tile.load %x[%i, %j] : memref<8x16xf32>, !tile.tile<1x8xf32>
    %n = arith.addf %t, %t : !tile.tile<1x8xf32>
    tile.store %n, %y[%i, %j] : !tile.tile<1x8xf32>, memref<8x16xf32>
  }
  %r = tile.load %y[%i, %c0] : memref<8x16xf32>, !tile.tile<1x16xf32>
  %f = tile.reshape %r : !tile.tile<1x16xf32> -> !tile.tile<16xf32>
  %m = tile.reduce add %f dims [0] : !tile.tile<16xf32> -> !tile.tile<1xf32>
  tile.store %m, %s[%i] : !tile.tile<1xf32>, memref<8xf32>
  tile.return
}
func.func @main(%x: tensor<8x16xf32>) -> tensor<8xf32> {
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : tensor<8x16xf32>
  %s = tensor.empty() : tensor<8xf32>
  %a:2 = tile.launch @add grid(%c8) ins(%x : tensor<8x16xf32>) outs(%e, %s : tensor<8x16xf32>, tensor<8xf32>)
      -> (tensor<8x16xf32>, tensor<8xf32>)
  %b:2 = tile.launch @add grid(%c8) ins(%a#0 : tensor<8x16xf32>) outs(%e, %s : tensor<8x16xf32>, tensor<8xf32>)
      -> (tensor<8x16xf32>, tensor<8xf32>)
  %c:2 = tile.launch @add grid(%c8) ins(%b#0 : tensor<8x16xf32>) outs(%e, %s : tensor<8x16xf32>, tensor<8xf32>)
      -> (tensor<8x16xf32>, tensor<8xf32>)
  return %c#1 : tensor<8xf32>
}

// -----

// What is read later, and what other tasks read, keeps its place.
// CHECK-LABEL: func.func @main
// CHECK-COUNT-3: tile.launch {{.*}} outs(%{{[0-9]+}} :
tile.kernel @double(%x: memref<8xf32>, %y: memref<8xf32>) grid(%i) {
  %t = tile.load %x[%i] : memref<8xf32>, !tile.tile<1xf32>
  tile.store %t, %y[%i] : !tile.tile<1xf32>, memref<8xf32>
  tile.return
}
tile.kernel @turn(%x: memref<8xf32>, %z: memref<8xf32>, %y: memref<8xf32>) grid(%i) {
  %c7 = arith.constant 7 : index
  %j = arith.subi %c7, %i : index
  %t = tile.load %x[%j] : memref<8xf32>, !tile.tile<1xf32>
  %u = tile.load %z[%j] : memref<8xf32>, !tile.tile<1xf32>
  %s = arith.addf %t, %u : !tile.tile<1xf32>
  tile.store %s, %y[%i] : !tile.tile<1xf32>, memref<8xf32>
  tile.return
}
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %c8 = arith.constant 8 : index
  %0 = tensor.empty() : tensor<8xf32>
  %1 = tile.launch @double grid(%c8) ins(%x : tensor<8xf32>) outs(%0 : tensor<8xf32>) -> (tensor<8xf32>)
  %2 = tensor.empty() : tensor<8xf32>
  %3 = tile.launch @double grid(%c8) ins(%1 : tensor<8xf32>) outs(%2 : tensor<8xf32>) -> (tensor<8xf32>)
  %4 = tensor.empty() : tensor<8xf32>
  %5 = tile.launch @turn grid(%c8) ins(%1, %3 : tensor<8xf32>, tensor<8xf32>) outs(%4 : tensor<8xf32>)
      -> (tensor<8xf32>)
  %6 = tile.launch @double grid(%c8) ins(%5 : tensor<8xf32>) outs(%4 : tensor<8xf32>) -> (tensor<8xf32>)
  return %6 : tensor<8xf32>
}
