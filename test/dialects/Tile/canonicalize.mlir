// RUN: tile-opt %s -canonicalize | FileCheck-22 %s

// CHECK-LABEL: func.func @identities
// CHECK-SAME: (%[[T:.*]]: !tile.tile<4x8xf32>)
// CHECK-NEXT: return %[[T]], %[[T]], %[[T]], %[[T]], %[[T]], %[[T]]
func.func @identities(%t: !tile.tile<4x8xf32>)
    -> (!tile.tile<4x8xf32>, !tile.tile<4x8xf32>, !tile.tile<4x8xf32>, !tile.tile<4x8xf32>, !tile.tile<4x8xf32>,
    !tile.tile<4x8xf32>) {
  %0 = tile.broadcast %t : !tile.tile<4x8xf32> -> !tile.tile<4x8xf32>
  %1 = tile.transpose %t [0, 1] : !tile.tile<4x8xf32> -> !tile.tile<4x8xf32>
  %2 = tile.reshape %t : !tile.tile<4x8xf32> -> !tile.tile<4x8xf32>
  %3 = tile.extract %t [0, 0] : !tile.tile<4x8xf32> -> !tile.tile<4x8xf32>
  %4 = tile.insert %t into %2 [0, 0] : !tile.tile<4x8xf32> into !tile.tile<4x8xf32>
  %5 = tile.convert %t : !tile.tile<4x8xf32> -> !tile.tile<4x8xf32>
  return %0, %1, %2, %3, %4, %5 : !tile.tile<4x8xf32>, !tile.tile<4x8xf32>, !tile.tile<4x8xf32>, !tile.tile<4x8xf32>,
      !tile.tile<4x8xf32>, !tile.tile<4x8xf32>
}

// CHECK-LABEL: func.func @compositions
// CHECK-SAME: (%[[T:.*]]: !tile.tile<1x8xf32>)
// CHECK: %[[B:.*]] = tile.broadcast %[[T]] : !tile.tile<1x8xf32> -> !tile.tile<2x4x8xf32>
// CHECK: %[[P:.*]] = tile.transpose %[[B]] [1, 2, 0]
// CHECK: %[[R:.*]] = tile.reshape %[[P]] : !tile.tile<4x8x2xf32> -> !tile.tile<64xf32>
// CHECK: %[[E:.*]] = tile.extract %[[R]] [12] : !tile.tile<64xf32> -> !tile.tile<4xf32>
// CHECK: return %[[E]]
func.func @compositions(%t: !tile.tile<1x8xf32>) -> !tile.tile<4xf32> {
  %0 = tile.broadcast %t : !tile.tile<1x8xf32> -> !tile.tile<4x8xf32>
  %1 = tile.broadcast %0 : !tile.tile<4x8xf32> -> !tile.tile<2x4x8xf32>
  %2 = tile.transpose %1 [2, 0, 1] : !tile.tile<2x4x8xf32> -> !tile.tile<8x2x4xf32>
  %3 = tile.transpose %2 [2, 0, 1] : !tile.tile<8x2x4xf32> -> !tile.tile<4x8x2xf32>
  %4 = tile.reshape %3 : !tile.tile<4x8x2xf32> -> !tile.tile<8x8xf32>
  %5 = tile.reshape %4 : !tile.tile<8x8xf32> -> !tile.tile<64xf32>
  %6 = tile.extract %5 [8] : !tile.tile<64xf32> -> !tile.tile<16xf32>
  %7 = tile.extract %6 [4] : !tile.tile<16xf32> -> !tile.tile<4xf32>
  return %7 : !tile.tile<4xf32>
}

