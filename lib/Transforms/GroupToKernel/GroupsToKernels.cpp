//===- GroupsToKernels.cpp - tile-groups-to-kernels -----------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/TileDecisions.h"
#include "lib/Analysis/Device.h"
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
  using GroupsToKernelsBase::GroupsToKernelsBase;

  void runOnOperation() override {
    room = bufferBytes;
    if (room < 0)
      room = roomOn(Device(getOperation()));
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

  /// What `room` is on a machine: tiles that are loaded ahead of time take
  /// the other half of a GPU's shared memory.
  static int64_t roomOn(const Device &device) {
    std::optional<int64_t> shared =
        device.isGPU() ? device.getLevelBytes("shared") : std::nullopt;
    return shared ? *shared / 2 : INT64_MAX;
  }

  LogicalResult outline(tile::GroupOp group, SymbolTable &symbols) {
    TaskEmitter task(group, room);
    if (failed(task.analyze()))
      return failure();
    auto host = group->getParentOfType<FunctionOpInterface>();
    OpBuilder builder(host);
    auto name = tile::decisions::kKernel.get(group);
    SmallVector<unsigned> read;
    FailureOr<tile::KernelOp> kernel =
        task.emitKernel(builder, name ? name.getValue() : "group", read);
    if (failed(kernel))
      return failure();
    symbols.insert(*kernel, Block::iterator(host));
    launch(builder, group, *kernel, task, read);
    return success();
  }

  /// A new tensor for what a register group makes.
  static Value makePlace(OpBuilder &builder, tile::GroupOp group,
                         OpResult made) {
    auto type = cast<RankedTensorType>(made.getType());
    return tensor::EmptyOp::create(builder, group.getLoc(), type.getShape(),
                                   type.getElementType(),
                                   outerSizes(builder, group, made));
  }

  /// The size of a dimension of an operand of `group`, or of what a register
  /// group makes.
  static Value sizeOf(OpBuilder &builder, tile::GroupOp group,
                      TaskSizes::Source source) {
    auto [tensor, dim] = source;
    if (auto argument = dyn_cast<BlockArgument>(tensor))
      return tensor::DimOp::create(builder, group.getLoc(),
                                   group->getOperand(argument.getArgNumber()),
                                   dim);
    auto type = cast<RankedTensorType>(tensor.getType());
    return outerSizes(builder, group,
                      cast<OpResult>(tensor))[type.getDynamicDimIndex(dim)];
  }

  /// Number of tasks along a dimension of the grid.
  static Value countTasks(OpBuilder &builder, tile::GroupOp group,
                          const TaskEmitter::GridBound &bound) {
    Location loc = group.getLoc();
    if (!ShapedType::isDynamic(bound.extent))
      return arith::ConstantIndexOp::create(
          builder, loc, llvm::divideCeil(bound.extent, bound.tile));
    Value size = sizeOf(builder, group, {bound.tensor, bound.dim});
    AffineExpr extent = builder.getAffineSymbolExpr(0);
    return affine::makeComposedAffineApply(builder, loc,
                                           extent.ceilDiv(bound.tile), {size});
  }

  static void launch(OpBuilder &builder, tile::GroupOp group,
                     tile::KernelOp kernel, const TaskEmitter &task,
                     ArrayRef<unsigned> read) {
    Location loc = group.getLoc();
    builder.setInsertionPoint(group);
    SmallVector<Value> grid, inputs, outputs;
    for (const TaskEmitter::GridBound &bound : task.gridBounds())
      grid.push_back(countTasks(builder, group, bound));
    for (unsigned number : read)
      inputs.push_back(group->getOperand(number));
    for (TaskSizes::Source source : task.sizeArguments())
      inputs.push_back(sizeOf(builder, group, source));
    Operation *yield = group.getBody().front().getTerminator();
    for (OpResult result : group->getResults()) {
      unsigned number = result.getResultNumber();
      Value destination = destinationOf(group, number);
      outputs.push_back(
          destination ? destination
                      : makePlace(builder, group,
                                  cast<OpResult>(yield->getOperand(number))));
    }
    for (OpResult spill : task.spilled())
      outputs.push_back(makePlace(builder, group, spill));
    auto op = tile::LaunchOp::create(builder, loc, kernel.getSymName(), grid,
                                     inputs, outputs);
    group->replaceAllUsesWith(
        op->getResults().take_front(group->getNumResults()));
    group->erase();
  }

  /// Bytes for the buffers of a task.
  int64_t room = INT64_MAX;
};

} // namespace
} // namespace tilewright
