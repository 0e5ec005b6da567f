//===- OrderedReads.h - reads before what may be written --------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOGPU_ORDEREDREADS_H
#define TILEWRIGHT_CONVERSION_TILETOGPU_ORDEREDREADS_H

#include "lib/Conversion/TileToGPU/LaunchMeetings.h"

namespace tilewright {

/// Blocks behind a barrier may write, by a launch, numbers that others have
/// still to read: such reads are done before blocks meet.
class OrderedReads {
public:
  /// `mayBeWritten`: whether what the kernel launches may write a buffer.
  OrderedReads(mlir::gpu::GPUFuncOp function, const LaunchMeetings &meetings,
               llvm::function_ref<bool(mlir::Value)> mayBeWritten);

  /// Before which operations blocks meet, and which: a team, or all (null).
  llvm::ArrayRef<std::pair<mlir::Operation *, Team>> getMeetings() const {
    return found;
  }

private:
  /// Reads since blocks met.
  using Reads = llvm::SmallVector<mlir::memref::LoadOp>;

  Reads visit(mlir::Block &block, Reads pending);
  Reads enter(mlir::Operation &op, Reads pending);
  void write(mlir::Operation &op, Reads &pending);
  Reads readsIn(mlir::Operation &op);

  const LaunchMeetings &meetings;
  llvm::function_ref<bool(mlir::Value)> mayBeWritten;
  llvm::SmallVector<std::pair<mlir::Operation *, Team>> found;
};

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOGPU_ORDEREDREADS_H