// CHECK-LABEL: func.func @splat_moves
// CHECK-SAME: (%[[F:.*]]: f32)
// CHECK-NEXT: %[[S:.*]] = tile.splat %[[F]] : f32 -> !tile.tile<16xf32>
// CHECK-NEXT: return %[[S]], %[[F]]
func.func @splat_moves(%f: f32) -> (!tile.tile<16xf32>, f32) {
  %0 = tile.splat %f : f32 -> !tile.tile<1x8xf32>
  %1 = tile.broadcast %0 : !tile.tile<1x8xf32> -> !tile.tile<4x8xf32>
  %2 = tile.transpose %1 [1, 0] : !tile.tile<4x8xf32> -> !tile.tile<8x4xf32>
  %3 = tile.extract %2 [4, 0] : !tile.tile<8x4xf32> -> !tile.tile<4x4xf32>
  %4 = tile.reshape %3 : !tile.tile<4x4xf32> -> !tile.tile<16xf32>
  %5 = tile.extract %4 [3] : !tile.tile<16xf32> -> f32
  return %4, %5 : !tile.tile<16xf32>, f32
}

// CHECK-LABEL: func.func @constants
// CHECK-DAG: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : !tile.tile<8x4xf16>
// CHECK-DAG: %[[THREE:.*]] = arith.constant 3 : i32
// CHECK-DAG: %[[LIST:.*]] = arith.constant dense<{{\[}}[1, 2], [3, 4]]> : !tile.tile<2x2xi32>
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0> : !tile.tile<1x4xindex>
// CHECK: return %[[ONE]], %[[THREE]], %[[LIST]], %[[ZERO]]
func.func @constants() -> (!tile.tile<8x4xf16>, i32, !tile.tile<2x2xi32>, !tile.tile<1x4xindex>) {
  %one = arith.constant 1 : i8
  %0 = tile.splat %one : i8 -> !tile.tile<1x8xi8>
  %1 = tile.broadcast %0 : !tile.tile<1x8xi8> -> !tile.tile<4x8xi8>
  %2 = tile.transpose %1 [1, 0] : !tile.tile<4x8xi8> -> !tile.tile<8x4xi8>
  %3 = tile.convert %2 : !tile.tile<8x4xi8> -> !tile.tile<8x4xf16>
  %list = arith.constant dense<[1, 2, 3, 4]> : !tile.tile<4xi32>
  %4 = tile.extract %list [2] : !tile.tile<4xi32> -> i32
  %5 = tile.reshape %list : !tile.tile<4xi32> -> !tile.tile<2x2xi32>
  %6 = tile.iota dim 0 : !tile.tile<1x4xindex>
  return %3, %4, %5, %6 : !tile.tile<8x4xf16>, i32, !tile.tile<2x2xi32>, !tile.tile<1x4xindex>
}

// CHECK-LABEL: func.func @conversions
// CHECK-DAG: arith.constant dense<255> : !tile.tile<2xi32>
// CHECK-DAG: arith.constant dense<-1> : !tile.tile<2xi32>
// CHECK-DAG: arith.constant dense<-2> : !tile.tile<2xi32>
// CHECK-DAG: arith.constant dense<true> : !tile.tile<2xi1>
// CHECK-DAG: arith.constant dense<1.000000e+00> : !tile.tile<2xf32>
// A value that the target cannot hold is left to run time.
// CHECK: tile.convert %{{.*}} : !tile.tile<2xf32> -> !tile.tile<2xi8>
func.func @conversions() -> (!tile.tile<2xi32>, !tile.tile<2xi32>, !tile.tile<2xi32>, !tile.tile<2xi1>,
    !tile.tile<2xf32>, !tile.tile<2xi8>) {
  %b = arith.constant dense<-1> : !tile.tile<2xi8>
  %f = arith.constant dense<-2.9> : !tile.tile<2xf32>
  %big = arith.constant dense<1.0e9> : !tile.tile<2xf32>
  %t = arith.constant dense<true> : !tile.tile<2xi1>
  %0 = tile.convert %b unsigned : !tile.tile<2xi8> -> !tile.tile<2xi32>
  %1 = tile.convert %b : !tile.tile<2xi8> -> !tile.tile<2xi32>
  %2 = tile.convert %f : !tile.tile<2xf32> -> !tile.tile<2xi32>
  %3 = tile.convert %f : !tile.tile<2xf32> -> !tile.tile<2xi1>
  %4 = tile.convert %t : !tile.tile<2xi1> -> !tile.tile<2xf32>
  %5 = tile.convert %big : !tile.tile<2xf32> -> !tile.tile<2xi8>
  return %0, %1, %2, %3, %4, %5 : !tile.tile<2xi32>, !tile.tile<2xi32>, !tile.tile<2xi32>, !tile.tile<2xi1>,
      !tile.tile<2xf32>, !tile.tile<2xi8>
}

