//===- Hyperplanes.h - iterations that may run at once ----------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_FRACTAL_HYPERPLANES_H
#define TILEWRIGHT_TRANSFORMS_FRACTAL_HYPERPLANES_H

#include "lib/Transforms/Fractal/Dependences.h"
#include "mlir/Analysis/Presburger/Matrix.h"

namespace tilewright::fractal {

/// What a row of integers may have at each place: a number from zero up, from
/// zero down, or zero.
enum class Sign { Zero, Positive, Negative };

/// The row h with the smallest sum of absolute values such that h times every
/// distance is at least one: iterations of one value of h wait for none of the
/// same. None where there is no such row.
std::optional<llvm::SmallVector<int64_t>>
findHyperplane(llvm::ArrayRef<Sign> signs,
               llvm::ArrayRef<Dependence> dependences);

/// Rows of a matrix with determinant 1 or -1, the given one first. Others are
/// unit rows wherever the row has a 1 or -1: `order` without the last such
/// place in it.
mlir::presburger::IntMatrix completed(llvm::ArrayRef<int64_t> row,
                                      llvm::ArrayRef<unsigned> order);
/// The inverse of such a matrix.
mlir::presburger::IntMatrix inverseOf(const mlir::presburger::IntMatrix &rows);

/// For each dimension of a set, the largest of the lower bounds and the least
/// of the upper ones (exclusive), in terms of the dimensions before it.
struct Bounds {
  llvm::SmallVector<mlir::AffineMap> lower, upper;
};
Bounds boundsOf(mlir::MLIRContext *context, Space space,
                llvm::ArrayRef<Constraint> constraints);

} // namespace tilewright::fractal

#endif // TILEWRIGHT_TRANSFORMS_FRACTAL_HYPERPLANES_H
