//===- LiftRegroupOps.cpp - lists cut, joined and stored ------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/FractalToLinalg/Presences.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/ReshapeOpsUtils.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::fractal;

/// Reassociations that keep all dimensions but those from `dim` on, `count` of
/// which belong together.
static SmallVector<ReassociationIndices> together(int64_t rank, int64_t dim,
                                                  int64_t count) {
  SmallVector<ReassociationIndices> groups;
  for (int64_t d = 0; d < rank; ++d) {
    groups.push_back({d});
    if (d == dim)
      for (; d + 1 < dim + count; ++d)
        groups.back().push_back(d + 1);
  }
  return groups;
}

/// Both outermost levels as one, where `outer` varies slowest in memory.
static Lifted merged(Lifter &l, Lifted list, Axis outer, Axis inner) {
  OpFoldResult product =
      l.b.getIndexAttr(*getConstantIntValue(list.lengths[0]) *
                       *getConstantIntValue(list.lengths[1]));
  std::optional<int64_t> first = list.dimOf(outer), second = list.dimOf(inner);
  if (first || second) {
    SmallVector<Axis> order = {outer, inner};
    if (!first || !second || *second != *first + 1) {
      for (Axis axis : list.axes)
        if (axis != outer && axis != inner)
          order.push_back(axis);
      list.tensor = l.aligned(list, order);
      list.axes = order;
    }
    int64_t dim = *list.dimOf(outer);
    int64_t rank = cast<RankedTensorType>(list.tensor.getType()).getRank();
    auto type = cast<RankedTensorType>(list.tensor.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] *= shape[dim + 1];
    shape.erase(shape.begin() + dim + 1);
    list.tensor = l.reshaped<tensor::CollapseShapeOp>(
        type.clone(shape), list.tensor, together(rank, dim, 2));
    list.axes.erase(list.axes.begin() + dim + 1);
    list.axes[dim] = levelAxis(1);
  }
  // What was level 1 or further is one level less.
  Lifted result = list.renamed([](Axis axis) { return deeper(axis, -1); });
  result.lengths.erase(result.lengths.begin());
  result.lengths.front() = product;
  return result;
}

