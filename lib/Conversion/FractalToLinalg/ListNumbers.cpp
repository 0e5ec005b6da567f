//===- ListNumbers.cpp - sums along lists, and places in them -------------===//
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
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/bit.h"

#include <cmath>

using namespace mlir;
using namespace tilewright;

static RankedTensorType numberType(Lifter &l) {
  return RankedTensorType::get({}, l.b.getI64Type());
}

static Value constantNumber(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
}

Numbers
tilewright::numbersAt(Lifter &l, ArrayRef<Axis> axes,
                      ArrayRef<OpFoldResult> sizes,
                      function_ref<Value(const Indices &, Point)> index) {
  Value tensor = eachOf(l, axes, sizes, numberType(l),
                        [&](OpBuilder &b, Location loc, Point at, ValueRange) {
                          Indices i = {b, loc};
                          return i.word(index(i, at));
                        });
  return {tensor, SmallVector<Axis>(axes)};
}

/// Numbers in the order of these axes, zero where a mask does not hold.
static Value numbersOf(Lifter &l, const Lifted &values, ArrayRef<Axis> axes) {
  Value tensor = l.aligned(values, axes);
  auto type = cast<RankedTensorType>(tensor.getType());
  if (!type.getElementType().isInteger(1))
    return tensor;
  return l.parallel(tensor, l.b.getMultiDimIdentityMap(axes.size()),
                    l.empty(l.sizesOf(values, axes), numberType(l)),
                    [&](OpBuilder &b, Location loc, ValueRange args) -> Value {
                      return arith::ExtUIOp::create(b, loc, b.getI64Type(),
                                                    args.front());
                    });
}

/// Sums over the last dimension; with `upTo` one for each place in it, of all
/// that is not behind.
static Value summed(Lifter &l, Value tensor, bool upTo, bool strictly) {
  auto type = cast<RankedTensorType>(tensor.getType());
  int64_t outer = type.getRank() - 1, loops = outer + (upTo ? 2 : 1);
  SmallVector<AffineExpr> read, written;
  for (int64_t dim : llvm::seq(outer))
    read.push_back(l.b.getAffineDimExpr(dim));
  written = read;
  read.push_back(l.b.getAffineDimExpr(loops - 1));
  if (upTo)
    written.push_back(l.b.getAffineDimExpr(outer));
  SmallVector<OpFoldResult> sizes;
  for (int64_t dim : llvm::seq(outer + (upTo ? 1 : 0)))
    sizes.push_back(tensor::getMixedSize(l.b, l.b.getLoc(), tensor, dim));
  Value zero = constantNumber(l.b, l.b.getLoc(), 0);
  Value into = linalg::FillOp::create(l.b, zero, l.empty(sizes, numberType(l)))
                   .getResult(0);
  SmallVector<utils::IteratorType> kinds(loops, utils::IteratorType::parallel);
  kinds.back() = utils::IteratorType::reduction;
  AffineMap maps[] = {AffineMap::get(loops, 0, read, l.b.getContext()),
                      AffineMap::get(loops, 0, written, l.b.getContext())};
  auto sum = linalg::GenericOp::create(
      l.b, into.getType(), tensor, into, maps, kinds,
      [&](OpBuilder &b, Location loc, ValueRange args) {
        Value more = args[0];
        if (upTo) {
          Value here = linalg::IndexOp::create(b, loc, outer);
          Value there = linalg::IndexOp::create(b, loc, outer + 1);
          auto order =
              strictly ? arith::CmpIPredicate::slt : arith::CmpIPredicate::sle;
          Value counts = arith::CmpIOp::create(b, loc, order, there, here);
          Value none = constantNumber(b, loc, 0);
          more = arith::SelectOp::create(b, loc, counts, more, none);
        }
        Value all = arith::AddIOp::create(b, loc, args[1], more);
        linalg::YieldOp::create(b, loc, all);
      });
  return sum.getResult(0);
}

