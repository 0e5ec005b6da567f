//===- TaskLoops.cpp - loops over register groups in a task ---------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GroupToKernel/TaskLoops.h"
#include "dialects/Tile/TileDecisions.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace tilewright {

/// Whether an operation computes with sizes: bounds of loops and of slices.
static bool isNumber(Operation &op) {
  return op.getNumRegions() == 0 && isPure(&op) &&
         llvm::all_of(op.getResultTypes(),
                      [](Type type) { return type.isIndex(); });
}

LogicalResult TaskLoops::collect(tile::GroupOp group,
                                 std::vector<NestAnalysis> &nests) {
  return collect(group.getBody().front(), /*inLoop=*/false, nests);
}

LogicalResult TaskLoops::collect(Block &body, bool inLoop,
                                 std::vector<NestAnalysis> &nests) {
  for (Operation &op : body.without_terminator()) {
    if (op.hasTrait<OpTrait::ConstantLike>() || isNumber(op))
      continue;
    if (isa<tensor::ExtractSliceOp>(op)) {
      slices.push_back(&op);
      continue;
    }
    if (auto loop = dyn_cast<scf::ForOp>(op); loop && !inLoop) {
      unsigned begin = nests.size();
      if (failed(collect(*loop.getBody(), /*inLoop=*/true, nests)))
        return failure();
      loops.push_back({loop, begin, unsigned(nests.size())});
      continue;
    }
    auto nest = dyn_cast<tile::GroupOp>(op);
    if (!nest || nest.getLevel() != "register")
      return op.emitError("stands in an outermost group, which holds register "
                          "groups and loops over them only");
    auto analysis = NestAnalysis::get(nest);
    if (failed(analysis))
      return failure();
    nests.push_back(*analysis);
  }
  return success();
}

const TaskLoops::Loop *TaskLoops::startingAt(unsigned nest) const {
  for (const Loop &loop : loops)
    if (loop.begin == nest && loop.end > nest)
      return &loop;
  return nullptr;
}

bool isCut(tensor::ExtractSliceOp slice, unsigned dim) {
  return getConstantIntValue(slice.getMixedOffsets()[dim]) != 0 ||
         slice.getType().getDimSize(dim) !=
             slice.getSourceType().getDimSize(dim);
}

Value wholeOf(Value value) {
  while (auto slice = value.getDefiningOp<tensor::ExtractSliceOp>())
    value = slice.getSource();
  return value;
}

OpResult TaskLoops::makerOf(Value value) const {
  value = wholeOf(value);
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    OpOperand *init = loop ? loop.getTiedLoopInit(argument) : nullptr;
    return init ? makerOf(init->get()) : OpResult();
  }
  auto result = cast<OpResult>(value);
  if (auto loop = dyn_cast<scf::ForOp>(result.getOwner()))
    return makerOf(loop.getYieldedValues()[result.getResultNumber()]);
  return result;
}

Value TaskLoops::placeOf(Value value) const {
  for (const Loop &loop : loops) {
    scf::ForOp op = loop.op;
    for (auto [init, argument, yielded, result] :
         llvm::zip_equal(op.getInitArgs(), op.getRegionIterArgs(),
                         op.getYieldedValues(), op.getResults()))
      if (value == argument || value == yielded || value == result)
        return placeOf(init);
  }
  return value;
}

/// Whether `nest` reads `carried` at the points at which it makes `next` only.
static bool readsWhatItMakes(const NestAnalysis &nest, Value carried,
                             Value next) {
  tile::GroupOp group = nest.group;
  unsigned number = cast<OpResult>(next).getResultNumber();
  Operation *yield = group.getBody().front().getTerminator();
  Access made = nest.resultAccess(cast<OpResult>(yield->getOperand(number)));
  return llvm::all_of(nest.reads, [&](const NestRead &read) {
    return read.value != carried || read.access == made;
  });
}

LogicalResult TaskLoops::verify(ArrayRef<NestAnalysis> nests) const {
  for (const Loop &loop : loops) {
    scf::ForOp op = loop.op;
    for (auto [init, carried, next] : llvm::zip_equal(
             op.getInitArgs(), op.getRegionIterArgs(), op.getYieldedValues())) {
      bool written = false, ok = bool(makerOf(init)) && init.hasOneUse();
      for (const NestAnalysis &nest :
           nests.slice(loop.begin, loop.end - loop.begin)) {
        for (const NestRead &read : nest.reads)
          ok &= !written || wholeOf(read.value) != carried;
        if (next.getDefiningOp() == nest.group) {
          written = true;
          ok &= readsWhatItMakes(nest, carried, next);
        }
      }
      if (!written || !ok)
        return op.emitError("carries a tensor that has no single place: its "
                            "next value is made by a register group of the "
                            "loop, the last to read it, point by point");
    }
  }
  return success();
}

AffineExpr countedBy(Value number, AffineExpr counter) {
  if (auto argument = dyn_cast<BlockArgument>(number)) {
    auto loop = dyn_cast<scf::ForOp>(argument.getOwner()->getParentOp());
    return loop && loop.getInductionVar() == argument ? counter : AffineExpr();
  }
  auto apply = number.getDefiningOp<affine::AffineApplyOp>();
  if (!apply || apply->getNumOperands() != 1 ||
      countedBy(apply->getOperand(0), counter) != counter)
    return {};
  AffineMap map = apply.getAffineMap();
  return map.getResult(0).replaceDimsAndSymbols(
      SmallVector<AffineExpr>(map.getNumDims(), counter),
      SmallVector<AffineExpr>(map.getNumSymbols(), counter));
}

