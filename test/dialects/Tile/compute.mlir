// RUN: tile-opt %s | tile-opt | FileCheck-22 %s
// RUN: tile-opt %s -mlir-print-op-generic | tile-opt | FileCheck-22 %s
// RUN: tile-opt %s -emit-bytecode | tile-opt | FileCheck-22 %s

// CHECK-LABEL: func.func @mma
// CHECK: tile.mma %{{.*}}, %{{.*}}, %{{.*}} : !tile.tile<8x1xf32>, !tile.tile<1x32xf32>, !tile.tile<8x32xf32>
func.func @mma(%a: !tile.tile<8x1xf32>, %b: !tile.tile<1x32xf32>, %c: !tile.tile<8x32xf32>) -> !tile.tile<8x32xf32> {
  %d = tile.mma %a, %b, %c : !tile.tile<8x1xf32>, !tile.tile<1x32xf32>, !tile.tile<8x32xf32>
  return %d : !tile.tile<8x32xf32>
}

// CHECK-LABEL: func.func @pending
// CHECK: %[[D:.*]] = tile.mma %{{.*}}, %{{.*}}, %{{.*}} {tile.pending = 1 : i64}
// CHECK-SAME: {{^}} : !tile.tile<8x1xf32>, !tile.tile<1x32xf32>, !tile.tile<8x32xf32>
// CHECK: tile.mma_wait %[[D]] : !tile.tile<8x32xf32>
func.func @pending(%a: !tile.tile<8x1xf32>, %b: !tile.tile<1x32xf32>, %c: !tile.tile<8x32xf32>)
    -> !tile.tile<8x32xf32> {
  %d = tile.mma %a, %b, %c {tile.pending = 1 : i64} : !tile.tile<8x1xf32>, !tile.tile<1x32xf32>, !tile.tile<8x32xf32>
  %r = tile.mma_wait %d : !tile.tile<8x32xf32>
  return %r : !tile.tile<8x32xf32>
}

// CHECK-LABEL: func.func @sparse_mma
// CHECK: tile.mma %{{.*}}, %{{.*}}, %{{.*}} meta %{{.*}} sparsity [2, 4]
// CHECK-SAME: {{^}} : !tile.tile<16x8xi8>, !tile.tile<16x8xi8>, !tile.tile<16x8xi32>, !tile.tile<16x8xi2>
func.func @sparse_mma(%a: !tile.tile<16x8xi8>, %m: !tile.tile<16x8xi2>, %b: !tile.tile<16x8xi8>,
    %c: !tile.tile<16x8xi32>) -> !tile.tile<16x8xi32> {
  %d = tile.mma %a, %b, %c meta %m sparsity [2, 4]
      : !tile.tile<16x8xi8>, !tile.tile<16x8xi8>, !tile.tile<16x8xi32>, !tile.tile<16x8xi2>
  return %d : !tile.tile<16x8xi32>
}

// Eight positions in an i16.
// CHECK-LABEL: func.func @packed_meta
// CHECK: tile.mma %{{.*}} meta %{{.*}} sparsity [2, 4]
// CHECK-SAME: {{^}} : !tile.tile<16x16xf16>, !tile.tile<32x8xf16>, !tile.tile<16x8xf32>, !tile.tile<16x2xi16>
func.func @packed_meta(%a: !tile.tile<16x16xf16>, %m: !tile.tile<16x2xi16>, %b: !tile.tile<32x8xf16>,
    %c: !tile.tile<16x8xf32>) -> !tile.tile<16x8xf32> {
  %d = tile.mma %a, %b, %c meta %m sparsity [2, 4]
      : !tile.tile<16x16xf16>, !tile.tile<32x8xf16>, !tile.tile<16x8xf32>, !tile.tile<16x2xi16>
  return %d : !tile.tile<16x8xf32>
}

