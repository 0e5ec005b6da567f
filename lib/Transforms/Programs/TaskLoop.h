//===- TaskLoop.h - loops that each task can run alone ----------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_PROGRAMS_TASKLOOP_H
#define TILEWRIGHT_TRANSFORMS_PROGRAMS_TASKLOOP_H

#include "dialects/Tile/Tile.h"
#include "lib/Transforms/Programs/TaskBox.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/SymbolTable.h"

namespace tilewright {

/// A loop around launches of one grid: whether a task of one iteration touches
/// nothing that others have touched in iterations before, so that each task
/// can run all iterations by itself.
class TaskLoop {
public:
  TaskLoop(mlir::scf::ForOp loop, mlir::SymbolTable &symbols)
      : loop(loop), symbols(symbols) {}

  /// Why tasks cannot run alone; "" where they can.
  std::string findObstacle();
  llvm::ArrayRef<tile::LaunchOp> getLaunches() const { return launches; }
  tile::KernelOp getKernel(tile::LaunchOp launch);

private:
  /// What a view takes of a dimension of its source: the elements from `offset`
  /// on that its dimension `dim` counts, or (-1) the one element there.
  struct Place {
    int64_t offset;
    int64_t dim;
  };

  /// An operand of a launch, and where its bytes are.
  struct Operand {
    tile::LaunchOp launch;
    unsigned number;
    bool isWritten;
    llvm::SmallPtrSet<mlir::Value, 4> roots;
    /// Where its elements are in what it is a view of, dimension by dimension.
    llvm::SmallVector<Place> places;
    mlir::Type whole;
  };

  static std::optional<llvm::SmallVector<Place>>
  describe(mlir::memref::SubViewOp view);
  std::optional<TaskBox> findPlaces(const Operand &operand,
                                    mlir::Operation *access);
  std::string findLaunches();
  std::string obstacleOf(tile::LaunchOp launch);
  bool isSameGrid(tile::LaunchOp launch, tile::LaunchOp other);
  void addOperands(tile::LaunchOp launch);
  void addRoots(mlir::Value memref, Operand &operand);
  bool isKnown(mlir::Value root);
  bool mayMeet(const Operand &one, const Operand &other);
  bool haveSamePlaces(const Operand &one, const Operand &other);
  bool areTasksApart(const Operand &one, const Operand &other);
  llvm::SmallVector<mlir::Operation *> accessesOf(const Operand &operand,
                                                  bool areWrites);
  /// Whether iterations hand it on.
  bool isHandedOn(mlir::Value value);

  mlir::scf::ForOp loop;
  mlir::SymbolTable &symbols;
  llvm::SmallVector<tile::LaunchOp> launches;
  llvm::SmallVector<Operand> operands;
  /// Coordinates that have more than one value.
  llvm::SmallVector<unsigned> coordinates;
};

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_PROGRAMS_TASKLOOP_H