/// Lists up to this length are summed by comparing all pairs of places.
static constexpr int64_t shortList = 32;

/// Sums up to each place of the last dimension, of `length` numbers. Long lists
/// are cut into blocks, about as many as each has numbers, so that the work
/// grows with the power 1.5 of the length, and all of it is parallel.
static Value sumsUpTo(Lifter &l, Value tensor, int64_t length) {
  if (length <= shortList)
    return summed(l, tensor, /*upTo=*/true, /*strictly=*/false);
  int64_t block = std::ceil(std::sqrt(double(length)));
  int64_t blocks = llvm::divideCeil(length, block);
  auto type = cast<RankedTensorType>(tensor.getType());
  int64_t outer = type.getRank() - 1;
  SmallVector<OpFoldResult> sizes;
  for (int64_t dim : llvm::seq(outer))
    sizes.push_back(tensor::getMixedSize(l.b, l.b.getLoc(), tensor, dim));
  SmallVector<Axis> axes = llvm::to_vector(llvm::seq(outer));
  SmallVector<Axis> cut = axes;
  llvm::append_values(cut, outer, outer + 1);
  SmallVector<OpFoldResult> cutSizes = sizes;
  llvm::append_values(cutSizes, OpFoldResult(l.b.getIndexAttr(blocks)),
                      OpFoldResult(l.b.getIndexAttr(block)));
  Value padded = eachOf(
      l, cut, cutSizes, numberType(l),
      [&](OpBuilder &b, Location loc, Point at, ValueRange) -> Value {
        Value size = arith::ConstantIndexOp::create(b, loc, block);
        Value first = arith::MulIOp::create(b, loc, at(outer), size);
        Value place = arith::AddIOp::create(b, loc, first, at(outer + 1));
        Value last = arith::ConstantIndexOp::create(b, loc, length - 1);
        Value is = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle,
                                         place, last);
        SmallVector<Value> indices = llvm::map_to_vector(axes, at);
        indices.push_back(arith::MinSIOp::create(b, loc, place, last));
        Value number = tensor::ExtractOp::create(b, loc, tensor, indices);
        return arith::SelectOp::create(b, loc, is, number,
                                       constantNumber(b, loc, 0));
      });
  Value within = summed(l, padded, /*upTo=*/true, /*strictly=*/false);
  Value whole = summed(l, padded, /*upTo=*/false, /*strictly=*/false);
  Value before = summed(l, whole, /*upTo=*/true, /*strictly=*/true);
  SmallVector<Axis> flat = axes;
  flat.push_back(outer);
  sizes.push_back(l.b.getIndexAttr(length));
  return eachOf(
      l, flat, sizes, numberType(l),
      [&](OpBuilder &b, Location loc, Point at, ValueRange) -> Value {
        Value size = arith::ConstantIndexOp::create(b, loc, block);
        SmallVector<Value> indices = llvm::map_to_vector(axes, at);
        indices.push_back(arith::DivUIOp::create(b, loc, at(outer), size));
        Value base = tensor::ExtractOp::create(b, loc, before, indices);
        indices.push_back(arith::RemUIOp::create(b, loc, at(outer), size));
        Value more = tensor::ExtractOp::create(b, loc, within, indices);
        return arith::AddIOp::create(b, loc, base, more);
      });
}

Numbers tilewright::sumsOf(Lifter &l, const Numbers &numbers, Axis level,
                           int64_t length) {
  SmallVector<Axis> axes = llvm::filter_to_vector(
      numbers.axes, [&](Axis axis) { return axis != level; });
  axes.push_back(level);
  Lifted values = {numbers.tensor, numbers.axes, {}};
  for (Axis axis : numbers.axes)
    if (isLevel(axis))
      values.lengths.resize(
          std::max<size_t>(values.lengths.size(), levelOf(axis) + 1));
  values.lengths.resize(
      std::max<size_t>(values.lengths.size(), levelOf(level) + 1));
  for (auto [dim, axis] : llvm::enumerate(numbers.axes))
    if (isLevel(axis))
      values.lengths[levelOf(axis)] =
          tensor::getMixedSize(l.b, l.b.getLoc(), numbers.tensor, dim);
  values.lengths[levelOf(level)] = l.b.getIndexAttr(length);
  return {sumsUpTo(l, numbersOf(l, values, axes), length), axes};
}

