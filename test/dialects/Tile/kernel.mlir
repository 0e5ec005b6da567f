// RUN: tile-opt %s | tile-opt | FileCheck-22 %s
// RUN: tile-opt %s -mlir-print-op-generic | tile-opt | FileCheck-22 %s
// RUN: tile-opt %s -emit-bytecode | tile-opt | FileCheck-22 %s

// CHECK-LABEL: tile.kernel @mm
// CHECK-SAME: (%[[A:.*]]: memref<128x384xf32>,
// CHECK-SAME: {{^}} %{{.*}}: memref<?x384x32xf32, strided<[?, 32, 1], offset: ?>> {tile.name = "w"}, %{{.*}}: f32)
// CHECK-SAME: {{^}} grid(%[[J:.*]], %[[I:.*]]) attributes {tile.shared_bytes = 64 : i64} {
// CHECK: tile.load %[[A]][%[[I]], %[[J]]]
// CHECK: tile.return
tile.kernel @mm(%a: memref<128x384xf32>, %b: memref<?x384x32xf32, strided<[?, 32, 1], offset: ?>> {tile.name = "w"},
    %s: f32) grid(%j, %i) attributes {tile.shared_bytes = 64 : i64} {
  %0 = tile.load %a[%i, %j] : memref<128x384xf32>, !tile.tile<8x1xf32>
  tile.return
}

// CHECK-LABEL: tile.kernel private @nothing() {
// CHECK-NEXT: tile.return
tile.kernel private @nothing() {
}

// CHECK-LABEL: tile.kernel @pairs(%{{.*}}: memref<8xf32>) grid(%{{.*}}, %{{.*}}) cluster [2, 1] {
// CHECK-NEXT: tile.barrier
tile.kernel @pairs(%x: memref<8xf32>) grid(%i, %j) cluster [2, 1] {
  tile.barrier
  tile.return
}

// CHECK-LABEL: tile.kernel @exp
tile.kernel @exp(%x: memref<?x64xf32>, %y: memref<8x64xf32, strided<[64, 1], offset: ?>>) grid(%i) {
  tile.return
}

// CHECK-LABEL: func.func @on_tensors
// CHECK: tile.launch @exp grid(%{{.*}}) ins(%{{.*}} : tensor<8x64xf32>) outs(%{{.*}} : tensor<8x64xf32>) {note}
// CHECK-SAME: {{^}} -> (tensor<8x64xf32>)
func.func @on_tensors(%x: tensor<8x64xf32>, %e: tensor<8x64xf32>) -> tensor<8x64xf32> {
  %c8 = arith.constant 8 : index
  %y = tile.launch @exp grid(%c8) ins(%x : tensor<8x64xf32>) outs(%e : tensor<8x64xf32>) {note} -> (tensor<8x64xf32>)
  return %y : tensor<8x64xf32>
}

// CHECK-LABEL: func.func @on_buffers
// CHECK: tile.launch @exp grid(%{{.*}}) ins(%{{.*}} : memref<8x64xf32>) outs(%{{.*}} : memref<8x64xf32>)
// CHECK: tile.launch @nothing{{$}}
func.func @on_buffers(%x: memref<8x64xf32>, %y: memref<8x64xf32>) {
  %c8 = arith.constant 8 : index
  tile.launch @exp grid(%c8) ins(%x : memref<8x64xf32>) outs(%y : memref<8x64xf32>)
  tile.launch @nothing
  return
}
