//===- EpilogueTiles.h - elementwise operations in a kernel -----*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Computes operations that are element by element on the tiles which a kernel
// stores, right before it stores them. As the kernel never reads what it
// stores there, it does not matter how often a place is written.
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_PLAN_EPILOGUETILES_H
#define TILEWRIGHT_TRANSFORMS_PLAN_EPILOGUETILES_H

#include "dialects/Tile/Tile.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "llvm/ADT/SetVector.h"

#include <string>

namespace tilewright {

/// Operations, element by element, of which the last one's result is read.
using EpilogueOps = llvm::SmallVector<mlir::linalg::GenericOp>;

/// What they read besides `result` and each other's results.
llvm::SetVector<mlir::Value> operandsOf(mlir::Value result,
                                        const EpilogueOps &ops);

/// What they compute, in a word.
std::string nameOf(const EpilogueOps &ops);

/// Gives a kernel arguments for `operands`, before argument number `place`, and
/// lets it store there what `ops` make of `result`, which it stored so far.
llvm::LogicalResult computeEpilogue(tile::KernelOp kernel, unsigned place,
                                    mlir::Value result, const EpilogueOps &ops,
                                    llvm::ArrayRef<mlir::Value> operands);

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_PLAN_EPILOGUETILES_H
