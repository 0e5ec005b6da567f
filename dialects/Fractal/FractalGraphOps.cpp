//===- FractalGraphOps.cpp - what depends on what -------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/Fractal/FractalDetail.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/IntegerSet.h"

using namespace mlir;
using namespace tilewright::fractal;

//===----------------------------------------------------------------------===//
// What ops that read have in common
//===----------------------------------------------------------------------===//

/// block_c3, outputs_c1
template <typename Op> static LogicalResult verifyLists(Op op) {
  size_t reads = op.getSources().size();
  if (op.getTargets().size() == reads && op.getMaps().size() == reads &&
      op.getConditions().size() == reads && op.getIndirect().size() == reads)
    return success();
  return op.emitOpError("has ")
         << reads << " reads, but " << op.getTargets().size() << " targets, "
         << op.getMaps().size() << " maps, " << op.getConditions().size()
         << " conditions and " << op.getIndirect().size()
         << " marks: each read needs one of each";
}

//===----------------------------------------------------------------------===//
// GraphOp
//===----------------------------------------------------------------------===//

// A block reads its own result.
RegionKind GraphOp::getRegionKind(unsigned) { return RegionKind::Graph; }

LogicalResult GraphOp::verify() {
  // graph_c1
  size_t arguments = getBody().getNumArguments();
  if (getInputs().size() == arguments)
    return success();
  return emitOpError("names ") << getInputs().size() << " inputs, but has "
                               << arguments << " block arguments";
}

//===----------------------------------------------------------------------===//
// BlockOp
//===----------------------------------------------------------------------===//

/// block_c1
static LogicalResult verifyKinds(BlockOp op) {
  static constexpr StringRef known[] = {
      "map", "reduce", "fold left", "fold right", "scan left", "scan right"};
  for (auto kind : op.getKinds().getAsValueRange<StringAttr>())
    if (!llvm::is_contained(known, kind))
      return op.emitOpError("has a dimension of kind '")
             << kind << "': known are map, reduce, fold and scan left or right";
  return success();
}

/// block_c2
static LogicalResult verifyDomain(BlockOp op) {
  unsigned loops = op.getNumLoops();
  auto graph = cast<GraphOp>(op->getParentOp());
  unsigned symbols = graph.getSymbols().size();
  auto fits = [&](unsigned dims, unsigned named) {
    return dims == loops && named == symbols;
  };
  AffineMap extents = op.getExtents();
  bool isRight = fits(extents.getNumDims(), extents.getNumSymbols()) &&
                 extents.getNumResults() == loops;
  IntegerSet domain = op.getDomain();
  isRight &= fits(domain.getNumDims(), domain.getNumSymbols());
  for (auto map : op.getWrites().getAsValueRange<AffineMapAttr>())
    isRight &= map.getNumDims() >= loops && map.getNumSymbols() == symbols;
  if (isRight)
    return success();
  return op.emitOpError("has ")
         << loops << " dimensions in a graph of " << symbols
         << " symbols: extents, domain and writes need as many";
}

/// How many places name a number of a value: the levels of a list, then the
/// dimensions of its leaf, which `from_tensor` makes levels.
static unsigned getNumPlaces(Type type) {
  auto array = dyn_cast<ArrayType>(type);
  auto leaf = dyn_cast<RankedTensorType>(array ? array.getLeaf() : type);
  return (array ? array.getDepth() : 0) + (leaf ? leaf.getRank() : 0);
}

/// block_c4
static LogicalResult verifyRead(BlockOp op, int64_t read) {
  int64_t target = op.getTargets()[read];
  if (target < 0 || target >= int64_t(op.getBody().getNumArguments()))
    return op.emitOpError("read ")
           << read << " is for block argument " << target << " of "
           << op.getBody().getNumArguments();
  AffineMap map = op.getMap(read);
  std::optional<IntegerSet> condition = op.getCondition(read);
  if (map.getNumDims() < op.getNumLoops() ||
      (condition && condition->getNumDims() != map.getNumDims()))
    return op.emitOpError("read ")
           << read << " has " << map.getNumDims() << " dimensions, the block "
           << op.getNumLoops()
           << ": a read has those of the block, then levels that it takes "
              "whole, and its condition has the same";
  Type source = op.getSources()[read].getType();
  if (map.getNumResults() <= getNumPlaces(source))
    return success();
  return op.emitOpError("read ")
         << read << " names " << map.getNumResults() << " levels of " << source;
}

/// block_c5
static LogicalResult verifyOrder(BlockOp op, int64_t read) {
  Operation *maker = op.getSources()[read].getDefiningOp();
  if (!maker || maker == op || maker->isBeforeInBlock(op))
    return success();
  return op.emitOpError("read ")
         << read
         << " is of what is computed later: a block reads what stands "
            "before it, or its own results";
}

/// block_c6
static LogicalResult verifyResults(BlockOp op) {
  auto yield = dyn_cast<YieldOp>(op.getBody().front().getTerminator());
  if (!yield || yield.getValues().size() != op.getBuffers().size() ||
      op.getWrites().size() != op.getBuffers().size())
    return op.emitOpError("has ")
           << op.getBuffers().size()
           << " results: it needs as many writes and yielded values";
  for (auto [buffer, value] : llvm::zip(op.getBuffers(), yield.getValues())) {
    Type expected = value.getType();
    for (unsigned i = 0; i < op.getNumLoops(); ++i)
      expected = ArrayType::listOf(ShapedType::kDynamic, expected);
    if (!areCompatible(expected, buffer.getType()))
      return op.emitOpError("writes ")
             << buffer.getType() << ", but yields " << value.getType() << " in "
             << op.getNumLoops()
             << " dimensions: a result has a level for each dimension";
  }
  return success();
}

LogicalResult BlockOp::verify() {
  if (failed(verifyLists(*this)) || failed(verifyKinds(*this)) ||
      failed(verifyDomain(*this)))
    return failure();
  for (int64_t read : llvm::seq<int64_t>(getSources().size()))
    if (failed(verifyRead(*this, read)) || failed(verifyOrder(*this, read)))
      return failure();
  return verifyResults(*this);
}

//===----------------------------------------------------------------------===//
// OutputsOp
//===----------------------------------------------------------------------===//

LogicalResult OutputsOp::verify() { return verifyLists(*this); }
