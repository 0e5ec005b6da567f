// RUN: tile-opt %s --tile-mark-multicasts --split-input-file --verify-diagnostics | FileCheck-22 %s

// Tasks (i, 2j) and (i, 2j + 1) are a cluster: rows of %a are the same for both, columns of %b are not.

// CHECK-LABEL: tile.kernel @rows
// CHECK-COUNT-1: scf.for
// CHECK: tile.copy %[[A:.*]] to %{{.*}} {tile.multicast} : memref<64x64xf16, {{.*}}>, {{.*}}
// CHECK-NEXT: tile.copy %[[B:.*]] to %{{[a-z0-9_]+}} : memref<64x64xf16
tile.kernel @rows(%a: memref<256x512xf16>, %b: memref<256x512xf16>) grid(%i, %j) cluster [1, 2] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %row = arith.muli %i, %c64 : index
  %column = arith.muli %j, %c64 : index
  %r = tile.alloc {alignment = 1024 : i64, tile.layouts = [#tile.layout<swizzle = 128>]}
      : memref<2x64x64xf16, #tile.level<"shared">>
  %s = tile.alloc {alignment = 1024 : i64, tile.layouts = [#tile.layout<swizzle = 128>]}
      : memref<2x64x64xf16, #tile.level<"shared">>
  %a0 = memref.subview %a[%row, 0] [64, 64] [1, 1] : memref<256x512xf16>
      to memref<64x64xf16, strided<[512, 1], offset: ?>>
  %r0 = memref.subview %r[0, 0, 0] [1, 64, 64] [1, 1, 1] : memref<2x64x64xf16, #tile.level<"shared">>
      to memref<64x64xf16, strided<[64, 1]>, #tile.level<"shared">>
  %t0 = tile.async {
    tile.copy %a0 to %r0 : memref<64x64xf16, strided<[512, 1], offset: ?>>,
        memref<64x64xf16, strided<[64, 1]>, #tile.level<"shared">>
  }
  %end = scf.for %k = %c0 to %c8 step %c1 iter_args(%w = %t0) -> (!tile.token) {
    tile.await %w
    %ahead = arith.addi %k, %c1 : index
    %more = arith.cmpi slt, %ahead, %c8 : index
    %next = scf.if %more -> (!tile.token) {
      %at = arith.muli %ahead, %c64 : index
      %free = arith.remui %ahead, %c2 : index
      %an = memref.subview %a[%row, %at] [64, 64] [1, 1] : memref<256x512xf16>
          to memref<64x64xf16, strided<[512, 1], offset: ?>>
      %bn = memref.subview %b[%column, %at] [64, 64] [1, 1] : memref<256x512xf16>
          to memref<64x64xf16, strided<[512, 1], offset: ?>>
      %rn = memref.subview %r[%free, 0, 0] [1, 64, 64] [1, 1, 1] : memref<2x64x64xf16, #tile.level<"shared">>
          to memref<64x64xf16, strided<[64, 1], offset: ?>, #tile.level<"shared">>
      %sn = memref.subview %s[%free, 0, 0] [1, 64, 64] [1, 1, 1] : memref<2x64x64xf16, #tile.level<"shared">>
          to memref<64x64xf16, strided<[64, 1], offset: ?>, #tile.level<"shared">>
      %t = tile.async {
        tile.copy %an to %rn : memref<64x64xf16, strided<[512, 1], offset: ?>>,
            memref<64x64xf16, strided<[64, 1], offset: ?>, #tile.level<"shared">>
        tile.copy %bn to %sn : memref<64x64xf16, strided<[512, 1], offset: ?>>,
            memref<64x64xf16, strided<[64, 1], offset: ?>, #tile.level<"shared">>
      }
      scf.yield %t : !tile.token
    } else {
      scf.yield %w : !tile.token
    }
    scf.yield %next : !tile.token
  }
  tile.return
}

// -----

// The same bytes, but not equally often: how many steps there are follows from the task's coordinate.

// CHECK-LABEL: tile.kernel @steps
// CHECK-NOT: tile.multicast
// expected-remark@+1 {{has clusters whose tasks load nothing in common: each loads all that it needs}}
tile.kernel @steps(%a: memref<256x512xf16>) grid(%i) cluster [2] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c64 = arith.constant 64 : index
  %steps = arith.addi %i, %c2 : index
  %r = tile.alloc {alignment = 1024 : i64, tile.layouts = [#tile.layout<swizzle = 128>]}
      : memref<2x64x64xf16, #tile.level<"shared">>
  %a0 = memref.subview %a[0, 0] [64, 64] [1, 1] : memref<256x512xf16> to memref<64x64xf16, strided<[512, 1]>>
  %r0 = memref.subview %r[0, 0, 0] [1, 64, 64] [1, 1, 1] : memref<2x64x64xf16, #tile.level<"shared">>
      to memref<64x64xf16, strided<[64, 1]>, #tile.level<"shared">>
  %t0 = tile.async {
    tile.copy %a0 to %r0 : memref<64x64xf16, strided<[512, 1]>>,
        memref<64x64xf16, strided<[64, 1]>, #tile.level<"shared">>
  }
  %end = scf.for %k = %c0 to %steps step %c1 iter_args(%w = %t0) -> (!tile.token) {
    tile.await %w
    %ahead = arith.addi %k, %c1 : index
    %more = arith.cmpi slt, %ahead, %steps : index
    %next = scf.if %more -> (!tile.token) {
      %at = arith.muli %ahead, %c64 : index
      %free = arith.remui %ahead, %c2 : index
      %an = memref.subview %a[0, %at] [64, 64] [1, 1] : memref<256x512xf16>
          to memref<64x64xf16, strided<[512, 1], offset: ?>>
      %rn = memref.subview %r[%free, 0, 0] [1, 64, 64] [1, 1, 1] : memref<2x64x64xf16, #tile.level<"shared">>
          to memref<64x64xf16, strided<[64, 1], offset: ?>, #tile.level<"shared">>
      %t = tile.async {
        tile.copy %an to %rn : memref<64x64xf16, strided<[512, 1], offset: ?>>,
            memref<64x64xf16, strided<[64, 1], offset: ?>, #tile.level<"shared">>
      }
      scf.yield %t : !tile.token
    } else {
      scf.yield %w : !tile.token
    }
    scf.yield %next : !tile.token
  }
  tile.return
}

// -----

// What memory holds may differ, and so may what a loop carries.

// CHECK-LABEL: tile.kernel @carried
// CHECK-NOT: tile.multicast
// expected-remark@+1 {{load nothing in common}}
tile.kernel @carried(%a: memref<256x512xf16>, %n: memref<4xindex>) grid(%i) cluster [2] {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %c8 = arith.constant 8 : index
  %c64 = arith.constant 64 : index
  %step = memref.load %n[%c0] : memref<4xindex>
  %r = tile.alloc {alignment = 1024 : i64, tile.layouts = [#tile.layout<swizzle = 128>]}
      : memref<2x64x64xf16, #tile.level<"shared">>
  %a0 = memref.subview %a[0, 0] [64, 64] [1, 1] : memref<256x512xf16> to memref<64x64xf16, strided<[512, 1]>>
  %r0 = memref.subview %r[0, 0, 0] [1, 64, 64] [1, 1, 1] : memref<2x64x64xf16, #tile.level<"shared">>
      to memref<64x64xf16, strided<[64, 1]>, #tile.level<"shared">>
  %t0 = tile.async {
    tile.copy %a0 to %r0 : memref<64x64xf16, strided<[512, 1]>>,
        memref<64x64xf16, strided<[64, 1]>, #tile.level<"shared">>
  }
  %end:2 = scf.for %k = %c0 to %c8 step %c1 iter_args(%w = %t0, %place = %c0) -> (!tile.token, index) {
    tile.await %w
    %ahead = arith.addi %k, %c1 : index
    %more = arith.cmpi slt, %ahead, %c8 : index
    %next = scf.if %more -> (!tile.token) {
      %free = arith.remui %ahead, %c2 : index
      %an = memref.subview %a[0, %place] [64, 64] [1, 1] : memref<256x512xf16>
          to memref<64x64xf16, strided<[512, 1], offset: ?>>
      %rn = memref.subview %r[%free, 0, 0] [1, 64, 64] [1, 1, 1] : memref<2x64x64xf16, #tile.level<"shared">>
          to memref<64x64xf16, strided<[64, 1], offset: ?>, #tile.level<"shared">>
      %t = tile.async {
        tile.copy %an to %rn : memref<64x64xf16, strided<[512, 1], offset: ?>>,
            memref<64x64xf16, strided<[64, 1], offset: ?>, #tile.level<"shared">>
      }
      scf.yield %t : !tile.token
    } else {
      scf.yield %w : !tile.token
    }
    %after = arith.addi %place, %step : index
    scf.yield %next, %after : !tile.token, index
  }
  tile.return
}
