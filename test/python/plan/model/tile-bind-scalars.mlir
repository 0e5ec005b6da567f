// RUN: tile-opt %s --tile-bind-scalars --tile-mark-host-fallback | FileCheck-22 %s

#id = affine_map<(d0) -> (d0)>
#none = affine_map<(d0) -> ()>
#half = affine_map<(d0) -> (d0 floordiv 2)>

// A size as an i64, a float as it is; both once for two operations that use them.
// CHECK: #[[$NONE:.+]] = affine_map<(d0) -> ()>
// CHECK-LABEL: func.func @shared(
// CHECK-SAME: %[[X:.+]]: tensor<?xf32>, %[[S:.+]]: f32
// CHECK: %[[F:.+]] = tensor.from_elements %[[S]] : tensor<f32>
// CHECK: %[[N:.+]] = tensor.dim
// CHECK: %[[I:.+]] = arith.index_cast %[[N]] : index to i64
// CHECK: %[[T:.+]] = tensor.from_elements %[[I]] : tensor<i64>
// CHECK-NOT: tensor.from_elements
// CHECK: linalg.generic {indexing_maps = [#{{.+}}, #[[$NONE]], #[[$NONE]], #{{.+}}], iterator_types = ["parallel"]}
// CHECK-SAME: ins(%[[X]], %[[T]], %[[F]] : tensor<?xf32>, tensor<i64>, tensor<f32>)
// CHECK: ^bb0(%{{.+}}: f32, %[[SIZE:.+]]: i64, %{{.+}}: f32, %{{.+}}: f32):
// CHECK: arith.index_cast %[[SIZE]] : i64 to index
// CHECK: linalg.generic
// CHECK-SAME: ins(%{{.+}}, %[[F]] : tensor<?xf32>, tensor<f32>)
// CHECK-NOT: tile.host
func.func @shared(%x: tensor<?xf32>, %s: f32) -> tensor<?xf32> {
  %c0 = arith.constant 0 : index
  %n = tensor.dim %x, %c0 : tensor<?xf32>
  %e = tensor.empty(%n) : tensor<?xf32>
  %y = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %i = linalg.index 0 : index
    %c1 = arith.constant 1 : index
    %last = arith.subi %n, %c1 : index
    %back = arith.subi %last, %i : index
    %read = tensor.extract %x[%back] : tensor<?xf32>
    %sum = arith.addf %a, %read : f32
    %scaled = arith.mulf %sum, %s : f32
    linalg.yield %scaled : f32
  } -> tensor<?xf32>
  %z = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel"]}
      ins(%y : tensor<?xf32>) outs(%e : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %scaled = arith.addf %a, %s : f32
    linalg.yield %scaled : f32
  } -> tensor<?xf32>
  return %z : tensor<?xf32>
}

// A reduction stays one.
// CHECK-LABEL: func.func @reduction
// CHECK: iterator_types = ["reduction"]}
// CHECK-SAME: tensor<?xf32>, tensor<f32>) outs
// CHECK-NOT: tile.host
func.func @reduction(%x: tensor<?xf32>, %e: tensor<f32>, %s: f32) -> tensor<f32> {
  %y = linalg.generic {indexing_maps = [#id, #none], iterator_types = ["reduction"]}
      ins(%x : tensor<?xf32>) outs(%e : tensor<f32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.mulf %a, %s : f32
    %sum = arith.addf %n, %o : f32
    linalg.yield %sum : f32
  } -> tensor<f32>
  return %y : tensor<f32>
}

// Few elements stay with the host, and so does what no kernel could take all the same.
// CHECK-LABEL: func.func @stay
// CHECK-NOT: tensor.from_elements
// CHECK: tile.host = "its body uses a scalar from outside"
// CHECK: tile.host = "it reads through (d0) -> (d0 floordiv 2), which is not linear"
func.func @stay(%few: tensor<4xf32>, %x: tensor<?xf32>, %e: tensor<?xf32>, %s: f32) -> (tensor<4xf32>, tensor<?xf32>) {
  %y = linalg.generic {indexing_maps = [#id], iterator_types = ["parallel"]} outs(%few : tensor<4xf32>) {
  ^bb0(%o: f32):
    linalg.yield %s : f32
  } -> tensor<4xf32>
  %z = linalg.generic {indexing_maps = [#half, #id], iterator_types = ["parallel"]}
      ins(%x : tensor<?xf32>) outs(%e : tensor<?xf32>) {
  ^bb0(%a: f32, %o: f32):
    %n = arith.mulf %a, %s : f32
    linalg.yield %n : f32
  } -> tensor<?xf32>
  return %y, %z : tensor<4xf32>, tensor<?xf32>
}
