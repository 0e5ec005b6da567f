//===- GroupsToKernels.cpp - tile-groups-to-kernels -----------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GroupToKernel/Passes.h"
#include "lib/Transforms/GroupToKernel/TaskEmitter.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_GROUPSTOKERNELS
#include "lib/Transforms/GroupToKernel/Passes.h.inc"

namespace {

struct GroupsToKernels : public impl::GroupsToKernelsBase<GroupsToKernels> {
  void runOnOperation() override {
    SymbolTable symbols(getOperation());
    SmallVector<tile::GroupOp> groups;
    getOperation().walk<WalkOrder::PreOrder>([&](tile::GroupOp group) {
      groups.push_back(group);
      return WalkResult::skip();
    });
    for (tile::GroupOp group : groups)
      if (failed(outline(group, symbols)))
        return signalPassFailure();
  }

  static LogicalResult outline(tile::GroupOp group, SymbolTable &symbols) {
    TaskEmitter task(group);
    if (failed(task.analyze()))
      return failure();
    auto host = group->getParentOfType<FunctionOpInterface>();
    OpBuilder builder(host);
    auto name = group->getAttrOfType<StringAttr>("tile.kernel");
    SmallVector<unsigned> read;
    FailureOr<tile::KernelOp> kernel =
        task.emitKernel(builder, name ? name.getValue() : "group", read);
    if (failed(kernel))
      return failure();
    symbols.insert(*kernel, Block::iterator(host));
    launch(builder, group, *kernel, task.gridBounds(), read);
    return success();
  }

  static void launch(OpBuilder &builder, tile::GroupOp group,
                     tile::KernelOp kernel, ArrayRef<int64_t> bounds,
                     ArrayRef<unsigned> read) {
    Location loc = group.getLoc();
    builder.setInsertionPoint(group);
    SmallVector<Value> grid, inputs, outputs;
    for (int64_t bound : bounds)
      grid.push_back(arith::ConstantIndexOp::create(builder, loc, bound));
    for (unsigned number : read)
      inputs.push_back(group->getOperand(number));
    for (OpResult result : group->getResults()) {
      Value destination = destinationOf(group, result.getResultNumber());
      auto type = cast<RankedTensorType>(result.getType());
      outputs.push_back(
          destination ? destination
                      : tensor::EmptyOp::create(builder, loc, type.getShape(),
                                                type.getElementType()));
    }
    auto op = tile::LaunchOp::create(builder, loc, kernel.getSymName(), grid,
                                     inputs, outputs);
    group->replaceAllUsesWith(op->getResults());
    group->erase();
  }
};

} // namespace
} // namespace tilewright
