//===- FuseExponents.cpp - exponentials and their exponents, in one body --===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Recurrences/Passes.h"

#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/PatternMatch.h"

namespace tilewright {
#define GEN_PASS_DEF_FUSEEXPONENTS
#include "lib/Transforms/Recurrences/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

/// A map without the dimensions that a reshape added, all of size one.
static AffineMap withoutAdded(AffineMap map, tensor::ExpandShapeOp reshape) {
  ArrayRef<int64_t> shape = reshape.getResultType().getShape();
  SmallVector<AffineExpr> kept;
  for (const ReassociationIndices &group : reshape.getReassociationIndices()) {
    int64_t main = group.front();
    for (int64_t dim : group)
      if (shape[dim] != 1)
        main = dim;
    int64_t added = llvm::count_if(
        group, [&](int64_t dim) { return dim != main && shape[dim] == 1; });
    if (added + 1 != static_cast<int64_t>(group.size()))
      return {};
    kept.push_back(map.getResult(main));
  }
  return AffineMap::get(map.getNumDims(), map.getNumSymbols(), kept,
                        map.getContext());
}

/// Reads the source of reshapes that add dimensions of size one.
static void readPlainly(linalg::GenericOp op) {
  SmallVector<AffineMap> maps = op.getIndexingMapsArray();
  bool changed = false;
  for (OpOperand *input : op.getDpsInputOperands()) {
    auto reshape = input->get().getDefiningOp<tensor::ExpandShapeOp>();
    if (!reshape)
      continue;
    AffineMap &map = maps[input->getOperandNumber()];
    AffineMap plain = withoutAdded(map, reshape);
    SmallVector<AffineMap> all(maps);
    all[input->getOperandNumber()] = plain;
    if (!plain || !inversePermutation(concatAffineMaps(all, op.getContext())))
      continue; // sizes of loops are known by this operand alone
    map = plain;
    input->set(reshape.getSrc());
    changed = true;
  }
  if (changed)
    op.setIndexingMapsAttr(
        Builder(op.getContext()).getAffineMapArrayAttr(maps));
}

/// Whether a body is one operation of these kinds, on all loops.
template <typename... Ops> static bool isOne(linalg::GenericOp op) {
  return op && op.getNumParallelLoops() == op.getNumLoops() &&
         op.getNumResults() == 1 &&
         llvm::hasNItems(op.getBody()->getOperations(), 2) &&
         isa<Ops...>(op.getBody()->front());
}

/// The difference that an exponential raises a number to, nobody else's.
static OpOperand *exponentOf(linalg::GenericOp op) {
  if (!isOne<math::ExpOp, math::Exp2Op>(op) || op.getNumDpsInputs() != 1)
    return nullptr;
  OpOperand *input = op.getDpsInputOperand(0);
  auto made = input->get().getDefiningOp<linalg::GenericOp>();
  bool own = isOne<arith::SubFOp>(made) && made->hasOneUse();
  return own && linalg::areElementwiseOpsFusable(input) ? input : nullptr;
}

namespace {
struct FuseExponents : tilewright::impl::FuseExponentsBase<FuseExponents> {
  void runOnOperation() override {
    SmallVector<linalg::GenericOp> inLists;
    getOperation()->walk([&](linalg::GenericOp op) {
      if (isa_and_present<fractal::FractalDialect>(
              op->getParentOp()->getDialect()))
        inLists.push_back(op);
    });
    IRRewriter rewriter(&getContext());
    for (linalg::GenericOp op : inLists)
      readPlainly(op);
    for (linalg::GenericOp op : inLists) {
      OpOperand *exponent = exponentOf(op);
      if (!exponent)
        continue;
      rewriter.setInsertionPoint(op);
      FailureOr<linalg::ElementwiseOpFusionResult> fused =
          linalg::fuseElementwiseOps(rewriter, exponent);
      if (failed(fused))
        continue;
      Operation *made = exponent->get().getDefiningOp();
      rewriter.replaceOp(op, fused->fusedOp->getResults());
      rewriter.eraseOp(made);
    }
  }
};
} // namespace