void TaskLoops::place(DenseMap<Value, Storage> &storage, AffineExpr counter,
                      function_ref<AffineExpr(Value)> symbolOf) const {
  auto offsetOf = [&](OpFoldResult offset) -> AffineExpr {
    if (std::optional<int64_t> constant = getConstantIntValue(offset))
      return getAffineConstantExpr(*constant, counter.getContext());
    auto value = cast<Value>(offset);
    AffineExpr counted = countedBy(value, counter);
    return counted ? counted : symbolOf(value);
  };
  for (const Loop &loop : loops) {
    scf::ForOp op = loop.op;
    for (auto [init, argument, result] : llvm::zip_equal(
             op.getInitArgs(), op.getRegionIterArgs(), op.getResults())) {
      Storage place = storage.at(placeOf(init));
      storage[argument] = storage[result] = place;
    }
  }
  for (Operation *op : slices) {
    auto slice = cast<tensor::ExtractSliceOp>(op);
    auto from = storage.find(slice.getSource());
    if (from == storage.end())
      continue; // no one reads it
    Storage place = from->second;
    if (place.origin.empty())
      place.origin.assign(slice.getSourceType().getRank(),
                          getAffineConstantExpr(0, op->getContext()));
    for (auto [origin, offset] :
         llvm::zip_equal(place.origin, slice.getMixedOffsets()))
      origin = origin - offsetOf(offset);
    storage[slice.getResult()] = place;
  }
}

/// `tile.live` in a register group of the loop, and the expression for the row
/// at which the task starts.
static std::pair<DenseI64ArrayAttr, AffineExpr>
findLive(ArrayRef<NestAnalysis> nests, ArrayRef<Box> boxes) {
  auto [op, number] = findWith(nests, tile::decisions::kLive);
  DenseI64ArrayAttr live = op ? tile::decisions::kLive.get(op) : nullptr;
  if (!live)
    return {};
  AffineExpr row = nests[number].bindings.lookup(op)[live[0]];
  return {live, row.replaceDims(boxes[number].offsets)};
}

FailureOr<std::pair<Value, Value>>
liveBounds(OpBuilder &builder, const TaskLoops::Loop &loop,
           ArrayRef<NestAnalysis> nests, ArrayRef<Box> boxes,
           ArrayRef<Value> symbols, function_ref<Value(Value)> valueOf) {
  scf::ForOp op = loop.op;
  Location loc = op.getLoc();
  auto boundOf = [&](Value value) -> Value {
    if (std::optional<int64_t> constant = getConstantIntValue(value))
      return arith::ConstantIndexOp::create(builder, loc, *constant);
    return valueOf(value);
  };
  unsigned count = loop.end - loop.begin;
  DenseI64ArrayAttr attr;
  AffineExpr row;
  std::tie(attr, row) =
      findLive(nests.slice(loop.begin, count), boxes.slice(loop.begin, count));
  if (!attr)
    return std::make_pair(boundOf(op.getLowerBound()),
                          boundOf(op.getUpperBound()));
  // The dimension, rows of a task, and stretches of tasks: the first one, the
  // steps at which its blocks start and end, and how these grow per task.
  ArrayRef<int64_t> live = attr.asArrayRef();
  int64_t rows = live.size() < 7 ? 0 : live[1];
  if (rows < 1 || live.size() % 5 != 2 || live[2] != 0 ||
      !row.isMultipleOf(rows))
    return op.emitError("has an operation whose tile.live does not fit the "
                        "tasks of its group");
  AffineExpr task = row.floorDiv(rows);
  Value number = affine::makeComposedAffineApply(
      builder, loc, AffineMap::get(0, symbols.size(), task),
      llvm::map_to_vector(symbols, [](Value v) { return OpFoldResult(v); }));
  auto boundAt = [&](size_t at, size_t which) -> Value {
    AffineExpr dim = builder.getAffineDimExpr(0);
    AffineExpr bound =
        (dim - live[at]) * live[at + which + 1] + live[at + which];
    return affine::AffineApplyOp::create(builder, loc,
                                         AffineMap::get(1, 0, bound), number);
  };
  Value lower = boundAt(2, 1), upper = boundAt(2, 3);
  for (size_t at = 7; at < live.size(); at += 5) {
    Value first = arith::ConstantIndexOp::create(builder, loc, live[at]);
    Value later = arith::CmpIOp::create(builder, loc, arith::CmpIPredicate::sge,
                                        number, first);
    lower = arith::SelectOp::create(builder, loc, later, boundAt(at, 1), lower);
    upper = arith::SelectOp::create(builder, loc, later, boundAt(at, 3), upper);
  }
  // The last stretch may go on behind the end of the loop.
  Value end = boundOf(op.getUpperBound());
  upper = arith::MinSIOp::create(builder, loc, upper, end);
  return std::make_pair(lower, upper);
}

} // namespace tilewright
