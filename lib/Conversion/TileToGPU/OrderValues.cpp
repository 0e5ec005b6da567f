//===- OrderValues.cpp - each value is finished before the next one -------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/MatrixProducts.h"
#include "lib/Conversion/TileToGPU/Passes.h"

#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/DenseSet.h"

namespace tilewright {
#define GEN_PASS_DEF_ORDERVALUES
#include "lib/Conversion/TileToGPU/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

/// Whether an op only computes: it may stand anywhere behind its operands.
bool onlyComputes(Operation *op) {
  return op->getNumRegions() == 0 && isPure(op) &&
         !op->hasTrait<OpTrait::IsTerminator>();
}

/// Gives the last part of a block, behind its products, a new order.
class Orderer {
public:
  explicit Orderer(Block &block) : block(block) {
    for (Operation &op : block) {
      part.push_back(&op);
      if (holdsMatrixProduct(&op))
        part.clear();
    }
    waiting.insert_range(part);
  }

  void run() {
    if (part.size() < block.getOperations().size()) // there is a product
      for (Operation *op : part)
        if (!onlyComputes(op))
          place(op);
  }

private:
  /// Moves what an op needs to its front, in the order of its operands. By a
  /// stack of its own: chains are as long as an epilogue's functions.
  void place(Operation *root) {
    SmallVector<Operation *> stack{root};
    while (!stack.empty()) {
      Operation *op = stack.back();
      if (Operation *first = firstWaiting(op)) {
        stack.push_back(first);
        continue;
      }
      stack.pop_back();
      waiting.erase(op);
      if (op != root)
        op->moveBefore(root);
    }
  }

  /// The first op that another one (or what is inside of it) needs and that has
  /// no place yet.
  Operation *firstWaiting(Operation *op) {
    Operation *found = nullptr;
    op->walk<WalkOrder::PreOrder>([&](Operation *inner) {
      for (Value operand : inner->getOperands()) {
        Operation *maker = operand.getDefiningOp();
        if (maker && maker != op && waiting.contains(maker)) {
          found = maker;
          return WalkResult::interrupt();
        }
      }
      return WalkResult::advance();
    });
    return found;
  }

  Block &block;
  SmallVector<Operation *> part;
  DenseSet<Operation *> waiting;
};

struct OrderValues : public tilewright::impl::OrderValuesBase<OrderValues> {
  using OrderValuesBase::OrderValuesBase;

  void runOnOperation() override {
    getOperation()->walk([](gpu::GPUFuncOp function) {
      function.walk([](Block *block) { Orderer(*block).run(); });
    });
  }
};

} // namespace
