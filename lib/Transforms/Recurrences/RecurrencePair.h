//===- RecurrencePair.h - a recurrence through a scan -----------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_RECURRENCES_RECURRENCEPAIR_H
#define TILEWRIGHT_TRANSFORMS_RECURRENCES_RECURRENCEPAIR_H

#include "dialects/Fractal/Fractal.h"

namespace tilewright {

/// A recurrence whose states are lists that go element by element through a
/// scan in its body. It depends on itself at (1, 0) and (0, 1) only.
struct RecurrencePair {
  /// A fold or a scan.
  mlir::Operation *outer;
  fractal::ScanOp inner;
  /// Of the outer recurrence: initial states, lists, and what stands for them
  /// in the body.
  mlir::ValueRange inits, arrays;
  llvm::ArrayRef<mlir::BlockArgument> states, elements;
  /// For each outer state, which result of the inner scan is the next one.
  llvm::SmallVector<unsigned> next;
  /// Elements of the two domains.
  int64_t rows, columns;

  bool scans() const { return llvm::isa<fractal::ScanOp>(outer); }
};

/// The pair that an op is the outer part of; else why it is none, in `reason`.
std::optional<RecurrencePair> pairOf(mlir::Operation *op, std::string &reason);

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_RECURRENCES_RECURRENCEPAIR_H
