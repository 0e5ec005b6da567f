// RUN: tile-opt %s | tile-opt | FileCheck-22 %s

// CHECK: func.func private @fragment(!tile.tile<16x8xf32,
// CHECK-SAME: {{^}} #tile.distributed<register = {{\[}}[0, 1], [8, 0]],
// CHECK-SAME: {{^}} lane = {{\[}}[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = []>>)
func.func private @fragment(!tile.tile<16x8xf32,
    #tile.distributed<register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = []>>)
// Padding: 24 elements in 32 places; and copies in the second warp.
// CHECK: @padded(!tile.tile<24xf32,
// CHECK-SAME: {{^}} #tile.distributed<register = [], lane = {{\[}}[1], [2], [4], [8], [16]], warp = {{\[}}[0]]>>)
func.func private @padded(!tile.tile<24xf32,
    #tile.distributed<register = [], lane = [[1], [2], [4], [8], [16]], warp = [[0]]>>)
// CHECK: @scalar(!tile.tile<f32, #tile.distributed<register = [], lane = {{\[}}[], [], [], [], []], warp = []>>)
func.func private @scalar(!tile.tile<f32, #tile.distributed<register = [], lane = [[], [], [], [], []], warp = []>>)
// CHECK: @shared(!tile.tile<64x32xf16, #tile.level<"shared">>)
func.func private @shared(!tile.tile<64x32xf16, #tile.level<"shared">>)
