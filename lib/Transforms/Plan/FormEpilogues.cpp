//===- FormEpilogues.cpp - tile-form-epilogues ----------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Tile.h"
#include "dialects/Tile/TileDecisions.h"
#include "lib/Transforms/Plan/EpilogueTiles.h"
#include "lib/Transforms/Plan/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/SymbolTable.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_FORMEPILOGUES
#include "lib/Transforms/Plan/Passes.h.inc"

namespace {

/// The operations with `tile.epilogue` that follow from a launch, in order.
EpilogueOps epilogueOf(tile::LaunchOp launch) {
  SetVector<Operation *> found;
  SmallVector<Operation *> waiting = {launch};
  while (!waiting.empty())
    for (Operation *user : waiting.pop_back_val()->getUsers())
      if (isa<linalg::GenericOp>(user) &&
          user->getBlock() == launch->getBlock() &&
          user->hasAttr(tile::decisions::kEpilogue) && found.insert(user))
        waiting.push_back(user);
  EpilogueOps ops = llvm::map_to_vector(
      found, [](Operation *op) { return cast<linalg::GenericOp>(op); });
  llvm::sort(ops, [](linalg::GenericOp a, linalg::GenericOp b) {
    return a->isBeforeInBlock(b);
  });
  return ops;
}

InFlightDiagnostic refuse(Operation *op) {
  return op->emitError() << "'" << tile::decisions::kEpilogue.name << "' ";
}

/// Whether an operation makes a tensor like the launch's element by element,
/// and reads what is `made` there so, too.
LogicalResult verifyOp(linalg::GenericOp op, tile::LaunchOp launch,
                       const SetVector<Operation *> &made) {
  auto shapeOf = [](Operation *op) {
    return cast<RankedTensorType>(op->getResult(0).getType()).getShape();
  };
  if (op->getNumResults() != 1 || op.getNumReductionLoops() ||
      !op.getIndexingMapsArray().back().isIdentity() ||
      shapeOf(op) != shapeOf(launch))
    return refuse(op) << "stands on an operation that makes no tensor of the "
                         "sizes of "
                      << launch.getKernelAttr()
                      << "'s, element by element in the order of its loops";
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    bool inside = made.contains(input->get().getDefiningOp());
    if (!isa<RankedTensorType>(input->get().getType()) ||
        !map.isProjectedPermutation(/*allowZeroInResults=*/true) ||
        (inside && !map.isIdentity()))
      return refuse(op) << "stands on an operation that reads operand "
                        << input->getOperandNumber()
                        << " otherwise than element by element";
  }
  for (Operation &inner : *op.getBody())
    if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(
            inner))
      return refuse(op) << "stands on an operation that divides integers, "
                           "which tiles at the edge would do by zero";
  return success();
}

/// Whether all operations can be computed behind the launch, and the last one's
/// result alone is read elsewhere.
LogicalResult verifyOps(tile::LaunchOp launch, const EpilogueOps &ops) {
  SetVector<Operation *> made;
  made.insert(launch);
  for (linalg::GenericOp op : ops) {
    if (failed(verifyOp(op, launch, made)))
      return failure();
    made.insert(op);
  }
  for (Operation *op : made.getArrayRef().drop_back())
    if (!llvm::all_of(op->getUsers(),
                      [&](Operation *user) { return made.contains(user); }))
      return refuse(linalg::GenericOp(ops.back()))
             << "asks for results in the tasks of " << launch.getKernelAttr()
             << ", but something else reads what comes before them: remove it "
                "here, or set it on all readers that are element by element";
  return success();
}

/// Whether a kernel writes an argument by plain stores of tiles, and never
/// reads it: then what follows element by element can be computed at these.
LogicalResult verifyKernel(tile::LaunchOp launch, tile::KernelOp kernel,
                           Value place, Operation *asked) {
  if (!launch.getOutputs()[0].getDefiningOp<tensor::EmptyOp>())
    return refuse(asked) << "asks for what follows " << launch.getKernelAttr()
                         << ", which goes on with a tensor that has contents";
  for (Operation *user : place.getUsers()) {
    auto store = dyn_cast<tile::StoreOp>(user);
    bool plain = store && !store.getIndices() && !store.getSteps() &&
                 !store.getReduce() && !store.getTile().getType().getLayout();
    if (!plain && !isa<memref::DimOp>(user))
      return refuse(asked)
             << "asks for what follows @" << kernel.getSymName()
             << ", but this does not only store tiles into its result: it has "
             << user->getName();
  }
  return success();
}

