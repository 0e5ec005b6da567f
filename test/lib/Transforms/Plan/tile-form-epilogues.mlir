// RUN: tile-opt %s --tile-form-epilogues -split-input-file | FileCheck-22 %s

// A column, a residual, a constant and a conversion meet the product in registers; the edge of a tile is loaded as
// it is stored. What is left is one launch, which makes the last result.
// CHECK: tile.kernel @rows_tanh(%{{.*}}: memref<?x16xf32>, %[[COL:.*]]: memref<?xf32>,
// CHECK-SAME: %[[RES:.*]]: memref<?x16xf32>, %[[Y:.*]]: memref<?x16xf16>)
// CHECK: %[[T:.*]] = tile.load %{{.*}}[%[[I:.*]], %[[J:.*]]] valid(%[[LEFT:.*]], %[[ALL:.*]]) : memref<?x16xf32>
// CHECK: %[[S:.*]] = arith.addf %[[T]], %[[T]]
// CHECK: %[[C:.*]] = tile.load %[[COL]][%[[I]]] valid(%[[LEFT]]) : memref<?xf32>, !tile.tile<4xf32>
// CHECK: %[[C1:.*]] = tile.reshape %[[C]] : !tile.tile<4xf32> -> !tile.tile<4x1xf32>
// CHECK: %[[C2:.*]] = tile.broadcast %[[C1]] : !tile.tile<4x1xf32> -> !tile.tile<4x8xf32>
// CHECK: %[[A:.*]] = arith.addf %[[S]], %[[C2]] : !tile.tile<4x8xf32>
// CHECK: %[[R:.*]] = tile.load %[[RES]][%[[I]], %[[J]]] valid(%[[LEFT]], %[[ALL]])
// CHECK: %[[B:.*]] = arith.addf %[[A]], %[[R]]
// CHECK: %[[H:.*]] = arith.mulf %[[B]], %{{.*}} : !tile.tile<4x8xf32>
// CHECK: %[[N:.*]] = math.tanh %[[H]] : !tile.tile<4x8xf32>
// CHECK: %[[W:.*]] = tile.convert %[[N]] : !tile.tile<4x8xf32> -> !tile.tile<4x8xf16>
// CHECK: tile.store %[[W]], %[[Y]][%[[I]], %[[J]]] valid(%[[LEFT]], %[[ALL]]) : !tile.tile<4x8xf16>, memref<?x16xf16>
// CHECK-NOT: tile.kernel
// CHECK: func.func @main(%[[X:.*]]: tensor<?x16xf32>, %[[V:.*]]: tensor<?xf32>, %[[Q:.*]]: tensor<?x16xf32>)
// CHECK: %[[F:.*]] = tile.launch @rows_tanh grid(%{{.*}}) ins(%[[X]], %[[V]], %[[Q]] :
// CHECK-SAME: outs(%{{.*}} : tensor<?x16xf16>)
// CHECK-NOT: linalg.generic
// CHECK: return %[[F]]
#xy = affine_map<(i, j) -> (i, j)>
#x = affine_map<(i, j) -> (i)>
tile.kernel @rows(%x: memref<?x16xf32>, %r: memref<?x16xf32>) grid(%i, %j) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %n = memref.dim %r, %c0 : memref<?x16xf32>
  %left = arith.subi %n, %i : index
  %all = arith.subi %c16, %j : index
  %t = tile.load %x[%i, %j] valid (%left, %all) : memref<?x16xf32>, !tile.tile<4x8xf32>
  %s = arith.addf %t, %t : !tile.tile<4x8xf32>
  tile.store %s, %r[%i, %j] valid (%left, %all) : !tile.tile<4x8xf32>, memref<?x16xf32>
  tile.return
}
func.func @main(%x: tensor<?x16xf32>, %v: tensor<?xf32>, %q: tensor<?x16xf32>) -> tensor<?x16xf16> {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %half = arith.constant 5.000000e-01 : f32
  %n = tensor.dim %x, %c0 : tensor<?x16xf32>
  %e = tensor.empty(%n) : tensor<?x16xf32>
  %h = tensor.empty(%n) : tensor<?x16xf16>
  %r = tile.launch @rows grid(%c8, %c8) ins(%x : tensor<?x16xf32>) outs(%e : tensor<?x16xf32>) -> (tensor<?x16xf32>)
  %a = linalg.generic {indexing_maps = [#x, #xy, #xy], iterator_types = ["parallel", "parallel"], tile.epilogue}
      ins(%v, %r : tensor<?xf32>, tensor<?x16xf32>) outs(%e : tensor<?x16xf32>) {
  ^bb0(%p: f32, %s: f32, %o: f32):
    %t = arith.addf %s, %p : f32
    linalg.yield %t : f32
  } -> tensor<?x16xf32>
  %y = linalg.generic {indexing_maps = [#xy, #xy, #xy], iterator_types = ["parallel", "parallel"], tile.epilogue}
      ins(%a, %q : tensor<?x16xf32>, tensor<?x16xf32>) outs(%h : tensor<?x16xf16>) {
  ^bb0(%p: f32, %s: f32, %o: f16):
    %t = arith.addf %p, %s : f32
    %m = arith.mulf %t, %half : f32
    %u = math.tanh %m : f32
    %w = arith.truncf %u : f32 to f16
    linalg.yield %w : f16
  } -> tensor<?x16xf16>
  return %y : tensor<?x16xf16>
}

// -----

// Rows of a tile of rank one along the first dimension: what both dimensions have is read along it, too; a kernel that
// something else launches stays.
// CHECK: tile.kernel @column_map(%{{.*}}: memref<8x4xf32>, %[[B:.*]]: memref<4xf32>,
// CHECK-SAME: %[[T:.*]]: memref<4x8xf32>, %{{.*}}: memref<8x4xf32>)
// CHECK: %[[S:.*]] = memref.load %[[B]][%[[J:.*]]] : memref<4xf32>
// CHECK: %[[SPLAT:.*]] = tile.splat %[[S]] : f32 -> !tile.tile<8xf32>
// CHECK: %[[ROW:.*]] = tile.load %[[T]][%[[J]], %{{.*}}] : memref<4x8xf32>, !tile.tile<8xf32>
// CHECK: arith.mulf %{{.*}}, %[[SPLAT]] : !tile.tile<8xf32>
// CHECK: tile.store %{{.*}} dims [0] : !tile.tile<8xf32>, memref<8x4xf32>
// CHECK: tile.kernel @column(
// CHECK: tile.launch @column_map
// CHECK: tile.launch @column grid
#xy = affine_map<(i, j) -> (i, j)>
#yx = affine_map<(i, j) -> (j, i)>
#y = affine_map<(i, j) -> (j)>
tile.kernel @column(%x: memref<8x4xf32>, %r: memref<8x4xf32>) grid(%j) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0, %j] dims [0] : memref<8x4xf32>, !tile.tile<8xf32>
  tile.store %t, %r[%c0, %j] dims [0] : !tile.tile<8xf32>, memref<8x4xf32>
  tile.return
}
func.func @main(%x: tensor<8x4xf32>, %b: tensor<4xf32>, %t: tensor<4x8xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %c4 = arith.constant 4 : index
  %e = tensor.empty() : tensor<8x4xf32>
  %r = tile.launch @column grid(%c4) ins(%x : tensor<8x4xf32>) outs(%e : tensor<8x4xf32>) -> (tensor<8x4xf32>)
  %y = linalg.generic {indexing_maps = [#xy, #y, #yx, #xy], iterator_types = ["parallel", "parallel"], tile.epilogue}
      ins(%r, %b, %t : tensor<8x4xf32>, tensor<4xf32>, tensor<4x8xf32>) outs(%e : tensor<8x4xf32>) {
  ^bb0(%p: f32, %q: f32, %s: f32, %o: f32):
    %m = arith.mulf %p, %q : f32
    %n = arith.subf %m, %s : f32
    linalg.yield %n : f32
  } -> tensor<8x4xf32>
  %f = tensor.empty() : tensor<8x4xf32>
  %z = tile.launch @column grid(%c4) ins(%y : tensor<8x4xf32>) outs(%f : tensor<8x4xf32>) -> (tensor<8x4xf32>)
  return %y, %z : tensor<8x4xf32>, tensor<8x4xf32>
}

// -----

// A gate follows from two launches: the first one computes it, the other what comes before.
// CHECK: tile.kernel @rows_map(%{{.*}}: memref<8x16xf32>, %[[A:.*]]: memref<8x16xf32>, %{{.*}}: memref<8x16xf32>)
// CHECK: arith.mulf
// CHECK: tile.kernel @rows_tanh(%{{.*}}: memref<8x16xf32>, %{{.*}}: memref<8x16xf32>)
// CHECK: %[[V:.*]] = tile.launch @rows_tanh grid(%{{.*}}) ins(%{{.*}} : tensor<8x16xf32>)
// CHECK: tile.launch @rows_map grid(%{{.*}}) ins(%{{.*}}, %[[V]] : tensor<8x16xf32>, tensor<8x16xf32>)
// CHECK-NOT: linalg.generic
#xy = affine_map<(i, j) -> (i, j)>
tile.kernel @rows(%x: memref<8x16xf32>, %r: memref<8x16xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%i, %c0] : memref<8x16xf32>, !tile.tile<1x16xf32>
  tile.store %t, %r[%i, %c0] : !tile.tile<1x16xf32>, memref<8x16xf32>
  tile.return
}
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : tensor<8x16xf32>
  %u = tile.launch @rows grid(%c8) ins(%x : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> (tensor<8x16xf32>)
  %v = tile.launch @rows grid(%c8) ins(%x : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> (tensor<8x16xf32>)
  %a = linalg.generic {indexing_maps = [#xy, #xy], iterator_types = ["parallel", "parallel"], tile.epilogue}
      ins(%v : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%p: f32, %o: f32):
    %t = math.tanh %p : f32
    linalg.yield %t : f32
  } -> tensor<8x16xf32>
  %y = linalg.generic {indexing_maps = [#xy, #xy, #xy], iterator_types = ["parallel", "parallel"], tile.epilogue}
      ins(%a, %u : tensor<8x16xf32>, tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.mulf %p, %q : f32
    linalg.yield %t : f32
  } -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// -----

// Two residuals in a row: each is added where what it follows is made; a column lies in three dimensions.
// CHECK: tile.kernel @rows_add(%{{.*}}: memref<8x16xf32>, %{{.*}}: memref<1x8x1xf32>, %{{.*}}: memref<8x16xf32>)
// CHECK: tile.load %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}] dims [1] : memref<1x8x1xf32>, !tile.tile<1xf32>
// CHECK: tile.kernel @rows_add_0(%{{.*}}: memref<8x16xf32>, %{{.*}}: memref<8x16xf32>, %{{.*}}: memref<8x16xf32>)
// CHECK: %[[A:.*]] = tile.launch @rows_add grid
// CHECK: tile.launch @rows_add_0 grid(%{{.*}}) ins(%[[A]], %[[A]] : tensor<8x16xf32>, tensor<8x16xf32>)
// CHECK-NOT: linalg.generic
#xy = affine_map<(i, j) -> (i, j)>
#column = affine_map<(i, j) -> (0, i, 0)>
tile.kernel @rows(%x: memref<8x16xf32>, %r: memref<8x16xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%i, %c0] : memref<8x16xf32>, !tile.tile<1x16xf32>
  tile.store %t, %r[%i, %c0] : !tile.tile<1x16xf32>, memref<8x16xf32>
  tile.return
}
func.func @main(%x: tensor<8x16xf32>, %c: tensor<1x8x1xf32>) -> tensor<8x16xf32> {
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : tensor<8x16xf32>
  %u = tile.launch @rows grid(%c8) ins(%x : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> (tensor<8x16xf32>)
  %a = linalg.generic {indexing_maps = [#xy, #column, #xy], iterator_types = ["parallel", "parallel"], tile.epilogue}
      ins(%u, %c : tensor<8x16xf32>, tensor<1x8x1xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.addf %p, %q : f32
    linalg.yield %t : f32
  } -> tensor<8x16xf32>
  %v = tile.launch @rows grid(%c8) ins(%a : tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) -> (tensor<8x16xf32>)
  %y = linalg.generic {indexing_maps = [#xy, #xy, #xy], iterator_types = ["parallel", "parallel"], tile.epilogue}
      ins(%v, %a : tensor<8x16xf32>, tensor<8x16xf32>) outs(%e : tensor<8x16xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %t = arith.addf %p, %q : f32
    linalg.yield %t : f32
  } -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}