/// The outermost level as two, `slow` of which varies slowest in memory.
static Lifted cut(Lifter &l, const Lifted &list, int64_t slowSize,
                  int64_t fastSize, bool slowIsOuter) {
  Axis slow = levelAxis(slowIsOuter ? 0 : 1),
       fast = levelAxis(slowIsOuter ? 1 : 0);
  Lifted result = list.renamed([](Axis axis) { return deeper(axis, 1); });
  result.lengths.front() = l.b.getIndexAttr(slowIsOuter ? slowSize : fastSize);
  result.lengths.insert(result.lengths.begin() + 1,
                        l.b.getIndexAttr(slowIsOuter ? fastSize : slowSize));
  std::optional<int64_t> dim = list.dimOf(levelAxis(0));
  if (!dim)
    return result;
  auto type = cast<RankedTensorType>(list.tensor.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[*dim] = slowSize;
  shape.insert(shape.begin() + *dim + 1, fastSize);
  result.tensor = l.reshaped<tensor::ExpandShapeOp>(
      type.clone(shape), list.tensor, together(shape.size(), *dim, 2));
  result.axes[*dim] = slow;
  result.axes.insert(result.axes.begin() + *dim + 1, fast);
  return result;
}

static bool allKnown(const Lifted &list, int64_t levels) {
  return llvm::all_of(
      ArrayRef(list.lengths).take_front(levels),
      [](OpFoldResult size) { return getConstantIntValue(size).has_value(); });
}

static LogicalResult unknown(Operation *op) {
  return unsupported(op)
         << "needs lengths that are known at compile time; give "
            "the lengths of the program's inputs";
}

static LogicalResult liftCut(Lifter &l, Operation *op, int64_t parts,
                             bool interleaved) {
  const Lifted &list = l.lookup(op->getOperand(0));
  if (interleaved && !list.isComplete())
    return liftRaggedInterleave(l, cast<InterleaveOp>(op));
  if (!allKnown(list, 1))
    return unknown(op);
  int64_t length = *getConstantIntValue(list.lengths.front());
  int64_t groups = interleaved ? std::min(parts, length) : parts;
  if (groups != 0 && length % groups != 0)
    return liftRaggedInterleave(l, cast<InterleaveOp>(op)); // split_c1
  int64_t each = groups == 0 ? 0 : length / groups;
  Lifted result = interleaved
                      ? cut(l, list, each, groups, /*slowIsOuter=*/false)
                      : cut(l, list, groups, each, /*slowIsOuter=*/true);
  l.define(op->getResult(0), result);
  return success();
}

static LogicalResult liftMerge(Lifter &l, Operation *op, bool interleaved) {
  const Lifted &list = l.lookup(op->getOperand(0));
  if (!list.isComplete())
    return interleaved ? liftRaggedDeinterleave(l, cast<DeinterleaveOp>(op))
                       : liftRaggedFlatten(l, cast<FlattenOp>(op));
  if (!allKnown(list, 2))
    return unknown(op);
  Axis first = levelAxis(0), second = levelAxis(1);
  l.define(op->getResult(0), interleaved ? merged(l, list, second, first)
                                         : merged(l, list, first, second));
  return success();
}

static void liftProduct(Lifter &l, ProductOp op) {
  Lifted lhs = l.lookup(op.getLhs()), rhs = l.lookup(op.getRhs());
  OpFoldResult rows = lhs.lengths.front(), columns = rhs.lengths.front();
  // Level 0 of the right list is level 1 of the mesh; neither is repeated.
  Lifted lefts = lhs.renamed(
      [](Axis axis) { return axis == levelAxis(0) ? axis : deeper(axis, 1); });
  lefts.lengths.insert(lefts.lengths.begin() + 1, columns);
  Lifted rights = rhs.repeated(rows);
  if (Presence inner = rhs.presenceOf(0)) {
    lefts.presences.resize(std::max<size_t>(1, lefts.presences.size()));
    lefts.presences.insert(lefts.presences.begin() + 1, inner);
  } else if (lefts.presences.size() > 1) {
    lefts.presences.insert(lefts.presences.begin() + 1, Presence());
  }
  if (Presence outer = lhs.presenceOf(0))
    rights.setPresence(0, outer);
  l.define(op.getLefts(), lefts);
  l.define(op.getRights(), rights);
}

static LogicalResult liftJoin(Lifter &l, JoinOp op) {
  int64_t total = 0;
  SmallVector<Lifted> lists;
  for (Value source : op.getSources()) {
    lists.push_back(l.lookup(source));
    if (!allKnown(lists.back(), 1))
      return unknown(op);
    total += *getConstantIntValue(lists.back().lengths.front());
    for (auto [own, first] : llvm::drop_begin(
             llvm::zip_equal(lists.back().lengths, lists.front().lengths)))
      if (!isEqualConstantIntOrValue(own, first))
        return unsupported(op) << "joins lists of lists of different lengths, "
                                  "which has no lowering yet; pad them to one "
                                  "length";
  }
  SmallVector<Axis> axes = levelsOf(lists.front());
  llvm::append_range(axes, Lifter::loopsOf(lists));
  // As one of the lists has it in memory, if that has all axes.
  for (const Lifted &list : lists)
    if (list.axes.size() == axes.size()) {
      axes = list.axes;
      break;
    }
  Lifted result = {{}, axes, lists.front().lengths};
  result.lengths.front() = l.b.getIndexAttr(total);
  result.tensor = l.empty(l.sizesOf(result, axes), leafOf(op.getType()));
  SmallVector<Value> parts = llvm::map_to_vector(
      lists, [&](const Lifted &list) { return l.aligned(list, axes); });
  result.tensor = l.joined(parts, result.tensor, *result.dimOf(levelAxis(0)));
  auto isComplete = [](const Lifted &list) { return list.isComplete(); };
  if (!llvm::all_of(lists, isComplete))
    return liftRaggedJoin(l, op, lists, result);
  l.define(op.getResult(), result);
  return success();
}

Lifted tilewright::gathered(Lifter &l, const Lifted &list, Value indices,
                            RankedTensorType leaf) {
  std::optional<int64_t> dim = list.dimOf(levelAxis(0));
  Lifted result = list;
  result.lengths.front() = tensor::getMixedSize(l.b, l.b.getLoc(), indices, 0);
  if (!dim)
    return result;
  Value into = l.empty(l.sizesOf(result, result.axes), leaf);
  int64_t rank = cast<RankedTensorType>(into.getType()).getRank();
  AffineMap place =
      AffineMap::get(rank, 0, l.b.getAffineDimExpr(*dim), l.b.getContext());
  result.tensor = l.parallel(
      indices, place, into,
      [&](OpBuilder &inner, Location loc, ValueRange args) -> Value {
        SmallVector<Value> point;
        for (int64_t d : llvm::seq(rank))
          point.push_back(linalg::IndexOp::create(inner, loc, d));
        point[*dim] = arith::IndexCastOp::create(inner, loc,
                                                 inner.getIndexType(), args[0]);
        return tensor::ExtractOp::create(inner, loc, list.tensor, point);
      });
  return result;
}

static LogicalResult liftGather(Lifter &l, GatherOp op) {
  if (!l.isLifted(op.getIndices()))
    return liftRaggedGather(l, op); // a list of a length that a run knows
  const Lifted &given = l.lookup(op.getIndices());
  if (!given.loops().empty() || !l.lookup(op.getSource()).isComplete())
    return liftRaggedGather(l, op);
  l.define(op.getResult(), gathered(l, l.lookup(op.getSource()), given.tensor,
                                    leafOf(op.getType())));
  return success();
}

//===----------------------------------------------------------------------===//
// Storage
//===----------------------------------------------------------------------===//

static LogicalResult liftFromTensor(Lifter &l, FromTensorOp op) {
  const Lifted &given = l.lookup(op.getSource());
  Lifted list = given;
  if (!given.lengths.empty()) { // places in a list of a length of its own
    l.define(op.getResult(), list);
    return success();
  }
  int64_t outer = given.axes.size();
  for (int64_t level : llvm::seq(op.getType().getDepth())) {
    list.axes.push_back(levelAxis(level));
    list.lengths.push_back(
        tensor::getMixedSize(l.b, op.getLoc(), given.tensor, outer + level));
  }
  l.define(op.getResult(), list);
  return success();
}

static LogicalResult liftToTensor(Lifter &l, ToTensorOp op) {
  Lifted list = claimed(l, l.lookup(op.getSource()), op.getType().getShape());
  if (!list.isComplete()) {
    // As places that are read or written, the list itself will do.
    if (llvm::all_of(op->getUsers(), llvm::IsaPred<GatherOp, ScatterOp>))
      return success();
    return unsupported(op) << "of a list whose length only a run knows has no "
                              "lowering: a tensor has a known size";
  }
  SmallVector<Axis> axes = list.loops();
  int64_t outer = axes.size();
  llvm::append_range(axes, levelsOf(list));
  Lifted result = {l.aligned(list, axes), axes, {}};
  result.axes.truncate(outer);
  l.define(op.getResult(), result);
  return success();
}

std::optional<LogicalResult> tilewright::liftRegroupOp(Lifter &l,
                                                       Operation *op) {
  using Done = std::optional<LogicalResult>;
  return TypeSwitch<Operation *, Done>(op)
      .Case(
          [&](InterleaveOp cut) { return liftCut(l, cut, cut.getBy(), true); })
      .Case([&](SplitOp cut) { return liftCut(l, cut, cut.getInto(), false); })
      .Case([&](DeinterleaveOp merge) { return liftMerge(l, merge, true); })
      .Case([&](FlattenOp merge) { return liftMerge(l, merge, false); })
      .Case(
          [&](ProductOp product) { return liftProduct(l, product), success(); })
      .Case([&](JoinOp join) { return liftJoin(l, join); })
      .Case([&](GatherOp gather) { return liftGather(l, gather); })
      .Case([&](ScatterOp scatter) { return liftScatter(l, scatter); })
      .Case([&](FromTensorOp from) { return liftFromTensor(l, from); })
      .Case([&](ToTensorOp to) { return liftToTensor(l, to); })
      .Case([&](CastOp cast) {
        l.define(cast.getResult(), l.lookup(cast.getSource()));
        return success();
      })
      .Case<LengthOp, FromRaggedOp, ToRaggedOp>(
          [&](Operation *stored) { return liftStored(l, stored); })
      .Default([](Operation *) { return std::nullopt; });
}
