// RUN: tile-opt %s -tile-assign-distributed-layouts -split-input-file -verify-diagnostics | FileCheck-22 %s

!global = memref<64x64xf32, #gpu.address_space<global>>

// A warp reads whole lines, 16 bytes per thread; the row sums are slices of that, and broadcasts cost nothing.
// CHECK-NOT: tile.convert
// CHECK-LABEL: @rows
// CHECK: tile.load {{.*}} !tile.tile<8x64xf32,
// CHECK-SAME: {{^}} #tile.distributed<register = {{\[}}[0, 1], [0, 2]],
// CHECK-SAME: {{^}} lane = {{\[}}[0, 4], [0, 8], [0, 16], [0, 32], [1, 0]], warp = {{\[}}[2, 0], [4, 0]]>>
// CHECK: tile.reduce
gpu.module @kernels {
  gpu.func @rows(%x: !global) kernel attributes {tile.threads = 128 : i64} {
    %c0 = arith.constant 0 : index
    %t = tile.load %x[%c0, %c0] : !global, !tile.tile<8x64xf32>
    %s = tile.reduce add %t dims [1] : !tile.tile<8x64xf32> -> !tile.tile<8x1xf32>
    %b = tile.broadcast %s : !tile.tile<8x1xf32> -> !tile.tile<8x64xf32>
    %d = arith.subf %t, %b : !tile.tile<8x64xf32>
    tile.store %d, %x[%c0, %c0] : !tile.tile<8x64xf32>, !global
    gpu.return
  }
}

// -----

!a = memref<64x32xf16, #gpu.address_space<global>>
!b = memref<32x64xf16, #gpu.address_space<global>>
!c = memref<64x64xf32, #gpu.address_space<global>>

