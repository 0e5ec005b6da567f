//===- TileOps.td - all operations of the tile dialect -----*- tablegen -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TILE_OPS
#define TILEWRIGHT_TILE_OPS

include "dialects/Tile/TileGraphOps.td"
include "dialects/Tile/TileKernelOps.td"
include "dialects/Tile/TileMemoryOps.td"
include "dialects/Tile/TileComputeOps.td"
include "dialects/Tile/TileShapeOps.td"
include "dialects/Tile/TileProgramOps.td"
include "dialects/Tile/TileTaskOps.td"

#endif // TILEWRIGHT_TILE_OPS
