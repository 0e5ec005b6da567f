//===- BranchResults.h - values that branches hand on -----------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_ASYNCTOGPU_BRANCHRESULTS_H
#define TILEWRIGHT_CONVERSION_ASYNCTOGPU_BRANCHRESULTS_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tilewright {

/// Makes a branch give more results: `then` of its one block, `otherwise` of
/// the other, which is made where there is none. Replaces `branch` by the new
/// one, and gives the added results.
mlir::SmallVector<mlir::Value> addResults(mlir::scf::IfOp &branch,
                                          mlir::ValueRange then,
                                          mlir::ValueRange otherwise);

/// What `values`, made in a block below that of `scope`, are at the end of
/// `scope`'s body: branches between hand them on, or else `otherwise`. All
/// operations between are branches.
mlir::SmallVector<mlir::Value> handOut(mlir::Block *from,
                                       mlir::Operation *scope,
                                       mlir::SmallVector<mlir::Value> values,
                                       mlir::ValueRange otherwise);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_ASYNCTOGPU_BRANCHRESULTS_H
