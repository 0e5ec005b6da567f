// RUN: not tile-opt %s --tile-check-accesses --split-input-file 2>%t | FileCheck-22 %s
// RUN: FileCheck-22 %s --check-prefix=SAID --input-file=%t

// A place that the run brings is looked at before it is read.

// SAID: remark: an access of this kernel cannot be proven to stay inside, and is checked in its code
// CHECK-LABEL: tile.kernel @looked_up
// CHECK-SAME: (%[[X:.*]]: memref<64xf32>, %{{.*}}: memref<8xindex>, %[[Y:.*]]: memref<8xf32>,
// CHECK-SAME: {{^}} %[[MARKS:.*]]: memref<1xi64>)
// CHECK-SAME: {{^}} grid(%[[I:.*]])
// CHECK: %[[PLACE:.*]] = memref.load %{{.*}}[%[[I]]]
// CHECK: %[[SIZE:.*]] = memref.dim %[[X]]
// CHECK: arith.cmpi sge, %[[PLACE]], %c0
// CHECK: arith.cmpi slt, %[[PLACE]], %[[SIZE]]
// CHECK: %[[E:.*]] = scf.if %{{.*}} -> (f32)
// CHECK: memref.load %[[X]][%[[PLACE]]]
// CHECK: else
// CHECK: memref.store %{{.*}}, %[[MARKS]][%{{.*}}]
// CHECK: scf.yield %cst
// CHECK: memref.store %[[E]], %[[Y]][%[[I]]]
// CHECK: func.func @main
// CHECK: %[[ZEROS:.*]] = linalg.fill
// CHECK: %[[R:.*]]:2 = tile.launch @looked_up {{.*}}, %[[ZEROS]] : tensor<8xf32>, tensor<1xi64>)
// CHECK: %[[MARK:.*]] = tensor.extract %[[R]]#1
// CHECK: %[[NONE:.*]] = arith.cmpi eq, %[[MARK]], %c0_i64
// CHECK: cf.assert %[[NONE]], "kernel looked_up, line {{[0-9]+}}: memref.load reached out of argument 0
// CHECK: return %[[R]]#0
tile.kernel @looked_up(%x: memref<64xf32>, %at: memref<8xindex>, %y: memref<8xf32>) grid(%i) {
  %place = memref.load %at[%i] : memref<8xindex>
  %e = memref.load %x[%place] : memref<64xf32>
  memref.store %e, %y[%i] : memref<8xf32>
  tile.return
}
func.func @main(%x: tensor<64xf32>, %at: tensor<8xindex>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %c8 = arith.constant 8 : index
  %r = tile.launch @looked_up grid(%c8) ins(%x, %at : tensor<64xf32>, tensor<8xindex>) outs(%y : tensor<8xf32>)
      -> (tensor<8xf32>)
  return %r : tensor<8xf32>
}

// -----

// What some task reaches outside is an error.

// SAID: error: kernel k, line {{[0-9]+}}: memref.store reaches place 8 of argument 1 along dimension 0, of size 8,
// SAID-SAME: {{^}} in the task of coordinate 0 = 8: give it a grid that fits
tile.kernel @k(%x: memref<64xf32>, %y: memref<8xf32>) grid(%i) {
  %e = memref.load %x[%i] : memref<64xf32>
  memref.store %e, %y[%i] : memref<8xf32>
  tile.return
}
func.func @main(%x: tensor<64xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  %c8 = arith.constant 9 : index
  %r = tile.launch @k grid(%c8) ins(%x : tensor<64xf32>) outs(%y : tensor<8xf32>)
      -> (tensor<8xf32>)
  return %r : tensor<8xf32>
}

// -----

// Masks and sizes prove two accesses; the list of indices is looked at, the least and the greatest.

// SAID: remark: an access of this kernel
// CHECK-LABEL: tile.kernel @indices
// CHECK: tile.load %{{.*}} valid(
// CHECK: %[[IDS:.*]] = tile.load
// CHECK: tile.reduce min %[[IDS]]
// CHECK: tile.reduce max %[[IDS]]
// CHECK: scf.if
// CHECK: tile.load %{{.*}} indices %[[IDS]] along 0
// CHECK: else
// CHECK: }
// CHECK-NOT: scf.if
// CHECK: tile.store
tile.kernel @indices(%n: index, %m: memref<?x64xf32>, %t: memref<100x64xf32>, %id: memref<8xi32>,
    %y: memref<?x64xf32>) grid(%i, %j) {
  %c0 = arith.constant 0 : index
  %c8 = arith.constant 8 : index
  %c1 = arith.constant 1 : index
  %r = arith.muli %i, %c8 : index
  %d = memref.dim %m, %c0 : memref<?x64xf32>
  %left = arith.subi %d, %r : index
  %a = tile.load %m[%r, %c0] valid (%left, %n) : memref<?x64xf32>, !tile.tile<8x64xf32>
  %idx = tile.load %id[%c0] : memref<8xi32>, !tile.tile<8xi32>
  %g = tile.load %t[%c0, %c0] indices %idx along 0
      : memref<100x64xf32>, !tile.tile<8x64xf32> (indices !tile.tile<8xi32>)
  %s = arith.addf %a, %g : !tile.tile<8x64xf32>
  tile.store %s, %y[%r, %c0] valid (%left, %n) : !tile.tile<8x64xf32>, memref<?x64xf32>
  tile.return
}
func.func @main(%n: tensor<index>, %m: tensor<30x64xf32>, %t: tensor<100x64xf32>, %id: tensor<8xi32>)
    -> tensor<30x64xf32> {
  %c4 = arith.constant 4 : index
  %c1 = arith.constant 1 : index
  %nn = tensor.extract %n[] : tensor<index>
  %y = tensor.empty() : tensor<30x64xf32>
  %r = tile.launch @indices grid(%c4, %c1)
      ins(%nn, %m, %t, %id : index, tensor<30x64xf32>, tensor<100x64xf32>, tensor<8xi32>) outs(%y : tensor<30x64xf32>)
      -> (tensor<30x64xf32>)
  return %r : tensor<30x64xf32>
}
