//===- TileTasks.h - tasks of a grid that wait ------------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_DIALECTS_TILE_TILETASKS_H
#define TILEWRIGHT_DIALECTS_TILE_TILETASKS_H

#include "dialects/Tile/Tile.h"

#define GET_OP_CLASSES
#include "dialects/Tile/TileTaskOps.h.inc"

namespace tilewright::tile {

/// Whether tasks of a kernel, or of the function that it became, wait for
/// others of their grid.
bool hasWaits(mlir::Operation *kernel);

} // namespace tilewright::tile

#endif // TILEWRIGHT_DIALECTS_TILE_TILETASKS_H
