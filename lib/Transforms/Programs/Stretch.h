//===- Stretch.h - what of the host function becomes a kernel ---*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_PROGRAMS_STRETCH_H
#define TILEWRIGHT_TRANSFORMS_PROGRAMS_STRETCH_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SetVector.h"

namespace tilewright {

/// Operations with `tile.blocks` in one block, between which none stands that
/// does more than to compute a number, or a view.
struct Stretch {
  llvm::SmallVector<mlir::Operation *> ops;
  /// The most that one of them asks for.
  int64_t blocks = 1;
  /// What a kernel of them takes from the host: numbers, and whole buffers, so
  /// that no two are one memory.
  llvm::SetVector<mlir::Value> arguments;

  /// Those of a block, and of the regions of what is not marked.
  static void findAll(mlir::Block &block,
                      llvm::SmallVectorImpl<Stretch> &found);
  /// Fails where a buffer is one of several.
  mlir::LogicalResult findArguments();
  /// Erases what stands between its operations, for them alone.
  void eraseUnused();
  static bool isView(mlir::Operation *op);

private:
  /// Whether it is computed again in the kernel.
  bool isCopied(mlir::Operation *op) const;
  mlir::LogicalResult need(mlir::Value value);

  /// In order; null for what is erased.
  llvm::SmallVector<mlir::Operation *> between;
  llvm::SmallPtrSet<mlir::Value, 16> seen;
};

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_PROGRAMS_STRETCH_H
