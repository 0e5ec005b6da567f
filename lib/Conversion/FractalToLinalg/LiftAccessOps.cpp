//===- LiftAccessOps.cpp - elements read elsewhere ------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/FractalToLinalg/Presences.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Affine/Utils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tilewright;
using namespace tilewright::fractal;

//===----------------------------------------------------------------------===//
// What costs nothing, or a slice
//===----------------------------------------------------------------------===//

static LogicalResult liftAt(Lifter &l, AtOp op) {
  OpFoldResult index = getAsOpFoldResult(l.scalar(op.getIndex()));
  l.define(op.getResult(), l.elementAt(l.lookup(op.getSource()), index));
  return success();
}

static OpFoldResult only(Lifter &l, OperandRange given,
                         ArrayRef<int64_t> known) {
  if (!given.empty())
    return getAsOpFoldResult(l.scalar(given.front()));
  return l.b.getIndexAttr(known.front());
}

static void liftSlice(Lifter &l, SliceOp op) {
  Lifted list = l.lookup(op.getSource());
  OpFoldResult size = only(l, op.getSizes(), op.getStaticSizes());
  if (std::optional<int64_t> dim = list.dimOf(levelAxis(0))) {
    SmallVector<OpFoldResult> offsets, sizes, strides;
    takeAll(l, list.tensor,
            cast<RankedTensorType>(list.tensor.getType()).getRank(), offsets,
            sizes, strides);
    offsets[*dim] = only(l, op.getOffsets(), op.getStaticOffsets());
    sizes[*dim] = size;
    strides[*dim] = l.b.getIndexAttr(op.getStride());
    list.tensor = l.sliceOf({}, list.tensor, offsets, sizes, strides);
  }
  list.lengths.front() = size;
  l.define(op.getResult(), list);
}

static void liftRepeat(Lifter &l, RepeatOp op) {
  OpFoldResult count = op.getCount()
                           ? getAsOpFoldResult(l.scalar(op.getCount()))
                           : OpFoldResult(l.b.getIndexAttr(*op.getTimes()));
  l.define(op.getResult(), l.lookup(op.getSource()).repeated(count));
}

//===----------------------------------------------------------------------===//
// Any other affine access: one generic that reads where the map says
//===----------------------------------------------------------------------===//

namespace {
/// A copy whose leading levels are those of the result.
struct Access {
  AccessOpInterface op;
  Value result;
  AffineMap map;
  Lifted source;
  SmallVector<Value> symbols;
  SmallVector<Axis> axes; ///< of the result
};
} // namespace

/// Lengths of the result's leading levels, from its type or the op's law.
static FailureOr<SmallVector<OpFoldResult>> lengthsOf(Lifter &l, Access &a) {
  auto type = dyn_cast<ArrayType>(a.result.getType());
  SmallVector<OpFoldResult> lengths;
  for (int64_t number : llvm::seq(a.map.getNumDims())) {
    int64_t length = type.getLengths()[number];
    if (!ArrayType::isKnown(length))
      return unsupported(a.op)
             << "has a result whose lengths are not known at compile time: "
             << type << "; give the lengths of the program's inputs";
    lengths.push_back(l.b.getIndexAttr(length));
  }
  int64_t replaced = a.map.getNumResults();
  llvm::append_range(lengths, ArrayRef(a.source.lengths).drop_front(replaced));
  return lengths;
}

/// The nearest index of a list.
static Value nearest(OpBuilder &b, Location loc, Value index,
                     OpFoldResult length) {
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value size = getValueOrCreateConstantIndexOp(b, loc, length);
  return clamped(b, loc, index, arith::SubIOp::create(b, loc, size, one));
}