// CHECK-LABEL: func.func @bytes
// CHECK: tile.mma %{{.*}}, %{{.*}}, %{{.*}} a_unsigned
// CHECK-SAME: {{^}} : !tile.tile<8x4xi8>, !tile.tile<4x32xi8, #tile.layout<interleave = 4>>, !tile.tile<8x32xi32>
func.func @bytes(%a: !tile.tile<8x4xi8>, %b: !tile.tile<4x32xi8, #tile.layout<interleave = 4>>,
    %c: !tile.tile<8x32xi32>) -> !tile.tile<8x32xi32> {
  %d = tile.mma %a, %b, %c a_unsigned : !tile.tile<8x4xi8>, !tile.tile<4x32xi8, #tile.layout<interleave = 4>>,
      !tile.tile<8x32xi32>
  return %d : !tile.tile<8x32xi32>
}

// CHECK-LABEL: func.func @reduce
// CHECK: tile.reduce add %{{.*}} dims [1] : !tile.tile<8x64xf32> -> !tile.tile<8x1xf32>
// CHECK: tile.reduce maxnum %{{.*}} dims [0, 1] : !tile.tile<8x64xf32> -> !tile.tile<1x1xf32>
// CHECK: tile.reduce and %{{.*}} dims [0] : !tile.tile<4xi1> -> !tile.tile<1xi1>
func.func @reduce(%t: !tile.tile<8x64xf32>, %b: !tile.tile<4xi1>)
    -> (!tile.tile<8x1xf32>, !tile.tile<1x1xf32>, !tile.tile<1xi1>) {
  %0 = tile.reduce add %t dims [1] : !tile.tile<8x64xf32> -> !tile.tile<8x1xf32>
  %1 = tile.reduce maxnum %t dims [0, 1] : !tile.tile<8x64xf32> -> !tile.tile<1x1xf32>
  %2 = tile.reduce and %b dims [0] : !tile.tile<4xi1> -> !tile.tile<1xi1>
  return %0, %1, %2 : !tile.tile<8x1xf32>, !tile.tile<1x1xf32>, !tile.tile<1xi1>
}

// CHECK-LABEL: func.func @scan
// CHECK: tile.scan add %{{.*}} dim 1 : !tile.tile<8x64xi32>
// CHECK: tile.scan umax %{{.*}} dim 0 exclusive reverse : !tile.tile<8x64xi32>
func.func @scan(%t: !tile.tile<8x64xi32>) -> !tile.tile<8x64xi32> {
  %0 = tile.scan add %t dim 1 : !tile.tile<8x64xi32>
  %1 = tile.scan umax %0 dim 0 exclusive reverse : !tile.tile<8x64xi32>
  return %1 : !tile.tile<8x64xi32>
}

// CHECK-LABEL: func.func @select
// CHECK: tile.select %{{.*}}, %{{.*}}, %{{.*}} : !tile.tile<4xi1>, !tile.tile<4xf32>
func.func @select(%c: !tile.tile<4xi1>, %a: !tile.tile<4xf32>, %b: !tile.tile<4xf32>) -> !tile.tile<4xf32> {
  %r = tile.select %c, %a, %b : !tile.tile<4xi1>, !tile.tile<4xf32>
  return %r : !tile.tile<4xf32>
}

// CHECK-LABEL: func.func @convert
// CHECK: tile.convert %{{.*}} unsigned : !tile.tile<4xi8> -> !tile.tile<4xf32>
// CHECK: tile.convert %{{.*}} : !tile.tile<4xf32> -> !tile.tile<4xindex>
func.func @convert(%t: !tile.tile<4xi8>) -> !tile.tile<4xindex> {
  %0 = tile.convert %t unsigned : !tile.tile<4xi8> -> !tile.tile<4xf32>
  %1 = tile.convert %0 : !tile.tile<4xf32> -> !tile.tile<4xindex>
  return %1 : !tile.tile<4xindex>
}

