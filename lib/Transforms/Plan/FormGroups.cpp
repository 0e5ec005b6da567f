//===- FormGroups.cpp - tile-form-groups ----------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Tile.h"
#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/Plan/Passes.h"

#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_FORMGROUPS
#include "lib/Transforms/Plan/Passes.h.inc"

namespace {

using Ops = SmallVector<Operation *>;

/// Every use of a value from outside `op` by it or inside it.
void forEachUse(Operation *op, function_ref<void(OpOperand &)> callback) {
  op->walk([&](Operation *inner) {
    for (OpOperand &operand : inner->getOpOperands()) {
      Operation *definer = operand.get().getDefiningOp();
      Region *region = operand.get().getParentRegion();
      if (definer ? op->isProperAncestor(definer)
                  : op->isAncestor(region->getParentOp()))
        continue;
      callback(operand);
    }
  });
}

/// Padding that readers see without its being in memory
/// (`tile.implicit_padding`).
tensor::PadOp implicitPaddingOf(Value value) {
  auto pad = value.getDefiningOp<tensor::PadOp>();
  return pad && pad->hasAttr(tile::decisions::kImplicitPadding)
             ? pad
             : tensor::PadOp();
}

/// Values that each group makes for itself: fresh tensors, fills of them,
/// implicit padding around what it is given, and scalar or splat constants.
/// None of them is work or traffic.
bool isRemade(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (isa<tensor::EmptyOp>(op) || implicitPaddingOf(value))
    return true;
  if (auto fill = dyn_cast<linalg::FillOp>(op))
    return matchPattern(fill.getInputs()[0], m_Constant()) &&
           isRemade(fill.getOutputs()[0]);
  if (!op->hasTrait<OpTrait::ConstantLike>())
    return false;
  DenseElementsAttr elements;
  return !isa<ShapedType>(value.getType()) ||
         (matchPattern(value, m_Constant(&elements)) && elements.isSplat());
}

/// Clones what `isRemade` into the group, operands first.
Value remake(OpBuilder &builder, Value value, IRMapping &mapping) {
  if (Value known = mapping.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  if (auto pad = implicitPaddingOf(value)) {
    Value filler = pad.getConstantPaddingValue();
    if (filler && !pad->isProperAncestor(filler.getDefiningOp()))
      remake(builder, filler, mapping);
    if (isRemade(pad.getSource()))
      remake(builder, pad.getSource(), mapping);
  } else if (!isa<tensor::EmptyOp>(op)) { // whose sizes are inputs
    for (Value operand : op->getOperands())
      remake(builder, operand, mapping);
  }
  return builder.clone(*op, mapping)
      ->getResult(cast<OpResult>(value).getResultNumber());
}

/// What a group needs from outside for a value that it uses: sizes, where it
/// makes the value for itself.
void collectInputs(Value value, llvm::SetVector<Value> &inputs) {
  if (!isRemade(value)) {
    inputs.insert(value);
    return;
  }
  Operation *op = value.getDefiningOp();
  if (isa<tensor::EmptyOp>(op))
    inputs.insert_range(op->getOperands());
  else if (auto pad = implicitPaddingOf(value))
    collectInputs(pad.getSource(), inputs);
  else if (isa<linalg::FillOp>(op))
    for (Value operand : op->getOperands())
      collectInputs(operand, inputs);
}

/// Moves `ops` (in program order) into a new group in place of the last one.
tile::GroupOp wrap(ArrayRef<Operation *> ops, StringRef level) {
  DenseSet<Operation *> members(ops.begin(), ops.end());
  llvm::SetVector<Value> inputs;
  for (Operation *op : ops)
    forEachUse(op, [&](OpOperand &use) {
      Operation *definer = use.get().getDefiningOp();
      if (!members.contains(definer))
        collectInputs(use.get(), inputs);
    });
  SmallVector<Value> results;
  SmallVector<Type> types;
  for (Operation *op : ops)
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(), [&](Operation *user) {
            Operation *top = op->getBlock()->findAncestorOpInBlock(*user);
            return !members.contains(top);
          })) {
        results.push_back(result);
        types.push_back(result.getType());
      }
  OpBuilder builder(ops.back());
  SmallVector<Location> locs;
  for (Operation *op : ops)
    locs.push_back(op->getLoc());
  auto group = tile::GroupOp::create(builder, builder.getFusedLoc(locs), level,
                                     inputs.getArrayRef(), types);
  for (auto [result, outside] : llvm::zip_equal(results, group->getResults()))
    result.replaceUsesWithIf(outside, [&](OpOperand &use) {
      Operation *top =
          group->getBlock()->findAncestorOpInBlock(*use.getOwner());
      return !members.contains(top);
    });
  Block &body = group.getBody().front();
  if (!body.empty())
    body.clear();
  IRMapping mapping;
  for (auto [input, argument] : llvm::zip_equal(inputs, body.getArguments()))
    mapping.map(input, argument);
  for (Operation *op : ops) {
    op->moveBefore(&body, body.end());
    builder.setInsertionPoint(op);
    forEachUse(op, [&](OpOperand &use) {
      if (Value inside = mapping.lookupOrNull(use.get()))
        use.set(inside);
      else if (isRemade(use.get()))
        use.set(remake(builder, use.get(), mapping));
    });
  }
  builder.setInsertionPointToEnd(&body);
  tile::YieldOp::create(builder, group.getLoc(), results);
  return group;
}

