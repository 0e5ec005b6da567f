//===- LiftScatter.cpp - elements written at listed places ----------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Nothing is written twice: an element of the result finds the last element of
// the source that names its place. That is a comparison for each pair of an
// element and an index, on lists of numbers; leaves are copied once.
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/FractalToLinalg/Presences.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::fractal;

ListedPlaces tilewright::listedPlaces(Lifter &l, Value indices) {
  if (auto list = indices.getDefiningOp<ToTensorOp>()) {
    Lifted given = compacted(l, l.lookup(list.getSource()));
    return {
        {given.tensor, given.axes}, given.presenceOf(0), given.lengths.front()};
  }
  const Lifted &given = l.lookup(indices);
  Numbers numbers = {given.tensor, given.axes};
  numbers.axes.push_back(levelAxis(0));
  return {
      numbers,
      {},
      tensor::getMixedSize(l.b, l.b.getLoc(), given.tensor, given.axes.size())};
}

/// For each place of the list, which may differ along the maps `around`, the
/// number of the last index that names it; -1 where none does.
static Numbers lastNaming(Lifter &l, const Lifted &list,
                          const ListedPlaces &given) {
  SetVector<Axis> maps;
  for (ArrayRef<Axis> axes :
       {ArrayRef(given.places.axes), ArrayRef(given.presence.axes)})
    for (Axis axis : axes)
      if (!isLevel(axis))
        maps.insert(axis);
  SmallVector<Axis> axes = maps.takeVector();
  int64_t place = axes.size(), number = place + 1;
  axes.push_back(levelAxis(0));
  auto mapOf = [&](ArrayRef<Axis> read) {
    SmallVector<AffineExpr> dims;
    for (Axis axis : read)
      dims.push_back(l.b.getAffineDimExpr(
          isLevel(axis) ? number : llvm::find(axes, axis) - axes.begin()));
    return AffineMap::get(number + 1, 0, dims, l.b.getContext());
  };
  SmallVector<Value> inputs = {given.places.tensor};
  SmallVector<AffineMap> reads = {mapOf(given.places.axes)};
  // A list of one number that all share has no axis: loops need their extent.
  inputs.push_back(
      l.empty({given.length}, RankedTensorType::get({}, l.b.getI1Type())));
  reads.push_back(mapOf({levelAxis(0)}));
  if (given.presence) {
    inputs.push_back(given.presence.tensor);
    reads.push_back(mapOf(given.presence.axes));
  }
  reads.push_back(
      AffineMap::getMultiDimIdentityMap(number + 1, l.b.getContext())
          .getMajorSubMap(number));
  SmallVector<utils::IteratorType> kinds(number, utils::IteratorType::parallel);
  kinds.push_back(utils::IteratorType::reduction);
  Type word = l.b.getI64Type();
  Value none = arith::ConstantOp::create(l.b, l.b.getI64IntegerAttr(-1));
  Value into = l.empty(l.sizesOf(list, axes), RankedTensorType::get({}, word));
  into = linalg::FillOp::create(l.b, none, into).getResult(0);
  auto body = [&](OpBuilder &b, Location loc, ValueRange args) {
    Indices i = {b, loc};
    auto cmp = [&](arith::CmpIPredicate is, Value x, Value y) -> Value {
      return arith::CmpIOp::create(b, loc, is, x, y);
    };
    Value named = arith::IndexCastOp::create(b, loc, b.getIndexType(), args[0]);
    Value here = linalg::IndexOp::create(b, loc, place);
    Value own = i.word(linalg::IndexOp::create(b, loc, number));
    Value is = cmp(arith::CmpIPredicate::eq, named, here);
    if (given.presence) {
      Value there = cmp(arith::CmpIPredicate::slt, own, args[2]);
      is = arith::AndIOp::create(b, loc, is, there);
    }
    linalg::YieldOp::create(b, loc,
                            i.most(i.choose(is, own, none), args.back()));
  };
  Value last = linalg::GenericOp::create(l.b, into.getType(), inputs, into,
                                         reads, kinds, body)
                   .getResult(0);
  return {last, axes};
}

/// The elements of one list where an index names their place, else those of
/// another one, which has the lengths of the result.
static Lifted written(Lifter &l, const Numbers &last, const Lifted &source,
                      const Lifted &dest, RankedTensorType leaf) {
  SetVector<Axis> axes(llvm::from_range, last.axes);
  axes.insert_range(dest.axes);
  axes.insert_range(source.axes);
  Lifted result = dest;
  result.axes = axes.takeVector();
  result.tensor = eachOf(
      l, result.axes, l.sizesOf(dest, result.axes), leaf,
      [&](OpBuilder &b, Location loc, Point at, ValueRange rest) -> Value {
        Indices i = {b, loc};
        Value number = numberAt(b, loc, last, at);
        Value none = i.less(number, i.number(0));
        Value first = i.most(number, i.number(0));
        auto entry = [&](const Lifted &from, Value outermost) -> Value {
          SmallVector<Value> indices =
              llvm::map_to_vector(from.axes, [&](Axis axis) {
                return axis == levelAxis(0) ? outermost : at(axis);
              });
          llvm::append_range(indices, rest);
          return tensor::ExtractOp::create(b, loc, from.tensor, indices);
        };
        return i.choose(none, entry(dest, at(levelAxis(0))),
                        entry(source, first));
      });
  return result;
}

/// How many elements of a level are there: one number where all are.
static Lifted countsAt(Lifter &l, const Lifted &list, int64_t level) {
  if (Presence presence = list.presenceOf(level))
    return {presence.tensor, presence.axes, list.lengths};
  auto type = RankedTensorType::get({}, l.b.getI64Type());
  Value length = arith::IndexCastOp::create(l.b, l.b.getI64Type(),
                                            l.index(list.lengths[level]));
  return {tensor::FromElementsOp::create(l.b, type, length), {}, list.lengths};
}

LogicalResult tilewright::liftScatter(Lifter &l, ScatterOp op) {
  Lifted source = compacted(l, l.lookup(op.getSource()));
  Lifted dest = compacted(l, l.lookup(op.getDest()));
  ListedPlaces given = listedPlaces(l, op.getIndices());
  auto isZero = [](OpFoldResult n) { return getConstantIntValue(n) == 0; };
  RankedTensorType leaf = leafOf(op.getType());
  bool isNothing = isZero(given.length) || isZero(source.lengths.front());
  if (isNothing || llvm::any_of(dest.lengths, isZero) || isEmpty(leaf)) {
    l.define(op.getResult(), dest);
    return success();
  }
  for (auto [own, other] :
       llvm::zip_equal(ArrayRef(source.lengths).drop_front(),
                       ArrayRef(dest.lengths).drop_front()))
    if (!isEqualConstantIntOrValue(own, other))
      return unsupported(op)
             << "writes lists of another length than those that "
                "they replace, which has no lowering yet; pad "
                "them to one length";
  Numbers last = lastNaming(l, dest, given);
  Lifted result = written(l, last, source, dest, leaf);
  auto number = RankedTensorType::get({}, l.b.getI64Type());
  for (int64_t level : llvm::seq<int64_t>(1, dest.lengths.size())) {
    if (!source.presenceOf(level) && !dest.presenceOf(level))
      continue;
    Lifted counts = written(l, last, countsAt(l, source, level),
                            countsAt(l, dest, level), number);
    result.setPresence(level, {counts.tensor, counts.axes});
  }
  l.define(op.getResult(), result);
  return success();
}
