//===- LaunchMeetings.h - behind which launches blocks meet -----*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOGPU_LAUNCHMEETINGS_H
#define TILEWRIGHT_CONVERSION_TILETOGPU_LAUNCHMEETINGS_H

#include "dialects/Tile/Tile.h"
#include "lib/Analysis/BufferBytes.h"
#include "lib/Analysis/SharedArguments.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tilewright {

/// Which launches and copies of a kernel that launches others run beside each
/// other: no one writes what another one touches, so blocks need not meet
/// between them.
class LaunchMeetings {
public:
  explicit LaunchMeetings(mlir::gpu::GPUFuncOp function);

  /// Whether all blocks meet behind a launch or a copy.
  bool meetBehind(mlir::Operation *op) const { return last.contains(op); }
  /// Launches since the blocks met, which a launch runs beside.
  llvm::ArrayRef<mlir::Operation *> besides(mlir::Operation *op) const {
    auto found = beside.find(op);
    return found == beside.end() ? llvm::ArrayRef<mlir::Operation *>()
                                 : found->second;
  }

private:
  void visit(mlir::Block &block);
  bool needs(mlir::Operation *op, mlir::Operation *before) const;
  bool mayMeet(mlir::Value one, mlir::Value other) const;
  bool mayMeet(llvm::ArrayRef<BufferBytes> some,
               llvm::ArrayRef<BufferBytes> others) const;
  bool areApart(mlir::scf::ForOp loop) const;
  llvm::SmallVector<BufferBytes> bytesOf(mlir::Value memref) const;
  void addBytes(mlir::Value memref, llvm::SmallPtrSetImpl<mlir::Value> &seen,
                llvm::SmallVectorImpl<BufferBytes> &found) const;

  SharedArguments shared;
  llvm::SmallPtrSet<mlir::Operation *, 8> last;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Operation *>>
      beside;
};

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOGPU_LAUNCHMEETINGS_H
