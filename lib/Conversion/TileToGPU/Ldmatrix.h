//===- Ldmatrix.h - fragments from shared memory ----------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOGPU_LDMATRIX_H
#define TILEWRIGHT_CONVERSION_TILETOGPU_LDMATRIX_H

#include "lib/Conversion/TileToGPU/DistributedTiles.h"

namespace tilewright {

/// How `ldmatrix` loads a layout, and `stmatrix` stores it: eight lanes name
/// the rows of a matrix of 8 x 16 bytes, and each lane gets a word of it (PTX
/// ISA, "ldmatrix").
class Ldmatrix {
public:
  /// None where the layout is no fragment of it; `contiguous` is the dimension
  /// whose elements are side by side in memory.
  static std::optional<Ldmatrix> plan(const LinearLayout &layout,
                                      int64_t contiguous, mlir::Type element);

  /// Where the rows are: a thread's registers in this layout are the rows that
  /// it names, one for each instruction.
  const LinearLayout &getRows() const { return rows; }
  /// The registers of the layout, from the pointers to the rows.
  mlir::SmallVector<mlir::Value>
  load(mlir::OpBuilder &b, mlir::Location loc, mlir::Type element,
       llvm::function_ref<mlir::Value(int64_t)> getPointer) const;
  /// Registers of the layout that one instruction moves, side by side.
  int64_t getPerRow() const { return int64_t(1) << (packedBits + wordBits); }
  /// The words of as many registers.
  mlir::SmallVector<mlir::Value> pack(mlir::OpBuilder &b, mlir::Location loc,
                                      mlir::ValueRange values) const;
  /// Stores those words, to where `pointer` says (`stmatrix`, sm_90).
  void store(mlir::OpBuilder &b, mlir::Location loc, mlir::ValueRange words,
             mlir::Value pointer) const;

private:
  LinearLayout rows;
  int64_t packedBits = 1; // elements in a word
  int64_t wordBits = 0;   // words of an instruction
  bool transposed = false;
};

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOGPU_LDMATRIX_H
