// RUN: tile-opt %s --tile-pipeline-loads --split-input-file --verify-diagnostics | FileCheck-22 %s

// B is stored with its columns as rows, longer than a swizzle of 128 bytes: panels of 64 columns. Both go through
// rings of three slots, of which two are under way.

// CHECK-LABEL: tile.kernel @gemm
// CHECK-SAME: (%[[A:.*]]: memref<128x512xf16>, %[[B:.*]]: memref<128x512xf16>,
// CHECK: %[[BS:.*]] = tile.alloc {alignment = 1024 : i64,
// CHECK-SAME: {{^}} tile.layouts = [#tile.layout<perm = [0, 2, 1], inner = [2], tiles = [64], swizzle = 128>]}
// CHECK-SAME: {{^}} : memref<3x64x128xf16, #tile.level<"shared">>
// CHECK: %[[AS:.*]] = tile.alloc {alignment = 1024 : i64, tile.layouts = [#tile.layout<swizzle = 128>]}
// CHECK-SAME: {{^}} : memref<3x64x64xf16, #tile.level<"shared">>
// CHECK: %[[T0:.*]] = tile.async {
// CHECK-NEXT: tile.copy
// CHECK-NEXT: tile.copy
// CHECK: %[[T1:.*]] = tile.async {
// CHECK: %[[R:.*]]:3 = scf.for %[[S:.*]] = %{{.*}} to %[[STEPS:.*]] step
// CHECK-SAME: {{^}} %{{.*}} iter_args(%[[ACC:.*]] = %{{.*}}, %[[W0:.*]] = %[[T0]], %[[W1:.*]] = %[[T1]])
// CHECK-NEXT: tile.await %[[W0]]
// CHECK: %[[AHEAD:.*]] = arith.addi %[[S]], %{{.*}} : index
// CHECK: arith.cmpi slt, %[[AHEAD]], %[[STEPS]] : index
// CHECK: %[[NEXT:.*]] = scf.if
// CHECK: arith.remui %[[AHEAD]]
// CHECK: memref.subview %[[A]][%{{.*}}, %{{.*}}] [64, 64] [1, 1] : memref<128x512xf16>
// CHECK-SAME: {{^}} to memref<64x64xf16, strided<[512, 1], offset: ?>>
// CHECK: tile.async
// CHECK: } else {
// CHECK-NEXT: scf.yield %[[W0]]
// CHECK: %[[SLOT:.*]] = arith.remui %[[S]]
// CHECK: tile.load %[[AS]][%[[SLOT]], {{.*}}] : memref<3x64x64xf16, #tile.level<"shared">>, !tile.tile<64x64xf16>
// CHECK: tile.load %[[BS]][%[[SLOT]], {{.*}}] dims [2, 1]
// CHECK-SAME: {{^}} : memref<3x64x128xf16, #tile.level<"shared">>, !tile.tile<128x64xf16>
// CHECK: %[[N:.*]] = tile.mma
// CHECK: scf.yield %[[N]], %[[W1]], %[[NEXT]]
tile.kernel @gemm(%a: memref<128x512xf16>, %b: memref<128x512xf16>, %c: memref<512x128xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c128 = arith.constant 128 : index
  %c512 = arith.constant 512 : index
  %at = arith.muli %i, %c128 : index
  %zero = arith.constant dense<0.0> : !tile.tile<128x64xf32>
  %sum = scf.for %k = %c0 to %c128 step %c64 iter_args(%acc = %zero) -> (!tile.tile<128x64xf32>) {
    %x = tile.load %a[%k, %at] : memref<128x512xf16>, !tile.tile<64x64xf16>
    %y = tile.load %b[%k, %c0] dims [1, 0] : memref<128x512xf16>, !tile.tile<128x64xf16>
    %n = tile.mma %y, %x, %acc : !tile.tile<128x64xf16>, !tile.tile<64x64xf16>, !tile.tile<128x64xf32>
    scf.yield %n : !tile.tile<128x64xf32>
  } {tile.stages = 3 : i64}
  tile.store %sum, %c[%at, %c0] : !tile.tile<128x64xf32>, memref<512x128xf32>
  tile.return
}

// -----

