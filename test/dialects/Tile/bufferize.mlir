// RUN: tile-opt %s -split-input-file \
// RUN:   -one-shot-bufferize="bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map" \
// RUN:   -cse -canonicalize | FileCheck-22 %s
// RUN: not tile-opt %S/Inputs/bufferize-group.mlir -one-shot-bufferize 2>&1 | FileCheck-22 %s --check-prefix=GROUP

tile.kernel @exp(%x: memref<8x64xf32>, %s: f32, %y: memref<8x64xf32, strided<[?, 1], offset: ?>>) grid(%i) {
}

// In place: the result is the buffer of the output.
// CHECK-LABEL: func.func @chain
// CHECK-SAME: (%[[X:.*]]: memref<8x64xf32>, %[[S:.*]]: f32)
// CHECK: %[[E:.*]] = memref.alloc() {{.*}} : memref<8x64xf32>
// CHECK: tile.launch @exp grid(%{{.*}}) ins(%[[X]], %[[S]] : memref<8x64xf32>, f32)
// CHECK-SAME: {{^}} outs(%[[E]] : memref<8x64xf32>) {note}
// CHECK-NOT: memref.copy
// CHECK: return %[[E]]
func.func @chain(%x: tensor<8x64xf32>, %s: f32) -> tensor<8x64xf32> {
  %c8 = arith.constant 8 : index
  %e = tensor.empty() : tensor<8x64xf32>
  %y = tile.launch @exp grid(%c8) ins(%x, %s : tensor<8x64xf32>, f32) outs(%e : tensor<8x64xf32>) {note}
      -> (tensor<8x64xf32>)
  return %y : tensor<8x64xf32>
}

// A slice of a larger buffer as output, as a concatenation makes it: no copy.
// CHECK-LABEL: func.func @concat
// CHECK: %[[ALL:.*]] = memref.alloc() {{.*}} : memref<16x64xf32>
// CHECK: %[[PART:.*]] = memref.subview %[[ALL]][8, 0] [8, 64] [1, 1]
// CHECK: tile.launch @exp {{.*}} outs(%[[PART]] : memref<8x64xf32, strided<[64, 1], offset: 512>>)
// CHECK-NOT: memref.copy
// CHECK: return %[[ALL]]
func.func @concat(%x: tensor<8x64xf32>, %s: f32) -> tensor<16x64xf32> {
  %c8 = arith.constant 8 : index
  %all = tensor.empty() : tensor<16x64xf32>
  %part = tensor.extract_slice %all[8, 0] [8, 64] [1, 1] : tensor<16x64xf32> to tensor<8x64xf32>
  %y = tile.launch @exp grid(%c8) ins(%x, %s : tensor<8x64xf32>, f32) outs(%part : tensor<8x64xf32>)
      -> (tensor<8x64xf32>)
  %r = tensor.insert_slice %y into %all[8, 0] [8, 64] [1, 1] : tensor<8x64xf32> into tensor<16x64xf32>
  return %r : tensor<16x64xf32>
}

// An output whose old contents are needed later is copied first.
// CHECK-LABEL: func.func @needed_later
// CHECK-SAME: (%[[X:.*]]: memref<8x64xf32>, %{{.*}}: f32, %[[Y:.*]]: memref<8x64xf32>)
// CHECK: %[[C:.*]] = memref.alloc()
// CHECK: memref.copy %[[Y]], %[[C]]
// CHECK: tile.launch @exp {{.*}} outs(%[[C]] : memref<8x64xf32>)
// CHECK: return %[[C]], %[[Y]]
func.func @needed_later(%x: tensor<8x64xf32>, %s: f32, %y: tensor<8x64xf32>) -> (tensor<8x64xf32>, tensor<8x64xf32>) {
  %c8 = arith.constant 8 : index
  %r = tile.launch @exp grid(%c8) ins(%x, %s : tensor<8x64xf32>, f32) outs(%y : tensor<8x64xf32>) -> (tensor<8x64xf32>)
  return %r, %y : tensor<8x64xf32>, tensor<8x64xf32>
}

// GROUP: error: {{.*}}op was not bufferized
