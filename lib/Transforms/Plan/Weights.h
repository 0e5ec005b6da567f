//===- Weights.h - what is known at compile time -------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_PLAN_WEIGHTS_H
#define TILEWRIGHT_TRANSFORMS_PLAN_WEIGHTS_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Value.h"

namespace tilewright {

/// Whether a value follows from weights and constants, and whether it is
/// another one in each iteration of a loop: a loop over a list of layers, whose
/// rows it takes in order, is as well known as its weights.
struct Knowledge {
  bool isKnown = false;
  mlir::scf::ForOp loop;
};

/// Which values are known at compile time (`ir/structure.py` has the same
/// rules); the IR must not change meanwhile.
class WeightAnalysis {
public:
  Knowledge of(mlir::Value value);
  /// Whether it is known and something stored stands behind it. Without that a
  /// value is cheaper to make than to keep: a filled tensor, for example.
  bool isWeight(mlir::Value value) {
    return of(value).isKnown && hasWeight(value);
  }

  /// What would be known, if it were not only spread: each asked about once.
  llvm::ArrayRef<mlir::Operation *> onlySpread() const { return spread; }

private:
  Knowledge compute(mlir::Value value);
  bool hasWeight(mlir::Value value);

  llvm::DenseMap<mlir::Value, Knowledge> known;
  llvm::DenseMap<mlir::Value, bool> weights;
  llvm::SmallVector<mlir::Operation *> spread;
};

/// Whether the list that a loop's iterations would have of a result is no more
/// than rows of weights in many copies, and large: who reads it had better
/// spread the row itself than read more memory in each iteration.
bool spreads(mlir::Operation *op, mlir::scf::ForOp loop);

/// Whether nothing has to be known for an operation's result: a constant, a
/// weight or an empty tensor.
bool isSource(mlir::Operation *op);

/// The loop from whose iterations on a slice is one row of a list each; null
/// for all other operations.
mlir::scf::ForOp loopOfRow(mlir::Operation *op);

/// True when `value` follows from weights and constants alone.
bool dependsOnWeightsOnly(mlir::Value value);

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_PLAN_WEIGHTS_H
