//===- LiftRaggedAccess.cpp - elements elsewhere in ragged lists ----------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/FractalToLinalg/Presences.h"

#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::fractal;

//===----------------------------------------------------------------------===//
// Places that a number says, which may differ between elements
//===----------------------------------------------------------------------===//

/// A number of an op: known, a scalar, or one for each element around.
static Numbers numberOf(Lifter &l, OpFoldResult given) {
  if (auto value = dyn_cast<Value>(given); value && l.isLifted(value))
    return {l.lookup(value).tensor, l.lookup(value).axes};
  Value scalar =
      isa<Value>(given) ? l.scalar(cast<Value>(given)) : l.index(given);
  Value word = arith::IndexCastOp::create(l.b, l.b.getI64Type(), scalar);
  auto type = RankedTensorType::get({}, l.b.getI64Type());
  return {tensor::FromElementsOp::create(l.b, type, word), {}};
}

LogicalResult tilewright::liftRaggedAt(Lifter &l, AtOp op) {
  Numbers place = numberOf(l, op.getIndex());
  l.define(
      op.getResult(),
      reread(l, l.lookup(op.getSource()),
             {1, {}, {}, place.axes, [&](OpBuilder &b, Location loc, Point at) {
                return SmallVector<Value>{numberAt(b, loc, place, at)};
              }}));
  return success();
}

LogicalResult tilewright::liftRaggedSlice(Lifter &l, SliceOp op) {
  const Lifted &list = l.lookup(op.getSource());
  std::optional<int64_t> length = getConstantIntValue(list.lengths.front());
  if (!length)
    return unbounded(op);
  int64_t stride = op.getStride();
  OpFoldResult size = op.getMixedSize();
  std::optional<int64_t> known = getConstantIntValue(size);
  int64_t most = known ? *known : llvm::divideCeil(*length, std::abs(stride));
  Numbers first = numberOf(l, op.getMixedOffset());
  Presence presence;
  if (!known) {
    Numbers count = numberOf(l, size);
    presence = {count.tensor, count.axes};
  }
  l.define(op.getResult(),
           reread(l, list,
                  {1,
                   {l.b.getIndexAttr(most)},
                   {presence},
                   first.axes,
                   [&](OpBuilder &b, Location loc, Point at) {
                     Indices i = {b, loc};
                     Value step = i.mul(at(levelAxis(0)), i.number(stride));
                     Value place = i.add(numberAt(b, loc, first, at), step);
                     return SmallVector<Value>{place};
                   }}));
  return success();
}

LogicalResult tilewright::liftRaggedGather(Lifter &l, GatherOp op) {
  ListedPlaces given = listedPlaces(l, op.getIndices());
  SmallVector<Axis> around = llvm::filter_to_vector(
      given.places.axes, [](Axis axis) { return !isLevel(axis); });
  l.define(op.getResult(), reread(l, l.lookup(op.getSource()),
                                  {1,
                                   {given.length},
                                   {given.presence},
                                   around,
                                   [&](OpBuilder &b, Location loc, Point at) {
                                     return SmallVector<Value>{
                                         numberAt(b, loc, given.places, at)};
                                   }}));
  return success();
}

//===----------------------------------------------------------------------===//
// Affine places
//===----------------------------------------------------------------------===//

namespace {
/// An access whose map may depend on how long a list is.
struct RaggedAccess {
  Operation *op;
  Value fill;
  AffineMap map;
  Lifted list;

  Value placeAt(OpBuilder &b, Location loc, Point at) const {
    SmallVector<Value> operands = llvm::map_to_vector(
        llvm::seq<int64_t>(map.getNumDims()),
        [&](int64_t level) { return at(levelAxis(level)); });
    if (map.getNumSymbols() != 0) {
      // Of an empty list nothing is read, but no number is divided by zero.
      Indices i = {b, loc};
      operands.push_back(i.most(lengthAt(b, loc, list, at), i.number(1)));
    }
    return affine::expandAffineMap(b, loc, map, operands)->front();
  }
};
} // namespace

/// Lengths of the result's levels, and which elements of them are there.
static void measure(Lifter &l, const RaggedAccess &a, Places &places) {
  Presence presence = a.list.presenceOf(0);
  auto window = dyn_cast<WindowOp>(a.op);
  if (!window) {
    places.lengths = {a.list.lengths.front()};
    places.presences = {presence};
    return;
  }
  int64_t stride = window.getStride();
  int64_t more = window.getPadding()[0] + window.getPadding()[1] - 1 -
                 int64_t(window.getDilation()) * (window.getSize() - 1);
  int64_t room = *getConstantIntValue(a.list.lengths.front()) + more;
  int64_t most = room < 0 ? 0 : room / stride + 1;
  places.lengths = {l.b.getIndexAttr(most), l.b.getIndexAttr(window.getSize())};
  if (!presence || most == 0)
    return;
  Numbers counts = numbersAt(
      l, presence.axes, l.sizesOf(a.list, presence.axes),
      [&](const Indices &i, Point at) {
        Value room = i.add(lengthAt(i.b, i.loc, a.list, at), i.number(more));
        Value next = i.add(i.most(room, i.number(0)), i.number(stride));
        Value some = arith::DivUIOp::create(i.b, i.loc, next, i.number(stride));
        return i.choose(i.less(room, i.number(0)), i.number(0), some);
      });
  places.presences = {{counts.tensor, counts.axes}};
}

