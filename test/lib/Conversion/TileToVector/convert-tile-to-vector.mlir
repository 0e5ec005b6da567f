// RUN: tile-opt %s -convert-tile-to-vector -split-input-file -verify-diagnostics | FileCheck-22 %s
// RUN: tile-opt %s -convert-tile-to-vector -cse -split-input-file -verify-diagnostics \
// RUN:   | FileCheck-22 %s --check-prefix=SHARED

// CHECK-LABEL: tile.kernel @mm
// CHECK: %[[FLAT:.*]] = memref.reinterpret_cast {{.*}} to memref<12288xf32>
// CHECK: scf.for {{.*}} -> (vector<16xf32>, vector<16xf32>, vector<16xf32>, vector<16xf32>)
// CHECK-COUNT-2: vector.load {{.*}} vector<16xf32>
// CHECK: memref.load
// CHECK-COUNT-2: vector.fma {{.*}} vector<16xf32>
// CHECK: memref.load
// CHECK-COUNT-2: vector.fma {{.*}} vector<16xf32>
// CHECK-NOT: vector.fma
// CHECK-COUNT-4: vector.store
tile.kernel @mm(%a: memref<2x384xf32>, %b: memref<384x32xf32>, %c: memref<2x32xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c384 = arith.constant 384 : index
  %b1 = tile.load %b[%c0, %c0] : memref<384x32xf32>, !tile.tile<2x32xf32>
  %r = scf.for %k = %c0 to %c384 step %c1 iter_args(%s = %b1) -> !tile.tile<2x32xf32> {
    %x = tile.load %a[%c0, %k] : memref<2x384xf32>, !tile.tile<2x1xf32>
    %y = tile.load %b[%k, %c0] : memref<384x32xf32>, !tile.tile<1x32xf32>
    %n = tile.mma %x, %y, %s : !tile.tile<2x1xf32>, !tile.tile<1x32xf32>, !tile.tile<2x32xf32>
    scf.yield %n : !tile.tile<2x32xf32>
  }
  tile.store %r, %c[%c0, %c0] : !tile.tile<2x32xf32>, memref<2x32xf32>
  tile.return
}

// -----

// A gather from four floats side by side is a pick in each quarter of a register, which reads two bits of an index.
// CHECK-LABEL: module attributes {tile.device = #tile.device<name = "tables"
module attributes {tile.device = #tile.device<name = "tables", kind = "cpu", units = {vector_bits = 512 : i64}>} {
  // CHECK-LABEL: tile.kernel @picks
  // CHECK: %[[AT:.*]] = vector.load {{.*}} vector<16xi32>
  // CHECK: %[[TABLE:.*]] = vector.load {{.*}} vector<4xf32>
  // CHECK: %[[WIDE:.*]] = vector.shuffle %[[TABLE]], %[[TABLE]] [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]
  // CHECK: llvm.call_intrinsic "llvm.x86.avx512.vpermilvar.ps.512"(%[[WIDE]], %[[AT]])
  // CHECK: llvm.call_intrinsic "llvm.x86.avx.vpermilvar.ps.256"
  // CHECK-NOT: vector.gather
  tile.kernel @picks(%x: memref<40xf32>, %at: memref<24xi32>, %y: memref<24xf32>, %i: index) {
    %c0 = arith.constant 0 : index
    %three = arith.constant dense<3> : !tile.tile<24xi32>
    %table = memref.subview %x[%i] [4] [1] : memref<40xf32> to memref<4xf32, strided<[1], offset: ?>>
    %all = tile.load %at[%c0] : memref<24xi32>, !tile.tile<24xi32>
    %n = arith.andi %all, %three : !tile.tile<24xi32>
    %v = tile.load %table[%c0] indices %n along 0
        : memref<4xf32, strided<[1], offset: ?>>, !tile.tile<24xf32> (indices !tile.tile<24xi32>)
    tile.store %v, %y[%c0] : !tile.tile<24xf32>, memref<24xf32>
    tile.return
  }

