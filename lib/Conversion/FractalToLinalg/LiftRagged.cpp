//===- LiftRagged.cpp - lists of lengths of their own ---------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/FractalToLinalg/Presences.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::fractal;

LogicalResult tilewright::unbounded(Operation *op) {
  return unsupported(op)
         << "makes lists of which no length is known, not even the largest; "
            "give those of the program's inputs";
}

//===----------------------------------------------------------------------===//
// Flat lists and offsets
//===----------------------------------------------------------------------===//

/// Elements of a list as `count` lists, which begin at these offsets, each of
/// at most `most` elements.
static Lifted nested(Lifter &l, const Lifted &list, Value offsets,
                     int64_t count, int64_t most) {
  auto offsetAt = [&](const Indices &i, Value place) {
    Value number = tensor::ExtractOp::create(i.b, i.loc, offsets, place);
    return Value(
        arith::IndexCastOp::create(i.b, i.loc, i.b.getIndexType(), number));
  };
  OpFoldResult lists = l.b.getIndexAttr(count);
  Axis outer = levelAxis(0);
  if (count == 0 || most == 0)
    return reread(l, list,
                  {1, {lists, l.b.getIndexAttr(most)}, {}, {}, nullptr});
  Numbers counts = numbersAt(l, outer, lists, [&](const Indices &i, Point at) {
    Value next = i.add(at(outer), i.number(1));
    Value size = i.sub(offsetAt(i, next), offsetAt(i, at(outer)));
    return clamped(i.b, i.loc, size, i.number(most));
  });
  return reread(l, list,
                {1,
                 {lists, l.b.getIndexAttr(most)},
                 {{}, {counts.tensor, counts.axes}},
                 {},
                 [&](OpBuilder &b, Location loc, Point at) {
                   Indices i = {b, loc};
                   Value first = offsetAt(i, at(outer));
                   return SmallVector<Value>{i.add(first, at(levelAxis(1)))};
                 }});
}

static LogicalResult liftFromRagged(Lifter &l, FromRaggedOp op) {
  Lifted list = l.lookup(op.getFlat());
  int64_t inner = op.getOffsets().size();
  for (int64_t level : llvm::reverse(llvm::seq(inner))) {
    const Lifted &offsets = l.lookup(op.getOffsets()[level]);
    if (!offsets.loops().empty())
      return unsupported(op) << "has offsets that differ between elements of a "
                                "list around it, which has no lowering yet";
    int64_t ends =
        cast<RankedTensorType>(offsets.tensor.getType()).getDimSize(0);
    std::optional<int64_t> most = getConstantIntValue(list.lengths.front());
    if (std::optional<ArrayRef<int64_t>> said = op.getMost())
      most = (*said)[level];
    if (!most || ShapedType::isDynamic(ends))
      return unbounded(op);
    list =
        nested(l, list, offsets.tensor, std::max<int64_t>(ends - 1, 0), *most);
  }
  l.define(op.getResult(), list);
  return success();
}

/// Of each list of the outermost level how many elements its lists have, zero
/// for those that are not there.
static Numbers innerCounts(Lifter &l, const Lifted &list) {
  Presence inner = list.presenceOf(1), outer = list.presenceOf(0);
  SetVector<Axis> axes;
  for (Axis axis : llvm::concat<const Axis>(inner.axes, outer.axes))
    if (!isLevel(axis))
      axes.insert(axis);
  axes.insert(levelAxis(0));
  SmallVector<Axis> order = axes.takeVector();
  return numbersAt(
      l, order, l.sizesOf(list, order), [&](const Indices &i, Point at) {
        Value count =
            inner
                ? numberAt(i.b, i.loc, {inner.tensor, inner.axes}, at)
                : getValueOrCreateConstantIndexOp(i.b, i.loc, list.lengths[1]);
        if (!outer)
          return count;
        Value is = i.less(at(levelAxis(0)), lengthAt(i.b, i.loc, list, at));
        return i.choose(is, count, i.number(0));
      });
}

/// Sums of the lengths of inner lists, up to each of them.
static Numbers innerEnds(Lifter &l, const Lifted &list) {
  return sumsOf(l, innerCounts(l, list), levelAxis(0),
                *getConstantIntValue(list.lengths.front()));
}

/// Where list `number` begins, by where lists end.
static Value beginOf(const Indices &i, const Numbers &ends, Value number,
                     Point at) {
  auto before = [&](Axis axis) {
    if (axis != levelAxis(0))
      return at(axis);
    return i.most(i.sub(number, i.number(1)), i.number(0));
  };
  Value end = numberAt(i.b, i.loc, ends, before);
  return i.choose(i.less(i.number(0), number), end, i.number(0));
}

