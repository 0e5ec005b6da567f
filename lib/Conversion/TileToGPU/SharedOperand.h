//===- SharedOperand.h - tiles that products read in shared memory -*- C++
//-*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOGPU_SHAREDOPERAND_H
#define TILEWRIGHT_CONVERSION_TILETOGPU_SHAREDOPERAND_H

#include "lib/Conversion/TileToGPU/MemoryAccess.h"

namespace tilewright {

/// Where a tile of type `!tile.tile<..., #tile.level<"shared">>` lies: in the
/// buffer that its `tile.load` names, or in the scratch of its `tile.convert`.
struct SharedOperand {
  AccessShape access;
  mlir::Type element;

  static mlir::FailureOr<SharedOperand> get(mlir::OpBuilder &b,
                                            mlir::Value tile);
  /// The registers of `layout`, moved by `offsets` along the tile's dimensions
  /// (index; null for none).
  mlir::SmallVector<mlir::Value> load(mlir::OpBuilder &b, mlir::Location loc,
                                      const LinearLayout &layout,
                                      mlir::ValueRange offsets) const;
  void store(mlir::OpBuilder &b, mlir::Location loc, const LinearLayout &layout,
             mlir::ValueRange values) const;

private:
  mlir::SmallVector<mlir::SmallVector<int64_t>>
  group(const LinearLayout &layout) const;
};

/// Bytes of the scratch that a conversion into shared memory needs.
int64_t getSharedOperandBytes(tile::ConvertOp op);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOGPU_SHAREDOPERAND_H
