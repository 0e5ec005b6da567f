//===- OnlineChain.cpp - online reductions that run in one loop -----------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Plan/OnlineChain.h"
#include "dialects/Tile/TileDecisions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tilewright {

unsigned OnlineChain::loopOf(linalg::GenericOp op) {
  return tile::decisions::kOnline.get(op)[0];
}

bool OnlineChain::isAccumulator(linalg::GenericOp op) const {
  return llvm::any_of(accumulators,
                      [&](const Accumulator &acc) { return acc.op == op; });
}

int OnlineChain::accumulatorOf(Value value) const {
  for (auto [number, acc] : llvm::enumerate(accumulators))
    if (acc.result() == value)
      return number;
  return -1;
}

/// The result of an operation in a register group behind a value of the task.
static OpResult insideOf(Value value) {
  auto nest = value.getDefiningOp<tile::GroupOp>();
  if (!nest)
    return {};
  unsigned number = cast<OpResult>(value).getResultNumber();
  return dyn_cast<OpResult>(
      nest.getBody().front().getTerminator()->getOperand(number));
}

/// The value of the task behind one inside a register group, if it comes from
/// outside of the group.
static Value outsideOf(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument)
    return {};
  auto nest = cast<tile::GroupOp>(argument.getOwner()->getParentOp());
  return nest->getOperand(argument.getArgNumber());
}

LogicalResult OnlineChain::addAccumulator(tile::GroupOp nest,
                                          linalg::GenericOp op) {
  Accumulator acc;
  acc.nest = nest;
  acc.op = op;
  Operation *yield = nest.getBody().front().getTerminator();
  auto yielded = llvm::find(yield->getOperands(), op->getResult(0));
  auto fill = op.getDpsInits()[0].getDefiningOp<linalg::FillOp>();
  if (op->getNumResults() != 1 || !op->hasOneUse() ||
      yielded == yield->getOperands().end() || !fill ||
      !matchPattern(fill.getInputs()[0], m_Constant(&acc.start)) ||
      !op.getIndexingMapsArray().back().isProjectedPermutation())
    return op.emitError("is reduced in blocks: it starts from a constant, and "
                        "only other register groups use it");
  acc.number = std::distance(yield->operand_begin(), yielded);
  accumulators.push_back(acc);
  return success();
}

LogicalResult OnlineChain::add(tile::GroupOp nest) {
  auto ops =
      llvm::to_vector(nest.getBody().front().getOps<linalg::GenericOp>());
  if (llvm::none_of(
          ops, [](auto op) { return op->hasAttr(tile::decisions::kOnline); }))
    return success();
  nests.push_back(nest);
  for (linalg::GenericOp op : ops) {
    auto cut = tile::decisions::kOnline.get(op);
    auto isCut = [&](ArrayRef<int64_t> cut) {
      bool known = cut.size() == 2 || (cut.size() == 3 && cut[2] > 0);
      return known && cut[0] >= 0 && cut[0] < op.getNumLoops() && cut[1] > 0;
    };
    if (!cut || !isCut(cut))
      return op.emitError("needs a tile.online, a loop and the size of its "
                          "blocks, like the rest of its register group");
    int64_t left = cut.size() == 3 ? cut[2] : 0;
    int64_t size = op.getStaticLoopRanges()[cut[0]];
    if (extent && (size != extent || cut[1] != block || left != rest))
      return op.emitError("runs in blocks of ")
             << cut[1] << " of " << size << ", others of the task in " << block
             << " of " << extent;
    extent = size;
    block = cut[1];
    rest = left;
    if (op.getIteratorTypesArray()[cut[0]] == utils::IteratorType::reduction &&
        failed(addAccumulator(nest, op)))
      return failure();
  }
  return success();
}

/// The function F where the body of `op` uses `argument` in F(x - argument)
/// only, F being an exponential.
static Operation *exponentialOf(BlockArgument argument) {
  if (!argument.hasOneUse())
    return nullptr;
  auto difference = dyn_cast<arith::SubFOp>(*argument.user_begin());
  if (!difference || difference.getRhs() != argument ||
      difference.getLhs() == argument || !difference->hasOneUse())
    return nullptr;
  Operation *function = *difference->user_begin();
  return isa<math::ExpOp, math::Exp2Op>(function) ? function : nullptr;
}

/// The loops of `op` as expressions, where it makes the element `access` of its
/// result. Those that it reduces along are a symbol: any.
static SmallVector<AffineExpr> bind(linalg::GenericOp op, AffineMap access) {
  SmallVector<AffineExpr> binding(op.getNumLoops(),
                                  getAffineSymbolExpr(0, op.getContext()));
  for (auto [expr, at] : llvm::zip_equal(
           op.getIndexingMapsArray().back().getResults(), access.getResults()))
    if (auto dim = dyn_cast<AffineDimExpr>(expr))
      binding[dim.getPosition()] = at;
  return binding;
}