/// The fill where the map leaves the list.
static Lifted filled(Lifter &l, const RaggedAccess &a, const Lifted &read,
                     int64_t levels) {
  Lifted fill =
      l.lookup(a.fill).renamed([&](Axis axis) { return deeper(axis, levels); });
  SetVector<Axis> axes(llvm::from_range, levelsOf(read));
  axes.insert_range(read.axes);
  axes.insert_range(fill.axes);
  axes.insert_range(a.list.presenceOf(0).axes);
  Lifted result = read;
  result.axes = axes.takeVector();
  result.tensor = eachOf(
      l, result.axes, l.sizesOf(read, result.axes),
      leafOf(a.op->getResult(0).getType()),
      [&](OpBuilder &b, Location loc, Point at, ValueRange leaf) -> Value {
        auto entry = [&](const Lifted &from) -> Value {
          SmallVector<Value> indices = llvm::map_to_vector(from.axes, at);
          llvm::append_range(indices, leaf);
          return tensor::ExtractOp::create(b, loc, from.tensor, indices);
        };
        Indices i = {b, loc};
        Value place = a.placeAt(b, loc, at);
        Value behind = i.less(place, lengthAt(b, loc, a.list, at));
        Value before = i.less(place, i.number(0));
        Value other = entry(fill);
        Value inside = i.choose(behind, entry(read), other);
        return i.choose(before, other, inside);
      });
  return result;
}

LogicalResult tilewright::liftRaggedAccess(Lifter &l, AccessOpInterface op) {
  RaggedAccess a = {op, op.getFill(), op.getAccessMap(),
                    l.lookup(op.getSource())};
  if (!a.map || a.map.getNumResults() != 1 || !haveBounds(a.list))
    return unbounded(op);
  bool hasLists = llvm::any_of(
      ArrayRef(a.list.presences)
          .drop_front(std::min<size_t>(1, a.list.presences.size())),
      [](const Presence &inner) { return bool(inner); });
  if (op.getFill() && (hasLists || !l.lookup(op.getFill()).isComplete()))
    return unsupported(op) << "fills a list of lists of lengths of their own, "
                              "which has no lowering yet; join the fill "
                              "instead";
  Places places = {1,
                   {},
                   {},
                   a.list.presenceOf(0).axes,
                   [&](OpBuilder &b, Location loc, Point at) {
                     return SmallVector<Value>{a.placeAt(b, loc, at)};
                   }};
  measure(l, a, places);
  Lifted read = reread(l, a.list, places);
  int64_t levels = places.lengths.size();
  if (op.getFill() && llvm::none_of(places.lengths, [](OpFoldResult length) {
        return getConstantIntValue(length) == 0;
      }))
    read = filled(l, a, read, levels);
  l.define(op->getResult(0), read);
  return success();
}

//===----------------------------------------------------------------------===//
// Several lists
//===----------------------------------------------------------------------===//

LogicalResult tilewright::liftRaggedJoin(Lifter &l, JoinOp op,
                                         ArrayRef<Lifted> lists,
                                         const Lifted &whole) {
  SetVector<Axis> loops;
  for (const Lifted &list : lists) {
    for (auto [level, presence] : llvm::enumerate(list.presences))
      if (level > 0 && presence)
        return unsupported(op)
               << "joins lists of lists of lengths of their own, which has no "
                  "lowering yet; pad them to one length";
    loops.insert_range(list.presenceOf(0).axes);
  }
  SmallVector<Axis> around = loops.takeVector();
  // Where each list ends, in the result and in the lists side by side.
  auto ends = [&](const Indices &i, Point at) {
    SmallVector<Value> all;
    for (const Lifted &list : lists) {
      Value length = lengthAt(i.b, i.loc, list, at);
      all.push_back(all.empty() ? length : i.add(all.back(), length));
    }
    return all;
  };
  Numbers count =
      numbersAt(l, around, l.sizesOf(whole, around),
                [&](const Indices &i, Point at) { return ends(i, at).back(); });
  Places places = {
      1,
      {whole.lengths.front()},
      {{count.tensor, count.axes}},
      around,
      [&](OpBuilder &b, Location loc, Point at) {
        Indices i = {b, loc};
        SmallVector<Value> end = ends(i, at);
        Value here = at(levelAxis(0)), place = here;
        int64_t first = 0;
        for (auto [number, list] : llvm::enumerate(lists.drop_back())) {
          first += *getConstantIntValue(list.lengths.front());
          Value next = i.add(i.sub(here, end[number]), i.number(first));
          Value is = i.less(here, end[number]);
          place = i.choose(is, place, next);
        }
        return SmallVector<Value>{place};
      }};
  l.define(op.getResult(), reread(l, whole, places));
  return success();
}

Lifted tilewright::claimed(Lifter &l, Lifted list, ArrayRef<int64_t> lengths) {
  if (list.isComplete())
    return list;
  if (ArrayType::isKnown(lengths.front()) && list.presenceOf(0))
    list = resized(l, compacted(l, list), l.b.getIndexAttr(lengths.front()));
  if (lengths.size() < 2)
    return list;
  OpFoldResult length = list.lengths.front();
  Presence outer = list.presenceOf(0);
  Axis loop = l.addLoop(length);
  Lifted inner = claimed(l, list.entered(loop), lengths.drop_front());
  list = inner.listed(loop, length);
  if (outer)
    list.setPresence(0, outer);
  return list;
}