  // Five floats are no such table, nor is a part of four.
  // CHECK-LABEL: tile.kernel @gathers
  // CHECK-COUNT-2: vector.gather
  tile.kernel @gathers(%x: memref<5xf32>, %z: memref<4xf32>, %at: memref<16xi32>, %y: memref<16xf32>) {
    %c0 = arith.constant 0 : index
    %c1 = arith.constant 1 : index
    %n = tile.load %at[%c0] : memref<16xi32>, !tile.tile<16xi32>
    %v = tile.load %x[%c0] indices %n along 0 : memref<5xf32>, !tile.tile<16xf32> (indices !tile.tile<16xi32>)
    %w = tile.load %z[%c1] indices %n along 0 : memref<4xf32>, !tile.tile<16xf32> (indices !tile.tile<16xi32>)
    %s = arith.addf %v, %w : !tile.tile<16xf32>
    tile.store %s, %y[%c0] : !tile.tile<16xf32>, memref<16xf32>
    tile.return
  }
}

// -----

// Where the machine is not known, a gather stays one.
// CHECK-LABEL: tile.kernel @anywhere
// CHECK: vector.gather
tile.kernel @anywhere(%x: memref<4xf32>, %at: memref<16xi32>, %y: memref<16xf32>) {
  %c0 = arith.constant 0 : index
  %n = tile.load %at[%c0] : memref<16xi32>, !tile.tile<16xi32>
  %v = tile.load %x[%c0] indices %n along 0 : memref<4xf32>, !tile.tile<16xf32> (indices !tile.tile<16xi32>)
  tile.store %v, %y[%c0] : !tile.tile<16xf32>, memref<16xf32>
  tile.return
}

// -----

// A row of 21 is a vector of 16 and one of 8 with 5 valid lanes.
// CHECK-LABEL: tile.kernel @ragged
// CHECK: vector.load {{.*}} vector<16xf32>
// CHECK: %[[MASK:.*]] = arith.constant dense<[true, true, true, true, true, false, false, false]> : vector<8xi1>
// CHECK: vector.maskedload {{.*}}, %[[MASK]], {{.*}} vector<8xf32>
// CHECK: arith.addf {{.*}} : vector<16xf32>
// CHECK: arith.addf {{.*}} : vector<8xf32>
// CHECK: vector.store {{.*}} vector<16xf32>
// CHECK: vector.maskedstore {{.*}} vector<8xf32>
tile.kernel @ragged(%x: memref<21xf32>) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0] : memref<21xf32>, !tile.tile<21xf32>
  %s = arith.addf %t, %t : !tile.tile<21xf32>
  tile.store %s, %x[%c0] : !tile.tile<21xf32>, memref<21xf32>
  tile.return
}

// -----

// Vectors of 256 bits have 8 lanes.
// CHECK-LABEL: tile.kernel @narrow
// CHECK-COUNT-2: vector.load {{.*}} vector<8xf32>
module attributes {tile.device = #tile.device<name = "d", kind = "cpu", units = {vector_bits = 256 : i64}>} {
  tile.kernel @narrow(%x: memref<16xf32>, %y: memref<16xf32>) {
    %c0 = arith.constant 0 : index
    %t = tile.load %x[%c0] : memref<16xf32>, !tile.tile<16xf32>
    tile.store %t, %y[%c0] : !tile.tile<16xf32>, memref<16xf32>
    tile.return
  }
}

// -----

// A column that runs along memory is read by rows and turned with shuffles.
// CHECK-LABEL: tile.kernel @turned
// CHECK-COUNT-8: vector.load {{.*}} vector<8xf32>
// CHECK-NOT: vector.gather
// CHECK-COUNT-24: vector.shuffle
tile.kernel @turned(%x: memref<8x64xf32>, %y: memref<8x8xf32>) {
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c0, %c0] dims [1, 0] : memref<8x64xf32>, !tile.tile<8x8xf32>
  tile.store %t, %y[%c0, %c0] : !tile.tile<8x8xf32>, memref<8x8xf32>
  tile.return
}