// The result is spread as the accumulators of mma.sync over 2 x 2 warps; operands are loaded by lines, then converted
// to fragments.
// CHECK-LABEL: @product
// CHECK: tile.load {{.*}} !tile.tile<64x32xf16, #tile.distributed<register = {{\[}}[0, 1], [0, 2], [0, 4], [32, 0]]
// CHECK: tile.convert {{.*}} -> !tile.tile<64x32xf16,
// CHECK-SAME: {{^}} #tile.distributed<register = {{\[}}[0, 1], [8, 0], [0, 8], [0, 16], [16, 0]],
// CHECK-SAME: {{^}} lane = {{\[}}[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = {{\[}}[32, 0], [0, 0]]>>
// CHECK: tile.convert {{.*}} -> !tile.tile<32x64xf16,
// CHECK-SAME: {{^}} #tile.distributed<register = {{\[}}[1, 0], [8, 0], [16, 0], [0, 8], [0, 16]],
// CHECK-SAME: {{^}} lane = {{\[}}[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = {{\[}}[0, 0], [0, 32]]>>
// CHECK: tile.mma {{.*}} !tile.tile<64x64xf32,
// CHECK-SAME: {{^}} #tile.distributed<register = {{\[}}[0, 1], [8, 0], [0, 8], [0, 16], [16, 0]],
// CHECK-SAME: {{^}} lane = {{\[}}[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = {{\[}}[32, 0], [0, 32]]>>
gpu.module @kernels {
  gpu.func @product(%x: !a, %y: !b, %z: !c) kernel attributes {tile.threads = 128 : i64} {
    %c0 = arith.constant 0 : index
    %a = tile.load %x[%c0, %c0] : !a, !tile.tile<64x32xf16>
    %b = tile.load %y[%c0, %c0] : !b, !tile.tile<32x64xf16>
    %zero = arith.constant dense<0.0> : !tile.tile<64x64xf32>
    %c = tile.mma %a, %b, %zero : !tile.tile<64x32xf16>, !tile.tile<32x64xf16>, !tile.tile<64x64xf32>
    tile.store %c, %z[%c0, %c0] : !tile.tile<64x64xf32>, !c
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @unit(%a: !tile.tile<16x16xf32>) kernel attributes {tile.threads = 32 : i64} {
    // expected-error @below {{cannot be done by mma.sync on sm_80 for elements of 'f32' and 'f32'}}
    %c = tile.mma %a, %a, %a {tile.unit = "mma"} : !tile.tile<16x16xf32>, !tile.tile<16x16xf32>, !tile.tile<16x16xf32>
    gpu.return
  }
}

// -----

// Sums that the kernel spreads by rows: the product converts them to its fragments, and back.
!rows = !tile.tile<16x16xf32, #tile.distributed<register = [[0, 1], [0, 2], [0, 4]],
    lane = [[0, 8], [1, 0], [2, 0], [4, 0], [8, 0]], warp = []>>
// CHECK-LABEL: @given
// CHECK: tile.convert %{{.*}} -> !tile.tile<16x16xf32, #tile.distributed<register = {{\[}}[0, 1], [8, 0], [0, 8]]
// CHECK: tile.mma
// CHECK: tile.convert %{{.*}} -> !tile.tile<16x16xf32, #tile.distributed<register = {{\[}}[0, 1], [0, 2], [0, 4]]
// CHECK: tile.store
gpu.module @kernels {
  gpu.func @given(%x: memref<16x16xf16, #gpu.address_space<global>>,
      %z: memref<16x16xf32, #gpu.address_space<global>>) kernel attributes {tile.threads = 32 : i64} {
    %c0 = arith.constant 0 : index
    %a = tile.load %x[%c0, %c0] : memref<16x16xf16, #gpu.address_space<global>>, !tile.tile<16x16xf16>
    %zero = arith.constant dense<0.0> : !rows
    %c = tile.mma %a, %a, %zero : !tile.tile<16x16xf16>, !tile.tile<16x16xf16>, !rows
    tile.store %c, %z[%c0, %c0] : !rows, memref<16x16xf32, #gpu.address_space<global>>
    gpu.return
  }
}

// -----

!x = memref<16x32xf16, #gpu.address_space<workgroup>>
!w = memref<16x32xi8, #gpu.address_space<workgroup>>

// Weights that are widened in front of a product come four neighbours at a time, and so do the other operand's terms.
// CHECK-LABEL: @packed
// CHECK: tile.load {{.*}} !tile.tile<16x32xf16,
// CHECK-SAME: {{^}} #tile.distributed<register = {{\[}}[0, 1], [8, 0], [0, 2], [0, 16]],
// CHECK-SAME: {{^}} lane = {{\[}}[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp = []>>
// CHECK: tile.load {{.*}} !tile.tile<32x16xi8,
// CHECK-SAME: {{^}} #tile.distributed<register = {{\[}}[1, 0], [2, 0], [16, 0], [0, 8]],
// CHECK-SAME: {{^}} lane = {{\[}}[4, 0], [8, 0], [0, 1], [0, 2], [0, 4]], warp = []>>
// CHECK-NEXT: tile.convert %{{.*}}
// CHECK-NEXT: arith.constant
// CHECK-NEXT: tile.mma
gpu.module @kernels {
  gpu.func @packed(%x: !x, %w: !w, %z: memref<16x16xf32, #gpu.address_space<global>>) kernel
      attributes {tile.threads = 32 : i64} {
    %c0 = arith.constant 0 : index
    %a = tile.load %x[%c0, %c0] : !x, !tile.tile<16x32xf16>
    %b = tile.load %w[%c0, %c0] dims [1, 0] : !w, !tile.tile<32x16xi8>
    %f = tile.convert %b : !tile.tile<32x16xi8> -> !tile.tile<32x16xf16>
    %zero = arith.constant dense<0.0> : !tile.tile<16x16xf32>
    %c = tile.mma %a, %f, %zero {tile.packed} : !tile.tile<16x32xf16>, !tile.tile<32x16xf16>, !tile.tile<16x16xf32>
    tile.store %c, %z[%c0, %c0] : !tile.tile<16x16xf32>, memref<16x16xf32, #gpu.address_space<global>>
    gpu.return
  }
}

// -----

!global_a = memref<32x32xf16, #gpu.address_space<global>>
!global_m = memref<2x64xi16, #gpu.address_space<global>>
!global_b = memref<64x16xf16, #gpu.address_space<global>>
!global_c = memref<32x16xf32, #gpu.address_space<global>>

// Metadata are loaded as the words of 32 bits that sparse products take: a lane has two neighbours in memory, which
// are eight positions of row lane / 4 and as many of the row eight below; its place in memory is the lane's number.
// CHECK-LABEL: @sparse
// CHECK: tile.load {{.*}} !tile.tile<2x64xi16,
// CHECK-SAME: {{^}} #tile.distributed<register = {{\[}}[0, 1]],
// CHECK-SAME: {{^}} lane = {{\[}}[0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], warp = {{\[}}[1, 0]]>>
// CHECK-NOT: tile.convert {{.*}}i16
// CHECK: tile.mma {{.*}} !tile.tile<32x4xi16,
// CHECK-SAME: {{^}} #tile.distributed<register = {{\[}}[8, 0]],
// CHECK-SAME: {{^}} lane = {{\[}}[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], warp = {{\[}}[16, 0]]>>
gpu.module @kernels {
  gpu.func @sparse(%x: !global_a, %w: !global_m, %y: !global_b, %z: !global_c) kernel attributes
      {tile.threads = 64 : i64} {
    %c0 = arith.constant 0 : index
    %a = tile.load %x[%c0, %c0] : !global_a, !tile.tile<32x32xf16>
    %words = tile.load %w[%c0, %c0] : !global_m, !tile.tile<2x64xi16>
    %lanes = tile.reshape %words : !tile.tile<2x64xi16> -> !tile.tile<2x8x4x2xi16>
    %turned = tile.transpose %lanes [0, 3, 1, 2] : !tile.tile<2x8x4x2xi16> -> !tile.tile<2x2x8x4xi16>
    %m = tile.reshape %turned : !tile.tile<2x2x8x4xi16> -> !tile.tile<32x4xi16>
    %b = tile.load %y[%c0, %c0] : !global_b, !tile.tile<64x16xf16>
    %zero = arith.constant dense<0.0> : !tile.tile<32x16xf32>
    %d = tile.mma %a, %b, %zero meta %m sparsity [2, 4]
        : !tile.tile<32x32xf16>, !tile.tile<64x16xf16>, !tile.tile<32x16xf32>, !tile.tile<32x4xi16>
    tile.store %d, %z[%c0, %c0] : !tile.tile<32x16xf32>, !global_c
    gpu.return
  }
}

// -----

gpu.module @kernels {
  gpu.func @no_unit(%a: !tile.tile<16x8xf32>, %m: !tile.tile<16x8xi8>, %b: !tile.tile<16x8xf32>,
      %c: !tile.tile<16x8xf32>) attributes {tile.threads = 32 : i64} {
    // expected-error @below {{has sparsity metadata, for which sm_80 has no unit for elements of 'f32'}}
    %d = tile.mma %a, %b, %c meta %m sparsity [2, 4]
        : !tile.tile<16x8xf32>, !tile.tile<16x8xf32>, !tile.tile<16x8xf32>, !tile.tile<16x8xi8>
    gpu.return
  }
}