/// The lists of a list, joined: at most `length` elements, of which those are
/// there that `ends` says.
static Lifted flattened(Lifter &l, const Lifted &list, const Numbers &ends,
                        int64_t length) {
  Numbers lists = placesIn(l, ends, length), count = lastOf(l, ends);
  return reread(
      l, list,
      {2,
       {l.b.getIndexAttr(length)},
       {{count.tensor, count.axes}},
       count.axes,
       [&](OpBuilder &b, Location loc, Point at) {
         Indices i = {b, loc};
         int64_t most = *getConstantIntValue(list.lengths[0]) - 1;
         Value number = i.least(numberAt(b, loc, lists, at), i.number(most));
         Value begin = beginOf(i, ends, number, at);
         return SmallVector<Value>{number, i.sub(at(levelAxis(0)), begin)};
       }});
}

bool tilewright::haveBounds(const Lifted &list) {
  return llvm::all_of(list.lengths, [](OpFoldResult length) {
    return getConstantIntValue(length).has_value();
  });
}

/// A list of no elements of the lists of a list.
static Lifted noneOf(Lifter &l, const Lifted &list, RankedTensorType leaf) {
  Lifted result = {{}, {}, list.lengths};
  result.lengths.erase(result.lengths.begin());
  result.lengths.front() = l.b.getIndexAttr(0);
  result.axes = levelsOf(result);
  result.tensor = l.empty(l.sizesOf(result, result.axes), leaf);
  return result;
}

/// The first two levels as one.
static Lifted joinedLists(Lifter &l, const Lifted &list, RankedTensorType leaf,
                          Numbers *ends = nullptr) {
  int64_t lists = *getConstantIntValue(list.lengths[0]);
  int64_t most = lists * *getConstantIntValue(list.lengths[1]);
  if (lists == 0)
    return noneOf(l, list, leaf);
  Numbers found = innerEnds(l, list);
  if (ends)
    *ends = found;
  return most == 0 ? noneOf(l, list, leaf) : flattened(l, list, found, most);
}

LogicalResult tilewright::liftRaggedFlatten(Lifter &l, FlattenOp op) {
  Lifted list = compacted(l, l.lookup(op.getSource()));
  if (!haveBounds(list))
    return unbounded(op);
  l.define(op.getResult(), joinedLists(l, list, leafOf(op.getType())));
  return success();
}

/// Where each list begins, and the last one ends: as many as the type says.
static Value offsetsOf(Lifter &l, const Numbers &ends, int64_t lists,
                       Value like) {
  int64_t said = cast<RankedTensorType>(like.getType()).getDimSize(0);
  OpFoldResult size =
      l.b.getIndexAttr(ShapedType::isDynamic(said) ? lists + 1 : said);
  Axis level = levelAxis(0);
  Value made =
      numbersAt(l, level, size, [&](const Indices &i, Point at) -> Value {
        if (!ends.tensor)
          return i.number(0);
        return beginOf(i, ends, i.least(at(level), i.number(lists)), at);
      }).tensor;
  if (made.getType() != like.getType())
    made = tensor::CastOp::create(l.b, like.getType(), made);
  return made;
}

static LogicalResult liftToRagged(Lifter &l, ToRaggedOp op) {
  Lifted list = compacted(l, l.lookup(op.getSource()));
  RankedTensorType leaf = leafOf(op.getFlat().getType());
  if (!Lifter::loopsOf(list).empty())
    return unsupported(op) << "stands in a map over a list, which has no "
                              "lowering yet: return the list, and store it "
                              "outside";
  if (!haveBounds(list))
    return unbounded(op);
  for (Value offsets : op.getOffsets()) {
    Numbers ends;
    int64_t lists = *getConstantIntValue(list.lengths.front());
    list = joinedLists(l, list, leaf, &ends);
    l.defineLeaf(offsets, offsetsOf(l, ends, lists, offsets));
  }
  int64_t said = cast<ArrayType>(op.getFlat().getType()).getLength();
  if (ArrayType::isKnown(said)) {
    // What stands behind the last leaf is zero.
    if (list.presenceOf(0))
      list = masked(l, list, l.b.getZeroAttr(leaf.getElementType()));
    list = resized(l, list, l.b.getIndexAttr(said), /*zeros=*/true);
  }
  l.define(op.getFlat(), list);
  return success();
}

//===----------------------------------------------------------------------===//
// Elements that are left out
//===----------------------------------------------------------------------===//

LogicalResult tilewright::liftFilter(Lifter &l, FilterOp op) {
  InStep step = inStep(l, op.getArray());
  if (!getConstantIntValue(step.length))
    return unbounded(op);
  Lifted list = step.lists.front();
  Axis loop = l.addLoop(step.length);
  l.define(op.getBodyBlock().getArgument(0), list.entered(loop));
  if (failed(l.lift(op.getBodyBlock())))
    return failure();
  l.b.setLoc(op.getLoc());
  Value verdict = op.getBodyBlock().getTerminator()->getOperand(0);
  Lifted mask = l.lookup(verdict).listed(loop, step.length);
  if (step.presence) {
    mask.setPresence(0, step.presence);
    mask = masked(l, mask, l.b.getBoolAttr(false));
  }
  SmallVector<Axis> axes = {levelAxis(0)};
  llvm::append_range(axes, mask.loops());
  list.setPresence(0, {l.aligned(mask, axes), axes});
  l.define(op.getResult(), list);
  return success();
}

