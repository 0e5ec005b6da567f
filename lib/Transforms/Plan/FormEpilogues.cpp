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

/// The operations with `tile.epilogue` that follow from a launch and that no
/// other has `taken`, in order.
EpilogueOps followersOf(tile::LaunchOp launch,
                        const DenseSet<Operation *> &taken) {
  SetVector<Operation *> found;
  SmallVector<Operation *> waiting = {launch};
  while (!waiting.empty())
    for (Operation *user : waiting.pop_back_val()->getUsers())
      if (isa<linalg::GenericOp>(user) &&
          user->getBlock() == launch->getBlock() &&
          user->hasAttr(tile::decisions::kEpilogue) && !taken.contains(user) &&
          found.insert(user))
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

/// Whether a map reads an element for each choice of some of the loops, the
/// first one along its other dimensions, of which there may be any number.
bool isProjection(AffineMap map) {
  llvm::SmallDenseSet<unsigned> seen;
  return llvm::all_of(map.getResults(), [&](AffineExpr at) {
    if (auto dim = dyn_cast<AffineDimExpr>(at))
      return seen.insert(dim.getPosition()).second;
    auto constant = dyn_cast<AffineConstantExpr>(at);
    return constant && constant.getValue() == 0;
  });
}

/// Why an operation does not make a tensor like the launch's element by
/// element, or does not read what is `made` there so; nothing where it does.
std::string reasonAgainst(linalg::GenericOp op, tile::LaunchOp launch,
                          const DenseSet<Operation *> &made) {
  auto shapeOf = [](Operation *op) {
    return cast<RankedTensorType>(op->getResult(0).getType()).getShape();
  };
  if (op->getNumResults() != 1 || op.getNumReductionLoops() ||
      !op.getIndexingMapsArray().back().isIdentity() ||
      shapeOf(op) != shapeOf(launch))
    return ("makes no tensor of the sizes of @" + launch.getKernel() +
            "'s, element by element in the order of its loops")
        .str();
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    bool inside = made.contains(input->get().getDefiningOp());
    if (!isa<RankedTensorType>(input->get().getType()) || !isProjection(map) ||
        (inside && !map.isIdentity()))
      return "reads operand " + std::to_string(input->getOperandNumber()) +
             " otherwise than element by element";
  }
  for (Operation &inner : *op.getBody())
    if (isa<arith::DivSIOp, arith::DivUIOp, arith::RemSIOp, arith::RemUIOp>(
            inner))
      return "divides integers, which tiles at the edge would do by zero";
  return {};
}

/// Whether a kernel writes an argument by plain stores of tiles, and never
/// reads it: then what follows element by element can be computed at these.
/// Otherwise the operation that does something else.
Operation *otherThanStores(Value place) {
  for (Operation *user : place.getUsers()) {
    auto store = dyn_cast<tile::StoreOp>(user);
    bool plain = store && !store.getIndices() && !store.getSteps() &&
                 !store.getReduce() && !store.getTile().getType().getLayout();
    if (!plain && !isa<memref::DimOp>(user))
      return user;
  }
  return nullptr;
}

/// What a launch's tasks can compute, too: of what follows, the most from the
/// first on of which one result is read elsewhere. What follows from two
/// launches is left to the second where the first cannot.
EpilogueOps epilogueOf(tile::LaunchOp launch, tile::KernelOp kernel,
                       const DenseSet<Operation *> &taken) {
  EpilogueOps ops = followersOf(launch, taken);
  if (ops.empty() || !kernel ||
      !launch.getOutputs()[0].getDefiningOp<tensor::EmptyOp>() ||
      otherThanStores(kernel.getInputs()[launch.getInputs().size()]))
    return {};
  DenseSet<Operation *> made = {launch};
  auto usesOf = [](Operation *op) {
    return std::distance(op->use_begin(), op->use_end());
  };
  size_t kept = 0;
  auto elsewhere = usesOf(launch); // reads of what is made before the last
  for (auto [number, op] : llvm::enumerate(ops)) {
    if (!reasonAgainst(op, launch, made).empty())
      break;
    elsewhere -= llvm::count_if(op->getOperands(), [&](Value operand) {
      return made.contains(operand.getDefiningOp());
    });
    made.insert(op);
    if (elsewhere == 0)
      kept = number + 1;
    elsewhere += usesOf(op);
  }
  ops.truncate(kept);
  return ops;
}

