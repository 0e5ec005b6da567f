//===- TaskSizes.cpp - sizes of a task known at run time only -------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GroupToKernel/TaskSizes.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

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

/// Two tensors of the same sizes.
void TaskSizes::unite(Value tensor, Value other) {
  int64_t rank = cast<ShapedType>(tensor.getType()).getRank();
  for (int64_t dim = 0; dim < rank; ++dim)
    classes.unionSets(place(tensor, dim), place(other, dim));
}

/// A number that is no constant and does not follow from a loop's variable has
/// a symbol.
void TaskSizes::addNumber(Value number) {
  if (!number || !number.getDefiningOp() || getConstantIntValue(number) ||
      countedBy(number, getAffineSymbolExpr(0, number.getContext())))
    return;
  tensors.emplace_back(number, kNumber);
  leaders.insert(classes.getOrInsertLeaderValue(place(number, kNumber)));
}

/// What a slice takes whole has the size of its source; of other dimensions,
/// the slice says how long they are.
void TaskSizes::uniteSlice(tensor::ExtractSliceOp slice) {
  auto sizes = slice.getMixedSizes(), offsets = slice.getMixedOffsets();
  for (unsigned dim = 0; dim < sizes.size(); ++dim) {
    addNumber(dyn_cast<Value>(offsets[dim]));
    // What is cut at the same places is equally long.
    if (auto offset = dyn_cast<Value>(offsets[dim]);
        offset && slice.getSourceType().isDynamicDim(dim)) {
      classes.unionSets(place(offset, kCut), place(slice.getSource(), dim));
      tensors.emplace_back(slice.getSource(), dim);
    }
    if (!slice.getType().isDynamicDim(dim))
      continue;
    if (!isCut(slice, dim)) {
      classes.unionSets(place(slice.getSource(), dim),
                        place(slice.getResult(), dim));
      tensors.emplace_back(slice.getSource(), dim);
      continue;
    }
    Value size = cast<Value>(sizes[dim]);
    classes.unionSets(place(size, kNumber), place(slice.getResult(), dim));
    addNumber(size);
  }
}

void TaskSizes::uniteLoops(const TaskLoops &loops) {
  for (const TaskLoops::Loop &loop : loops.getLoops()) {
    scf::ForOp op = loop.op;
    addNumber(op.getLowerBound());
    addNumber(op.getUpperBound());
    for (auto [init, argument, result] : llvm::zip_equal(
             op.getInitArgs(), op.getRegionIterArgs(), op.getResults())) {
      unite(init, argument);
      unite(init, result);
    }
  }
  for (Operation *slice : loops.getSlices())
    uniteSlice(cast<tensor::ExtractSliceOp>(slice));
}

void TaskSizes::analyze(ArrayRef<NestAnalysis> nests, const TaskLoops &loops,
                        unsigned rank) {
  gridRank = rank;
  uniteLoops(loops);
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
  // Classes have grown since numbers were found: these have new leaders.
  leaders.clear();
  for (auto [tensor, number] : tensors)
    if (number == kNumber)
      leaders.insert(classes.getLeaderValue(place(tensor, kNumber)));
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

AffineExpr TaskSizes::symbolOf(Value number) const {
  Place leader = classes.getLeaderValue(place(number, kNumber));
  const auto *found = llvm::find(leaders, leader);
  return getAffineSymbolExpr(gridRank + (found - leaders.begin()),
                             number.getContext());
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

bool TaskSizes::isArgument(Value tensor) {
  auto argument = dyn_cast<BlockArgument>(tensor);
  return argument && isa<tile::GroupOp>(argument.getOwner()->getParentOp());
}

std::pair<Value, unsigned> TaskSizes::tensorOf(const NestAnalysis &nest,
                                               unsigned dim) const {
  Place leader = classes.getLeaderValue(place(nest, dim));
  for (auto [tensor, number] : tensors)
    if (isArgument(tensor) &&
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

SmallVector<SmallVector<TaskSizes::Source>> TaskSizes::equalSizes() const {
  llvm::MapVector<Place, SmallVector<Source>> found;
  for (auto [tensor, dim] : tensors)
    if (dim != kNumber && cast<ShapedType>(tensor.getType()).isDynamicDim(dim))
      if (auto &same = found[classes.getLeaderValue(place(tensor, dim))];
          !llvm::is_contained(same, Source(tensor, dim)))
        same.emplace_back(tensor, dim);
  return llvm::map_to_vector(found, [](auto &entry) { return entry.second; });
}

SmallVector<TaskSizes::Source>
TaskSizes::sources(function_ref<bool(Value)> isBuffer) const {
  SmallVector<Source> result;
  for (Place leader : leaders) {
    Source best;
    for (auto [tensor, dim] : tensors) {
      if (classes.getLeaderValue(place(tensor, dim)) != leader)
        continue;
      bool known = dim == kNumber || isBuffer(tensor);
      if (!best.first || known)
        best = {tensor, dim};
      if (known)
        break;
    }
    result.push_back(best);
  }
  return result;
}

} // namespace tilewright
