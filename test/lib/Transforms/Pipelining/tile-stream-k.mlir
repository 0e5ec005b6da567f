// RUN: tile-opt %s --tile-stream-k --split-input-file --verify-diagnostics | FileCheck-22 %s
// RUN: tile-opt %s --tile-stream-k --canonicalize --cse --tile-pipeline-loads --split-input-file \
// RUN:   | FileCheck-22 %s --check-prefix=RING

// Three tiles of four steps on two blocks: six steps each. Block 0 has tile 0 and half of tile 1, block 1 the other
// half and tile 2. Each takes the parts of its share from the last one backwards, so round 0 of block 0 is what block 1
// waits for in its round 1.

// CHECK-LABEL: tile.kernel @product
// CHECK-SAME: (%{{.*}}: memref<192x256xf16>, %{{.*}}: memref<256x64xf16>, %[[Y:[a-z0-9]+]]: memref<192x64xf32>,
// CHECK-SAME: {{^}} %[[W:[a-z0-9]+]]: memref<2x64x64xf32>) grid(%[[R:[a-z0-9]+]], %[[B:[a-z0-9]+]])
// CHECK-SAME: attributes {tile.persistent = 1 : i64}
// CHECK: %[[S:.*]] = tile.semaphores : memref<2xi32>
// CHECK: %[[SOME:.*]] = arith.cmpi sgt, %[[COUNT:.*]], %{{.*}} : index
// CHECK: scf.if %[[SOME]] {
// CHECK: %[[OWN:.*]] = scf.for %[[I:.*]] = %{{.*}} to %[[COUNT]] step
// CHECK: %[[STEP:.*]] = arith.addi %{{.*}}, %[[I]]
// CHECK: arith.muli %[[STEP]], %c64
// CHECK: } {tile.stages = 3 : i64}
// CHECK: scf.if %{{.*}} {
// CHECK: %[[ALL:.*]] = scf.for %[[FROM:.*]] = %{{.*}} to %[[B]] step %{{.*}} iter_args(%[[SUM:.*]] = %[[OWN]])
// CHECK: tile.semaphore_take %[[S]][%[[FROM]]] count 1
// CHECK: %[[PART:.*]] = tile.load %[[W]][%[[FROM]], %{{.*}}, %{{.*}}]
// CHECK: arith.addf %[[PART]], %[[SUM]]
// CHECK: arith.negf %[[ALL]]
// CHECK: tile.store %{{.*}}, %[[Y]]
// CHECK: } else {
// CHECK: tile.store %[[OWN]], %[[W]][%[[B]], %{{.*}}, %{{.*}}] {tile.partial}
// CHECK: tile.semaphore_post %[[S]][%[[B]]]

// The ring needs no branch of its own: the one around it says that there are steps.
// RING-LABEL: tile.kernel @product
// RING: scf.if
// RING: tile.async
// RING: %{{.*}}:3 = scf.for %{{.*}} = %c0{{.*}} to %[[COUNT:.*]] step
// RING-NOT: arith.divui
// RING: tile.semaphore_take

