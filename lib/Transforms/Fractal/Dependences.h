//===- Dependences.h - which iteration reads which --------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_FRACTAL_DEPENDENCES_H
#define TILEWRIGHT_TRANSFORMS_FRACTAL_DEPENDENCES_H

#include "lib/Transforms/Fractal/Elements.h"
#include "mlir/Analysis/FlatLinearValueConstraints.h"

namespace tilewright::fractal {

/// Dimensions and symbols of a set, in which symbols are lengths: not negative.
struct Space {
  unsigned dims = 0, symbols = 0;
};

/// The points where all of these hold. What is not affine is left out: there
/// may be more points than there should, never fewer.
mlir::FlatLinearConstraints polyhedron(Space space,
                                       llvm::ArrayRef<Constraint> constraints);
bool isEmpty(Space space, llvm::ArrayRef<Constraint> constraints);
/// Those of `constraints` that do not follow from the others and `known`.
Constraints simplified(Space space, Constraints constraints,
                       llvm::ArrayRef<Constraint> known);

Constraints constraintsOf(mlir::IntegerSet set);
/// A set of at least one constraint, true if there are none.
mlir::IntegerSet setOf(mlir::MLIRContext *context, Space space,
                       llvm::ArrayRef<Constraint> constraints);
/// Where a read of a block takes place: domain and condition.
Constraints whereRead(BlockOp block, int64_t read);

/// A read of what the block has written itself.
struct Dependence {
  /// Dimensions: of the reading iteration, levels, then the distance: the
  /// reading iteration minus the one that wrote.
  Space space;
  Constraints relation;
  unsigned distanceAt = 0;
  /// The distance if it is the same everywhere.
  std::optional<llvm::SmallVector<int64_t>> distance;
};

llvm::SmallVector<Dependence> findDependences(BlockOp block);

} // namespace tilewright::fractal

#endif // TILEWRIGHT_TRANSFORMS_FRACTAL_DEPENDENCES_H