// There and back through a wider float is exact; through a narrower one it is not.
// CHECK-LABEL: func.func @convert_back
// CHECK-SAME: (%[[H:.*]]: !tile.tile<2xf16>, %[[F:.*]]: !tile.tile<2xf32>)
// CHECK: %[[N:.*]] = tile.convert %[[F]] : !tile.tile<2xf32> -> !tile.tile<2xbf16>
// CHECK: %[[W:.*]] = tile.convert %[[N]]
// CHECK: return %[[H]], %[[W]]
func.func @convert_back(%h: !tile.tile<2xf16>, %f: !tile.tile<2xf32>) -> (!tile.tile<2xf16>, !tile.tile<2xf32>) {
  %0 = tile.convert %h : !tile.tile<2xf16> -> !tile.tile<2xf32>
  %1 = tile.convert %0 : !tile.tile<2xf32> -> !tile.tile<2xf16>
  %2 = tile.convert %f : !tile.tile<2xf32> -> !tile.tile<2xbf16>
  %3 = tile.convert %2 : !tile.tile<2xbf16> -> !tile.tile<2xf32>
  return %1, %3 : !tile.tile<2xf16>, !tile.tile<2xf32>
}

// CHECK-LABEL: func.func @select
// CHECK-SAME: (%[[A:.*]]: !tile.tile<4xf32>, %[[B:.*]]: !tile.tile<4xf32>, %[[C:.*]]: !tile.tile<4xi1>)
// CHECK-NEXT: return %[[A]], %[[B]], %[[A]]
func.func @select(%a: !tile.tile<4xf32>, %b: !tile.tile<4xf32>, %c: !tile.tile<4xi1>)
    -> (!tile.tile<4xf32>, !tile.tile<4xf32>, !tile.tile<4xf32>) {
  %true = arith.constant dense<true> : !tile.tile<4xi1>
  %false = arith.constant dense<false> : !tile.tile<4xi1>
  %0 = tile.select %true, %a, %b : !tile.tile<4xi1>, !tile.tile<4xf32>
  %1 = tile.select %false, %a, %b : !tile.tile<4xi1>, !tile.tile<4xf32>
  %2 = tile.select %c, %a, %a : !tile.tile<4xi1>, !tile.tile<4xf32>
  return %0, %1, %2 : !tile.tile<4xf32>, !tile.tile<4xf32>, !tile.tile<4xf32>
}

// CHECK-LABEL: func.func @reductions
// CHECK-SAME: (%[[T:.*]]: !tile.tile<4x1xf32>)
// CHECK-DAG: %[[TWO:.*]] = arith.constant dense<2.000000e+00> : !tile.tile<1xf32>
// CHECK-DAG: %[[TWOS:.*]] = arith.constant dense<2.000000e+00> : !tile.tile<8xf32>
// CHECK: %[[SUM:.*]] = tile.reduce add %[[TWOS]]
// CHECK: %[[EX:.*]] = tile.scan add %[[T]] dim 1 exclusive
// CHECK: return %[[T]], %[[TWO]], %[[SUM]], %[[T]], %[[EX]]
func.func @reductions(%t: !tile.tile<4x1xf32>)
    -> (!tile.tile<4x1xf32>, !tile.tile<1xf32>, !tile.tile<1xf32>, !tile.tile<4x1xf32>, !tile.tile<4x1xf32>) {
  %c = arith.constant dense<2.0> : !tile.tile<8xf32>
  %0 = tile.reduce add %t dims [1] : !tile.tile<4x1xf32> -> !tile.tile<4x1xf32>
  %1 = tile.reduce max %c dims [0] : !tile.tile<8xf32> -> !tile.tile<1xf32>
  %2 = tile.reduce add %c dims [0] : !tile.tile<8xf32> -> !tile.tile<1xf32>
  %3 = tile.scan add %t dim 1 : !tile.tile<4x1xf32>
  %4 = tile.scan add %t dim 1 exclusive : !tile.tile<4x1xf32>
  return %0, %1, %2, %3, %4 : !tile.tile<4x1xf32>, !tile.tile<1xf32>, !tile.tile<1xf32>, !tile.tile<4x1xf32>,
      !tile.tile<4x1xf32>
}

