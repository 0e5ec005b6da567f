//===- Presences.cpp - lists as long as the longest one -------------------===//
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

using namespace mlir;
using namespace tilewright;

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

Value tilewright::eachOf(
    Lifter &l, ArrayRef<Axis> axes, ArrayRef<OpFoldResult> sizes,
    RankedTensorType leaf,
    function_ref<Value(OpBuilder &, Location, Point, ValueRange)> element) {
  Value into = l.empty(sizes, leaf);
  int64_t rank = cast<RankedTensorType>(into.getType()).getRank();
  return l.parallel(
      {}, {}, into, [&](OpBuilder &inner, Location loc, ValueRange) {
        SmallVector<Value> point;
        for (int64_t dim : llvm::seq(rank))
          point.push_back(linalg::IndexOp::create(inner, loc, dim));
        auto at = [&](Axis axis) {
          return point[llvm::find(axes, axis) - axes.begin()];
        };
        return element(inner, loc, at, ArrayRef(point).drop_front(axes.size()));
      });
}

/// Tensors of the levels that places replace, and of none.
static Lifted rereadTensor(Lifter &l, const Lifted &source,
                           const Places &places) {
  int64_t levels = places.lengths.size(), shift = levels - places.replaced;
  auto isReplaced = [&](Axis axis) {
    return isLevel(axis) && levelOf(axis) < places.replaced;
  };
  auto after = [&](Axis axis) { return deeper(axis, shift); };
  Lifted result = {source.tensor, {}, places.lengths};
  llvm::append_range(result.lengths,
                     ArrayRef(source.lengths).drop_front(places.replaced));
  if (llvm::none_of(source.axes, isReplaced)) {
    result.axes = llvm::map_to_vector(source.axes, after);
    return result;
  }
  SetVector<Axis> axes;
  for (int64_t level : llvm::seq(levels))
    axes.insert(levelAxis(level));
  for (Axis axis : source.axes)
    if (!isReplaced(axis))
      axes.insert(after(axis));
  axes.insert_range(places.around);
  result.axes = axes.takeVector();
  auto type = cast<RankedTensorType>(source.tensor.getType());
  auto leaf = RankedTensorType::get(
      type.getShape().drop_front(source.axes.size()), type.getElementType());
  if (llvm::any_of(places.lengths, [](OpFoldResult length) {
        return getConstantIntValue(length) == 0;
      })) {
    result.tensor = l.empty(l.sizesOf(result, result.axes), leaf);
    return result;
  }
  if (isEmpty(type)) {
    Value zero =
        arith::ConstantOp::create(l.b, l.b.getZeroAttr(leaf.getElementType()));
    Value into = l.empty(l.sizesOf(result, result.axes), leaf);
    result.tensor = linalg::FillOp::create(l.b, zero, into).getResult(0);
    return result;
  }
  result.tensor = eachOf(
      l, result.axes, l.sizesOf(result, result.axes), leaf,
      [&](OpBuilder &b, Location loc, Point at, ValueRange rest) -> Value {
        SmallVector<Value> read = places.at(b, loc, at);
        SmallVector<Value> indices;
        for (Axis axis : source.axes) {
          if (!isReplaced(axis)) {
            indices.push_back(at(after(axis)));
            continue;
          }
          Value size = getValueOrCreateConstantIndexOp(
              b, loc, source.lengths[levelOf(axis)]);
          Value one = arith::ConstantIndexOp::create(b, loc, 1);
          Value last = arith::SubIOp::create(b, loc, size, one);
          indices.push_back(clamped(b, loc, read[levelOf(axis)], last));
        }
        llvm::append_range(indices, rest);
        return tensor::ExtractOp::create(b, loc, source.tensor, indices);
      });
  return result;
}

Lifted tilewright::reread(Lifter &l, const Lifted &source,
                          const Places &places) {
  Lifted result = rereadTensor(l, source, places);
  int64_t levels = places.lengths.size();
  for (auto [level, presence] : llvm::enumerate(places.presences))
    if (presence)
      result.setPresence(level, presence);
  for (int64_t level :
       llvm::seq<int64_t>(places.replaced, source.lengths.size())) {
    Presence presence = source.presenceOf(level);
    if (!presence)
      continue;
    Lifted now = rereadTensor(
        l, {presence.tensor, presence.axes, source.lengths}, places);
    result.setPresence(level + levels - places.replaced,
                       {now.tensor, now.axes});
  }
  return result;
}

Value tilewright::numberAt(OpBuilder &b, Location loc, const Numbers &numbers,
                           Point at) {
  SmallVector<Value> indices = llvm::map_to_vector(numbers.axes, at);
  Value number = tensor::ExtractOp::create(b, loc, numbers.tensor, indices);
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), number);
}

Value tilewright::lengthAt(OpBuilder &b, Location loc, const Lifted &list,
                           Point at) {
  Presence presence = list.presenceOf(0);
  if (!presence)
    return getValueOrCreateConstantIndexOp(b, loc, list.lengths.front());
  assert(!presence.isMask() && "compacted before");
  return numberAt(b, loc, {presence.tensor, presence.axes}, at);
}