struct FormEpilogues : public impl::FormEpiloguesBase<FormEpilogues> {
  void runOnOperation() override {
    SmallVector<std::pair<tile::LaunchOp, EpilogueOps>> found;
    DenseSet<Operation *> taken;
    getOperation()->walk([&](tile::LaunchOp launch) {
      if (launch->getNumResults() != 1)
        return;
      EpilogueOps ops = epilogueOf(launch);
      if (ops.empty())
        return;
      taken.insert(ops.begin(), ops.end());
      found.emplace_back(launch, ops);
    });
    WalkResult lost = getOperation()->walk([&](linalg::GenericOp op) {
      if (!op->hasAttr(tile::decisions::kEpilogue) || taken.contains(op))
        return WalkResult::advance();
      refuse(op) << "stands on an operation that follows no tile.launch with "
                    "one result in its block: remove it";
      return WalkResult::interrupt();
    });
    if (lost.wasInterrupted())
      return signalPassFailure();
    if (found.empty())
      return markAllAnalysesPreserved();
    SymbolTable symbols(getOperation());
    for (auto &[launch, ops] : found)
      if (failed(form(launch, ops, symbols)))
        return signalPassFailure();
    for (tile::KernelOp kernel : left)
      if (SymbolTable::symbolKnownUseEmpty(kernel, getOperation()))
        symbols.erase(kernel);
  }

  /// Puts a launch of a kernel that computes the epilogue, too, in the place of
  /// the last operation.
  LogicalResult form(tile::LaunchOp launch, const EpilogueOps &ops,
                     SymbolTable &symbols) {
    linalg::GenericOp last = ops.back();
    auto kernel =
        symbols.lookup<tile::KernelOp>(launch.getKernelAttr().getAttr());
    if (!kernel)
      return refuse(last) << "follows " << launch.getKernelAttr()
                          << ", which is no tile.kernel";
    unsigned place = launch.getInputs().size();
    if (failed(verifyOps(launch, ops)) ||
        failed(verifyKernel(launch, kernel, kernel.getInputs()[place], last)))
      return failure();
    SetVector<Value> operands = operandsOf(launch->getResult(0), ops);
    auto fused = cast<tile::KernelOp>(kernel->clone());
    fused.setSymName((kernel.getSymName() + "_" + nameOf(ops)).str());
    symbols.insert(fused, kernel->getIterator());
    if (failed(computeEpilogue(fused, place, launch->getResult(0), ops,
                               operands.getArrayRef())))
      return failure();
    left.insert(kernel);
    replace(launch, ops, operands.getArrayRef(), fused);
    return success();
  }

  static void replace(tile::LaunchOp launch, const EpilogueOps &ops,
                      ArrayRef<Value> operands, tile::KernelOp fused) {
    linalg::GenericOp last = ops.back();
    OpBuilder b(last);
    auto type = cast<RankedTensorType>(last->getResult(0).getType());
    auto before = cast<RankedTensorType>(launch->getResult(0).getType());
    Value target = launch.getOutputs()[0];
    if (type != before)
      target = tensor::EmptyOp::create(
          b, launch.getLoc(), tensor::getMixedSizes(b, launch.getLoc(), target),
          type.getElementType());
    SmallVector<Value> inputs(launch.getInputs());
    llvm::append_range(inputs, operands);
    auto made = tile::LaunchOp::create(
        b, FusedLoc::get(b.getContext(), {launch.getLoc(), last.getLoc()}),
        TypeRange{target.getType()},
        FlatSymbolRefAttr::get(fused.getSymNameAttr()), launch.getGrid(),
        inputs, ValueRange{target});
    made->setDiscardableAttrs(launch->getDiscardableAttrDictionary());
    last->getResult(0).replaceAllUsesWith(made->getResult(0));
    for (linalg::GenericOp op : llvm::reverse(ops))
      op->erase();
    launch->erase();
  }

  llvm::SetVector<tile::KernelOp> left;
};

} // namespace
} // namespace tilewright
