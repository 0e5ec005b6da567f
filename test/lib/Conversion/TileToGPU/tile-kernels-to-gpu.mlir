// RUN: tile-opt %s -tile-kernels-to-gpu -split-input-file -verify-diagnostics | FileCheck-22 %s

// Sizes and strides that types leave open, a scalar, and a bound that nobody tells are parameters.
// CHECK: memref.global @tile_shared : memref<0xi8, #gpu.address_space<workgroup>> {alignment = 1024 : i64}
// CHECK: gpu.func @open(%arg0: memref<f32, #gpu.address_space<global>> {tile.align = 16 : i64}, %arg1: i64,
// CHECK-SAME: %arg2: memref<f32, #gpu.address_space<global>> {tile.align = 4 : i64}, %arg3: i64, %arg4: f32,
// CHECK-SAME: {{^}} %arg5: i32) kernel
// CHECK-SAME: tile.params = [{align = 16 : i64, arg = 0 : i64, kind = "pointer"},
// CHECK-SAME: {{^}} {arg = 0 : i64, dim = 0 : i64, kind = "size"},
// CHECK-SAME: {align = 4 : i64, arg = 1 : i64, kind = "pointer"}, {arg = 1 : i64, dim = 0 : i64, kind = "stride"},
// CHECK-SAME: {arg = 2 : i64, kind = "scalar"}, {dim = 1 : i64, kind = "bound"}]
// CHECK-SAME: tile.threads = 64
// CHECK: %[[T:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: %[[J:.*]] = arith.remui %[[T]], %arg5
// CHECK: %[[I:.*]] = arith.divui %[[T]], %arg5
tile.kernel @open(%x: memref<?x64xf32>, %y: memref<8x64xf32, strided<[?, 1], offset: ?>>, %a: f32) grid(%i, %j)
    attributes {tile.threads = 64 : i64} {
  %t = tile.load %x[%i, %j] : memref<?x64xf32>, !tile.tile<64xf32>
  tile.store %t, %y[%i, %j] : !tile.tile<64xf32>, memref<8x64xf32, strided<[?, 1], offset: ?>>
  tile.return
}

// -----

// Buffers are parts of the array; a swizzled one is aligned for the hardware.
// CHECK: gpu.func @buffers
// CHECK-SAME: tile.shared_bytes = 9216
// CHECK: memref.view %{{.*}}[%c0{{.*}}][] : memref<0xi8, #gpu.address_space<workgroup>> to memref<16xf32
// CHECK: %[[C:.*]] = arith.constant 1024 : index
// CHECK: memref.view %{{.*}}[%[[C]]][] {tile.layouts = [#tile.layout<swizzle = 128>]}
tile.kernel @buffers() {
  %a = tile.alloc : memref<16xf32, #tile.level<"shared">>
  %b = tile.alloc {tile.layouts = [#tile.layout<swizzle = 128>]} : memref<64x64xf16, #tile.level<"shared">>
  tile.return
}

// -----

// A program of scalars is one thread's.
// CHECK: gpu.func @scalars
// CHECK-SAME: tile.one_thread
// CHECK: scf.if
// CHECK: memref.store
tile.kernel @scalars(%x: memref<4xf32>) grid(%i) {
  %f = arith.constant 1.0 : f32
  memref.store %f, %x[%i] : memref<4xf32>
  tile.return
}

// -----

// A block runs several tasks: the bounds of all coordinates tell how many there are.
// CHECK: gpu.func @persistent({{.*}}, %[[N:[a-z0-9]+]]: i32) kernel
// CHECK-SAME: {dim = 0 : i64, kind = "bound"}
// CHECK-SAME: tile.persistent = 2 : i64
// CHECK: %[[ALL:.*]] = arith.muli %{{.*}}, %[[N]]
// CHECK: %[[FIRST:.*]] = gpu.block_id x
// CHECK: %[[BLOCKS:.*]] = gpu.grid_dim x
// CHECK: %[[END:.*]] = arith.index_castui %[[ALL]]
// CHECK: scf.for %[[T:.*]] = %[[FIRST]] to %[[END]] step %[[BLOCKS]] {
// CHECK: arith.index_cast %[[T]] : index to i32
// CHECK: tile.store
// CHECK: } {tile.tasks}
tile.kernel @persistent(%x: memref<?x64xf32>) grid(%i) attributes {tile.persistent = 2 : i64} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%i, %c0] : memref<?x64xf32>, !tile.tile<64xf32>
  %d = arith.addf %t, %t : !tile.tile<64xf32>
  tile.store %d, %x[%i, %c0] : !tile.tile<64xf32>, memref<?x64xf32>
  tile.return
}

// -----

