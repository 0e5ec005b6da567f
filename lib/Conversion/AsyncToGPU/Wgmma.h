//===- Wgmma.h - instructions of Hopper's matrix units -===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_ASYNCTOGPU_WGMMA_H
#define TILEWRIGHT_CONVERSION_ASYNCTOGPU_WGMMA_H

#include "lib/Conversion/AsyncToGPU/WgmmaOperands.h"

namespace tilewright {

/// Where half of `a` is left out: a word (i32) that says which, null where
/// nothing is, and which lanes of four it counts of.
struct SparseMeta {
  mlir::Value word;
  int64_t selector = 0;
};

/// One `wgmma.mma_async`: 64 rows by `columns` of one warpgroup.
struct WgmmaInstruction {
  int64_t columns, depth; // `depth`: elements of a row of `a` that are there
  /// Suffix of the element types, from `wgmmaTypes`.
  std::string types;
  bool aKMajor = true, bKMajor = true;

  /// Emits it: `a` is a descriptor or four registers, `sums` are added to
  /// where `add` (i32) is not zero and else not read. The results are in
  /// flight.
  llvm::SmallVector<mlir::Value> emit(mlir::OpBuilder &b, mlir::Location loc,
                                      mlir::ValueRange sums, mlir::ValueRange a,
                                      mlir::Value descriptor, mlir::Value add,
                                      SparseMeta meta = {}) const;
  std::string getText(unsigned sums, bool aInRegisters,
                      std::optional<int64_t> selector = {}) const;
};

/// The same values, surely in their registers before what follows: products in
/// the background must not begin before, and LLVM does not know of them.
llvm::SmallVector<mlir::Value> settle(mlir::OpBuilder &b, mlir::Location loc,
                                      mlir::ValueRange values);

/// Waits for all products in flight but the last `pending`; gives `sums`,
/// complete. `operands` are registers that a product reads until then. Without
/// the values going through the wait, the compiler would read them before it.
llvm::SmallVector<mlir::Value>
waitForProducts(mlir::OpBuilder &b, mlir::Location loc, mlir::ValueRange sums,
                int64_t pending = 0, mlir::ValueRange operands = {});

/// Descriptor of an operand, as it is for warpgroup `group` (i32, null for the
/// right operand), where the warpgroup's part begins.
mlir::Value makeDescriptor(mlir::OpBuilder &b, mlir::Location loc,
                           const WgmmaOperand &operand, mlir::Value slot,
                           mlir::Value group);

/// `descriptor` of what lies `bytes` further.
mlir::Value moveDescriptor(mlir::OpBuilder &b, mlir::Location loc,
                           mlir::Value descriptor, int64_t bytes);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_ASYNCTOGPU_WGMMA_H
