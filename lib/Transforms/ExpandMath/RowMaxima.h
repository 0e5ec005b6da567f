//===- RowMaxima.h - maxima of the scores of a softmax ----------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_EXPANDMATH_ROWMAXIMA_H
#define TILEWRIGHT_TRANSFORMS_EXPANDMATH_ROWMAXIMA_H

#include "dialects/Tile/Tile.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "llvm/ADT/SetVector.h"

namespace tilewright {

/// The number that all elements of a constant tile of floats are.
std::optional<double> splatOf(mlir::Value value);

/// The maxima of the scores of a kernel's softmax: values that are computed
/// from scores by maxima alone, carried by loops among them.
class RowMaxima {
public:
  void addScore(mlir::Value score) { scores.insert(score); }

  /// Follows the maxima. Whether nothing but maxima and constants below all
  /// scores meet in them, and their differences are exponents alone.
  bool analyze();

  /// Exponentials of a maximum less another one.
  llvm::ArrayRef<mlir::math::ExpOp> getFactors() const { return factors; }

  /// Takes a scale from 0 to 1, that all scores have, out of scores and
  /// maxima, where `analyze` returned true; what else reads a maximum
  /// multiplies. Returns it; 1 where scores are products without a scale, and
  /// nothing where they are something else.
  std::optional<double> unscale();

private:
  bool follow(mlir::OpOperand &use);
  bool followMaximum(mlir::Operation *op);
  bool followDifference(mlir::Operation *op);
  bool followYield(mlir::OpOperand &use);
  void add(mlir::Value value) { maxima.insert(value); }

  llvm::SetVector<mlir::Value> scores, maxima, met;
  llvm::SmallVector<mlir::OpOperand *> others;
  llvm::SmallVector<mlir::math::ExpOp> factors;
  bool known = false;
};

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_EXPANDMATH_ROWMAXIMA_H
