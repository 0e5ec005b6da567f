// RUN: tile-opt %s --tile-gather-joins=task-bytes=64 | FileCheck %s

// Parts of unlike lengths, one behind the other: which row it is follows from two ends.
// CHECK-DAG: #[[$I:.*]] = affine_map<(d0, d1) -> (d0, d1)>
// CHECK-LABEL: func.func @rows
// CHECK: %[[JOIN:.*]] = linalg.generic {indexing_maps = [#[[$I]]], iterator_types = ["parallel", "parallel"]}
// CHECK: %[[N:.*]] = linalg.index 0
// CHECK: %[[LAST:.*]] = arith.addi %[[N]], %{{.*}}
// CHECK: %[[C8:.*]] = arith.constant 8
// CHECK: %[[MIDDLE:.*]] = arith.cmpi ult, %[[N]], %[[C8]]
// CHECK: arith.select %[[MIDDLE]], %{{.*}}, %[[LAST]]
// CHECK: %[[C5:.*]] = arith.constant 5
// CHECK: %[[FIRST:.*]] = arith.cmpi ult, %[[N]], %[[C5]]
// CHECK: %[[ROW:.*]] = arith.select %[[FIRST]]
// CHECK: %[[K:.*]] = linalg.index 1
// CHECK: tensor.extract %{{.*}}[%[[ROW]], %[[K]]] : tensor<20x8xf32>
// CHECK-NOT: tensor.insert_slice
// CHECK: linalg.generic {{.*}} ins(%{{.*}}, %[[JOIN]] : tensor<4x8xf32>, tensor<11x8xf32>)
#a = affine_map<(m, n, k) -> (m, k)>
#b = affine_map<(m, n, k) -> (n, k)>
#c = affine_map<(m, n, k) -> (m, n)>
func.func @rows(%q: tensor<4x8xf32>, %x: tensor<20x8xf32>) -> tensor<4x11xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<11x8xf32>
  %p0 = tensor.extract_slice %x[1, 0] [5, 8] [1, 1] : tensor<20x8xf32> to tensor<5x8xf32>
  %p1 = tensor.extract_slice %x[17, 0] [3, 8] [1, 1] : tensor<20x8xf32> to tensor<3x8xf32>
  %p2 = tensor.extract_slice %x[10, 0] [3, 8] [1, 1] : tensor<20x8xf32> to tensor<3x8xf32>
  %j0 = tensor.insert_slice %p0 into %e[0, 0] [5, 8] [1, 1] : tensor<5x8xf32> into tensor<11x8xf32>
  %j2 = tensor.insert_slice %p2 into %j0[8, 0] [3, 8] [1, 1] : tensor<3x8xf32> into tensor<11x8xf32>
  %j1 = tensor.insert_slice %p1 into %j2[5, 0] [3, 8] [1, 1] : tensor<3x8xf32> into tensor<11x8xf32>
  %s = tensor.empty() : tensor<4x11xf32>
  %z = linalg.fill ins(%zero : f32) outs(%s : tensor<4x11xf32>) -> tensor<4x11xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %j1 : tensor<4x8xf32>, tensor<11x8xf32>) outs(%z : tensor<4x11xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<4x11xf32>
  return %y : tensor<4x11xf32>
}