// Bounds become the sizes of the copy, a number of steps that is not known guards the first.

// CHECK-LABEL: tile.kernel @ragged
// CHECK: %[[MORE:.*]] = arith.cmpi sgt
// CHECK: %{{.*}} = scf.if %[[MORE]] -> (!tile.tile<64x32xf32>) {
// CHECK: scf.for
// CHECK: arith.minsi
// CHECK: arith.maxsi
// CHECK: memref.subview %{{.*}} [%{{.*}}, 32] [1, 1] : memref<?x32xf32>
// CHECK-SAME: {{^}} to memref<?x32xf32, strided<[32, 1], offset: ?>>
// CHECK: tile.copy %{{.*}} fill :
// CHECK-NOT: valid
// CHECK: } else {
// CHECK: scf.yield %{{[^,]*}} : !tile.tile<64x32xf32>
tile.kernel @ragged(%x: memref<?x32xf32>, %y: memref<64x32xf32>, %n: index) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !tile.tile<64x32xf32>
  %sum = scf.for %r = %c0 to %n step %c64 iter_args(%acc = %zero) -> (!tile.tile<64x32xf32>) {
    %left = arith.subi %n, %r : index
    %t = tile.load %x[%r, %c0] valid (%left, %c64) : memref<?x32xf32>, !tile.tile<64x32xf32>
    %s = arith.addf %acc, %t : !tile.tile<64x32xf32>
    scf.yield %s : !tile.tile<64x32xf32>
  } {tile.stages = 2 : i64}
  tile.store %sum, %y[%c0, %c0] : !tile.tile<64x32xf32>, memref<64x32xf32>
  tile.return
}

// -----

// What cannot go through a ring stays, and says why.

// CHECK-LABEL: tile.kernel @stay
// CHECK-NOT: tile.async
tile.kernel @stay(%x: memref<256x100xf16>, %y: memref<256x64xf16>, %rows: memref<256xi32>, %o: memref<64x64xf16>)
    grid(%i) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  %c256 = arith.constant 256 : index
  %one = arith.constant 1.0 : f16
  // expected-remark@+1 {{has tile.stages, but no load goes through a ring}}
  scf.for %r = %c0 to %c256 step %c64 {
    // expected-remark@+1 {{through no ring, since it reads rows that are not known to start at multiples of 16 bytes}}
    %a = tile.load %x[%r, %c0] : memref<256x100xf16>, !tile.tile<64x64xf16>
    // expected-remark@+1 {{goes through no ring, since it starts within rows where no multiple of 16 bytes is known}}
    %b = tile.load %y[%r, %i] : memref<256x64xf16>, !tile.tile<64x64xf16>
    // expected-remark@+1 {{goes through no ring, since it pads with another value than zero}}
    %c = tile.load %y[%r, %c0] valid (%c64, %i) pad %one : memref<256x64xf16>, !tile.tile<64x64xf16>
    // expected-remark@+1 {{goes through no ring, since it reads no rows that are contiguous in memory}}
    %d = tile.load %y[%r, %c0] dims [0] : memref<256x64xf16>, !tile.tile<64xf16>
    // expected-remark@+1 {{goes through no ring, since it reads rows that are no multiple of 16 bytes}}
    %e = tile.load %y[%r, %c0] : memref<256x64xf16>, !tile.tile<64x4xf16>
    // expected-remark@+1 {{goes through no ring, since it reads what the loop writes}}
    %f = tile.load %o[%r, %c0] : memref<64x64xf16>, !tile.tile<64x64xf16>
    // expected-remark@+1 {{goes through no ring, since it reads no multiple of 128 bytes}}
    %h = tile.load %y[%r, %c0] : memref<256x64xf16>, !tile.tile<1x16xf16>
    %p = tile.load %rows[%r] {tile.no_ring} : memref<256xi32>, !tile.tile<64xi32>
    // expected-remark@+1 {{goes through no ring, since it gathers}}
    %q = tile.load %y[%c0, %c0] indices %p along 0
        : memref<256x64xf16>, !tile.tile<64x64xf16> (indices !tile.tile<64xi32>)
    %keep = tile.load %y[%r, %c0] {tile.no_ring} : memref<256x64xf16>, !tile.tile<64x64xf16>
    // expected-remark@+1 {{through no ring, since it asks for a swizzle of 128 bytes, which does not fit rows of 64}}
    %g = tile.load %y[%r, %c0] {tile.swizzle = 128 : i64} : memref<256x64xf16>, !tile.tile<64x32xf16>
    %s = arith.addf %a, %b : !tile.tile<64x64xf16>
    tile.store %s, %o[%c0, %c0] : !tile.tile<64x64xf16>, memref<64x64xf16>
  } {tile.stages = 2 : i64}
  tile.return
}

