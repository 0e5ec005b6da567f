//===- Elements.h - which leaf stands where ---------------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_FRACTAL_ELEMENTS_H
#define TILEWRIGHT_TRANSFORMS_FRACTAL_ELEMENTS_H

#include "dialects/Fractal/Fractal.h"

namespace tilewright::fractal {

/// `expr >= 0`, or `expr == 0`.
struct Constraint {
  mlir::AffineExpr expr;
  bool isEqual = false;
};

using Exprs = llvm::SmallVector<mlir::AffineExpr>;
using Constraints = llvm::SmallVector<Constraint>;

/// Where a buffer is read, and under which conditions. Dimensions are the loops
/// around the reader, outermost first, then the levels of the element read.
struct Piece {
  unsigned buffer = 0;
  Exprs place;
  Constraints where;
  /// The place holds what a run may choose, not what it chooses.
  bool indirect = false;
};

/// What a value is: for each leaf of it, at each iteration of the loops around,
/// the leaf of a buffer. Entering a list turns its first level into the
/// innermost loop; both have the same dimension, so that no expression changes.
struct Element {
  unsigned loops = 0;
  llvm::SmallVector<Piece> pieces;
  /// Length of each level, in terms of loops and the levels before.
  Exprs lengths;

  unsigned rank() const { return loops + lengths.size(); }
  /// An element of the list, in one loop more.
  Element entered() const;
  /// The list of such elements, in one loop less.
  Element listed(mlir::AffineExpr length) const;
  /// The same in more loops, which it does not vary with.
  Element within(unsigned loops) const;
  /// The first levels are read at `places`, and the first levels of the result
  /// are those of `lengths`. One of the two is not empty.
  Element accessed(llvm::ArrayRef<mlir::AffineExpr> places,
                   llvm::ArrayRef<mlir::AffineExpr> lengths) const;
  /// In one loop less: what it is at iteration `at` of the innermost loop.
  Element atIteration(mlir::AffineExpr at) const;
  /// Only where these hold too.
  Element where(llvm::ArrayRef<Constraint> conditions) const;
};

/// Each expression with its dimensions replaced.
Exprs replaced(llvm::ArrayRef<mlir::AffineExpr> exprs,
               llvm::ArrayRef<mlir::AffineExpr> dims);
Constraints replaced(llvm::ArrayRef<Constraint> constraints,
                     llvm::ArrayRef<mlir::AffineExpr> dims);
/// Dimensions `from` to `to`.
Exprs dimRange(mlir::MLIRContext *context, unsigned from, unsigned to);

} // namespace tilewright::fractal

#endif // TILEWRIGHT_TRANSFORMS_FRACTAL_ELEMENTS_H
