//===- MmaMeta.h - words of sparsity metadata -------------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOGPU_MMAMETA_H
#define TILEWRIGHT_CONVERSION_TILETOGPU_MMAMETA_H

#include "lib/Conversion/TileToGPU/DistributedTiles.h"

namespace tilewright {

/// The words of 32 bits in which sparse products find where the kept elements
/// of `a` belong, from a tile of metadata that is distributed for them
/// (`mmaMetaLayout`).
class MetaWords {
public:
  /// `values`: the registers of `op`'s metadata.
  MetaWords(mlir::OpBuilder &b, tile::MmaOp op, mlir::ValueRange values);

  /// The word for sixteen rows from `row` on and the `kMetaColumns` kept
  /// elements in which `column` lies, i32.
  mlir::Value at(int64_t row, int64_t column);

private:
  mlir::Value clear(mlir::Value value, int64_t number);
  mlir::Value pack(mlir::ArrayRef<mlir::Value> values);

  mlir::OpBuilder &b;
  mlir::Location loc;
  bool packed;
  LinearLayout layout;
  mlir::SmallVector<int64_t> shape;
  mlir::SmallVector<mlir::Value> values;
  llvm::DenseMap<int64_t, mlir::Value> words;
};

/// Numbers of `count` registers from the one on that has the element at these
/// coordinates (of thread 0).
mlir::SmallVector<int64_t> registersFrom(const LinearLayout &layout,
                                         mlir::ArrayRef<int64_t> at,
                                         int64_t count);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOGPU_MMAMETA_H
