//===- DistributedClasses.h - tiles that share a layout ---------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOGPU_DISTRIBUTEDCLASSES_H
#define TILEWRIGHT_CONVERSION_TILETOGPU_DISTRIBUTEDCLASSES_H

#include "lib/Analysis/LinearLayout.h"
#include "llvm/ADT/IntEqClasses.h"

namespace tilewright {

/// The tiles of a kernel in classes: elementwise ops, loops and branches tie
/// values, which then have one layout.
class DistributedClasses {
public:
  explicit DistributedClasses(mlir::Operation *function);

  /// All tile values, in program order.
  mlir::ArrayRef<mlir::Value> getValues() const { return values; }
  /// The values of the class of `value`.
  mlir::ArrayRef<mlir::Value> getMembers(mlir::Value value) const;
  std::optional<LinearLayout> getLayout(mlir::Value value) const;
  /// Gives a class its layout, unless it has one, and all classes that follow
  /// from it without movement theirs.
  void assign(mlir::Value value, const LinearLayout &layout);

private:
  void collect(mlir::Operation *function);
  void tie(mlir::Operation *op);
  void tieBranches(mlir::Operation *op);
  void unite(mlir::Value x, mlir::Value y);
  void unite(mlir::ValueRange x, mlir::ValueRange y);
  unsigned find(mlir::Value value) const;
  /// What follows from a class: (value, its layout).
  using Derived = mlir::SmallVector<std::pair<mlir::Value, LinearLayout>>;
  void derive(mlir::Value value, const LinearLayout &layout, Derived &result);
  void deriveFromUse(mlir::OpOperand &use, const LinearLayout &layout,
                     Derived &result);

  mlir::SmallVector<mlir::Value> values;
  llvm::DenseMap<mlir::Value, unsigned> numbers;
  llvm::IntEqClasses classes;
  mlir::SmallVector<mlir::SmallVector<mlir::Value>> members;
  mlir::SmallVector<std::optional<LinearLayout>> layouts;
};

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOGPU_DISTRIBUTEDCLASSES_H
