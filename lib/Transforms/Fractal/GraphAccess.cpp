//===- GraphAccess.cpp - ops that only say where something stands ---------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Fractal/GraphBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace tilewright::fractal;

/// Whether an index is affine in lengths, constants and the function's
/// arguments.
static bool isAffineIndex(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return isa<func::FuncOp>(value.getParentBlock()->getParentOp());
  if (isa<LengthOp, arith::ConstantOp>(op))
    return true;
  return isa<arith::AddIOp, arith::SubIOp>(op) &&
         llvm::all_of(op->getOperands(), isAffineIndex);
}

bool tilewright::fractal::isAccess(Operation *op) {
  if (isa<ProductOp, JoinOp, FromTensorOp>(op))
    return true;
  auto access = dyn_cast<AccessOpInterface>(op);
  if (!access || !access.getAccessMap())
    return false;
  return llvm::all_of(op->getOperands(), [](Value operand) {
    return !operand.getType().isIndex() || isAffineIndex(operand);
  });
}

LogicalResult GraphBuilder::visitAccess(Operation &op) {
  SmallVector<Element> sources;
  for (Value operand : op.getOperands()) {
    if (operand.getType().isIndex())
      continue;
    std::optional<Element> source = find(operand);
    if (!source)
      return failure();
    sources.push_back(*source);
  }
  TypeSwitch<Operation *>(&op)
      .Case([&](ProductOp product) {
        visitProduct(product, sources[0], sources[1]);
      })
      .Case([&](JoinOp join) { visitJoin(join, sources); })
      .Case([&](FromTensorOp cut) {
        // Leading dimensions of the tensor are further levels of the buffer.
        Element list = sources.front();
        list.lengths = lengthsOf(cut.getType(), "list of a tensor");
        for (Piece &piece : list.pieces)
          llvm::append_range(
              piece.place, dimRange(op.getContext(), list.loops, list.rank()));
        define(cut, list);
      })
      .Case([&](AccessOpInterface access) {
        visitAffine(access, sources.front());
      });
  return success();
}

void GraphBuilder::define(Value value, Element element) {
  if (auto array = dyn_cast<ArrayType>(value.getType()))
    for (auto [length, known] :
         llvm::zip_equal(element.lengths, array.getLengths()))
      if (ArrayType::isKnown(known))
        length = constant(known);
  elements[value] = std::move(element);
}

//===----------------------------------------------------------------------===//
// Ops with one map
//===----------------------------------------------------------------------===//

void GraphBuilder::visitAffine(AccessOpInterface op, const Element &source) {
  AffineMap map = op.getAccessMap();
  Exprs named;
  for (Value operand : op->getOperands())
    if (operand.getType().isIndex())
      named.push_back(index(operand));
  if (!source.lengths.empty())
    named.push_back(source.lengths.front());
  named.resize(map.getNumSymbols());
  Exprs levels =
      dimRange(op.getContext(), source.loops, source.loops + map.getNumDims());
  Exprs places = llvm::map_to_vector(map.getResults(), [&](AffineExpr place) {
    return place.replaceDimsAndSymbols(levels, named);
  });
  Exprs lengths = lengthsOf(op, source.lengths, source.loops);
  if (places.empty() && lengths.empty())
    return define(op->getResult(0), source);
  Element result = source.accessed(places, lengths);
  if (op.getFill())
    result = filled(op, source, result, places.front());
  define(op->getResult(0), result);
}

Element GraphBuilder::filled(AccessOpInterface op, const Element &source,
                             Element result, AffineExpr place) {
  AffineExpr length = source.lengths.front();
  Element fill = *find(op.getFill());
  // The fill stands at each of the new levels.
  fill = fill.accessed({},
                       ArrayRef(result.lengths).drop_back(fill.lengths.size()));
  result = result.where({{place}, {length - 1 - place}});
  llvm::append_range(result.pieces, fill.where({{-place - 1}}).pieces);
  llvm::append_range(result.pieces, fill.where({{place - length}}).pieces);
  return result;
}