Numbers tilewright::placesIn(Lifter &l, const Numbers &sums, int64_t length) {
  auto type = cast<RankedTensorType>(sums.tensor.getType());
  int64_t count = type.getShape().back();
  SmallVector<OpFoldResult> sizes;
  for (int64_t dim : llvm::seq(type.getRank() - 1))
    sizes.push_back(tensor::getMixedSize(l.b, l.b.getLoc(), sums.tensor, dim));
  sizes.push_back(l.b.getIndexAttr(length));
  int64_t most = llvm::bit_floor(uint64_t(std::max<int64_t>(count, 1)));
  Value places = eachOf(
      l, sums.axes, sizes, numberType(l),
      [&](OpBuilder &b, Location loc, Point at, ValueRange) -> Value {
        // Binary search, by powers of two, all steps written out.
        Value wanted = arith::IndexCastOp::create(b, loc, b.getI64Type(),
                                                  at(sums.axes.back()));
        Value found = arith::ConstantIndexOp::create(b, loc, 0);
        Value last = arith::ConstantIndexOp::create(b, loc, count - 1);
        for (int64_t step = most; step > 0; step /= 2) {
          Value next = arith::AddIOp::create(
              b, loc, found, arith::ConstantIndexOp::create(b, loc, step));
          Value before = arith::AddIOp::create(
              b, loc, found, arith::ConstantIndexOp::create(b, loc, step - 1));
          Value inside = arith::CmpIOp::create(
              b, loc, arith::CmpIPredicate::sle, before, last);
          SmallVector<Value> indices =
              llvm::map_to_vector(ArrayRef(sums.axes).drop_back(), at);
          indices.push_back(arith::MinSIOp::create(b, loc, before, last));
          Value sum = tensor::ExtractOp::create(b, loc, sums.tensor, indices);
          Value small = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::sle,
                                              sum, wanted);
          Value go = arith::AndIOp::create(b, loc, inside, small);
          found = arith::SelectOp::create(b, loc, go, next, found);
        }
        return arith::IndexCastOp::create(b, loc, b.getI64Type(), found);
      });
  return {places, sums.axes};
}

Numbers tilewright::lastOf(Lifter &l, const Numbers &sums) {
  auto type = cast<RankedTensorType>(sums.tensor.getType());
  int64_t outer = type.getRank() - 1;
  SmallVector<OpFoldResult> offsets, sizes, strides;
  takeAll(l, sums.tensor, type.getRank(), offsets, sizes, strides);
  offsets.back() = l.b.getIndexAttr(type.getShape().back() - 1);
  sizes.back() = l.b.getIndexAttr(1);
  auto last = RankedTensorType::get(type.getShape().take_front(outer),
                                    type.getElementType());
  return {l.sliceOf(last, sums.tensor, offsets, sizes, strides),
          llvm::to_vector(ArrayRef(sums.axes).drop_back())};
}

Numbers tilewright::countsOf(Lifter &l, const Lifted &list) {
  Presence presence = list.presenceOf(0);
  if (!presence || !presence.isMask())
    return {presence.tensor, presence.axes};
  SmallVector<Axis> axes = llvm::filter_to_vector(
      presence.axes, [](Axis axis) { return axis != levelAxis(0); });
  SmallVector<Axis> order = axes;
  order.push_back(levelAxis(0));
  Lifted mask = {presence.tensor, presence.axes, list.lengths};
  return {summed(l, numbersOf(l, mask, order), /*upTo=*/false, false), axes};
}
