//===- TaskSizes.cpp - sizes of a task known at run time only -------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GroupToKernel/TaskSizes.h"

using namespace mlir;

namespace tilewright {

void TaskSizes::unite(const NestAnalysis &nest, Value tensor,
                      const Access &access) {
  for (auto [number, expr] : llvm::enumerate(access))
    if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
      classes.unionSets(place(nest, dim.getPosition()), place(tensor, number));
      tensors.emplace_back(tensor, number);
    }
}

void TaskSizes::analyze(ArrayRef<NestAnalysis> nests, unsigned rank) {
  gridRank = rank;
  for (const NestAnalysis &nest : nests) {
    for (const NestRead &read : nest.reads)
      unite(nest, read.value, read.access);
    // A new tensor says how far loops run, read and handed on or not.
    for (linalg::GenericOp root : nest.roots)
      for (OpOperand &operand : root->getOpOperands())
        if (operand.get().getDefiningOp<tensor::EmptyOp>())
          unite(nest, operand.get(),
                Access(root.getMatchingIndexingMap(&operand).getResults()));
    tile::GroupOp group = nest.group;
    Operation *yield = group.getBody().front().getTerminator();
    for (auto [result, value] :
         llvm::zip_equal(group->getResults(), yield->getOperands()))
      unite(nest, result, nest.resultAccess(cast<OpResult>(value)));
  }
  for (const NestAnalysis &nest : nests)
    for (unsigned dim = 0; dim < nest.extents.size(); ++dim)
      if (nest.isDynamic(dim))
        leaders.insert(classes.getOrInsertLeaderValue(place(nest, dim)));
  most.assign(leaders.size(), ShapedType::kDynamic);
  for (const NestAnalysis &nest : nests)
    for (unsigned dim = 0; dim < nest.extents.size(); ++dim)
      if (auto bound = nest.bound(dim); bound && nest.isDynamic(dim)) {
        Place leader = classes.getLeaderValue(place(nest, dim));
        int64_t &known = most[llvm::find(leaders, leader) - leaders.begin()];
        known = ShapedType::isDynamic(known) ? *bound : std::min(known, *bound);
      }
}

AffineExpr TaskSizes::extentOf(const NestAnalysis &nest, unsigned dim) const {
  MLIRContext *context = tile::GroupOp(nest.group).getContext();
  if (!nest.isDynamic(dim))
    return getAffineConstantExpr(nest.extents[dim], context);
  Place leader = classes.getLeaderValue(place(nest, dim));
  const auto *found = llvm::find(leaders, leader);
  return getAffineSymbolExpr(gridRank + (found - leaders.begin()), context);
}

SmallVector<AffineExpr> TaskSizes::extents(const NestAnalysis &nest) const {
  SmallVector<AffineExpr> result;
  for (unsigned dim = 0; dim < nest.extents.size(); ++dim)
    result.push_back(extentOf(nest, dim));
  return result;
}

AffineExpr TaskSizes::taskSize(MLIRContext *context, unsigned number) const {
  return getAffineSymbolExpr(firstTaskSize() + number, context);
}

/// Whether an expression grows with each of its symbols.
static bool isMonotonic(AffineExpr expr) {
  bool monotonic = true;
  expr.walk([&](AffineExpr part) {
    auto binary = dyn_cast<AffineBinaryOpExpr>(part);
    auto factor = binary ? dyn_cast<AffineConstantExpr>(binary.getRHS())
                         : AffineConstantExpr();
    if (part.getKind() == AffineExprKind::Mod ||
        (part.getKind() == AffineExprKind::Mul &&
         (!factor || factor.getValue() < 0)))
      monotonic = false;
  });
  return monotonic;
}

std::optional<int64_t> TaskSizes::bound(AffineExpr size,
                                        ArrayRef<int64_t> tiles) const {
  unsigned first = firstTaskSize();
  SmallVector<AffineExpr> bounds;
  for (unsigned symbol = 0; symbol < first; ++symbol)
    bounds.push_back(getAffineSymbolExpr(symbol, size.getContext()));
  if (isMonotonic(size))
    for (auto [number, value] : llvm::enumerate(most))
      if (!ShapedType::isDynamic(value))
        bounds[gridRank + number] =
            getAffineConstantExpr(value, size.getContext());
  for (int64_t tile : tiles)
    bounds.push_back(getAffineConstantExpr(tile, size.getContext()));
  AffineExpr most = simplifyAffineExpr(size.replaceSymbols(bounds), 0, first);
  if (auto constant = dyn_cast<AffineConstantExpr>(most))
    return constant.getValue();
  return std::nullopt;
}

std::pair<Value, unsigned> TaskSizes::tensorOf(const NestAnalysis &nest,
                                               unsigned dim) const {
  Place leader = classes.getLeaderValue(place(nest, dim));
  for (auto [tensor, number] : tensors)
    if (isa<BlockArgument>(tensor) &&
        classes.getLeaderValue(place(tensor, number)) == leader)
      return {tensor, number};
  for (auto [tensor, number] : tensors)
    if (classes.getLeaderValue(place(tensor, number)) == leader)
      return {tensor, number};
  return {};
}

bool TaskSizes::isUniform(AffineExpr size) const {
  for (unsigned symbol = 0; symbol < gridRank; ++symbol)
    if (size.isFunctionOfSymbol(symbol))
      return false;
  return true;
}

SmallVector<TaskSizes::Source>
TaskSizes::sources(function_ref<bool(Value)> isBuffer) const {
  SmallVector<Source> result;
  for (Place leader : leaders) {
    Source best;
    for (auto [tensor, dim] : tensors) {
      if (classes.getLeaderValue(place(tensor, dim)) != leader)
        continue;
      if (!best.first || isBuffer(tensor))
        best = {tensor, dim};
      if (isBuffer(tensor))
        break;
    }
    result.push_back(best);
  }
  return result;
}

} // namespace tilewright
