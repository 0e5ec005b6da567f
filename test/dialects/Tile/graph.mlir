// RUN: tile-opt %s | tile-opt | FileCheck-22 %s
// RUN: tile-opt %s -mlir-print-op-generic | tile-opt | FileCheck-22 %s
// RUN: tile-opt %s -emit-bytecode | tile-opt | FileCheck-22 %s

// CHECK-LABEL: func.func @nested
// CHECK-SAME: (%[[X:.*]]: tensor<8x16xf32>, %[[W:.*]]: tensor<16xf32>)
// CHECK: %[[Y:.*]] = tile.group "l2" (%[[A:.*]] = %[[X]] : tensor<8x16xf32>, %[[B:.*]] = %[[W]] : tensor<16xf32>)
// CHECK-SAME: {{^}} -> (tensor<8x16xf32>) attributes {note = "outer"} {
// CHECK:   %[[R:.*]] = tile.group "register" (%[[A1:.*]] = %[[A]] : tensor<8x16xf32>) -> (tensor<8x16xf32>) {
// CHECK:     %[[E:.*]] = math.exp %[[A1]]
// CHECK:     tile.yield %[[E]] : tensor<8x16xf32>
// CHECK:   }
// CHECK:   tile.yield %[[R]] : tensor<8x16xf32>
// CHECK: }
// CHECK: return %[[Y]]
func.func @nested(%x: tensor<8x16xf32>, %w: tensor<16xf32>) -> tensor<8x16xf32> {
  %y = tile.group "l2" (%a = %x : tensor<8x16xf32>, %b = %w : tensor<16xf32>) -> (tensor<8x16xf32>)
      attributes {note = "outer"} {
    %r = tile.group "register" (%a1 = %a : tensor<8x16xf32>) -> (tensor<8x16xf32>) {
      %0 = math.exp %a1 : tensor<8x16xf32>
      tile.yield %0 : tensor<8x16xf32>
    }
    tile.yield %r : tensor<8x16xf32>
  }
  return %y : tensor<8x16xf32>
}

// CHECK-LABEL: func.func @several
// CHECK: %[[Y:.*]]:2 = tile.group "l1" (%{{.*}} = %{{.*}} : tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
// CHECK: tile.group "l1" () {
func.func @several(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %y:2 = tile.group "l1" (%a = %x : tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
    %0 = math.exp %a : tensor<4xf32>
    tile.yield %a, %0 : tensor<4xf32>, tensor<4xf32>
  }
  tile.group "l1" () {
  }
  return %y#0, %y#1 : tensor<4xf32>, tensor<4xf32>
}