/// Where the source is read, at a point of the copy.
static SmallVector<Value> indicesAt(OpBuilder &b, Location loc, Access &a,
                                    ArrayRef<Value> point) {
  int64_t levels = a.map.getNumDims(), shift = levels - a.map.getNumResults();
  auto at = [&](Axis axis) {
    return point[llvm::find(a.axes, axis) - a.axes.begin()];
  };
  SmallVector<Value> dims = llvm::map_to_vector(
      llvm::seq(levels), [&](int64_t level) { return at(levelAxis(level)); });
  llvm::append_range(dims, a.symbols);
  SmallVector<Value> read = *affine::expandAffineMap(b, loc, a.map, dims);
  if (isa<ReadOp>(a.op))
    for (auto [index, length] : llvm::zip(read, a.source.lengths))
      index = nearest(b, loc, index, length);
  SmallVector<Value> indices;
  for (Axis axis : a.source.axes) {
    if (!isLevel(axis))
      indices.push_back(at(axis));
    else if (levelOf(axis) < a.map.getNumResults())
      indices.push_back(read[levelOf(axis)]);
    else
      indices.push_back(at(deeper(axis, shift)));
  }
  llvm::append_range(indices, point.drop_front(a.axes.size()));
  return indices;
}

/// The element there, or what stands where the map leaves the source.
static Value readAt(OpBuilder &b, Location loc, Lifter &l, Access &a,
                    ArrayRef<Value> point) {
  SmallVector<Value> indices = indicesAt(b, loc, a, point);
  if (!a.op.getFill())
    return tensor::ExtractOp::create(b, loc, a.source.tensor, indices);
  std::optional<int64_t> dim = a.source.dimOf(levelAxis(0));
  Value index = indices[*dim];
  indices[*dim] = nearest(b, loc, index, a.source.lengths[0]);
  Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, index,
                                       indices[*dim]);
  Value element = tensor::ExtractOp::create(b, loc, a.source.tensor, indices);
  const Lifted &fill = l.lookup(a.op.getFill());
  SmallVector<Value> places;
  int64_t levels = a.map.getNumDims();
  for (Axis axis : fill.axes)
    places.push_back(
        point[llvm::find(a.axes, deeper(axis, levels)) - a.axes.begin()]);
  llvm::append_range(places, point.drop_front(a.axes.size()));
  Value other = tensor::ExtractOp::create(b, loc, fill.tensor, places);
  return arith::SelectOp::create(b, loc, inside, element, other);
}

/// What is inside of a modulo that `expr` never reaches, while the loops run
/// from 0 to `last`: a sum of loops that stays between 0 and `length`. Null
/// where there is none.
static AffineExpr withoutModulo(AffineExpr expr, int64_t length,
                                ArrayRef<std::optional<int64_t>> last) {
  SmallVector<std::optional<int64_t>> first(last.size(), 0);
  if (expr.getKind() == AffineExprKind::Mod)
    expr = cast<AffineBinaryOpExpr>(expr).getLHS();
  expr = simplifyAffineExpr(expr, last.size(), 0);
  bool isSum = true;
  expr.walk([&](AffineExpr part) {
    auto binary = dyn_cast<AffineBinaryOpExpr>(part);
    if (!binary || binary.getKind() == AffineExprKind::Add)
      return;
    auto factor = dyn_cast<AffineConstantExpr>(binary.getRHS());
    isSum &= binary.getKind() == AffineExprKind::Mul && factor &&
             factor.getValue() >= 0;
  });
  if (!isSum)
    return {};
  std::optional<int64_t> low = getBoundForAffineExpr(expr, last.size(), 0,
                                                     first, last, false),
                         high = getBoundForAffineExpr(expr, last.size(), 0,
                                                      first, last, true);
  return low && high && *low >= 0 && *high < length ? expr : AffineExpr();
}

