//===- ListGroups.h - recurrences over groups of elements -------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Strip-mining of a scan or fold: a loop over groups of its elements, and what
// is left of them behind it. What a group computes is up to who asks.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_RECURRENCES_LISTGROUPS_H
#define TILEWRIGHT_TRANSFORMS_RECURRENCES_LISTGROUPS_H

#include "dialects/Fractal/Fractal.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace tilewright {

/// Elements of a list from `begin` on.
struct Part {
  int64_t begin, count;

  /// Them alone; the list itself where these are all.
  mlir::Value of(mlir::ImplicitLocOpBuilder &b, mlir::Value array) const;
};

/// From states, and the elements of lists that are in a part, to the states
/// behind it (of a fold), or to lists of the states after each element (of a
/// scan).
using GroupBody = llvm::function_ref<llvm::SmallVector<mlir::Value>(
    mlir::ImplicitLocOpBuilder &, mlir::ValueRange states,
    mlir::ValueRange lists, Part part)>;

/// What replaces the results of a recurrence of a known length: a loop over
/// groups of so many elements (no more than there are), whose iteration is the
/// body, and the body once more for what is left. No loop where there is one
/// group.
template <typename Op>
llvm::SmallVector<mlir::Value> overGroups(mlir::ImplicitLocOpBuilder &b, Op op,
                                          int64_t steps, GroupBody body);

extern template llvm::SmallVector<mlir::Value>
overGroups<fractal::FoldOp>(mlir::ImplicitLocOpBuilder &, fractal::FoldOp,
                            int64_t, GroupBody);
extern template llvm::SmallVector<mlir::Value>
overGroups<fractal::ScanOp>(mlir::ImplicitLocOpBuilder &, fractal::ScanOp,
                            int64_t, GroupBody);

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_RECURRENCES_LISTGROUPS_H
