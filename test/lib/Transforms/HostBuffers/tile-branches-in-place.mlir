// RUN: tile-opt %s -tile-branches-in-place -split-input-file | FileCheck-22 %s

// Both branches make the first result in an empty tensor, one of them in two steps: these become one tensor. The second
// result is an operand in one of them: it stays.
// CHECK-LABEL: func.func @main
// CHECK: %[[E:.*]] = tensor.empty() : tensor<4xf32>
// CHECK: scf.if
// CHECK: %[[A:.*]] = tile.launch @k outs(%[[E]]
// CHECK: %[[B:.*]] = tile.launch @k outs(%[[A]]
// CHECK: %[[O:.*]] = tensor.empty() : tensor<4xf32>
// CHECK: %[[C:.*]] = tile.launch @k outs(%[[O]]
// CHECK: scf.yield %[[B]], %[[C]]
// CHECK: tile.launch @k outs(%[[E]]
tile.kernel @k(%y: memref<4xf32>) {
  tile.return
}
func.func @main(%c: i1, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %r:2 = scf.if %c -> (tensor<4xf32>, tensor<4xf32>) {
    %e = tensor.empty() : tensor<4xf32>
    %a = tile.launch @k outs(%e : tensor<4xf32>) -> (tensor<4xf32>)
    %b = tile.launch @k outs(%a : tensor<4xf32>) -> (tensor<4xf32>)
    %o = tensor.empty() : tensor<4xf32>
    %d = tile.launch @k outs(%o : tensor<4xf32>) -> (tensor<4xf32>)
    scf.yield %b, %d : tensor<4xf32>, tensor<4xf32>
  } else {
    %e = tensor.empty() : tensor<4xf32>
    %y = tile.launch @k outs(%e : tensor<4xf32>) -> (tensor<4xf32>)
    scf.yield %y, %x : tensor<4xf32>, tensor<4xf32>
  }
  return %r#0, %r#1 : tensor<4xf32>, tensor<4xf32>
}

// -----

// What is read in between, or made of a tensor that is not empty, has no place to give.
// CHECK-LABEL: func.func @main
// CHECK-NOT: tensor.empty
// CHECK: scf.if
// CHECK: tensor.empty() : tensor<4xf32>
// CHECK: else
// CHECK-NOT: tensor.empty
// CHECK: scf.yield
tile.kernel @k(%y: memref<4xf32>) {
  tile.return
}
func.func @main(%c: i1, %x: tensor<4xf32>) -> tensor<4xf32> {
  %r = scf.if %c -> (tensor<4xf32>) {
    %e = tensor.empty() : tensor<4xf32>
    %a = tile.launch @k outs(%e : tensor<4xf32>) -> (tensor<4xf32>)
    scf.yield %a : tensor<4xf32>
  } else {
    %y = tile.launch @k outs(%x : tensor<4xf32>) -> (tensor<4xf32>)
    scf.yield %y : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}

// -----

// Branches in a branch, and a step behind them: all of them make the result in one place.
// CHECK-LABEL: func.func @main
// CHECK: %[[E:.*]] = tensor.empty() : tensor<4xf32>
// CHECK: scf.if
// CHECK: tile.launch @k outs(%[[E]]
// CHECK: else
// CHECK: %[[I:.*]] = scf.if
// CHECK: tile.launch @k outs(%[[E]]
// CHECK: else
// CHECK: tile.launch @k outs(%[[E]]
// CHECK: tile.launch @k outs(%[[I]]
tile.kernel @k(%y: memref<4xf32>) {
  tile.return
}
func.func @main(%c: i1, %d: i1) -> tensor<4xf32> {
  %r = scf.if %c -> (tensor<4xf32>) {
    %e = tensor.empty() : tensor<4xf32>
    %a = tile.launch @k outs(%e : tensor<4xf32>) -> (tensor<4xf32>)
    scf.yield %a : tensor<4xf32>
  } else {
    %i = scf.if %d -> (tensor<4xf32>) {
      %e = tensor.empty() : tensor<4xf32>
      %a = tile.launch @k outs(%e : tensor<4xf32>) -> (tensor<4xf32>)
      scf.yield %a : tensor<4xf32>
    } else {
      %e = tensor.empty() : tensor<4xf32>
      %a = tile.launch @k outs(%e : tensor<4xf32>) -> (tensor<4xf32>)
      scf.yield %a : tensor<4xf32>
    }
    %s = tile.launch @k outs(%i : tensor<4xf32>) -> (tensor<4xf32>)
    scf.yield %s : tensor<4xf32>
  }
  return %r : tensor<4xf32>
}