//===----------------------------------------------------------------------===//
// Lists without gaps, of other lengths
//===----------------------------------------------------------------------===//

/// The outermost level: places of elements that a mask leaves.
static Lifted compactedLevel(Lifter &l, const Lifted &list) {
  Presence mask = list.presenceOf(0);
  std::optional<int64_t> length = getConstantIntValue(list.lengths.front());
  assert(length && "masks are of lists of known lengths");
  if (*length == 0) {
    Lifted nothing = list;
    nothing.setPresence(0, {});
    return nothing;
  }
  Numbers sums = sumsOf(l, {mask.tensor, mask.axes}, levelAxis(0), *length);
  Numbers found = placesIn(l, sums, *length);
  Numbers count = lastOf(l, sums);
  Places places = {1,
                   {list.lengths.front()},
                   {{count.tensor, count.axes}},
                   count.axes,
                   [&](OpBuilder &b, Location loc, Point at) {
                     return SmallVector<Value>{numberAt(b, loc, found, at)};
                   }};
  return reread(l, list, places);
}

Lifted tilewright::compacted(Lifter &l, const Lifted &list) {
  Lifted now = list;
  auto isMask = [](const Presence &presence) {
    return presence && presence.isMask();
  };
  if (llvm::none_of(list.presences, isMask))
    return now;
  if (Presence presence = now.presenceOf(0); presence && presence.isMask())
    now = compactedLevel(l, now);
  if (now.lengths.size() < 2)
    return now;
  // What is further inside, as in a map over the level.
  OpFoldResult length = now.lengths.front();
  Presence outer = now.presenceOf(0);
  Axis loop = l.addLoop(length);
  Lifted list0 = compacted(l, now.entered(loop)).listed(loop, length);
  if (outer)
    list0.setPresence(0, outer);
  return list0;
}

Lifted tilewright::resized(Lifter &l, Lifted list, OpFoldResult length,
                           bool zeros) {
  list.setPresence(0, {});
  std::optional<int64_t> now = getConstantIntValue(list.lengths.front());
  std::optional<int64_t> then = getConstantIntValue(length);
  if (!now || !then || *now == *then)
    return list;
  if (zeros && *now > 0 && *then > *now) {
    Value count = arith::ConstantOp::create(
        l.b, DenseElementsAttr::get(RankedTensorType::get({}, l.b.getI64Type()),
                                    ArrayRef<int64_t>(*now)));
    Lifted longer = resized(l, list, length);
    longer.setPresence(0, {count, {}});
    auto type = cast<RankedTensorType>(list.tensor.getType());
    return masked(l, longer, l.b.getZeroAttr(type.getElementType()));
  }
  return reread(l, list,
                {1, {length}, {}, {}, [&](OpBuilder &, Location, Point at) {
                   return SmallVector<Value>{at(levelAxis(0))};
                 }});
}

InStep tilewright::inStep(Lifter &l, ValueRange arrays) {
  SmallVector<Lifted> lists =
      llvm::map_to_vector(arrays, [&](Value array) { return l.lookup(array); });
  Presence first = lists.front().presenceOf(0);
  bool isOne = llvm::all_of(lists, [&](const Lifted &list) {
    return list.presenceOf(0).tensor == first.tensor;
  });
  if (!isOne)
    for (Lifted &list : lists)
      list = compacted(l, list);
  // The length that they have in common: exactly where one of them has it.
  const Lifted *exact = nullptr, *least = &lists.front();
  for (const Lifted &list : lists) {
    std::optional<int64_t> length = getConstantIntValue(list.lengths.front());
    if (length && !list.presenceOf(0) && !exact)
      exact = &list;
    if (length && *length < getConstantIntValue(least->lengths.front())
                                .value_or(ShapedType::kDynamic))
      least = &list;
  }
  const Lifted &like = exact ? *exact : *least;
  InStep result = {{}, like.lengths.front(), like.presenceOf(0)};
  for (const Lifted &list : lists)
    result.lists.push_back(resized(l, list, result.length));
  return result;
}

//===----------------------------------------------------------------------===//
// Whether an element is there
//===----------------------------------------------------------------------===//

/// The same for the element at a place of the list that a generic knows.
static Value isPresent(OpBuilder &b, Location loc, Value entry, Value place) {
  if (entry.getType().isInteger(1))
    return entry;
  Value number = arith::IndexCastOp::create(b, loc, b.getI64Type(), place);
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, number,
                               entry);
}

/// The largest of numbers that constants say.
static std::optional<int64_t> largestConstant(Value numbers) {
  DenseIntElementsAttr known;
  if (!matchPattern(numbers, m_Constant(&known)) || known.empty())
    return std::nullopt;
  APInt largest = *std::max_element(
      known.begin(), known.end(),
      [](const APInt &one, const APInt &other) { return one.slt(other); });
  return largest.getSExtValue();
}

