// RUN: tile-opt %s --tile-append-in-place -split-input-file | FileCheck-22 %s

// The input is in the room already: its copy goes, the rest is written behind it. Who reads the input reads it there.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[PAST:.*]]: tensor<2x?x4xf32> {tile.name = "past"}, %[[NEW:.*]]: tensor<2x?x4xf32> {tile.name = "new"}
// CHECK-SAME: %[[ROOM:.*]]: tensor<2x?x4xf32> {tile.appends = array<i64: 1, 0, 1>, tile.name = "present"}
// CHECK: %[[N:.*]] = tensor.dim %[[PAST]]
// CHECK: %[[OLD:.*]] = tensor.extract_slice %[[ROOM]][0, 0, 0] [2, %[[N]], 4] [1, 1, 1]
// CHECK: %[[TOTAL:.*]] = arith.addi
// CHECK: %[[HELD:.*]] = tensor.dim %[[ROOM]]
// CHECK: %[[OK:.*]] = arith.cmpi sle, %[[TOTAL]], %[[HELD]]
// CHECK: cf.assert %[[OK]], "no room for output present, whose dimension 1 is" {tile.tell}
// CHECK: %[[ALL:.*]] = tensor.extract_slice %[[ROOM]][0, 0, 0] [2, %[[TOTAL]], 4] [1, 1, 1]
// CHECK-NOT: tensor.insert_slice %[[PAST]]
// CHECK: %[[PRESENT:.*]] = tensor.insert_slice %[[NEW]] into %[[ALL]][0, %[[N]], 0]
// CHECK: return %[[OLD]], %[[PRESENT]]
module attributes {tile.options = {append_in_place = true}} {
  func.func @main(%past: tensor<2x?x4xf32> {tile.name = "past"}, %new: tensor<2x?x4xf32> {tile.name = "new"})
      -> (tensor<2x?x4xf32> {tile.name = "same"}, tensor<2x?x4xf32> {tile.name = "present"}) {
    %c1 = arith.constant 1 : index
    %n = tensor.dim %past, %c1 : tensor<2x?x4xf32>
    %m = tensor.dim %new, %c1 : tensor<2x?x4xf32>
    %total = arith.addi %n, %m : index
    %e = tensor.empty(%total) : tensor<2x?x4xf32>
    %a = tensor.insert_slice %past into %e[0, 0, 0] [2, %n, 4] [1, 1, 1] : tensor<2x?x4xf32> into tensor<2x?x4xf32>
    %b = tensor.insert_slice %new into %a[0, %n, 0] [2, %m, 4] [1, 1, 1] : tensor<2x?x4xf32> into tensor<2x?x4xf32>
    return %past, %b : tensor<2x?x4xf32>, tensor<2x?x4xf32>
  }
}

// -----

