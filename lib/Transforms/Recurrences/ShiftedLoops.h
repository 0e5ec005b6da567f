//===- ShiftedLoops.h - loops that may be one ------------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_RECURRENCES_SHIFTEDLOOPS_H
#define TILEWRIGHT_TRANSFORMS_RECURRENCES_SHIFTEDLOOPS_H

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"

namespace tilewright {

/// Loops of one block that may run as one, each some iterations behind the
/// first: what it reads of the others' results are rows that they have written.
class ShiftedLoops {
public:
  explicit ShiftedLoops(mlir::scf::ForOp first) : loops{first}, lags{0} {}

  /// Iterations by which `loop`, the next one, has to follow the last loop at
  /// least; none where they cannot be one, with the reason.
  std::optional<int64_t> leastShift(mlir::scf::ForOp loop, std::string &reason);

  /// Whether a loop of the same bounds has enough iterations to follow the last
  /// loop by so many: some hold a step of each.
  bool mayLag(mlir::scf::ForOp loop, int64_t shift) const;

  void add(mlir::scf::ForOp loop, int64_t shift) {
    loops.push_back(loop);
    lags.push_back(lags.back() + shift);
  }

  mlir::ArrayRef<mlir::scf::ForOp> getLoops() const { return loops; }
  /// Of each loop, iterations behind the first one.
  mlir::ArrayRef<int64_t> getLags() const { return lags; }
  /// The loop that makes a value, by its number; -1: none of them does.
  int64_t makerOf(mlir::Value value) const;
  /// What stands between the first and the last loop and needs their results.
  llvm::SetVector<mlir::Operation *> dependents() const;

private:
  llvm::SmallVector<mlir::scf::ForOp> loops;
  llvm::SmallVector<int64_t> lags;
};

/// The state of the loop that is equal to the row that the loop has written
/// last into its result `number`; -1 where no state is.
int64_t stateWithLastRow(mlir::scf::ForOp loop, unsigned number);

/// The dimension of which a slice, in a loop over `variable`, takes one place.
unsigned rowDimOf(mlir::tensor::ExtractSliceOp slice, mlir::Value variable);

/// The loop in front of this one in its block.
mlir::scf::ForOp loopInFront(mlir::scf::ForOp loop);

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_RECURRENCES_SHIFTEDLOOPS_H