OpFoldResult tilewright::longestOf(Lifter &l, const Presence &presence,
                                   OpFoldResult length) {
  auto type = cast<RankedTensorType>(presence.tensor.getType());
  if (isEmpty(type) || getConstantIntValue(length) == 0)
    return l.b.getIndexAttr(0);
  bool isMask = presence.isMask();
  if (std::optional<int64_t> known = largestConstant(presence.tensor);
      known && !isMask)
    return l.b.getIndexAttr(*known);
  Type word = l.b.getI64Type();
  Value most = presence.tensor;
  int64_t rank = type.getRank();
  if (isMask || rank > 0) {
    int64_t level =
        llvm::find(presence.axes, levelAxis(0)) - presence.axes.begin();
    Value zero = arith::ConstantOp::create(l.b, l.b.getZeroAttr(word));
    Value into = l.empty({}, RankedTensorType::get({}, word));
    into = linalg::FillOp::create(l.b, zero, into).getResult(0);
    AffineMap maps[] = {l.b.getMultiDimIdentityMap(rank),
                        AffineMap::get(rank, 0, l.b.getContext())};
    SmallVector<utils::IteratorType> kinds(rank,
                                           utils::IteratorType::reduction);
    auto larger = [&](OpBuilder &b, Location loc, ValueRange args) {
      Indices i = {b, loc};
      Value number = args[0];
      if (isMask) { // as many as up to the last one that is there
        Value place = linalg::IndexOp::create(b, loc, level);
        number = i.choose(number, i.word(i.add(place, i.number(1))), zero);
      }
      linalg::YieldOp::create(b, loc, i.most(number, args[1]));
    };
    most = linalg::GenericOp::create(l.b, into.getType(), presence.tensor, into,
                                     maps, kinds, larger)
               .getResult(0);
  }
  Value number = tensor::ExtractOp::create(l.b, most, ValueRange());
  number = arith::IndexCastOp::create(l.b, l.b.getIndexType(), number);
  return clamped(l.b, l.b.getLoc(), number, l.index(length));
}

/// The map of a leaf with these axes in front.
static AffineMap readAs(Lifter &l, const Lifted &value, ArrayRef<Axis> axes) {
  auto type = cast<RankedTensorType>(value.tensor.getType());
  int64_t rank = type.getRank() - value.axes.size();
  return liftedMap(l.b.getMultiDimIdentityMap(rank), value.axes, axes);
}

Value tilewright::kept(Lifter &l, const Lifted &list, OpFoldResult step,
                       const Lifted &next, const Lifted &before,
                       ArrayRef<Axis> axes) {
  Presence presence = list.presenceOf(0);
  Lifted entry = {presence.tensor, presence.axes, list.lengths};
  if (presence.isMask())
    entry = l.elementAt(entry, step);
  auto type = cast<RankedTensorType>(next.tensor.getType());
  auto leaf = RankedTensorType::get(
      type.getShape().drop_front(next.axes.size()), type.getElementType());
  AffineMap where = liftedMap(
      AffineMap::get(leaf.getRank(), 0, l.b.getContext()), entry.axes, axes);
  AffineMap maps[] = {where, readAs(l, next, axes), readAs(l, before, axes)};
  Value place = l.index(step);
  return l.parallel({entry.tensor, next.tensor, before.tensor}, maps,
                    l.empty(l.sizesOf(next, axes), leaf),
                    [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
                      Value is = isPresent(b, loc, args[0], place);
                      return arith::SelectOp::create(b, loc, is, args[1],
                                                     args[2]);
                    });
}

Lifted tilewright::masked(Lifter &l, const Lifted &list, TypedAttr number) {
  Presence presence = list.presenceOf(0);
  SetVector<Axis> all(llvm::from_range, list.axes);
  all.insert(levelAxis(0));
  all.insert_range(presence.axes);
  SmallVector<Axis> axes = all.takeVector();
  auto type = cast<RankedTensorType>(list.tensor.getType());
  auto leaf = RankedTensorType::get(
      type.getShape().drop_front(list.axes.size()), type.getElementType());
  int64_t level = llvm::find(axes, levelAxis(0)) - axes.begin();
  AffineMap where = liftedMap(
      AffineMap::get(leaf.getRank(), 0, l.b.getContext()), presence.axes, axes);
  Value other = arith::ConstantOp::create(l.b, number);
  Lifted result = list;
  result.axes = axes;
  result.setPresence(0, {});
  result.tensor =
      l.parallel({presence.tensor, list.tensor}, {where, readAs(l, list, axes)},
                 l.empty(l.sizesOf(list, axes), leaf),
                 [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
                   Value place = linalg::IndexOp::create(b, loc, level);
                   Value is = isPresent(b, loc, args[0], place);
                   return arith::SelectOp::create(b, loc, is, args[1], other);
                 });
  return result;
}