/// Says why a launch's tasks cannot compute what follows it.
void explain(tile::LaunchOp launch, tile::KernelOp kernel,
             const EpilogueOps &ops) {
  linalg::GenericOp last = ops.back();
  auto name = launch.getKernelAttr();
  if (!kernel) {
    refuse(last) << "follows " << name << ", which is no tile.kernel";
    return;
  }
  if (!launch.getOutputs()[0].getDefiningOp<tensor::EmptyOp>()) {
    refuse(last) << "asks for what follows " << name
                 << ", which goes on with a tensor that has contents";
    return;
  }
  Value place = kernel.getInputs()[launch.getInputs().size()];
  if (Operation *other = otherThanStores(place)) {
    refuse(last)
        << "asks for what follows " << name
        << ", but this does not only store tiles into its result: it has "
        << other->getName();
    return;
  }
  DenseSet<Operation *> made = {launch};
  for (linalg::GenericOp op : ops) {
    std::string reason = reasonAgainst(op, launch, made);
    if (!reason.empty()) {
      refuse(op) << "stands on an operation that " << reason;
      return;
    }
    made.insert(op);
  }
  refuse(last) << "asks for results in the tasks of " << name
               << ", but something else reads what comes before them: remove "
                  "it here, or set it on all readers that are element by "
                  "element";
}

struct FormEpilogues : public impl::FormEpiloguesBase<FormEpilogues> {
  void runOnOperation() override {
    SmallVector<std::pair<tile::LaunchOp, EpilogueOps>> found;
    DenseSet<Operation *> taken;
    SymbolTable symbols(getOperation());
    getOperation()->walk([&](tile::LaunchOp launch) {
      if (launch->getNumResults() != 1)
        return;
      EpilogueOps ops = epilogueOf(launch, kernelOf(launch, symbols), taken);
      if (ops.empty())
        return;
      taken.insert(ops.begin(), ops.end());
      found.emplace_back(launch, ops);
    });
    WalkResult lost = getOperation()->walk([&](linalg::GenericOp op) {
      if (!op->hasAttr(tile::decisions::kEpilogue) || taken.contains(op))
        return WalkResult::advance();
      explainLost(op, symbols);
      return WalkResult::interrupt();
    });
    if (lost.wasInterrupted())
      return signalPassFailure();
    if (found.empty())
      return markAllAnalysesPreserved();
    for (auto &[launch, ops] : found)
      if (failed(form(launch, ops, symbols)))
        return signalPassFailure();
    for (tile::KernelOp kernel : left)
      if (SymbolTable::symbolKnownUseEmpty(kernel, getOperation()))
        symbols.erase(kernel);
  }

  static tile::KernelOp kernelOf(tile::LaunchOp launch,
                                 const SymbolTable &symbols) {
    return symbols.lookup<tile::KernelOp>(launch.getKernelAttr().getAttr());
  }

  /// Says why no launch's tasks compute an operation.
  void explainLost(linalg::GenericOp op, const SymbolTable &symbols) {
    WalkResult told = getOperation()->walk([&](tile::LaunchOp launch) {
      if (launch->getNumResults() != 1)
        return WalkResult::advance();
      EpilogueOps ops = followersOf(launch, /*taken=*/{});
      if (!llvm::is_contained(ops, op))
        return WalkResult::advance();
      explain(launch, kernelOf(launch, symbols), ops);
      return WalkResult::interrupt();
    });
    if (!told.wasInterrupted())
      refuse(op) << "stands on an operation that follows no tile.launch with "
                    "one result in its block: remove it";
  }

  /// Puts a launch of a kernel that computes the epilogue, too, in the place of
  /// the last operation.
  LogicalResult form(tile::LaunchOp launch, const EpilogueOps &ops,
                     SymbolTable &symbols) {
    tile::KernelOp kernel = kernelOf(launch, symbols);
    unsigned place = launch.getInputs().size();
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
