// RUN: tile-opt %s | tile-opt | FileCheck-22 %s
// RUN: tile-opt %s -mlir-print-op-generic | tile-opt | FileCheck-22 %s
// RUN: tile-opt %s -emit-bytecode | tile-opt | FileCheck-22 %s

// CHECK-LABEL: func.func private @tiles
// CHECK-SAME: (!tile.tile<8x32xf32>, !tile.tile<f16>, !tile.tile<1x3x4x5xindex>, !tile.tile<4xi1>, !tile.token)
func.func private @tiles(!tile.tile<8x32xf32>, !tile.tile<f16>, !tile.tile<1x3x4x5xindex>, !tile.tile<4xi1>,
    !tile.token)

// CHECK-LABEL: func.func private @layout
// CHECK-SAME: (!tile.tile<16x16xf16, #tile.layout<perm = [1, 0]>>)
func.func private @layout(!tile.tile<16x16xf16, #tile.layout<perm = [1, 0]>>)

// CHECK-LABEL: func.func private @other_layout
// CHECK-SAME: (!tile.tile<4xbf16, "fragment">)
func.func private @other_layout(!tile.tile<4xbf16, "fragment">)

// CHECK-LABEL: func.func private @level
// CHECK-SAME: (memref<4x64xf32, #tile.level<"shared">>)
func.func private @level(memref<4x64xf32, #tile.level<"shared">>)

// CHECK-LABEL: func.func private @rtile
// CHECK-SAME: rtile = #tile.rtile<l2 = [128, 32, 384], register = [8, 32, 1], order = [1, 0, 2]>
func.func private @rtile() attributes {rtile = #tile.rtile<register = [8, 32, 1], l2 = [128, 32, 384],
    order = [1, 0, 2]>}

// CHECK-LABEL: func.func private @rtile_empty
// CHECK-SAME: rtile = #tile.rtile<>
func.func private @rtile_empty() attributes {rtile = #tile.rtile<>}

// CHECK-LABEL: func.func private @layouts
// CHECK-SAME: [#tile.layout<>, #tile.layout<perm = [1, 0], inner = [1, 0], tiles = [32, 4]>,
// CHECK-SAME: {{^}} #tile.layout<swizzle = 128, interleave = 2, storage = f16>]
func.func private @layouts() attributes {layouts = [#tile.layout<>,
  #tile.layout<perm = [1, 0], inner = [1, 0], tiles = [32, 4]>,
      #tile.layout<storage = f16, interleave = 2, swizzle = 128>]}

// CHECK-LABEL: func.func private @device
// CHECK-SAME: #tile.device<name = "host", "clock rate" = 2.400000e+09 : f64,
// CHECK-SAME: {{^}} levels = [{bytes = 2048 : i64, name = "register"}, {bytes = 49152 : i64, name = "l1"}],
// CHECK-SAME: {{^}} units = {cores = 2 : i64}>
func.func private @device() attributes {device = #tile.device<units = {cores = 2}, name = "host",
  levels = [{name = "register", bytes = 2048}, {name = "l1", bytes = 49152}], "clock rate" = 2.4e9>}