struct FormGroups : public impl::FormGroupsBase<FormGroups> {
  using FormGroupsBase::FormGroupsBase;

  void runOnOperation() override {
    SmallVector<Block *> blocks;
    getOperation()->walk([&](Block *block) { blocks.push_back(block); });
    for (Block *block : blocks)
      if (failed(form(*block)))
        return signalPassFailure();
  }

  static bool isNumber(IntegerAttr attr) {
    const APInt &value = attr.getValue();
    return value.getActiveBits() < 32 && !value.isNegative();
  }

  LogicalResult form(Block &block) {
    llvm::MapVector<int64_t, llvm::MapVector<int64_t, Ops>> tasks;
    for (Operation &op : block)
      if (auto task = tile::decisions::kTask.get(op)) {
        auto nest = tile::decisions::kNest.get(op);
        if (!nest)
          return op.emitError("has tile.task but no tile.nest");
        if (!isNumber(task) || !isNumber(nest))
          return op.emitError("numbers its task or its nest with something "
                              "else than 0, 1, ...");
        if (op.hasTrait<OpTrait::IsTerminator>())
          return op.emitError("ends its block, and cannot be part of a task");
        tasks[task.getInt()][nest.getInt()].push_back(&op);
      }
    for (auto &[task, nests] : tasks) {
      Ops inner;
      StringAttr name;
      for (auto &[nest, ops] : nests) {
        for (Operation *op : ops) {
          if (auto attr = tile::decisions::kKernel.get(op))
            name = attr;
          for (StringRef attr : std::initializer_list<StringRef>{
                   tile::decisions::kTask, tile::decisions::kNest,
                   tile::decisions::kKernel})
            op->removeDiscardableAttr(attr);
        }
        inner.push_back(wrap(ops, "register"));
      }
      llvm::sort(inner, [](Operation *a, Operation *b) {
        return a->isBeforeInBlock(b);
      });
      tile::GroupOp outer = wrap(inner, level);
      if (name)
        outer->setDiscardableAttr(tile::decisions::kKernel, name);
      if (!sortTopologically(&outer.getBody().front()))
        return outer.emitError("has register groups that depend on each other "
                               "in a cycle: tile.nest is no valid grouping");
    }
    if (!tasks.empty() && !sortBetweenAssertions(block))
      return block.getParentOp()->emitError(
          "has tasks that depend on each other in a cycle: tile.task is no "
          "valid grouping");
    eraseDead(block);
    return success();
  }

  static bool mayEndRun(Operation &op) {
    return op.walk([](cf::AssertOp) { return WalkResult::interrupt(); })
        .wasInterrupted();
  }

  /// What an assertion guards stays behind it.
  static bool sortBetweenAssertions(Block &block) {
    bool sorted = true;
    auto start = block.begin();
    while (start != block.end()) {
      auto end = std::find_if(start, block.end(), mayEndRun);
      sorted &= sortTopologically(&block, llvm::make_range(start, end));
      start = end == block.end() ? end : std::next(end);
    }
    return sorted;
  }

  /// The groups have copies of their own of initial values and constants.
  static void eraseDead(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
  }
};

} // namespace
} // namespace tilewright