// -----

tile.kernel @packed(%x: memref<16xi4>) {
  %c0 = arith.constant 0 : index
  // expected-error @below {{moves elements of type 'i4', which are no whole number of bytes}}
  // expected-error @below {{failed to legalize operation 'tile.load'}}
  %t = tile.load %x[%c0] : memref<16xi4>, !tile.tile<16xi4>
  tile.store %t, %x[%c0] : !tile.tile<16xi4>, memref<16xi4>
  tile.return
}

// -----

// An asynchronous copy is over at once, and its token is no value.
// CHECK-LABEL: tile.kernel @copies
// CHECK: vector.load {{.*}} vector<16xf32>
// CHECK: vector.store
// CHECK-NOT: token
tile.kernel @copies(%x: memref<16xf32>, %y: memref<16xf32>) {
  %t = tile.async {
    tile.copy %x to %y : memref<16xf32>, memref<16xf32>
  }
  tile.await %t
  tile.return
}

// -----

tile.kernel @waits() grid(%i) {
  // expected-error @below {{makes tasks wait for each other, which tasks on a CPU never do}}
  // expected-error @below {{failed to legalize operation 'tile.barrier'}}
  tile.barrier
  tile.return
}

// -----

tile.kernel @sparse(%x: memref<4x4xf32>, %m: memref<4x4xi8>, %y: memref<8x4xf32>) {
  %c0 = arith.constant 0 : index
  %a = tile.load %x[%c0, %c0] : memref<4x4xf32>, !tile.tile<4x4xf32>
  %p = tile.load %m[%c0, %c0] : memref<4x4xi8>, !tile.tile<4x4xi8>
  %b = tile.load %y[%c0, %c0] : memref<8x4xf32>, !tile.tile<8x4xf32>
  // expected-error @below {{with sparsity metadata has no CPU lowering}}
  // expected-error @below {{failed to legalize operation 'tile.mma'}}
  %d = tile.mma %a, %b, %a meta %p sparsity [2, 4]
      : !tile.tile<4x4xf32>, !tile.tile<8x4xf32>, !tile.tile<4x4xf32>, !tile.tile<4x4xi8>
  tile.store %d, %x[%c0, %c0] : !tile.tile<4x4xf32>, memref<4x4xf32>
  tile.return
}

// -----

// expected-error @below {{vectors of 384 bits were asked for}}
module attributes {tile.device = #tile.device<name = "d", kind = "cpu", units = {vector_bits = 384 : i64}>} {
}

// -----

// Past the caches in whole vectors where memory is aligned to them, else in units of 16 bytes; a part with invalid
// lanes is stored as usual.
// CHECK-LABEL: tile.kernel @streamed
// CHECK: %[[BASE:.*]] = memref.extract_aligned_pointer_as_index
// CHECK: %[[ADDRESS:.*]] = arith.addi %[[BASE]]
// CHECK: %[[MASK:.*]] = arith.constant 63 : index
// CHECK: %[[ZERO:.*]] = arith.constant 0 : index
// CHECK: %[[BITS:.*]] = arith.andi %[[ADDRESS]], %[[MASK]]
// CHECK: %[[ALIGNED:.*]] = arith.cmpi eq, %[[BITS]], %[[ZERO]]
// CHECK: scf.if %[[ALIGNED]]
// CHECK: vector.store {{.*}} {alignment = 64 : i64, nontemporal = true} : memref<80xf32>, vector<16xf32>
// CHECK: vector.store {{.*}} {alignment = 16 : i64, nontemporal = true} : memref<80xf32>, vector<4xf32>
// CHECK: } else {
// CHECK: vector.store {{.*}} {alignment = 16 : i64, nontemporal = true} : memref<80xf32>, vector<16xf32>
// CHECK: vector.store {{.*}} {alignment = 16 : i64, nontemporal = true} : memref<80xf32>, vector<4xf32>
tile.kernel @streamed(%x: memref<4x20xf32>, %y: memref<4x20xf32>) {
  %c1 = arith.constant 1 : index
  %c0 = arith.constant 0 : index
  %t = tile.load %x[%c1, %c0] : memref<4x20xf32>, !tile.tile<1x20xf32>
  tile.store %t, %y[%c1, %c0] {tile.streamed} : !tile.tile<1x20xf32>, memref<4x20xf32>
  tile.return
}

