//===- Lifetimes.h - when the buffers of a function are in use --*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_HOSTBUFFERS_LIFETIMES_H
#define TILEWRIGHT_TRANSFORMS_HOSTBUFFERS_LIFETIMES_H

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
  /// an iteration hands to the next one does.
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
    return std::make_pair(std::min(first, last), last);
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
    for (mlir::Operation &op : block) {
      int64_t start = ++counter;
      for (mlir::Region &region : op.getRegions())
        for (mlir::Block &nested : region)
          number(nested);
      positions[&op] = {start, ++counter};
    }
  }

  mlir::BufferViewFlowAnalysis views;
  llvm::DenseMap<mlir::Operation *, std::pair<int64_t, int64_t>> positions;
  int64_t counter = 0;
};

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_HOSTBUFFERS_LIFETIMES_H