/// The map over the result's dimensions by which windows read their source, if
/// each of them is inside: their elements lie where a sum of loops says, and
/// those of a leaf side by side. None for any other access.
static std::optional<AffineMap>
mapInside(Access &a, ArrayRef<OpFoldResult> lengths, RankedTensorType leaf) {
  if (!isa<WindowOp>(a.op) || leaf.getRank() == 0)
    return std::nullopt;
  MLIRContext *context = a.map.getContext();
  int64_t levels = a.map.getNumDims(), shift = levels - a.map.getNumResults();
  SmallVector<AffineExpr> symbols;
  for (Value symbol : a.symbols) {
    std::optional<int64_t> known = getConstantIntValue(symbol);
    if (!known)
      return std::nullopt;
    symbols.push_back(getAffineConstantExpr(*known, context));
  }
  AffineMap map = a.map.replaceDimsAndSymbols({}, symbols, levels, 0);
  SmallVector<std::optional<int64_t>> last;
  for (OpFoldResult length : lengths.take_front(levels))
    last.push_back(getConstantIntValue(length).value_or(0) - 1);
  if (llvm::any_of(last, [](auto number) { return *number < 0; }))
    return std::nullopt;
  auto at = [&](Axis axis) {
    return getAffineDimExpr(llvm::find(a.axes, axis) - a.axes.begin(), context);
  };
  SmallVector<AffineExpr> own = llvm::map_to_vector(
      llvm::seq(levels), [&](int64_t level) { return at(levelAxis(level)); });
  SmallVector<AffineExpr> read;
  for (Axis axis : a.source.axes) {
    if (!isLevel(axis) || levelOf(axis) >= a.map.getNumResults()) {
      read.push_back(at(isLevel(axis) ? deeper(axis, shift) : axis));
      continue;
    }
    int64_t level = levelOf(axis);
    std::optional<int64_t> length =
        getConstantIntValue(a.source.lengths[level]);
    AffineExpr place = length
                           ? withoutModulo(map.getResult(level), *length, last)
                           : AffineExpr();
    if (!place)
      return std::nullopt;
    read.push_back(place.replaceDims(own));
  }
  int64_t rank = a.axes.size() + leaf.getRank();
  for (int64_t dim : llvm::seq<int64_t>(a.axes.size(), rank))
    read.push_back(getAffineDimExpr(dim, context));
  return AffineMap::get(rank, 0, read, context);
}

/// Axes of the result: leading levels where the source has its own, or else in
/// front, and what the source has beside them.
static SmallVector<Axis> axesOf(Lifter &l, Access &a) {
  int64_t levels = a.map.getNumDims(), replaced = a.map.getNumResults();
  auto isReplaced = [&](Axis axis) {
    return isLevel(axis) && levelOf(axis) < replaced;
  };
  const auto *first = llvm::find_if(a.source.axes, isReplaced);
  const auto *place =
      first == a.source.axes.end() ? a.source.axes.begin() : first;
  SmallVector<Axis> axes;
  auto keep = [&](ArrayRef<Axis> some) {
    for (Axis axis : some)
      if (!isReplaced(axis))
        axes.push_back(deeper(axis, levels - replaced));
  };
  keep({a.source.axes.begin(), place});
  llvm::append_range(axes, llvm::map_range(llvm::seq(levels), levelAxis));
  keep({place, a.source.axes.end()});
  if (!a.op.getFill())
    return axes;
  for (Axis axis : l.lookup(a.op.getFill()).axes) {
    Axis own = deeper(axis, levels);
    if (!llvm::is_contained(axes, own))
      axes.push_back(own);
  }
  return axes;
}

/// What is read of an empty list: nothing but the fill.
static void defineFill(Lifter &l, Access &a, ArrayRef<OpFoldResult> lengths) {
  int64_t levels = a.map.getNumDims();
  Lifted fill = l.lookup(a.op.getFill()).renamed([&](Axis axis) {
    return deeper(axis, levels);
  });
  fill.lengths.assign(lengths.begin(), lengths.end());
  l.define(a.result, fill);
}

/// The only reader of a list that is made by a copy, if it takes a part whose
/// place is known: only that part is copied.
static SliceOp partOf(Operation *op) {
  if (op->getNumResults() != 1 || !op->hasOneUse())
    return {};
  auto slice = dyn_cast<SliceOp>(*op->user_begin());
  bool isKnown = slice && slice.getOffsets().empty() &&
                 slice.getSizes().empty() && int64_t(slice.getStride()) > 0 &&
                 ArrayType::isKnown(slice.getType().getLengths().front());
  return isKnown && slice->getParentRegion() == op->getParentRegion()
             ? slice
             : SliceOp();
}

/// The map of the part: its first level starts elsewhere.
static AffineMap mapOf(AccessOpInterface op, SliceOp part) {
  AffineMap map = op.getAccessMap();
  if (!part || !map || map.getNumDims() == 0)
    return map;
  AffineExpr first = getAffineDimExpr(0, map.getContext());
  return map.replace(first,
                     first * int64_t(part.getStride()) +
                         part.getStaticOffsets().front(),
                     map.getNumDims(), map.getNumSymbols());
}