// -----

// Rows that alternate in fours: a vector of 64 bytes for 16 columns. The option `dots` makes one instruction of the
// products of a group; without it they are widened.
// RUN: tile-opt %s --convert-tile-to-vector="dots=i8" -split-input-file -verify-diagnostics \
// RUN:   | FileCheck %s --check-prefix=DOTS

// CHECK-LABEL: tile.kernel @bytes
// CHECK: vector.load {{.*}} vector<64xi8>
// CHECK: vector.shuffle
// CHECK: arith.extsi {{.*}} : vector<16xi8> to vector<16xi32>
// DOTS-LABEL: tile.kernel @bytes
// DOTS: %[[A:.*]] = vector.load {{.*}} vector<4xi8>
// DOTS: %[[B:.*]] = vector.load {{.*}} vector<64xi8>
// DOTS: %[[W:.*]] = vector.bitcast %[[A]] : vector<4xi8> to vector<1xi32>
// DOTS: %[[X:.*]] = vector.bitcast %{{.*}} : vector<16xi32> to vector<64xi8>
// DOTS: llvm.call_intrinsic "llvm.x86.avx512.vpdpbusd.512"(%{{.*}}, %[[X]], %[[B]])
tile.kernel @bytes(%a: memref<1x4xi8>, %b: memref<1x16x4xi8>, %c: memref<1x16xi32>) {
  %c0 = arith.constant 0 : index
  %x = tile.load %a[%c0, %c0] : memref<1x4xi8>, !tile.tile<1x4xi8>
  %y = tile.load %b[%c0, %c0, %c0] dims [0, 1] : memref<1x16x4xi8>, !tile.tile<4x16xi8, #tile.layout<interleave = 4>>
  %s = tile.load %c[%c0, %c0] : memref<1x16xi32>, !tile.tile<1x16xi32>
  %n = tile.mma %x, %y, %s a_unsigned : !tile.tile<1x4xi8>, !tile.tile<4x16xi8, #tile.layout<interleave = 4>>,
      !tile.tile<1x16xi32>
  tile.store %n, %c[%c0, %c0] : !tile.tile<1x16xi32>, memref<1x16xi32>
  tile.return
}

// -----

