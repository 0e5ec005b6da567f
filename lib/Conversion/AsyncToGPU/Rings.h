//===- Rings.h - loops that load ahead of time -===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_ASYNCTOGPU_RINGS_H
#define TILEWRIGHT_CONVERSION_ASYNCTOGPU_RINGS_H

#include "dialects/Tile/Tile.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

#include <string>

namespace tilewright {

/// A loop in the form that `tile-pipeline-loads` gives it, and people write:
/// step `s` of 0, 1, .. waits for its own token and starts the copies of step
/// `s + stages - 1`, if there is one; a token is carried per step under way.
struct Ring {
  mlir::scf::ForOp loop;
  /// Starts copies, where there is a step `ahead`.
  mlir::scf::IfOp issue;
  mlir::Value ahead;
  tile::AsyncOp async;
  llvm::SmallVector<tile::AwaitOp> awaits;
  /// Positions of the tokens among what the loop carries.
  llvm::SmallVector<unsigned> tokens;

  int64_t getStages() const { return tokens.size() + 1; }
  mlir::Value getSteps() const {
    return mlir::scf::ForOp(loop).getUpperBound();
  }
};

/// The ring of a loop that carries tokens; else what it is not, in `reason`.
std::optional<Ring> matchRing(mlir::scf::ForOp loop, std::string &reason);

/// Whether a loop carries tokens.
bool carriesTokens(mlir::scf::ForOp loop);

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_ASYNCTOGPU_RINGS_H