/// How many windows fit.
static AffineExpr windowsOf(WindowOp op, AffineExpr length) {
  ArrayRef<int64_t> padding = op.getPadding();
  int64_t reach = int64_t(op.getDilation()) * (int64_t(op.getSize()) - 1) + 1;
  AffineExpr room = length + (padding[0] + padding[1] - reach);
  return room.floorDiv(int64_t(op.getStride())) + 1;
}

/// How many elements all lists have, if that is a number.
static AffineExpr sumOf(AffineExpr lists, AffineExpr length, unsigned level) {
  auto count = dyn_cast<AffineConstantExpr>(lists);
  if (!count)
    return {};
  MLIRContext *context = lists.getContext();
  int64_t sum = 0;
  AffineExpr place = getAffineDimExpr(level, context);
  for (int64_t list : llvm::seq(count.getValue())) {
    auto known = dyn_cast<AffineConstantExpr>(
        length.replace(place, getAffineConstantExpr(list, context)));
    if (!known)
      return {};
    sum += known.getValue();
  }
  return getAffineConstantExpr(sum, context);
}

Exprs GraphBuilder::lengthsOf(Operation *op, ArrayRef<AffineExpr> source,
                              unsigned loops) {
  return TypeSwitch<Operation *, Exprs>(op)
      .Case([](AtOp) { return Exprs(); })
      .Case([&](SliceOp slice) {
        if (auto size = dyn_cast<Value>(slice.getMixedSize()))
          return Exprs{index(size)};
        return Exprs{constant(slice.getStaticSizes().front())};
      })
      .Case([&](WindowOp window) {
        return Exprs{windowsOf(window, source.front()),
                     constant(window.getSize())};
      })
      .Case([&](RepeatOp repeat) {
        if (repeat.getCount())
          return Exprs{index(repeat.getCount())};
        return Exprs{constant(*repeat.getTimes())};
      })
      .Case([&](InterleaveOp groups) {
        int64_t by = groups.getBy();
        AffineExpr rest = source.front() - dim(loops) + (by - 1);
        return Exprs{constant(by), rest.floorDiv(by)};
      })
      .Case([&](SplitOp split) {
        int64_t into = split.getInto();
        return Exprs{constant(into), source.front().floorDiv(into)};
      })
      .Case<FlattenOp, DeinterleaveOp>([&](auto merged) {
        AffineExpr all = sumOf(source[0], source[1], loops);
        return Exprs{all ? all : symbol("length of a merged list")};
      })
      // The same lists, of which more is known.
      .Case([](CastOp) { return Exprs(); })
      // Reversed, shifted.
      .Default([&](Operation *) { return Exprs{source.front()}; });
}

//===----------------------------------------------------------------------===//
// Ops of several lists
//===----------------------------------------------------------------------===//

void GraphBuilder::visitProduct(ProductOp op, const Element &lhs,
                                const Element &rhs) {
  Exprs lengths = {lhs.lengths.front(), rhs.lengths.front()};
  unsigned outer = lhs.loops;
  define(op.getLefts(), lhs.accessed({dim(outer)}, lengths));
  define(op.getRights(), rhs.accessed({dim(outer + 1)}, lengths));
}

void GraphBuilder::visitJoin(JoinOp op, ArrayRef<Element> sources) {
  Element all;
  AffineExpr begin = constant(0), place = dim(sources.front().loops);
  for (const Element &source : sources) {
    AffineExpr length = source.lengths.front();
    Element moved = source.accessed({place - begin}, {length})
                        .where({{place - begin}, {begin + length - 1 - place}});
    if (all.lengths.empty())
      all = moved;
    else
      llvm::append_range(all.pieces, moved.pieces);
    begin = begin + length;
  }
  all.lengths.front() = begin;
  define(op, all);
}
