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

  /// The operands of the only launch of each program.
  using ProgramOperands =
      llvm::DenseMap<mlir::StringAttr, llvm::SmallVector<mlir::Value>>;

private:
  /// The operands of each launch or place of a kernel.
  llvm::DenseMap<mlir::StringAttr,
                 llvm::SmallVector<llvm::SmallVector<mlir::Value>>>
      launches;
  ProgramOperands programs;
};

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETORUNTIME_LAUNCHALIASING_H