static LogicalResult liftByCopy(Lifter &l, AccessOpInterface op) {
  SliceOp part = partOf(op);
  Value made = (part ? part.getOperation() : op)->getResult(0);
  Access a = {op, made, mapOf(op, part), l.lookup(op.getSource()), {}, {}};
  if (!a.map)
    return unsupported(op)
           << "has no affine access map: lengths of its lists are not known at "
              "compile time; give the lengths of the program's inputs";
  FailureOr<SmallVector<OpFoldResult>> lengths = lengthsOf(l, a);
  if (failed(lengths))
    return failure();
  if (op.getFill() && getConstantIntValue(a.source.lengths[0]) == 0)
    return defineFill(l, a, *lengths), success();
  if (op.getFill() && !a.source.dimOf(levelAxis(0))) {
    SmallVector<Axis> all = levelsOf(a.source);
    llvm::append_range(all, a.source.loops());
    a.source.tensor = l.aligned(a.source, all);
    a.source.axes = all;
  }
  for (Value operand : op->getOperands())
    if (operand.getType().isIndex())
      a.symbols.push_back(l.scalar(operand));
  if (static_cast<unsigned>(a.symbols.size()) < a.map.getNumSymbols())
    a.symbols.push_back(l.index(a.source.lengths[0]));
  a.axes = axesOf(l, a);
  Lifted result = {{}, a.axes, *lengths};
  RankedTensorType leaf = leafOf(made.getType());
  Value into = l.empty(l.sizesOf(result, a.axes), leaf);
  if (std::optional<AffineMap> map = mapInside(a, *lengths, leaf)) {
    result.tensor = l.parallel(
        a.source.tensor, *map, into,
        [](OpBuilder &, Location, ValueRange read) { return read.front(); });
    l.define(made, result);
    return success();
  }
  int64_t rank = cast<RankedTensorType>(into.getType()).getRank();
  result.tensor = l.parallel(
      {}, {}, into, [&](OpBuilder &inner, Location loc, ValueRange) -> Value {
        SmallVector<Value> point;
        for (int64_t dim : llvm::seq(rank))
          point.push_back(linalg::IndexOp::create(inner, loc, dim));
        return readAt(inner, loc, l, a, point);
      });
  l.define(made, result);
  return success();
}

/// Whether lists, or the places that are read, are not the same for all
/// elements around.
static bool isRagged(Lifter &l, Operation *op) {
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    if (!isa<ArrayType>(operand.getType()))
      return operand.getType().isIndex() && l.isLifted(operand);
    return !l.lookup(operand).isComplete();
  });
}

/// A slice of a list of a known length may have a size that only a run knows.
static bool isOpen(Lifter &l, SliceOp op) {
  auto size = dyn_cast<Value>(op.getMixedSize());
  const Lifted &list = l.lookup(op.getSource());
  return size && !getConstantIntValue(l.scalar(size)) &&
         getConstantIntValue(list.lengths.front());
}

std::optional<LogicalResult> tilewright::liftAccessOp(Lifter &l,
                                                      Operation *op) {
  if (!isa<AtOp, SliceOp, RepeatOp, ReverseOp, ShiftOp, WindowOp, ReadOp>(op))
    return std::nullopt;
  if (isa<SliceOp>(op) && l.isLifted(op->getResult(0)))
    return success(); // with the list that it is a part of
  bool ragged = isRagged(l, op);
  if (auto at = dyn_cast<AtOp>(op))
    return ragged ? liftRaggedAt(l, at) : liftAt(l, at);
  if (auto slice = dyn_cast<SliceOp>(op)) {
    if (ragged || isOpen(l, slice))
      return liftRaggedSlice(l, slice);
    if (int64_t(slice.getStride()) > 0)
      return liftSlice(l, slice), success();
  }
  if (auto repeat = dyn_cast<RepeatOp>(op)) {
    if (repeat.getCount() && l.isLifted(repeat.getCount()))
      return unbounded(op);
    return liftRepeat(l, repeat), success();
  }
  auto access = cast<AccessOpInterface>(op);
  return ragged ? liftRaggedAccess(l, access) : liftByCopy(l, access);
}
