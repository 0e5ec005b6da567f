//===- RowMaker.h - what a row of a sequence follows from -------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_RECURRENCES_ROWMAKER_H
#define TILEWRIGHT_TRANSFORMS_RECURRENCES_ROWMAKER_H

#include "lib/Transforms/Recurrences/ShiftedLoops.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace tilewright {

/// Of each loop, what it carries.
using States = llvm::SmallVector<llvm::SmallVector<mlir::Value>>;

/// Makes a row of what follows from loops' results, in front of the slice that
/// reads it: operations lose the loop over rows. The row of a result is the
/// state that is equal to it, or is read where it was written.
class RowMaker {
public:
  /// `reader`: number of the loop that the slice is in; `before`: what loops
  /// carry there.
  RowMaker(const ShiftedLoops &group,
           const llvm::SetVector<mlir::Operation *> &dependents, size_t reader,
           const States &before, mlir::tensor::ExtractSliceOp slice)
      : group(group), dependents(dependents), reader(reader), before(before),
        slice(slice), b(slice.getLoc(), slice) {}

  /// The row, of the slice's type; the source has rows in dimension `dim`.
  mlir::Value make(unsigned dim);

private:
  mlir::Value rowOf(mlir::Value value, unsigned dim);
  mlir::Value rowOfResult(size_t maker, mlir::OpResult result, unsigned dim);
  mlir::Value rowOfGeneric(mlir::linalg::GenericOp op, unsigned dim);
  mlir::Value sliceOf(mlir::Value value, unsigned dim);
  mlir::Value reshaped(mlir::Value value, mlir::RankedTensorType type);

  const ShiftedLoops &group;
  const llvm::SetVector<mlir::Operation *> &dependents;
  size_t reader;
  const States &before;
  mlir::tensor::ExtractSliceOp slice;
  mlir::ImplicitLocOpBuilder b;
  /// Where the row is.
  mlir::OpFoldResult place;
};

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_RECURRENCES_ROWMAKER_H