// CHECK-LABEL: tile.kernel @access
// CHECK-SAME: (%[[M:.*]]: memref<8x16xf32>, %[[N:.*]]: index)
// CHECK: %[[T:.*]] = tile.load %[[M]][%{{.*}}, %{{.*}}] : memref<8x16xf32>, !tile.tile<4x8xf32>
// CHECK-NEXT: tile.store %[[T]], %[[M]][%{{.*}}, %{{.*}}] : !tile.tile<4x8xf32>, memref<8x16xf32>
// CHECK-NEXT: tile.store %[[T]], %[[M]][%{{.*}}, %{{.*}}] dims [1, 0] valid(%[[N]], %{{.*}})
// CHECK-SAME: {{^}} : !tile.tile<4x8xf32>, memref<8x16xf32>
// A load whose tile is not used and a buffer that nobody uses are gone.
// CHECK-NEXT: tile.return
tile.kernel @access(%m: memref<8x16xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c4 = arith.constant 4 : index
  %c9 = arith.constant 9 : index
  %pad = arith.constant 1.0 : f32
  %d = memref.cast %m : memref<8x16xf32> to memref<?x16xf32>
  %t = tile.load %d[%c0, %c0] dims [0, 1] steps [1, 1] valid (%c4, %c9) pad %pad : memref<?x16xf32>, !tile.tile<4x8xf32>
  tile.store %t, %d[%c0, %c0] steps [1, 1] valid (%c4, %c9) : !tile.tile<4x8xf32>, memref<?x16xf32>
  tile.store %t, %m[%c0, %c0] dims [1, 0] valid (%n, %c9) : !tile.tile<4x8xf32>, memref<8x16xf32>
  %unused = tile.load %m[%c0, %c0] : memref<8x16xf32>, !tile.tile<1x1xf32>
  %buffer = tile.alloc : memref<4xf32>
  tile.copy %m to %m : memref<8x16xf32>, memref<8x16xf32>
  tile.return
}

// Operands given twice or unused, results unused or passed through.
// CHECK-LABEL: func.func @group
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<4xf32>)
// CHECK: %[[G:.*]] = tile.group "l1" (%[[A:.*]] = %[[X]] : tensor<4xf32>) -> (tensor<4xf32>) {
// CHECK-NEXT: %[[S:.*]] = arith.addf %[[A]], %[[A]]
// CHECK-NEXT: tile.yield %[[S]] : tensor<4xf32>
// CHECK: return %[[G]], %[[Y]]
func.func @group(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %g:3 = tile.group "l1" (%a = %x : tensor<4xf32>, %b = %x : tensor<4xf32>, %c = %y : tensor<4xf32>)
      -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
    %0 = arith.addf %a, %b : tensor<4xf32>
    %1 = math.exp %a : tensor<4xf32>
    tile.yield %1, %0, %c : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
  return %g#1, %g#2 : tensor<4xf32>, tensor<4xf32>
}

// A group that nobody uses is gone; so is a launch on tensors, but not one on buffers.
// CHECK-LABEL: tile.kernel @k
tile.kernel @k(%x: memref<4xf32>) {
}
// CHECK-LABEL: func.func @dead
// CHECK-NEXT: tile.launch @k outs(%{{.*}} : memref<4xf32>)
// CHECK-NEXT: return
func.func @dead(%x: tensor<4xf32>, %m: memref<4xf32>) {
  %g = tile.group "l1" (%a = %x : tensor<4xf32>) -> (tensor<4xf32>) {
    %0 = math.exp %a : tensor<4xf32>
    tile.yield %0 : tensor<4xf32>
  }
  %r = tile.launch @k outs(%x : tensor<4xf32>) -> (tensor<4xf32>)
  tile.launch @k outs(%m : memref<4xf32>)
  return
}