// CHECK: %[[R2:.*]] = arith.constant 2 : index
// CHECK: %[[B2:.*]] = arith.constant 2 : index
// CHECK: tile.launch @product grid(%[[R2]], %[[B2]]) {{.*}} -> (tensor<192x64xf32>, tensor<2x64x64xf32>)
tile.kernel @product(%x: memref<192x256xf16>, %w: memref<256x64xf16>, %y: memref<192x64xf32>) grid(%i)
    attributes {tile.stream_k = 2 : i64, tile.persistent = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %zero = arith.constant dense<0.0> : !tile.tile<64x64xf32>
  %row = arith.muli %i, %c64 : index
  %sum = scf.for %k = %c0 to %c256 step %c64 iter_args(%s = %zero) -> (!tile.tile<64x64xf32>) {
    %a = tile.load %x[%row, %k] : memref<192x256xf16>, !tile.tile<64x64xf16>
    %b = tile.load %w[%k, %c0] : memref<256x64xf16>, !tile.tile<64x64xf16>
    %n = tile.mma %a, %b, %s : !tile.tile<64x64xf16>, !tile.tile<64x64xf16>, !tile.tile<64x64xf32>
    scf.yield %n : !tile.tile<64x64xf32>
  } {tile.stages = 3 : i64}
  %neg = arith.negf %sum : !tile.tile<64x64xf32>
  tile.store %neg, %y[%row, %c0] : !tile.tile<64x64xf32>, memref<192x64xf32>
  tile.return
}
func.func @main(%x: tensor<192x256xf16>, %w: tensor<256x64xf16>) -> tensor<192x64xf32> {
  %c3 = arith.constant 3 : index
  %e = tensor.empty() : tensor<192x64xf32>
  %y = tile.launch @product grid(%c3) ins(%x, %w : tensor<192x256xf16>, tensor<256x64xf16>)
      outs(%e : tensor<192x64xf32>) -> (tensor<192x64xf32>)
  return %y : tensor<192x64xf32>
}

// -----

// Loops over a window are one with that over the channels, and bytes add up to whole numbers. Seven tiles on two
// blocks: two waves of whole tiles, then the steps of three tiles are split.

// CHECK-LABEL: tile.kernel @window
// CHECK-SAME: memref<2x16x16xi32>) grid(%[[R:[a-z0-9]+]], %[[B:[a-z0-9]+]])
// CHECK: arith.cmpi slt, %{{.*}}, %c2_i32
// CHECK: arith.select
// CHECK: scf.if
// CHECK: scf.for
// CHECK-NOT: scf.for
// CHECK: tile.mma
// CHECK: {tile.stages = 2 : i64}
// CHECK: arith.addi %{{.*}} : !tile.tile<16x16xi32>
// CHECK: tile.launch @window grid(%c4{{.*}}, %c2{{.*}})
tile.kernel @window(%x: memref<3x112x64xi8>, %w: memref<3x64x16xi8>, %y: memref<112x16xi32>) grid(%i)
    attributes {tile.stream_k = 2 : i64, tile.persistent = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c16 = arith.constant 16 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0> : !tile.tile<16x16xi32>
  %row = arith.muli %i, %c16 : index
  %sum = scf.for %o = %c0 to %c3 step %c1 iter_args(%t = %zero) -> (!tile.tile<16x16xi32>) {
    %inner = scf.for %k = %c0 to %c64 step %c32 iter_args(%s = %t) -> (!tile.tile<16x16xi32>) {
      %a = tile.load %x[%o, %row, %k] dims [1, 2] : memref<3x112x64xi8>, !tile.tile<16x32xi8>
      %b = tile.load %w[%o, %k, %c0] dims [1, 2] : memref<3x64x16xi8>, !tile.tile<32x16xi8>
      %n = tile.mma %a, %b, %s : !tile.tile<16x32xi8>, !tile.tile<32x16xi8>, !tile.tile<16x16xi32>
      scf.yield %n : !tile.tile<16x16xi32>
    } {tile.stages = 2 : i64}
    scf.yield %inner : !tile.tile<16x16xi32>
  }
  tile.store %sum, %y[%row, %c0] : !tile.tile<16x16xi32>, memref<112x16xi32>
  tile.return
}
func.func @main(%x: tensor<3x112x64xi8>, %w: tensor<3x64x16xi8>) -> tensor<112x16xi32> {
  %c7 = arith.constant 7 : index
  %e = tensor.empty() : tensor<112x16xi32>
  %y = tile.launch @window grid(%c7) ins(%x, %w : tensor<3x112x64xi8>, tensor<3x64x16xi8>) outs(%e : tensor<112x16xi32>)
      -> (tensor<112x16xi32>)
  return %y : tensor<112x16xi32>
}