/// Follows what `operand` holds, read at `access`, back to a maximum.
LogicalResult OnlineChain::trace(OpOperand &operand, AffineMap access,
                                 Accumulator &acc) {
  Value value = operand.get();
  if (Value outside = outsideOf(value)) {
    if (int number = accumulatorOf(outside); number >= 0) {
      auto reader = cast<linalg::GenericOp>(operand.getOwner());
      Operation *function =
          exponentialOf(reader.getMatchingBlockArgument(&operand));
      bool same =
          acc.maximum < 0 || (acc.maximum == number && acc.factor == access);
      bool bound = llvm::none_of(access.getResults(), [](AffineExpr expr) {
        return expr.isFunctionOfSymbol(0);
      });
      if (!function || !same || !bound)
        return reader.emitError("depends on a reduction that runs in blocks "
                                "other than by exp(x - maximum)");
      acc.maximum = number;
      acc.factor = access;
      acc.function = function;
      return success();
    }
    value = insideOf(outside);
    if (!value)
      return success();
  }
  auto op = value.getDefiningOp<linalg::GenericOp>();
  if (!op || !op->hasAttr(tile::decisions::kOnline))
    return success();
  SmallVector<AffineExpr> binding = bind(op, access);
  for (OpOperand *input : op.getDpsInputOperands()) {
    AffineMap map = op.getMatchingIndexingMap(input);
    SmallVector<AffineExpr> exprs;
    for (AffineExpr expr : map.getResults())
      exprs.push_back(expr.replaceDims(binding));
    if (failed(trace(
            *input,
            AffineMap::get(access.getNumDims(), 1, exprs, op.getContext()),
            acc)))
      return failure();
  }
  return success();
}

LogicalResult OnlineChain::findFactor(Accumulator &acc) {
  for (OpOperand *input : acc.op.getDpsInputOperands())
    if (failed(trace(*input, acc.op.getMatchingIndexingMap(input), acc)))
      return failure();
  if (acc.maximum < 0)
    return success();
  Operation *yield = acc.op.getBody()->getTerminator();
  auto zero = dyn_cast<FloatAttr>(acc.start);
  if (!isa_and_present<arith::AddFOp>(yield->getOperand(0).getDefiningOp()) ||
      !zero || !zero.getValue().isZero())
    return acc.op.emitError("is relative to a maximum that grows from block to "
                            "block: only sums that start from 0 are rescaled");
  // From loops to dimensions of the result.
  SmallVector<AffineExpr> dims(acc.op.getNumLoops());
  for (auto [at, expr] : llvm::enumerate(acc.output().getResults()))
    dims[cast<AffineDimExpr>(expr).getPosition()] =
        getAffineDimExpr(at, acc.op.getContext());
  for (unsigned dim = 0; dim < dims.size(); ++dim) {
    if (dims[dim])
      continue;
    if (acc.factor.isFunctionOfDim(dim))
      return acc.op.emitError("sums over rows that have different maxima");
    dims[dim] = getAffineConstantExpr(0, acc.op.getContext());
  }
  SmallVector<AffineExpr> exprs;
  for (AffineExpr expr : acc.factor.getResults())
    exprs.push_back(expr.replaceDims(dims));
  acc.factor = AffineMap::get(acc.output().getNumResults(), 0, exprs,
                              acc.op.getContext());
  Accumulator &maximum = accumulators[acc.maximum];
  if (maximum.isMaximum &&
      maximum.function->getName() != acc.function->getName())
    return acc.op.emitError("is an exponential to another base than others of "
                            "the same maximum");
  maximum.isMaximum = true;
  maximum.function = acc.function;
  return success();
}

/// What is made block by block is never whole.
LogicalResult OnlineChain::verifyUses() const {
  for (tile::GroupOp nest : nests)
    for (OpResult result : tile::GroupOp(nest)->getResults())
      for (Operation *user : result.getUsers())
        if (accumulatorOf(result) < 0 &&
            !llvm::any_of(nests,
                          [&](tile::GroupOp other) { return other == user; }))
          return nest.emitError("makes a tensor in blocks that is needed "
                                "whole");
  return success();
}

FailureOr<OnlineChain> OnlineChain::get(tile::GroupOp task) {
  OnlineChain chain;
  for (auto nest : task.getBody().front().getOps<tile::GroupOp>())
    if (failed(chain.add(nest)))
      return failure();
  for (Accumulator &acc : chain.accumulators)
    if (failed(chain.findFactor(acc)))
      return failure();
  if (failed(chain.verifyUses()))
    return failure();
  return chain;
}

void setBound(Operation *op, unsigned loop, int64_t most) {
  SmallVector<int64_t> bounds(cast<linalg::GenericOp>(op).getNumLoops(), -1);
  if (auto known = tile::decisions::kBounds.get(op))
    llvm::copy(known.asArrayRef(), bounds.begin());
  bounds[loop] = most;
  op->setDiscardableAttr(tile::decisions::kBounds,
                         DenseI64ArrayAttr::get(op->getContext(), bounds));
}

void shrinkTile(Operation *op, unsigned loop, int64_t size) {
  auto rtile = tile::decisions::kRtile.get(op);
  if (!rtile)
    return;
  Builder builder(op->getContext());
  NamedAttrList levels(rtile.getSizes());
  for (StringRef level : {"register", "mma"}) {
    auto sizes = rtile.getSizes(level);
    if (!sizes)
      continue;
    SmallVector<int64_t> own(*sizes);
    own[loop] = std::min(own[loop], size);
    levels.set(level, builder.getDenseI64ArrayAttr(own));
  }
  op->setDiscardableAttr(
      tile::decisions::kRtile,
      tile::RTileAttr::get(op->getContext(),
                           levels.getDictionary(op->getContext()),
                           rtile.getOrder()));
}

} // namespace tilewright
