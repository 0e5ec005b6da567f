//===- JoinedBlocks.h - what a body makes, of all blocks at once -*- C++
//-*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_RECURRENCES_JOINEDBLOCKS_H
#define TILEWRIGHT_TRANSFORMS_RECURRENCES_JOINEDBLOCKS_H

#include "lib/Transforms/Recurrences/BodyForms.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace tilewright {

/// Tensors of a fold's body along whose dimension the blocks of all elements
/// stand side by side.
class JoinedBlocks {
public:
  /// The builder stands in front of the fold.
  JoinedBlocks(mlir::ImplicitLocOpBuilder &b, fractal::FoldOp fold,
               int64_t length)
      : b(b), fold(fold), length(length),
        varying(followersOf(fold.getBodyBlock(),
                            fold.getBodyBlock().getArguments())) {}

  /// A tensor of the body, joined along a dimension; null where it is not made
  /// row by row of elements.
  mlir::Value join(mlir::Value tensor, int64_t dim);

private:
  mlir::Value build(mlir::Value tensor, int64_t dim);
  mlir::Value element(mlir::BlockArgument argument, int64_t dim);
  mlir::Value structured(mlir::linalg::LinalgOp op, int64_t dim);
  mlir::Value input(mlir::linalg::LinalgOp op, mlir::OpOperand *input,
                    unsigned loop);
  mlir::Value place(mlir::Value same, int64_t dim);
  mlir::Operation *copied(mlir::Operation *op,
                          llvm::ArrayRef<mlir::Value> operands);
  mlir::Value outside(mlir::Value value);
  mlir::RankedTensorType joinedType(mlir::Value tensor, int64_t dim) const;

  mlir::ImplicitLocOpBuilder &b;
  fractal::FoldOp fold;
  int64_t length;
  llvm::DenseSet<mlir::Value> varying;
  llvm::DenseMap<std::pair<mlir::Value, int64_t>, mlir::Value> known;
};

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_RECURRENCES_JOINEDBLOCKS_H
