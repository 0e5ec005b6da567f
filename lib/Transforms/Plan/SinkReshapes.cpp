//===- SinkReshapes.cpp - tile-sink-reshapes ------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Tile/Tile.h"
#include "lib/Transforms/Plan/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"

using namespace mlir;

namespace tilewright {
#define GEN_PASS_DEF_SINKRESHAPES
#include "lib/Transforms/Plan/Passes.h.inc"

namespace {

/// Whether an operation makes one tensor element by element in the order of its
/// loops.
bool isElementwise(linalg::GenericOp op) {
  return op && op->getNumResults() == 1 && !op.getNumReductionLoops() &&
         op.getIndexingMapsArray().back().isIdentity();
}

/// Whether it reads a tensor where it writes its result, each time.
bool readsInPlace(linalg::GenericOp op, Value tensor) {
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    return operand.get() != tensor ||
           (op.isDpsInput(&operand) &&
            op.getMatchingIndexingMap(&operand).isIdentity());
  });
}

/// Whether nothing but operations that go over it element by element reads a
/// tensor's elements, directly or where it is expanded. What sums over it, for
/// one, would else be apart from what goes over it beside the sum.
bool isReadElementwise(Value value) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    if (isa<tensor::DimOp>(user))
      return true;
    if (auto expand = dyn_cast<tensor::ExpandShapeOp>(user))
      return isReadElementwise(expand.getResult());
    auto op = dyn_cast<linalg::GenericOp>(user);
    return isElementwise(op) && readsInPlace(op, value);
  });
}

/// What was expanded and is collapsed alike is what it was before.
void foldCollapse(Operation *op) {
  auto collapse = dyn_cast_if_present<tensor::CollapseShapeOp>(op);
  auto expand = collapse
                    ? collapse.getSrc().getDefiningOp<tensor::ExpandShapeOp>()
                    : tensor::ExpandShapeOp();
  if (!expand || expand.getSrcType() != collapse.getResultType() ||
      expand.getReassociation() != collapse.getReassociation())
    return;
  collapse.getResult().replaceAllUsesWith(expand.getSrc());
  collapse->erase();
}

/// Names the sizes of what is expanded as they were given: who asks for them is
/// no reader then. Loops over sizes of a run ask so.
void nameSizes(tensor::ExpandShapeOp expand) {
  SmallVector<OpFoldResult> sizes = expand.getMixedOutputShape();
  for (Operation *user : llvm::make_early_inc_range(expand->getUsers())) {
    auto dim = dyn_cast<tensor::DimOp>(user);
    std::optional<int64_t> index =
        dim ? dim.getConstantIndex() : std::optional<int64_t>();
    if (!index)
      continue;
    OpBuilder b(dim);
    dim.getResult().replaceAllUsesWith(
        getValueOrCreateConstantIndexOp(b, dim.getLoc(), sizes[*index]));
    dim->erase();
  }
}

/// An operand's map, and which of its dimensions lie together, without those of
/// one element that the operation reads at zero: no loop runs over these.
struct Reduced {
  AffineMap map;
  SmallVector<int64_t> shape;
  std::optional<SmallVector<ReassociationIndices>> groups;

  static Reduced of(linalg::GenericOp op, OpOperand &operand) {
    Reduced found = {op.getMatchingIndexingMap(&operand), {}, std::nullopt};
    auto type = cast<RankedTensorType>(operand.get().getType());
    SmallVector<AffineExpr> left;
    for (auto [at, size] :
         llvm::zip_equal(found.map.getResults(), type.getShape())) {
      if (size == 1 && isa<AffineConstantExpr>(at))
        continue;
      left.push_back(at);
      found.shape.push_back(size);
    }
    if (left.size() == type.getShape().size())
      return found;
    found.groups =
        getReassociationIndicesForCollapse(type.getShape(), found.shape);
    if (found.groups)
      found.map =
          AffineMap::get(found.map.getNumDims(), 0, left, op->getContext());
    return found;
  }
};

/// Whether an operation reads all operands so that each group of its loops is
/// one loop; they lose dimensions of one element for that.
bool alignOperands(linalg::GenericOp op,
                   ArrayRef<ReassociationIndices> groups) {
  if (!llvm::all_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>))
    return false;
  SmallVector<Reduced> reduced;
  SmallVector<AffineMap> maps;
  for (OpOperand &operand : op->getOpOperands()) {
    reduced.push_back(Reduced::of(op, operand));
    maps.push_back(reduced.back().map);
  }
  if (!llvm::all_of(maps,
                    [](AffineMap map) { return map.isProjectedPermutation(); }))
    return false;
  if (!linalg::areDimSequencesPreserved(maps, groups))
    return false;
  OpBuilder b(op);
  for (auto [operand, one] : llvm::zip_equal(op->getOpOperands(), reduced)) {
    if (!one.groups)
      continue;
    auto type = cast<RankedTensorType>(operand.get().getType());
    operand.set(tensor::CollapseShapeOp::create(
        b, op.getLoc(), RankedTensorType::get(one.shape, type.getElementType()),
        operand.get(), *one.groups));
  }
  op.setIndexingMapsAttr(b.getAffineMapArrayAttr(maps));
  return true;
}

/// Lets an operation run over what was expanded, and expands its result;
/// returns that, null where another operand does not lie so.
Value sink(tensor::ExpandShapeOp expand, linalg::GenericOp op) {
  SmallVector<ReassociationIndices> groups = expand.getReassociationIndices();
  if (!isElementwise(op) || !readsInPlace(op, expand.getResult()) ||
      !alignOperands(op, groups))
    return {};
  IRRewriter rewriter(op);
  FailureOr<linalg::CollapseResult> made =
      linalg::collapseOpIterationDims(op, groups, rewriter);
  if (failed(made))
    return {};
  made->collapsedOp->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  rewriter.replaceOp(op, made->results);
  for (Value operand : SmallVector<Value>(made->collapsedOp->getOperands()))
    foldCollapse(operand.getDefiningOp());
  for (Operation *user :
       llvm::make_early_inc_range(made->results[0].getUsers()))
    foldCollapse(user);
  return made->collapsedOp->getResult(0);
}

struct SinkReshapes : public impl::SinkReshapesBase<SinkReshapes> {
  void runOnOperation() override {
    SmallVector<Value> waiting;
    getOperation()->walk([&](tile::LaunchOp launch) {
      llvm::append_range(waiting, launch->getResults());
    });
    if (waiting.empty())
      return markAllAnalysesPreserved();
    DenseSet<Value> seen;
    while (!waiting.empty()) {
      Value value = waiting.pop_back_val();
      if (!seen.insert(value).second || !isReadElementwise(value))
        continue;
      for (Operation *user :
           SetVector<Operation *>(value.user_begin(), value.user_end())) {
        if (auto expand = dyn_cast<tensor::ExpandShapeOp>(user))
          follow(expand, waiting);
        auto op = dyn_cast<linalg::GenericOp>(user);
        if (isElementwise(op) && readsInPlace(op, value))
          waiting.push_back(op->getResult(0));
      }
    }
  }

  static void follow(tensor::ExpandShapeOp expand,
                     SmallVectorImpl<Value> &waiting) {
    for (Operation *user :
         SetVector<Operation *>(expand->user_begin(), expand->user_end()))
      if (auto op = dyn_cast<linalg::GenericOp>(user))
        if (Value made = sink(expand, op))
          waiting.push_back(made);
    nameSizes(expand);
    if (expand->use_empty())
      expand->erase();
  }
};

} // namespace
} // namespace tilewright