// -----

// CHECK-LABEL: tile.kernel @full
// CHECK-SAME: grid(%{{[a-z0-9]+}}) attributes {tile.persistent = 1 : i64}
// CHECK-NOT: tile.semaphores
// expected-remark@+1 {{tiles, its steps are not split between all blocks: its tiles fill all waves, or are too few}}
tile.kernel @full(%x: memref<128x64xf16>, %w: memref<64x64xf16>, %y: memref<128x64xf32>) grid(%i)
    attributes {tile.stream_k = 2 : i64, tile.persistent = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !tile.tile<64x64xf32>
  %row = arith.muli %i, %c64 : index
  %sum = scf.for %k = %c0 to %c64 step %c16 iter_args(%s = %zero) -> (!tile.tile<64x64xf32>) {
    %a = tile.load %x[%row, %k] : memref<128x64xf16>, !tile.tile<64x16xf16>
    %b = tile.load %w[%k, %c0] : memref<64x64xf16>, !tile.tile<16x64xf16>
    %n = tile.mma %a, %b, %s : !tile.tile<64x16xf16>, !tile.tile<16x64xf16>, !tile.tile<64x64xf32>
    scf.yield %n : !tile.tile<64x64xf32>
  } {tile.stages = 2 : i64}
  tile.store %sum, %y[%row, %c0] : !tile.tile<64x64xf32>, memref<128x64xf32>
  tile.return
}
func.func @main(%x: tensor<128x64xf16>, %w: tensor<64x64xf16>) -> tensor<128x64xf32> {
  %c2 = arith.constant 2 : index
  %e = tensor.empty() : tensor<128x64xf32>
  %y = tile.launch @full grid(%c2) ins(%x, %w : tensor<128x64xf16>, tensor<64x64xf16>) outs(%e : tensor<128x64xf32>)
      -> (tensor<128x64xf32>)
  return %y : tensor<128x64xf32>
}

// -----

// expected-remark@+1 {{its sums begin with something else than zeros}}
tile.kernel @begun(%x: memref<192x64xf16>, %w: memref<64x64xf16>, %y: memref<192x64xf32>) grid(%i)
    attributes {tile.stream_k = 2 : i64, tile.persistent = 1 : i64} {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %i, %c64 : index
  %old = tile.load %y[%row, %c0] : memref<192x64xf32>, !tile.tile<64x64xf32>
  %sum = scf.for %k = %c0 to %c64 step %c16 iter_args(%s = %old) -> (!tile.tile<64x64xf32>) {
    %a = tile.load %x[%row, %k] : memref<192x64xf16>, !tile.tile<64x16xf16>
    %b = tile.load %w[%k, %c0] : memref<64x64xf16>, !tile.tile<16x64xf16>
    %n = tile.mma %a, %b, %s : !tile.tile<64x16xf16>, !tile.tile<16x64xf16>, !tile.tile<64x64xf32>
    scf.yield %n : !tile.tile<64x64xf32>
  } {tile.stages = 2 : i64}
  tile.store %sum, %y[%row, %c0] : !tile.tile<64x64xf32>, memref<192x64xf32>
  tile.return
}
func.func @main(%x: tensor<192x64xf16>, %w: tensor<64x64xf16>, %y: tensor<192x64xf32>) -> tensor<192x64xf32> {
  %c3 = arith.constant 3 : index
  %r = tile.launch @begun grid(%c3) ins(%x, %w : tensor<192x64xf16>, tensor<64x64xf16>) outs(%y : tensor<192x64xf32>)
      -> (tensor<192x64xf32>)
  return %r : tensor<192x64xf32>
}

// -----

// expected-remark@+1 {{its blocks run one task each (no tile.persistent)}}
tile.kernel @apart(%x: memref<4xf32>) grid(%i) attributes {tile.stream_k = 2 : i64} {
  tile.return
}
