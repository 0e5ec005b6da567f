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
#include "lib/Conversion/TileToGPU/BlockTeams.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tilewright {

/// Which launches and copies of a kernel that launches others run beside each
/// other: no one writes what another one touches, so blocks need not meet
/// between them. What one team runs and only the same team needs, its blocks
/// meet behind; what others need, all blocks do.
class LaunchMeetings {
public:
  explicit LaunchMeetings(mlir::gpu::GPUFuncOp function);

  /// Who meets behind an operation: teams, or all (the null one) alone.
  llvm::ArrayRef<mlir::Attribute> behind(mlir::Operation *op) const;
  /// Operations with regions behind which blocks meet.
  llvm::ArrayRef<mlir::Operation *> getNests() const { return nests; }
  /// Launches since the blocks met, which a launch runs beside.
  llvm::ArrayRef<mlir::Operation *> besides(mlir::Operation *op) const {
    auto found = beside.find(op);
    return found == beside.end() ? llvm::ArrayRef<mlir::Operation *>()
                                 : found->second;
  }
  /// Whether the block that runs a launch's only task has run what it needs,
  /// so that its threads meet in front of it, and no blocks.
  bool isFollower(mlir::Operation *op) const { return followers.contains(op); }
  /// Whether a launch or a copy, or one in a nest, may write what a number is
  /// read from.
  bool mayWrite(mlir::Operation *op, mlir::memref::LoadOp load) const;

private:
  /// A launch, a copy, or a number that a team writes, that not all blocks have
  /// met behind; `place`: what of the visited block it is in. `met`: its team
  /// has. `home`: of a launch with one task, the first that its block runs in a
  /// row of such launches.
  struct Pending {
    mlir::Operation *op, *place;
    Team team;
    bool met;
    mlir::Operation *home = nullptr;
  };
  using Work = llvm::SmallVector<Pending>;

  void visit(mlir::Block &block);
  void take(mlir::Operation *op, Work &pending);
  bool hasOneTask(mlir::Operation *op) const;
  void follow(mlir::Operation *op, mlir::Operation *home, Work &pending);
  void touch(mlir::Operation *op, Work &pending);
  void enter(mlir::Operation &op, Work &pending);
  void end(mlir::Block &block, Work &pending);
  void meet(Team team, Work &pending);
  void meetAll(Work &pending);
  void meetEach(Work &pending);
  /// `around`: a loop of which the one is an iteration later.
  bool needs(mlir::Operation *op, mlir::Operation *before,
             mlir::Operation *around = nullptr) const;
  bool mayMeet(mlir::Value one, mlir::Value other,
               mlir::Operation *around = nullptr) const;
  bool mayMeet(llvm::ArrayRef<BufferBytes> some,
               llvm::ArrayRef<BufferBytes> others) const;
  bool areApart(mlir::scf::ForOp loop) const;
  llvm::SmallVector<BufferBytes> bytesOf(mlir::Value memref) const;
  void addBytes(mlir::Value memref, llvm::SmallPtrSetImpl<mlir::Value> &seen,
                llvm::SmallVectorImpl<BufferBytes> &found) const;

  SharedArguments shared;
  /// Whether warps have roles: a row of launches is then none of one block.
  bool haveRoles;
  llvm::SmallPtrSet<mlir::Operation *, 8> followers;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Attribute>>
      meetings;
  llvm::SmallVector<mlir::Operation *> nests;
  llvm::DenseMap<mlir::Operation *, llvm::SmallVector<mlir::Operation *>>
      beside;
};

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOGPU_LAUNCHMEETINGS_H
