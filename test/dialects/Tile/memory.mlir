// RUN: tile-opt %s | tile-opt | FileCheck-22 %s
// RUN: tile-opt %s -mlir-print-op-generic | tile-opt | FileCheck-22 %s
// RUN: tile-opt %s -emit-bytecode | tile-opt | FileCheck-22 %s

// CHECK-LABEL: tile.kernel @alloc
// CHECK: tile.alloc : memref<4x64xf32, #tile.level<"l1">>
// CHECK: tile.alloc {alignment = 128 : i64} : memref<4x64x64xf16, #tile.level<"shared">>
// CHECK: tile.alloc : memref<f32>
tile.kernel @alloc() {
  %0 = tile.alloc : memref<4x64xf32, #tile.level<"l1">>
  %1 = tile.alloc {alignment = 128} : memref<4x64x64xf16, #tile.level<"shared">>
  %2 = tile.alloc : memref<f32>
}

// CHECK-LABEL: tile.kernel @load
// CHECK-SAME: (%[[M:.*]]: memref<128x384xf32>, %[[N:.*]]: index, %[[S:.*]]: memref<f32>) grid(%[[I:.*]], %[[J:.*]])
// CHECK: %[[PAD:.*]] = arith.constant
// CHECK: %[[IDX:.*]] = tile.iota
// CHECK: tile.load %[[M]][%[[I]], %[[J]]] : memref<128x384xf32>, !tile.tile<8x1xf32>
// CHECK: tile.load %[[M]][%[[I]], %[[J]]] dims [1, 0] steps [2, -1] {nontemporal}
// CHECK-SAME: {{^}} : memref<128x384xf32>, !tile.tile<4x8xf32>
// CHECK: tile.load %[[M]][%[[I]], %[[J]]] dims [0] valid(%[[N]]) pad %[[PAD]] : memref<128x384xf32>, !tile.tile<8xf32>
// CHECK: tile.load %[[M]][%[[I]], %[[J]]] indices %[[IDX]] along 1 valid(%[[N]], %[[N]])
// CHECK-SAME: {{^}} : memref<128x384xf32>, !tile.tile<2x8xf32>(indices !tile.tile<8xindex>)
// CHECK: tile.load %[[S]][] : memref<f32>, !tile.tile<f32>
tile.kernel @load(%m: memref<128x384xf32>, %n: index, %s: memref<f32>) grid(%i, %j) {
  %pad = arith.constant 0xFF800000 : f32
  %idx = tile.iota dim 0 : !tile.tile<8xindex>
  %0 = tile.load %m[%i, %j] : memref<128x384xf32>, !tile.tile<8x1xf32>
  %1 = tile.load %m[%i, %j] dims [1, 0] steps [2, -1] {nontemporal} : memref<128x384xf32>, !tile.tile<4x8xf32>
  %2 = tile.load %m[%i, %j] dims [0] valid (%n) pad %pad : memref<128x384xf32>, !tile.tile<8xf32>
  %3 = tile.load %m[%i, %j] indices %idx along 1 valid (%n, %n)
      : memref<128x384xf32>, !tile.tile<2x8xf32> (indices !tile.tile<8xindex>)
  %4 = tile.load %s[] : memref<f32>, !tile.tile<f32>
}

// CHECK-LABEL: tile.kernel @store
// CHECK: tile.store %[[T:.*]], %[[M:.*]][%[[I:.*]], %[[J:.*]]] : !tile.tile<8x32xf32>, memref<128x384xf32>
// CHECK: tile.store %[[T]], %[[M]][%[[I]], %[[J]]] dims [1, 0] steps [1, 2] valid(%[[I]], %[[J]]) {note}
// CHECK-SAME: {{^}} : !tile.tile<8x32xf32>, memref<128x384xf32>
// CHECK: tile.store %[[T]], %[[M]][%[[I]], %[[J]]] reduce max : !tile.tile<8x32xf32>, memref<128x384xf32>
// CHECK: tile.store %[[T]], %[[M]][%[[I]], %[[J]]] indices %{{.*}} along 0 reduce add atomic
// CHECK-SAME: {{^}} : !tile.tile<8x32xf32>, memref<128x384xf32>(indices !tile.tile<8xi32>)
tile.kernel @store(%m: memref<128x384xf32>) grid(%i, %j) {
  %f = arith.constant 1.0 : f32
  %t = tile.splat %f : f32 -> !tile.tile<8x32xf32>
  %idx = tile.iota dim 0 : !tile.tile<8xi32>
  tile.store %t, %m[%i, %j] : !tile.tile<8x32xf32>, memref<128x384xf32>
  tile.store %t, %m[%i, %j] dims [1, 0] steps [1, 2] valid (%i, %j) {note} : !tile.tile<8x32xf32>, memref<128x384xf32>
  tile.store %t, %m[%i, %j] reduce max : !tile.tile<8x32xf32>, memref<128x384xf32>
  tile.store %t, %m[%i, %j] indices %idx along 0 reduce add atomic
      : !tile.tile<8x32xf32>, memref<128x384xf32> (indices !tile.tile<8xi32>)
}

// CHECK-LABEL: tile.kernel @movement
// CHECK: tile.copy %[[X:.*]] to %[[A:.*]] : memref<64xf16>, memref<64xf16, #tile.level<"sram">>
// CHECK: tile.copy %[[A]] to %[[B:.*]] at(%{{.*}}, %{{.*}})
// CHECK-SAME: {{^}} : memref<64xf16, #tile.level<"sram">>, memref<64xf16, #tile.level<"sram">>
// CHECK: tile.copy %{{.*}} to %[[B]] fill : memref<?xf16, strided<[1]>>, memref<64xf16, #tile.level<"sram">>
// CHECK: %[[T:.*]] = tile.async {
// CHECK-NEXT:   tile.copy %[[X]] to %[[B]]
// CHECK-NEXT: }
// CHECK: tile.await %[[T]], %[[T]]
// CHECK: tile.barrier
tile.kernel @movement(%x: memref<64xf16>) grid(%i, %j) {
  %a = tile.alloc : memref<64xf16, #tile.level<"sram">>
  %b = tile.alloc : memref<64xf16, #tile.level<"sram">>
  tile.copy %x to %a : memref<64xf16>, memref<64xf16, #tile.level<"sram">>
  tile.copy %a to %b at (%j, %i) : memref<64xf16, #tile.level<"sram">>, memref<64xf16, #tile.level<"sram">>
  %part = memref.subview %x[0] [%i] [1] : memref<64xf16> to memref<?xf16, strided<[1]>>
  tile.copy %part to %b fill : memref<?xf16, strided<[1]>>, memref<64xf16, #tile.level<"sram">>
  %t = tile.async {
    tile.copy %x to %b : memref<64xf16>, memref<64xf16, #tile.level<"sram">>
  }
  tile.await %t, %t
  tile.barrier
}
