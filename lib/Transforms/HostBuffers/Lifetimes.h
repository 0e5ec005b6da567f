//===- Lifetimes.h - when the buffers of a function are in use --*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_HOSTBUFFERS_LIFETIMES_H
#define TILEWRIGHT_TRANSFORMS_HOSTBUFFERS_LIFETIMES_H

#include "dialects/Tile/TileDecisions.h"

#include "mlir/Dialect/Bufferization/Transforms/BufferViewFlowAnalysis.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

namespace tilewright {

/// Positions of operations in program order.
class Lifetimes {
public:
  explicit Lifetimes(mlir::func::FuncOp main) : views(main) {
    number(main.getBody().front());
  }

  /// [first, last] use of a buffer; none for one that leaves its block, as what
  /// an iteration hands to the next one does. Teams of blocks (`tile.team`) run
  /// at any time what stands beside each other: what one of them uses, it uses
  /// as long as the others run.
  std::optional<std::pair<int64_t, int64_t>> get(mlir::memref::AllocOp alloc) {
    int64_t first = std::numeric_limits<int64_t>::max(), last = 0;
    for (mlir::Value alias : views.resolve(alloc.getResult())) {
      if (leavesBlock(alias, alloc->getBlock()))
        return std::nullopt;
      for (mlir::Operation *user : alias.getUsers()) {
        if (mlir::isa<mlir::ViewLikeOpInterface>(user))
          continue; // its result is an alias
        mlir::Operation *here = alloc->getBlock()->findAncestorOpInBlock(*user);
        if (!here)
          return std::nullopt;
        first = std::min(first, positions[here].first);
        last = std::max(last, positions[here].second);
      }
    }
    first = std::min(first, last);
    for (auto [begin, end] : teams)
      if (first <= end && begin <= last) {
        first = std::min(first, begin);
        last = std::max(last, end);
      }
    return std::make_pair(first, last);
  }

  /// [first, last] position inside an operation that was there from the start.
  std::optional<std::pair<int64_t, int64_t>> span(mlir::Operation *op) const {
    auto found = positions.find(op);
    if (found == positions.end())
      return std::nullopt;
    return found->second;
  }

private:
  static bool leavesBlock(mlir::Value alias, mlir::Block *home) {
    mlir::Block *block = alias.getParentBlock();
    if (mlir::isa<mlir::BlockArgument>(alias) && block == home)
      return true;
    return block != home && !home->getParent()->isAncestor(block->getParent());
  }

  void number(mlir::Block &block) {
    bool isBehindTeam = false;
    for (mlir::Operation &op : block) {
      int64_t start = ++counter;
      for (mlir::Region &region : op.getRegions())
        for (mlir::Block &nested : region)
          number(nested);
      positions[&op] = {start, ++counter};
      isBehindTeam = addTeam(op, isBehindTeam);
    }
  }

  /// Notes where teams stand, one behind the other; whether the next one would
  /// be behind these.
  bool addTeam(mlir::Operation &op, bool isBehindTeam) {
    if (!tile::decisions::kTeam.get(&op))
      return isBehindTeam && op.getNumRegions() == 0 &&
             (mlir::isMemoryEffectFree(&op) ||
              mlir::isa<mlir::memref::AllocOp>(op));
    if (isBehindTeam)
      teams.back().second = positions[&op].second;
    else
      teams.push_back(positions[&op]);
    return true;
  }

  mlir::BufferViewFlowAnalysis views;
  llvm::DenseMap<mlir::Operation *, std::pair<int64_t, int64_t>> positions;
  llvm::SmallVector<std::pair<int64_t, int64_t>> teams;
  int64_t counter = 0;
};

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_HOSTBUFFERS_LIFETIMES_H
