//===- TaskRegions.cpp - what a task covers of each nest ------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Backwards through the indexing maps, from the last nest of a group to the
// first (Welder, OSDI 2023, section 3.1: tile propagation).
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GroupToKernel/TaskEmitter.h"

using namespace mlir;

namespace tilewright {

/// Whether an expression is a sum of multiples of loops.
static bool isLinear(AffineExpr expr) {
  bool linear = true;
  expr.walk([&](AffineExpr part) {
    linear &= part.getKind() != AffineExprKind::FloorDiv &&
              part.getKind() != AffineExprKind::CeilDiv &&
              part.getKind() != AffineExprKind::Mod;
  });
  return linear;
}

/// Offset and size of `expr` over a box; null where no size is known.
std::pair<AffineExpr, AffineExpr> TaskEmitter::regionOf(AffineExpr expr,
                                                        const Box &box) const {
  MLIRContext *context = expr.getContext();
  unsigned numDims = box.offsets.size(), numSymbols = this->numSymbols();
  AffineExpr low =
      simplifyAffineExpr(expr.replaceDims(box.offsets), numDims, numSymbols);
  SmallVector<AffineExpr> atEnd;
  for (auto [offset, size] : llvm::zip_equal(box.offsets, box.sizes))
    atEnd.push_back(offset + (size - 1));
  AffineExpr high =
      simplifyAffineExpr(expr.replaceDims(atEnd), numDims, numSymbols);
  AffineExpr span = simplifyAffineExpr(high - low, numDims, numSymbols);
  auto binary = dyn_cast<AffineBinaryOpExpr>(expr);
  auto block = binary ? dyn_cast<AffineConstantExpr>(binary.getRHS())
                      : AffineConstantExpr();
  // Inside a block of a packed operand: take the whole block.
  if (block && binary.getKind() == AffineExprKind::Mod)
    return {getAffineConstantExpr(0, context), block};
  if (isa<AffineConstantExpr>(span) ||
      (isLinear(expr) && sizes.isUniform(span)))
    return {low, span + 1};
  // Blocks of a packed operand: where the box starts at a block (the planner's
  // alignment rule), the number of blocks is its size over theirs.
  if (block && binary.getKind() == AffineExprKind::FloorDiv)
    if (auto dim = dyn_cast<AffineDimExpr>(binary.getLHS());
        dim && box.offsets[dim.getPosition()].isMultipleOf(block.getValue()))
      return {low, box.sizes[dim.getPosition()].ceilDiv(block.getValue())};
  return {};
}

Box TaskEmitter::wholeBox(const NestAnalysis &nest) const {
  Box box;
  box.sizes = sizes.extents(nest);
  box.extents = box.sizes;
  box.offsets.assign(
      box.sizes.size(),
      getAffineConstantExpr(0, tile::GroupOp(group).getContext()));
  return box;
}

/// Grows a box, which may be none yet, to the smallest one that holds `other`,
/// too. False where their distance is not known.
static bool unite(Box &known, const Box &other, unsigned numSymbols) {
  if (known.sizes.empty()) {
    known = other;
    return true;
  }
  for (size_t dim = 0; dim < known.sizes.size(); ++dim) {
    AffineExpr offset = other.offsets[dim], size = other.sizes[dim];
    if (offset == known.offsets[dim] && size == known.sizes[dim])
      continue;
    auto apart = dyn_cast<AffineConstantExpr>(simplifyAffineExpr(
        offset - known.offsets[dim], known.sizes.size(), numSymbols));
    auto first = staticSize(known.sizes[dim]), second = staticSize(size);
    if (!apart || !first || !second)
      return false;
    int64_t low = std::min<int64_t>(apart.getValue(), 0);
    int64_t high = std::max(*first, apart.getValue() + *second);
    if (low)
      known.offsets[dim] = offset;
    known.sizes[dim] = getAffineConstantExpr(high - low, offset.getContext());
  }
  return true;
}

/// Refuses register tiles that cross a block of a packed operand: they divide
/// blocks, but a task that starts elsewhere shifts them.
static LogicalResult startsAtTiles(const NestAnalysis &consumer,
                                   const Access &access, const Box &box) {
  for (AffineExpr expr : access) {
    auto packed = dyn_cast<AffineBinaryOpExpr>(expr);
    if (!packed || packed.getKind() != AffineExprKind::Mod)
      continue;
    auto dim = dyn_cast<AffineDimExpr>(packed.getLHS());
    if (!dim)
      continue;
    int64_t tile = consumer.registerTile(dim.getPosition());
    AffineExpr start = box.offsets[dim.getPosition()];
    if (!start.isMultipleOf(tile))
      return consumer.root()->emitError("has a task that starts at ")
             << textOf(start) << " along d" << dim.getPosition()
             << ", within a register tile of " << tile
             << ": it would cross the blocks of a packed operand, "
             << textOf(expr);
  }
  return success();
}

/// Whether a tensor is a part only, along a dimension, of what it is a slice
/// of.
static bool isPartAlong(Value value, unsigned dim) {
  while (auto slice = value.getDefiningOp<tensor::ExtractSliceOp>()) {
    if (isCut(slice, dim))
      return true;
    value = slice.getSource();
  }
  return false;
}

/// Asks the producers of what `consumer` reads over `box` for the region that
/// it needs.
LogicalResult TaskEmitter::require(const NestAnalysis &consumer, const Box &box,
                                   MutableArrayRef<Box> boxes) {
  for (const NestRead &read : consumer.reads) {
    if (failed(startsAtTiles(consumer, read.access, box)))
      return failure();
    OpResult value = loops.makerOf(read.value);
    if (!value)
      continue;
    auto producer = llvm::find_if(nests, [&](const NestAnalysis &nest) {
      return nest.group == value.getOwner();
    });
    if (read.access.empty() && cast<ShapedType>(value.getType()).getRank())
      return consumer.root()->emitError("gathers from a tensor of its task");
    Operation *yield = producer->group.getBody().front().getTerminator();
    Access made = producer->resultAccess(
        cast<OpResult>(yield->getOperand(value.getResultNumber())));
    Box need = wholeBox(*producer);
    for (auto [number, at, expr] : llvm::enumerate(made, read.access)) {
      if (isPartAlong(read.value, number))
        continue; // all of what it is a part of
      auto [dim, point] = loopAt(at, expr);
      if (!dim)
        return producer->root()->emitError("makes a tensor of its task at "
                                           "other points than its loops'");
      auto [offset, size] = regionOf(point, box);
      if (!offset)
        return consumer.root()->emitError("reads a tensor of its task by ")
               << textOf(expr)
               << ", for which no region of fixed size is known";
      need.offsets[dim.getPosition()] = offset;
      need.sizes[dim.getPosition()] = size;
    }
    if (!unite(boxes[producer - nests.begin()], need, numSymbols()))
      return producer->root()->emitError(
          "is read by one task at two regions whose distance is not fixed; "
          "group its readers apart");
  }
  return success();
}

/// What a task covers of a nest that feeds no later one: its own task tile
/// must cut the same rows as the anchor's.
FailureOr<Box> TaskEmitter::boxOfEnd(const NestAnalysis &nest,
                                     ArrayRef<AffineExpr> tileSizes) const {
  MLIRContext *context = tile::GroupOp(group).getContext();
  Box box = wholeBox(nest);
  SmallVector<GridDim> cuts = cutDims(nest);
  bool same = cuts.size() == grid.size();
  for (unsigned number = 0; same && number < cuts.size(); ++number) {
    const GridDim &cut = cuts[number];
    same = cut.tile == grid[number].tile &&
           sizes.extentOf(nest, cut.dim) ==
               sizes.extentOf(nests.back(), grid[number].dim) &&
           !nest.isReduction(cut.dim);
    box.offsets[cut.dim] = getAffineSymbolExpr(number, context) * cut.tile;
    box.sizes[cut.dim] = tileSizes[number];
  }
  if (same)
    return box;
  return nest.root()->emitError(
      "feeds no later register group of its task and is cut in other parts "
      "than the last one; give it the same task tile");
}

FailureOr<SmallVector<Box>>
TaskEmitter::propagate(ArrayRef<AffineExpr> tileSizes, const SumBlock &block) {
  MLIRContext *context = group.getContext();
  SmallVector<Box> boxes(nests.size());
  Box &last = boxes.back();
  last = wholeBox(nests.back());
  for (auto [number, dim] : llvm::enumerate(grid)) {
    last.offsets[dim.dim] = getAffineSymbolExpr(number, context) * dim.tile;
    last.sizes[dim.dim] = tileSizes[number];
  }
  for (int number = nests.size() - 1; number >= 0; --number) {
    if (boxes[number].sizes.empty()) {
      FailureOr<Box> box = boxOfEnd(nests[number], tileSizes);
      if (failed(box))
        return failure();
      boxes[number] = *box;
    }
    if (block.size && blocks->nest == unsigned(number)) {
      boxes[number].offsets[blocks->cut.dim] = block.offset;
      boxes[number].sizes[blocks->cut.dim] =
          getAffineConstantExpr(block.size, context);
    }
    if (failed(require(nests[number], boxes[number], boxes)))
      return failure();
  }
  return boxes;
}

} // namespace tilewright