// A tile in blocks is in the registers of the matrix unit; it leaves them by memory. Columns 16 to 31 of b are 64 bytes
// further; its rows of pairs are 128 bytes apart.
// CHECK-LABEL: tile.kernel @blocks
// CHECK: tile.alloc {alignment = 64 : i64} : memref<16x32xf32>
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.x86.tilezero.internal"
// CHECK: llvm.call_intrinsic "llvm.x86.tileloadd64.internal"({{.*}}) : (i16, i16, !llvm.ptr, i64) -> !llvm.x86_amx
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.x86.tileloadd64.internal"
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.x86.tdpbf16ps.internal"
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.x86.tilestored64.internal"
// CHECK-COUNT-32: vector.load {{.*}} vector<16xf32>
#a = #tile.layout<inner = [0, 1], tiles = [16, 32]>
#b = #tile.layout<inner = [0, 1], tiles = [32, 16], interleave = 2>
#c = #tile.layout<inner = [0, 1], tiles = [16, 16]>
tile.kernel @blocks(%x: memref<16x64xbf16>, %w: memref<32x32x2xbf16>, %y: memref<16x32xf32>) {
  %c0 = arith.constant 0 : index
  %s = arith.constant dense<0.0> : !tile.tile<16x32xf32, #c>
  %a = tile.load %x[%c0, %c0] : memref<16x64xbf16>, !tile.tile<16x32xbf16, #a>
  %b = tile.load %w[%c0, %c0, %c0] dims [0, 1] : memref<32x32x2xbf16>, !tile.tile<32x32xbf16, #b>
  %d = tile.mma %a, %b, %s : !tile.tile<16x32xbf16, #a>, !tile.tile<32x32xbf16, #b>, !tile.tile<16x32xf32, #c>
  %r = tile.convert %d : !tile.tile<16x32xf32, #c> -> !tile.tile<16x32xf32>
  %n = arith.negf %r : !tile.tile<16x32xf32>
  tile.store %n, %y[%c0, %c0] : !tile.tile<16x32xf32>, memref<16x32xf32>
  tile.return
}

// -----

// A copy in groups of 4 loads four rows, and stores their lanes side by side; in pieces where memory changes between.
// CHECK-LABEL: tile.kernel @copy_in_groups
// CHECK-COUNT-4: vector.load {{.*}} vector<32xi8>
// CHECK: %[[EVEN:.*]] = vector.shuffle {{.*}} [0, 32, 1, 33, {{.*}} : vector<32xi8>, vector<32xi8>
// CHECK: %[[ODD:.*]] = vector.shuffle {{.*}} [0, 32, 1, 33, {{.*}} : vector<32xi8>, vector<32xi8>
// CHECK: %[[ALL:.*]] = vector.shuffle %[[EVEN]], %[[ODD]] [0, 64, 1, 65, {{.*}} : vector<64xi8>, vector<64xi8>
// CHECK: vector.store %[[ALL]], {{.*}} vector<128xi8>
// CHECK-COUNT-32: vector.store {{.*}} vector<4xi8>
tile.kernel @copy_in_groups(%a: memref<64x64xi8>, %b: memref<2x16x32x4xi8>, %c: memref<i8>) {
  %c0 = arith.constant 0 : index
  %zero = arith.constant 0 : i8
  %x = tile.load %a[%c0, %c0] dims [1, 0] : memref<64x64xi8>, !tile.tile<32x4xi8>
  tile.store %x, %b[%c0, %c0, %c0, %c0] : !tile.tile<32x4xi8>, memref<2x16x32x4xi8>
  %y = tile.load %a[%c0, %c0] dims [1, 0] : memref<64x64xi8>, !tile.tile<32x4xi8>
  memref.store %zero, %c[] : memref<i8>
  tile.store %y, %b[%c0, %c0, %c0, %c0] : !tile.tile<32x4xi8>, memref<2x16x32x4xi8>
  tile.return
}

// -----

// Two lines from %i on and two from the line after it: the one in the middle has one address, and is loaded once.
// SHARED-LABEL: tile.kernel @overlapping_windows
// SHARED-COUNT-3: vector.load
// SHARED-NOT: vector.load
tile.kernel @overlapping_windows(%x: memref<8x16xf32>, %y: memref<6x16xf32>) grid(%i) {
  %c0 = arith.constant 0 : index
  %next = affine.apply affine_map<(i) -> (i + 1)>(%i)
  %a = tile.load %x[%i, %c0] : memref<8x16xf32>, !tile.tile<2x16xf32>
  %b = tile.load %x[%next, %c0] : memref<8x16xf32>, !tile.tile<2x16xf32>
  %s = arith.addf %a, %b : !tile.tile<2x16xf32>
  tile.store %s, %y[%i, %c0] : !tile.tile<2x16xf32>, memref<6x16xf32>
  tile.return
}
