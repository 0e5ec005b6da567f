//===- SoftmaxFold.h - folds that are a softmax, block by block -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_RECURRENCES_SOFTMAXFOLD_H
#define TILEWRIGHT_TRANSFORMS_RECURRENCES_SOFTMAXFOLD_H

#include "lib/Transforms/Recurrences/BodyForms.h"

namespace tilewright {

/// What a state is after all blocks; `x` are the scores, `m` their maximum:
/// the sum of `exp(scale * (x - m)) * w`, or that over another such sum.
struct SoftmaxState {
  enum Kind { Maximum, Sum, Quotient } kind = Maximum;
  Indices scores;      ///< indices of the scores, the reduced one bound
  mlir::Value weights; ///< w; none where it is one
  Indices weighted;    ///< indices of the weights
  std::optional<unsigned> under; ///< the state that divides
  Indices divisor;               ///< indices of that
};

/// A fold whose states are the running maximum of scores and sums relative to
/// it.
struct SoftmaxFold {
  mlir::Value scores;
  double scale = 1;
  llvm::SmallVector<SoftmaxState> states;
};

/// The fold as one, or why it is none. An empty reason: it has no state that is
/// a running maximum.
///
/// Proof: with m' = max(m, rowmax x), a sum s = exp(-m) T becomes
/// s' = exp(m - m') s + exp(-m') A = exp(-m') (T + A), A the block's sum of
/// exp(x) w; all sums start at zero, so T is the sum over all blocks (Milakov
/// and Gimelshein, "Online normalizer calculation for softmax", 2018). A
/// quotient o = T / S of two becomes (T + A) / s' exp(-m'), where its update is
/// (exp(m - m') s o + exp(-m') A) / s'. The updates are compared as formulas,
/// however a program writes them.
std::optional<SoftmaxFold> asSoftmax(fractal::FoldOp fold, std::string &why);

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_RECURRENCES_SOFTMAXFOLD_H
