//===- LaunchAliasing.h - which kernel arguments may overlap -*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETORUNTIME_LAUNCHALIASING_H
#define TILEWRIGHT_CONVERSION_TILETORUNTIME_LAUNCHALIASING_H

#include "lib/Conversion/TileToRuntime/Passes.h"

namespace tilewright {

/// What the launches of a module say about their operands.
class LaunchAliasing {
public:
  explicit LaunchAliasing(mlir::ModuleOp module);

  /// Memref arguments of a kernel that overlap no other argument in any launch;
  /// none for a kernel that is never launched, whose caller is unknown.
  llvm::SmallVector<int64_t> getDistinctArguments(tile::KernelOp kernel) const;

private:
  llvm::DenseMap<mlir::StringAttr, llvm::SmallVector<tile::LaunchOp>> launches;
};

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETORUNTIME_LAUNCHALIASING_H