static void liftLength(Lifter &l, LengthOp op) {
  const Lifted &list = l.lookup(op.getSource());
  if (!list.presenceOf(0))
    return l.defineScalar(op.getResult(), l.index(list.lengths.front()));
  Numbers counts = countsOf(l, list);
  // Where it differs between elements of a list around it, it is no scalar.
  if (!counts.axes.empty())
    return l.define(op.getResult(), {counts.tensor, counts.axes, {}});
  Value word = tensor::ExtractOp::create(l.b, counts.tensor);
  l.defineScalar(op.getResult(),
                 arith::IndexCastOp::create(l.b, l.b.getIndexType(), word));
}

//===----------------------------------------------------------------------===//
// Groups of unequal lengths
//===----------------------------------------------------------------------===//

LogicalResult tilewright::liftRaggedInterleave(Lifter &l, InterleaveOp op) {
  Lifted list = compacted(l, l.lookup(op.getSource()));
  std::optional<int64_t> length = getConstantIntValue(list.lengths.front());
  if (!length)
    return unbounded(op);
  int64_t groups = std::min<int64_t>(op.getBy(), *length);
  int64_t each = groups == 0 ? 0 : llvm::divideCeil(*length, groups);
  SmallVector<OpFoldResult> lengths = {l.b.getIndexAttr(groups),
                                       l.b.getIndexAttr(each)};
  Presence whole = list.presenceOf(0);
  SmallVector<Axis> axes = {levelAxis(0)};
  llvm::append_range(axes, whole.axes);
  SmallVector<OpFoldResult> sizes = {lengths.front()};
  llvm::append_range(sizes, l.sizesOf(list, whole.axes));
  Presence outer, inner;
  if (!whole && groups * each != *length) {
    SmallVector<int64_t> counts;
    for (int64_t group : llvm::seq(groups))
      counts.push_back(llvm::divideCeil(*length - group, groups));
    auto type = RankedTensorType::get(groups, l.b.getI64Type());
    inner = {arith::ConstantOp::create(
                 l.b, DenseElementsAttr::get(type, ArrayRef<int64_t>(counts))),
             {levelAxis(0)}};
  }
  if (whole) {
    Numbers counts = numbersAt(l, axes, sizes, [&](const Indices &i, Point at) {
      // Elements from the group's first one on, then one of `groups` each.
      Value behind = i.sub(lengthAt(i.b, i.loc, list, at), at(levelAxis(0)));
      Value round = i.add(behind, i.number(groups - 1));
      Value some = i.most(round, i.number(0));
      return Value(arith::DivUIOp::create(i.b, i.loc, some, i.number(groups)));
    });
    inner = {counts.tensor, counts.axes};
    Numbers some = numbersAt(l, whole.axes, l.sizesOf(list, whole.axes),
                             [&](const Indices &i, Point at) {
                               return i.least(lengthAt(i.b, i.loc, list, at),
                                              i.number(groups));
                             });
    outer = {some.tensor, some.axes};
  }
  l.define(op.getResult(),
           reread(l, list,
                  {1,
                   lengths,
                   {outer, inner},
                   {},
                   [&](OpBuilder &b, Location loc, Point at) {
                     Indices i = {b, loc};
                     Value first = i.mul(at(levelAxis(1)), i.number(groups));
                     return SmallVector<Value>{i.add(first, at(levelAxis(0)))};
                   }}));
  return success();
}

LogicalResult tilewright::liftRaggedDeinterleave(Lifter &l, DeinterleaveOp op) {
  Lifted list = compacted(l, l.lookup(op.getSource()));
  if (!haveBounds(list))
    return unbounded(op);
  int64_t groups = *getConstantIntValue(list.lengths[0]);
  int64_t most = groups * *getConstantIntValue(list.lengths[1]);
  if (most == 0) {
    l.define(op.getResult(), noneOf(l, list, leafOf(op.getType())));
    return success();
  }
  Numbers count = lastOf(l, innerEnds(l, list));
  l.define(op.getResult(),
           reread(l, list,
                  {2,
                   {l.b.getIndexAttr(most)},
                   {{count.tensor, count.axes}},
                   list.presenceOf(0).axes,
                   [&](OpBuilder &b, Location loc, Point at) {
                     Indices i = {b, loc};
                     Value by = i.most(lengthAt(b, loc, list, at), i.number(1));
                     Value place = at(levelAxis(0));
                     Value group = arith::RemUIOp::create(b, loc, place, by);
                     Value turn = arith::DivUIOp::create(b, loc, place, by);
                     return SmallVector<Value>{group, turn};
                   }}));
  return success();
}

LogicalResult tilewright::liftStored(Lifter &l, Operation *op) {
  return TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](FromRaggedOp from) { return liftFromRagged(l, from); })
      .Case([&](ToRaggedOp to) { return liftToRagged(l, to); })
      .Case([&](LengthOp length) { return liftLength(l, length), success(); });
}