// -----

tile.kernel @stages(%x: memref<256x64xf16>) {
  %c0 = arith.constant 0 : index
  %c64 = arith.constant 64 : index
  // expected-error@+1 {{tile.stages is 1 : i64, but must be a number of slots, at least 2}}
  scf.for %r = %c0 to %c64 step %c64 {
    %a = tile.load %x[%r, %c0] : memref<256x64xf16>, !tile.tile<64x64xf16>
  } {tile.stages = 1 : i64}
  tile.return
}

// -----

// A window over an image with a border that is not in memory: the loops over its places and that over the channels are
// one, so that the ring does not run dry; the view of the image may reach out of it, and the copy knows along what.

// CHECK-LABEL: tile.kernel @window
// CHECK-SAME: (%[[X:.*]]: memref<14x14x64xf16>,
// CHECK: %[[OUT:.*]] = memref.subview %[[X]][%{{.*}}, %{{.*}}, %{{.*}}] [1, 16, 32] [1, 1, 1] : memref<14x14x64xf16>
// CHECK-SAME: {{^}} to memref<16x32xf16, strided<[64, 1], offset: ?>>
// CHECK: tile.async {
// CHECK-NEXT: tile.copy %[[OUT]] to %{{.*}} bounded [0, 1] : memref<16x32xf16,
// CHECK: scf.for %{{.*}} = %{{.*}} to %{{.*}} step
// CHECK-SAME: {{^}} %{{.*}} iter_args(%{{.*}}, %{{.*}}, %{{.*}}) -> (!tile.tile<16x64xf32>, !tile.token, !tile.token)
// CHECK-NOT: scf.for
// CHECK: tile.store
tile.kernel @window(%x: memref<14x14x64xf16>, %w: memref<3x3x64x64xf16>, %y: memref<14x14x64xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %c32 = arith.constant 32 : index
  %c64 = arith.constant 64 : index
  %c14 = arith.constant 14 : index
  %c16 = arith.constant 16 : index
  %zero = arith.constant dense<0.0> : !tile.tile<16x64xf32>
  %sum = scf.for %p = %c0 to %c3 step %c1 iter_args(%a0 = %zero) -> (!tile.tile<16x64xf32>) {
    %line = affine.apply affine_map<(p)[i] -> (i + p - 1)>(%p)[%i]
    %s0 = scf.for %q = %c0 to %c3 step %c1 iter_args(%a1 = %a0) -> (!tile.tile<16x64xf32>) {
      %at = affine.apply affine_map<(q) -> (q - 1)>(%q)
      %s1 = scf.for %c = %c0 to %c64 step %c32 iter_args(%a2 = %a1) -> (!tile.tile<16x64xf32>) {
        %l = tile.load %x[%line, %at, %c] bounded [0, 1] : memref<14x14x64xf16>, !tile.tile<16x32xf16>
        %r = tile.load %w[%p, %q, %c, %c0] : memref<3x3x64x64xf16>, !tile.tile<32x64xf16>
        %n = tile.mma %l, %r, %a2 : !tile.tile<16x32xf16>, !tile.tile<32x64xf16>, !tile.tile<16x64xf32>
        scf.yield %n : !tile.tile<16x64xf32>
      } {tile.stages = 3 : i64}
      scf.yield %s1 : !tile.tile<16x64xf32>
    }
    scf.yield %s0 : !tile.tile<16x64xf32>
  }
  tile.store %sum, %y[%i, %c0, %c0] valid(%c14, %c64) : !tile.tile<16x64xf32>, memref<14x14x64xf32>
  tile.return
}

// -----

// Places of two dimensions that are rows of a product: a slot has rows and columns, as matrix units read it; the copy
// sees its rows as memory has them, in steps of the window.

