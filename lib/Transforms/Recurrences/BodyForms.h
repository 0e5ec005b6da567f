//===- BodyForms.h - what a fold's body computes, as formulas ---*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_RECURRENCES_BODYFORMS_H
#define TILEWRIGHT_TRANSFORMS_RECURRENCES_BODYFORMS_H

#include "dialects/Fractal/Fractal.h"
#include "lib/Transforms/Recurrences/Forms.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace tilewright {

using Indices = llvm::SmallVector<int64_t>;

/// Evaluates elements of tensors in a fold's body: states, what a maximum is
/// taken of, and whatever no rule looks into are atoms.
class BodyForms {
public:
  explicit BodyForms(fractal::FoldOp fold);

  /// An element of a tensor; nothing where it depends on a state in a way that
  /// no rule describes.
  std::optional<Form> at(mlir::Value tensor, const Indices &indices);
  /// Dimensions as indices of themselves, those of size one as `kUnit`.
  static Indices ownIndices(mlir::Value tensor);

  bool dependsOnState(mlir::Value value) const {
    return stateful.contains(value);
  }
  bool variesWithElements(mlir::Value value) const {
    return varying.contains(value);
  }
  bool isStateful(const Atom &atom) const;

  Atoms atoms;

private:
  std::optional<Form> found(mlir::Value tensor, const Indices &indices);
  std::optional<Form> made(mlir::Value tensor, const Indices &indices);
  std::optional<Form> reshaped(mlir::Operation *op, const Indices &indices);
  std::optional<Form> structured(mlir::linalg::LinalgOp op,
                                 const Indices &indices);
  std::optional<Form> reduced(mlir::linalg::LinalgOp op, const Indices &loops,
                              int64_t bound, const Indices &indices);
  std::optional<Form> rowMaximum(mlir::linalg::LinalgOp op, mlir::Value term,
                                 const Indices &loops, int64_t bound);
  std::optional<Form> rowSum(const Form &term, int64_t bound);
  std::optional<Form> scalar(mlir::linalg::LinalgOp op, mlir::Value value,
                             const Indices &loops);
  std::optional<Form>
  elementwise(mlir::Operation *op,
              llvm::function_ref<std::optional<Form>(mlir::Value)> operand);

  llvm::DenseSet<mlir::Value> stateful, varying, scores;
  std::map<std::pair<const void *, std::vector<int64_t>>, std::optional<Form>>
      forms;
  int64_t next = 1000; ///< the next index of a reduction loop
};

/// The values of a block that follow on some, which are among them.
llvm::DenseSet<mlir::Value> followersOf(mlir::Block &block,
                                        mlir::ValueRange values);
/// The number that all elements of a tensor, or a scalar, are known to be.
std::optional<double> numberOf(mlir::Value value);
/// What a reduction's body accumulates, and by which operation; nothing where
/// it does something else.
std::pair<mlir::Operation *, mlir::Value> combinerOf(mlir::linalg::LinalgOp op);

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_RECURRENCES_BODYFORMS_H
