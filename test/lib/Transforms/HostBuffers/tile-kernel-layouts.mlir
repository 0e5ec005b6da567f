// RUN: tile-opt %s --tile-kernel-layouts | FileCheck %s

// Two launches agree on the strides, though not on the offset; the third has a kernel of its own. What is known stays.

// CHECK: tile.kernel @k(%{{.*}}: memref<8xf32>, %{{.*}}: memref<4x8xf32, strided<[10, 1], offset: ?>>)
// CHECK: tile.load {{.*}} : memref<4x8xf32, strided<[10, 1], offset: ?>>
// CHECK: tile.kernel @[[$OTHER:.*]](%{{.*}}: memref<8xf32>, %{{.*}}: memref<4x8xf32, strided<[16, 2], offset: ?>>)
// CHECK-SAME: {{^}} attributes {tile.variant_of = "k"}
tile.kernel @k(%a: memref<8xf32>, %x: memref<4x8xf32, strided<[?, ?], offset: ?>>) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0, %c0] : memref<4x8xf32, strided<[?, ?], offset: ?>>, !tile.tile<4x8xf32>
  tile.store %t, %x[%c0, %c0] : !tile.tile<4x8xf32>, memref<4x8xf32, strided<[?, ?], offset: ?>>
  tile.return
}

// CHECK-LABEL: func.func @main
// CHECK: tile.launch @k ins
// CHECK: tile.launch @k ins
// CHECK: tile.launch @[[$OTHER]] ins
func.func @main(%a: memref<8xf32>, %t: memref<6x10xf32>, %u: memref<4x16xf32>) {
  %s = memref.subview %t[1, 1] [4, 8] [1, 1] : memref<6x10xf32> to memref<4x8xf32, strided<[10, 1], offset: 11>>
  %r = memref.subview %t[2, 2] [4, 8] [1, 1] : memref<6x10xf32> to memref<4x8xf32, strided<[10, 1], offset: 22>>
  %v = memref.subview %u[0, 0] [4, 8] [1, 2] : memref<4x16xf32> to memref<4x8xf32, strided<[16, 2]>>
  tile.launch @k ins(%a : memref<8xf32>) outs(%s : memref<4x8xf32, strided<[10, 1], offset: 11>>)
  tile.launch @k ins(%a : memref<8xf32>) outs(%r : memref<4x8xf32, strided<[10, 1], offset: 22>>)
  tile.launch @k ins(%a : memref<8xf32>) outs(%v : memref<4x8xf32, strided<[16, 2]>>)
  return
}