// CHECK-LABEL: tile.kernel @rows
// CHECK-SAME: (%[[X:.*]]: memref<15x31x64xf16>,
// CHECK: %[[S:.*]] = tile.alloc {{.*}} memref<2x64x64xf16, #tile.level<"shared">>
// CHECK: %[[V:.*]] = memref.subview %[[X]][{{.*}}] [4, 16, 64] [2, 2, 1]
// CHECK: %[[T:.*]] = memref.subview %[[S]][0, 0, 0] [1, 64, 64] [1, 1, 1]
// CHECK: %[[P:.*]] = memref.expand_shape %[[T]] {{\[\[}}0, 1], [2]] output_shape [4, 16, 64]
// CHECK: tile.copy %[[V]] to %[[P]] bounded [0, 1]
// CHECK: %[[A:.*]] = tile.load %[[S]][%{{.*}}, %{{.*}}, %{{.*}}] : {{.*}}, !tile.tile<64x64xf16>
// CHECK-NOT: tile.reshape
// CHECK: tile.mma %[[A]],
tile.kernel @rows(%x: memref<15x31x64xf16>, %w: memref<3x64x32xf16>, %y: memref<64x32xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c3 = arith.constant 3 : index
  %zero = arith.constant dense<0.0> : !tile.tile<64x32xf32>
  %sum = scf.for %p = %c0 to %c3 step %c1 iter_args(%a0 = %zero) -> (!tile.tile<64x32xf32>) {
    %at = affine.apply affine_map<(p) -> (p - 1)>(%p)
    %l = tile.load %x[%i, %at, %c0] dims [0, 1, 2] steps [2, 2, 1] bounded [0, 1]
        : memref<15x31x64xf16>, !tile.tile<4x16x64xf16>
    %rows = tile.reshape %l : !tile.tile<4x16x64xf16> -> !tile.tile<64x64xf16>
    %r = tile.load %w[%p, %c0, %c0] : memref<3x64x32xf16>, !tile.tile<64x32xf16>
    %n = tile.mma %rows, %r, %a0 : !tile.tile<64x64xf16>, !tile.tile<64x32xf16>, !tile.tile<64x32xf32>
    scf.yield %n : !tile.tile<64x32xf32>
  } {tile.stages = 2 : i64}
  tile.store %sum, %y[%c0, %c0] : !tile.tile<64x32xf32>, memref<64x32xf32>
  tile.return
}

// -----

// Blocks that a list names: entries are read ahead of time with the blocks, since the loop does not write the list.

// CHECK-LABEL: tile.kernel @listed
// CHECK-SAME: (%[[LIST:.*]]: memref<16xi32>, %[[X:.*]]: memref<512x64xf16>,
// CHECK: tile.async
// CHECK: scf.for
// CHECK: scf.if
// CHECK: %[[ENTRY:.*]] = memref.load %[[LIST]]
// CHECK: %[[PLACE:.*]] = arith.index_cast %[[ENTRY]]
// CHECK: %[[ROW:.*]] = arith.muli %[[PLACE]]
// CHECK: memref.subview %[[X]][%[[ROW]], 0] [64, 64] [1, 1]
// CHECK: tile.async
tile.kernel @listed(%list: memref<16xi32>, %x: memref<512x64xf16>, %y: memref<64x64xf16>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %zero = arith.constant dense<0.0> : !tile.tile<64x64xf16>
  %sum = scf.for %i = %c0 to %c16 step %c1 iter_args(%acc = %zero) -> (!tile.tile<64x64xf16>) {
    %entry = memref.load %list[%i] : memref<16xi32>
    %place = arith.index_cast %entry : i32 to index
    %row = arith.muli %place, %c64 : index
    %t = tile.load %x[%row, %c0] : memref<512x64xf16>, !tile.tile<64x64xf16>
    %next = arith.addf %acc, %t : !tile.tile<64x64xf16>
    scf.yield %next : !tile.tile<64x64xf16>
  } {tile.stages = 3 : i64}
  tile.store %sum, %y[%c0, %c0] : !tile.tile<64x64xf16>, memref<64x64xf16>
  tile.return
}