// Slices that go on where the one before ends are no choice; someone who is no product reads a join; a part that
// nothing fills; two tensors; and parts side by side: each stays.
// CHECK-LABEL: func.func @neighbours
// CHECK-NOT: tensor.extract %
func.func @neighbours(%q: tensor<4x8xf32>, %x: tensor<20x8xf32>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x8xf32>
  %p0 = tensor.extract_slice %x[1, 0] [3, 8] [1, 1] : tensor<20x8xf32> to tensor<3x8xf32>
  %p1 = tensor.extract_slice %x[4, 0] [3, 8] [1, 1] : tensor<20x8xf32> to tensor<3x8xf32>
  %j0 = tensor.insert_slice %p0 into %e[0, 0] [3, 8] [1, 1] : tensor<3x8xf32> into tensor<6x8xf32>
  %j1 = tensor.insert_slice %p1 into %j0[3, 0] [3, 8] [1, 1] : tensor<3x8xf32> into tensor<6x8xf32>
  %s = tensor.empty() : tensor<4x6xf32>
  %z = linalg.fill ins(%zero : f32) outs(%s : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %j1 : tensor<4x8xf32>, tensor<6x8xf32>) outs(%z : tensor<4x6xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}

// CHECK-LABEL: func.func @others
// CHECK-NOT: tensor.extract %
func.func @others(%q: tensor<4x8xf32>, %x: tensor<20x8xf32>) -> (tensor<4x6xf32>, tensor<6x8xf32>) {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x8xf32>
  %p0 = tensor.extract_slice %x[1, 0] [3, 8] [1, 1] : tensor<20x8xf32> to tensor<3x8xf32>
  %p1 = tensor.extract_slice %x[9, 0] [3, 8] [1, 1] : tensor<20x8xf32> to tensor<3x8xf32>
  %j0 = tensor.insert_slice %p0 into %e[0, 0] [3, 8] [1, 1] : tensor<3x8xf32> into tensor<6x8xf32>
  %j1 = tensor.insert_slice %p1 into %j0[3, 0] [3, 8] [1, 1] : tensor<3x8xf32> into tensor<6x8xf32>
  %s = tensor.empty() : tensor<4x6xf32>
  %z = linalg.fill ins(%zero : f32) outs(%s : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %j1 : tensor<4x8xf32>, tensor<6x8xf32>) outs(%z : tensor<4x6xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<4x6xf32>
  return %y, %j1 : tensor<4x6xf32>, tensor<6x8xf32>
}

// CHECK-LABEL: func.func @hole
// CHECK-NOT: tensor.extract %
func.func @hole(%q: tensor<4x8xf32>, %x: tensor<20x8xf32>) -> tensor<4x7xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<7x8xf32>
  %p0 = tensor.extract_slice %x[1, 0] [3, 8] [1, 1] : tensor<20x8xf32> to tensor<3x8xf32>
  %p1 = tensor.extract_slice %x[9, 0] [3, 8] [1, 1] : tensor<20x8xf32> to tensor<3x8xf32>
  %j0 = tensor.insert_slice %p0 into %e[0, 0] [3, 8] [1, 1] : tensor<3x8xf32> into tensor<7x8xf32>
  %j1 = tensor.insert_slice %p1 into %j0[4, 0] [3, 8] [1, 1] : tensor<3x8xf32> into tensor<7x8xf32>
  %s = tensor.empty() : tensor<4x7xf32>
  %z = linalg.fill ins(%zero : f32) outs(%s : tensor<4x7xf32>) -> tensor<4x7xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %j1 : tensor<4x8xf32>, tensor<7x8xf32>) outs(%z : tensor<4x7xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<4x7xf32>
  return %y : tensor<4x7xf32>
}

// CHECK-LABEL: func.func @lanes
// CHECK-NOT: tensor.extract %
func.func @lanes(%q: tensor<4x8xf32>, %x: tensor<6x20xf32>) -> tensor<4x6xf32> {
  %zero = arith.constant 0.0 : f32
  %e = tensor.empty() : tensor<6x8xf32>
  %p0 = tensor.extract_slice %x[0, 9] [6, 4] [1, 1] : tensor<6x20xf32> to tensor<6x4xf32>
  %p1 = tensor.extract_slice %x[0, 2] [6, 4] [1, 1] : tensor<6x20xf32> to tensor<6x4xf32>
  %j0 = tensor.insert_slice %p0 into %e[0, 0] [6, 4] [1, 1] : tensor<6x4xf32> into tensor<6x8xf32>
  %j1 = tensor.insert_slice %p1 into %j0[0, 4] [6, 4] [1, 1] : tensor<6x4xf32> into tensor<6x8xf32>
  %s = tensor.empty() : tensor<4x6xf32>
  %z = linalg.fill ins(%zero : f32) outs(%s : tensor<4x6xf32>) -> tensor<4x6xf32>
  %y = linalg.generic {indexing_maps = [#a, #b, #c], iterator_types = ["parallel", "parallel", "reduction"]}
      ins(%q, %j1 : tensor<4x8xf32>, tensor<6x8xf32>) outs(%z : tensor<4x6xf32>) {
  ^bb0(%i: f32, %j: f32, %o: f32):
    %m = arith.mulf %i, %j : f32
    %t = arith.addf %o, %m : f32
    linalg.yield %t : f32
  } -> tensor<4x6xf32>
  return %y : tensor<4x6xf32>
}