// CHECK-LABEL: func.func @movement
// CHECK: tile.splat %{{.*}} : f32 -> !tile.tile<2x4xf32>
// CHECK: tile.iota dim 1 : !tile.tile<2x4xi16>
// CHECK: tile.broadcast %{{.*}} : !tile.tile<4xf32> -> !tile.tile<3x2x4xf32>
// CHECK: tile.transpose %{{.*}} [2, 0, 1] : !tile.tile<3x2x4xf32> -> !tile.tile<4x3x2xf32>
// CHECK: tile.reshape %{{.*}} : !tile.tile<4x3x2xf32> -> !tile.tile<12x2xf32>
// CHECK: tile.extract %{{.*}} [4, 1] : !tile.tile<12x2xf32> -> !tile.tile<2x1xf32>
// CHECK: tile.insert %{{.*}} into %{{.*}} [0, 1] : !tile.tile<2x1xf32> into !tile.tile<12x2xf32>
// CHECK: tile.extract %{{.*}} [11, 1] : !tile.tile<12x2xf32> -> f32
// CHECK: tile.extract %{{.*}} [] : !tile.tile<f32> -> f32
func.func @movement(%f: f32, %row: !tile.tile<4xf32>, %point: !tile.tile<f32>) -> (f32, f32) {
  %0 = tile.splat %f : f32 -> !tile.tile<2x4xf32>
  %1 = tile.iota dim 1 : !tile.tile<2x4xi16>
  %2 = tile.broadcast %row : !tile.tile<4xf32> -> !tile.tile<3x2x4xf32>
  %3 = tile.transpose %2 [2, 0, 1] : !tile.tile<3x2x4xf32> -> !tile.tile<4x3x2xf32>
  %4 = tile.reshape %3 : !tile.tile<4x3x2xf32> -> !tile.tile<12x2xf32>
  %5 = tile.extract %4 [4, 1] : !tile.tile<12x2xf32> -> !tile.tile<2x1xf32>
  %6 = tile.insert %5 into %4 [0, 1] : !tile.tile<2x1xf32> into !tile.tile<12x2xf32>
  %7 = tile.extract %6 [11, 1] : !tile.tile<12x2xf32> -> f32
  %8 = tile.extract %point [] : !tile.tile<f32> -> f32
  return %7, %8 : f32, f32
}

// Upstream's elementwise operations take tiles as they are.
// CHECK-LABEL: func.func @elementwise
// CHECK: arith.constant dense<1.000000e+00> : !tile.tile<8x32xf32>
// CHECK: arith.constant dense<[1, 2, 3]> : !tile.tile<3xi32>
// CHECK: arith.addf %{{.*}}, %{{.*}} fastmath<contract> : !tile.tile<8x32xf32>
// CHECK: math.exp %{{.*}} : !tile.tile<8x32xf32>
// CHECK: math.fma %{{.*}}, %{{.*}}, %{{.*}} : !tile.tile<8x32xf32>
// CHECK: arith.cmpf olt, %{{.*}}, %{{.*}} : !tile.tile<8x32xf32>
// CHECK: arith.shli %{{.*}}, %{{.*}} : !tile.tile<3xi32>
func.func @elementwise(%t: !tile.tile<8x32xf32>) -> (!tile.tile<8x32xi1>, !tile.tile<3xi32>) {
  %one = arith.constant dense<1.0> : !tile.tile<8x32xf32>
  %list = arith.constant dense<[1, 2, 3]> : !tile.tile<3xi32>
  %0 = arith.addf %t, %one fastmath<contract> : !tile.tile<8x32xf32>
  %1 = math.exp %0 : !tile.tile<8x32xf32>
  %2 = math.fma %0, %1, %one : !tile.tile<8x32xf32>
  %3 = arith.cmpf olt, %2, %one : !tile.tile<8x32xf32>
  %4 = arith.shli %list, %list : !tile.tile<3xi32>
  return %3, %4 : !tile.tile<8x32xi1>, !tile.tile<3xi32>
}
