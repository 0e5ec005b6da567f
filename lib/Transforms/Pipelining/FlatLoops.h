//===- FlatLoops.h - nests of loops as one --------------------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_PIPELINING_FLATLOOPS_H
#define TILEWRIGHT_TRANSFORMS_PIPELINING_FLATLOOPS_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tilewright {

/// The outermost loop around `loop`, itself where there is none, of those that
/// only run the next inner one a known number of times: what that carries is
/// what they carry.
mlir::scf::ForOp outermostOf(mlir::scf::ForOp loop);

/// One loop in place of a nest of such: a ring that is emptied and filled anew
/// for each place of a window hides nothing. It keeps `tile.stages`.
mlir::scf::ForOp flattened(mlir::scf::ForOp loop);

/// Whether a branch around a loop that counts steps from 0 says that there are
/// some.
bool runsInBranch(mlir::scf::ForOp loop);

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_PIPELINING_FLATLOOPS_H