// The order in which the parts are put together does not matter.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[ROOM:[^ ]*]]: tensor<?x4xf32> {tile.appends = array<i64: 0, 0, 0>}
// CHECK: %[[ALL:.*]] = tensor.extract_slice %[[ROOM]]
// CHECK: %[[PRESENT:.*]] = tensor.insert_slice %{{.*}} into %[[ALL]]
// CHECK-NEXT: return %[[PRESENT]]
module attributes {tile.options = {append_in_place = true}} {
  func.func @main(%past: tensor<?x4xf32>, %new: tensor<2x4xf32>) -> tensor<?x4xf32> {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %n = tensor.dim %past, %c0 : tensor<?x4xf32>
    %total = arith.addi %n, %c2 : index
    %e = tensor.empty(%total) : tensor<?x4xf32>
    %a = tensor.insert_slice %new into %e[%n, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<?x4xf32>
    %b = tensor.insert_slice %past into %a[0, 0] [%n, 4] [1, 1] : tensor<?x4xf32> into tensor<?x4xf32>
    return %b : tensor<?x4xf32>
  }
}

// -----

// New rows before the past, and parts with rows between them, are no continuation.
// CHECK-LABEL: func.func @main
// CHECK-NOT: tile.appends
// CHECK: return
module attributes {tile.options = {append_in_place = true}} {
  func.func @main(%past: tensor<?x4xf32>, %new: tensor<2x4xf32>) -> (tensor<?x4xf32>, tensor<?x4xf32>) {
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %n = tensor.dim %past, %c0 : tensor<?x4xf32>
    %total = arith.addi %n, %c2 : index
    %e = tensor.empty(%total) : tensor<?x4xf32>
    %a = tensor.insert_slice %new into %e[0, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<?x4xf32>
    %b = tensor.insert_slice %past into %a[2, 0] [%n, 4] [1, 1] : tensor<?x4xf32> into tensor<?x4xf32>
    %c = tensor.insert_slice %past into %e[0, 0] [%n, 4] [1, 1] : tensor<?x4xf32> into tensor<?x4xf32>
    %d = tensor.insert_slice %new into %c[%c2, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<?x4xf32>
    return %b, %d : tensor<?x4xf32>, tensor<?x4xf32>
  }
}

// -----

// What reads the past before it is put into the result finds it in the room from the start.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[PAST:[a-z0-9]+]]: tensor<?x4xf32>, %[[ROOM:[a-z0-9]+]]: tensor<?x4xf32> {tile.appends
// CHECK: %[[N:.*]] = tensor.dim %[[PAST]]
// CHECK: %[[OLD:.*]] = tensor.extract_slice %[[ROOM]][0, 0] [%[[N]], 4]
// CHECK: %[[NEW:.*]] = tensor.extract_slice %[[OLD]][0, 0] [2, 4]
// CHECK: cf.assert
// CHECK: %[[ALL:.*]] = tensor.extract_slice %[[ROOM]]
// CHECK: tensor.insert_slice %[[NEW]] into %[[ALL]]
module attributes {tile.options = {append_in_place = true}} {
  func.func @main(%past: tensor<?x4xf32>) -> tensor<?x4xf32> {
    %new = tensor.extract_slice %past[0, 0] [2, 4] [1, 1] : tensor<?x4xf32> to tensor<2x4xf32>
    %c0 = arith.constant 0 : index
    %c2 = arith.constant 2 : index
    %n = tensor.dim %past, %c0 : tensor<?x4xf32>
    %total = arith.addi %n, %c2 : index
    %e = tensor.empty(%total) : tensor<?x4xf32>
    %a = tensor.insert_slice %past into %e[0, 0] [%n, 4] [1, 1] : tensor<?x4xf32> into tensor<?x4xf32>
    %b = tensor.insert_slice %new into %a[%n, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<?x4xf32>
    return %b : tensor<?x4xf32>
  }
}

// -----

// One new row may come without its dimension.
// CHECK-LABEL: func.func @main
// CHECK: %[[ALL:.*]] = tensor.extract_slice %{{.*}}[0, 0, 0] [2, %{{.*}}, 4]
// CHECK: tensor.insert_slice %{{.*}} into %[[ALL]][0, %{{.*}}, 0] [2, 1, 4] {{.*}} : tensor<2x4xf32> into
module attributes {tile.options = {append_in_place = true}} {
  func.func @main(%past: tensor<2x?x4xf32>, %new: tensor<2x4xf32>) -> tensor<2x?x4xf32> {
    %c1 = arith.constant 1 : index
    %n = tensor.dim %past, %c1 : tensor<2x?x4xf32>
    %total = arith.addi %n, %c1 : index
    %e = tensor.empty(%total) : tensor<2x?x4xf32>
    %a = tensor.insert_slice %past into %e[0, 0, 0] [2, %n, 4] [1, 1, 1] : tensor<2x?x4xf32> into tensor<2x?x4xf32>
    %b = tensor.insert_slice %new into %a[0, %n, 0] [2, 1, 4] [1, 1, 1] : tensor<2x4xf32> into tensor<2x?x4xf32>
    return %b : tensor<2x?x4xf32>
  }
}

// -----

// Nobody asked.
// CHECK-LABEL: func.func @main
// CHECK-NOT: tile.appends
// CHECK: return
func.func @main(%past: tensor<?x4xf32>, %new: tensor<2x4xf32>) -> tensor<?x4xf32> {
  %c0 = arith.constant 0 : index
  %c2 = arith.constant 2 : index
  %n = tensor.dim %past, %c0 : tensor<?x4xf32>
  %total = arith.addi %n, %c2 : index
  %e = tensor.empty(%total) : tensor<?x4xf32>
  %a = tensor.insert_slice %past into %e[0, 0] [%n, 4] [1, 1] : tensor<?x4xf32> into tensor<?x4xf32>
  %b = tensor.insert_slice %new into %a[%n, 0] [2, 4] [1, 1] : tensor<2x4xf32> into tensor<?x4xf32>
  return %b : tensor<?x4xf32>
}