// Tasks of a cluster have numbers that follow each other: first which of the cluster, then the cluster in its band.
// CHECK-LABEL: gpu.func @cluster
// CHECK-SAME: known_cluster_size = array<i32: 2, 1, 1>
// CHECK-SAME: tile.cluster = array<i64: 2, 1, 1>
// CHECK: %[[TASK:.*]] = arith.index_cast %{{.*}} : index to i32
// CHECK: %[[TWO:.*]] = arith.constant 2 : i32
// CHECK: %[[MEMBER:.*]] = arith.remui %[[TASK]], %[[TWO]]
// CHECK: arith.divui %[[TASK]], %[[TWO]]
// CHECK: arith.divui %{{.*}}, %[[TWO]]
// CHECK: arith.constant 4 : i32
// CHECK: %[[ROWS:.*]] = arith.muli
// CHECK: arith.addi %{{.*}}, %[[MEMBER]]
tile.kernel @cluster(%x: memref<32x3x64xf32>) grid(%i, %j) cluster [2, 1]
    attributes {tile.grid = array<i64: 32, 3>, tile.raster = 8 : i64} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%i, %j, %c0] : memref<32x3x64xf32>, !tile.tile<64xf32>
  %d = arith.addf %t, %t : !tile.tile<64xf32>
  tile.store %d, %x[%i, %j, %c0] : !tile.tile<64xf32>, memref<32x3x64xf32>
  tile.return
}

// -----

// expected-error@+1 {{op has clusters of 2 tasks along coordinate 1, whose bound must be known and a multiple of that}}
tile.kernel @ragged(%x: memref<4x3x64xf32>) grid(%i, %j) cluster [1, 2] attributes {tile.grid = array<i64: 4, 3>} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%i, %j, %c0] : memref<4x3x64xf32>, !tile.tile<64xf32>
  tile.return
}

// -----

// expected-error @below {{has clusters of 2 tasks along coordinate 0, whose bound must be known}}
tile.kernel @open(%x: memref<?x3x64xf32>) grid(%i, %j) cluster [2, 1] {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%i, %j, %c0] : memref<?x3x64xf32>, !tile.tile<64xf32>
  tile.return
}

// -----

// A bound that a run tells is rounded up to whole clusters, here and by the host.
// CHECK-LABEL: gpu.func @rounded
// CHECK-SAME: %[[ALL:[a-z0-9]+]]: i32)
// CHECK-SAME: tile.rounded = array<i64: 1, 2>
// CHECK: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK: %[[MORE:.*]] = arith.addi %[[ALL]], %[[ONE]]
// CHECK: %[[TWO:.*]] = arith.constant 2 : i32
// CHECK: %[[CLUSTERS:.*]] = arith.divui %[[MORE]], %[[TWO]]
// CHECK: arith.muli %[[CLUSTERS]]
tile.kernel @rounded(%x: memref<4x?x64xf32>, %n: index) grid(%i, %j) cluster [1, 2]
    attributes {tile.rounded = array<i64: 1, 2>} {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %rest = arith.subi %n, %j : index
  %t = tile.load %x[%i, %j, %c0] dims [1, 2] valid(%rest, %c64) : memref<4x?x64xf32>, !tile.tile<1x64xf32>
  tile.store %t, %x[%i, %j, %c0] dims [1, 2] valid(%rest, %c64) : !tile.tile<1x64xf32>, memref<4x?x64xf32>
  tile.return
}

// -----

// expected-error@+1 {{tile.rounded = array<i64: 2>: it needs a positive number for each of the 2 coordinates}}
tile.kernel @few(%x: memref<4x3x64xf32>) grid(%i, %j) cluster [2, 1] attributes {tile.rounded = array<i64: 2>} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%i, %j, %c0] : memref<4x3x64xf32>, !tile.tile<64xf32>
  tile.return
}

// -----

// expected-error @below {{has 96 threads, but must have a power of two from 32 to 1024}}
tile.kernel @threads(%x: memref<256xf32>) attributes {tile.warps = 3 : i64} {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0] : memref<256xf32>, !tile.tile<256xf32>
  tile.return
}

// -----

tile.kernel @layout(%x: memref<32x32xf32>) {
    // expected-error@+1 {{has a layout that shared memory of a GPU does not have: [#tile.layout<perm = [1, 0]>]; rows}}
  %s = tile.alloc {tile.layouts = [#tile.layout<perm = [1, 0]>]} : memref<32x32xf32, #tile.level<"shared">>
  tile.return
}

// -----

tile.kernel @interleaved(%x: memref<32x32xf32>) {
  // expected-error @below {{has a layout that shared memory of a GPU does not have}}
  %s = tile.alloc {tile.layouts = [#tile.layout<interleave = 2>]} : memref<32x32xf32, #tile.level<"shared">>
  tile.return
}

// -----

tile.kernel @barrier() grid(%i) {
  // expected-error @below {{'tile.barrier' op needs another task of the grid, which a GPU may not have started yet}}
  tile.barrier
  tile.return
}

// -----

tile.kernel @neighbour() grid(%i) {
  %mine = tile.alloc : memref<1x64xf32, #tile.level<"shared">>
  %next = tile.alloc : memref<1x64xf32, #tile.level<"shared">>
  // expected-error @below {{'tile.copy' op needs another task of the grid}}
  tile.copy %mine to %next at (%i) : memref<1x64xf32, #tile.level<"shared">>, memref<1x64xf32, #tile.level<"shared">>
  tile.return
}
