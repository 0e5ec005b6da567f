//===- PaddingFills.cpp - fills of a padding alone ------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Plan/PaddingFills.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace tilewright {

namespace {

/// Part of a tensor, per dimension.
struct Part {
  SmallVector<OpFoldResult> offsets, sizes, strides;
};

/// The sum of the `plus` less those of `minus`; a number where the open sizes
/// in it cancel.
OpFoldResult sumOf(OpBuilder &b, Location loc, ArrayRef<OpFoldResult> plus,
                   ArrayRef<OpFoldResult> minus) {
  AffineExpr sum = b.getAffineConstantExpr(0);
  SmallVector<OpFoldResult> terms(plus);
  terms.append(minus.begin(), minus.end());
  for (auto [i, term] : llvm::enumerate(terms)) {
    AffineExpr symbol = b.getAffineSymbolExpr(i);
    sum = i < plus.size() ? sum + symbol : sum - symbol;
  }
  return affine::makeComposedFoldedAffineApply(b, loc, sum, terms);
}

/// What surrounds `inner`, as parts that do not overlap. Equal thin margins on
/// both sides of a dimension are one part: its stride leaps over what is
/// between. Where an open size hides whether there is a margin, there is one.
SmallVector<Part> marginsOf(OpBuilder &b, Location loc,
                            ArrayRef<OpFoldResult> shape, const Part &inner) {
  SmallVector<Part> margins;
  OpFoldResult zero = b.getIndexAttr(0), one = b.getIndexAttr(1);
  Part rest{SmallVector<OpFoldResult>(shape.size(), zero),
            SmallVector<OpFoldResult>(shape),
            SmallVector<OpFoldResult>(shape.size(), one)};
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    OpFoldResult low = inner.offsets[dim];
    OpFoldResult end = sumOf(b, loc, {low, inner.sizes[dim]}, {});
    OpFoldResult high = sumOf(b, loc, {shape[dim]}, {end});
    auto add = [&](OpFoldResult offset, OpFoldResult count,
                   OpFoldResult stride) {
      Part margin = rest;
      margin.offsets[dim] = offset;
      margin.sizes[dim] = count;
      margin.strides[dim] = stride;
      margins.push_back(std::move(margin));
    };
    std::optional<int64_t> size = getConstantIntValue(shape[dim]);
    if (size && isConstantIntValue(low, 1) && isConstantIntValue(high, 1)) {
      add(zero, b.getIndexAttr(2), b.getIndexAttr(*size - 1));
    } else {
      if (!isConstantIntValue(low, 0))
        add(zero, low, one);
      if (!isConstantIntValue(high, 0))
        add(end, high, one);
    }
    rest.offsets[dim] = low;
    rest.sizes[dim] = inner.sizes[dim];
  }
  return margins;
}

/// A tensor with `scalar` in `margin` of `target`.
Value fillMargin(OpBuilder &b, Location loc, Value target, const Part &margin,
                 Value scalar) {
  Value slice = tensor::ExtractSliceOp::create(b, loc, target, margin.offsets,
                                               margin.sizes, margin.strides);
  Value filled = fillAsGeneric(b, loc, slice, scalar);
  return tensor::InsertSliceOp::create(b, loc, filled, target, margin.offsets,
                                       margin.sizes, margin.strides);
}

/// The operand that names the slice that a destination is, whatever its shape.
OpOperand &sliceUse(OpOperand &init) {
  auto expand = init.get().getDefiningOp<tensor::ExpandShapeOp>();
  return expand && expand->hasOneUse() ? expand.getSrcMutable() : init;
}

tensor::ExtractSliceOp sliceOf(OpOperand &init) {
  return sliceUse(init).get().getDefiningOp<tensor::ExtractSliceOp>();
}

/// The operation that computes in the place that an insertion puts its result,
/// a slice of the fill, without reading what is there. It may see the slice in
/// another shape.
linalg::GenericOp makerInPlace(tensor::InsertSliceOp insert, Value fill) {
  Value source = insert.getSource();
  if (auto collapse = source.getDefiningOp<tensor::CollapseShapeOp>();
      collapse && collapse->hasOneUse())
    source = collapse.getSrc();
  auto maker = source.getDefiningOp<linalg::GenericOp>();
  if (!maker || maker->getNumResults() != 1 || !maker->hasOneUse())
    return {};
  OpOperand *init = maker.getDpsInitOperand(0);
  tensor::ExtractSliceOp slice = sliceOf(*init);
  bool same = slice && slice.getSource() == fill &&
              slice.isSameAs(cast<OffsetSizeAndStrideOpInterface>(*insert),
                             isEqualConstantIntOrValue);
  return same && !maker.payloadUsesValueFromOperand(init) ? maker
                                                          : linalg::GenericOp();
}

bool isBlock(tensor::InsertSliceOp insert) {
  return llvm::all_of(insert.getStaticStrides(),
                      [](int64_t stride) { return stride == 1; }) &&
         insert.getSourceType().getRank() == insert.getDestType().getRank();
}

/// The sizes of a tensor that is made before `b`.
SmallVector<OpFoldResult> sizesOf(OpBuilder &b, Location loc, Value tensor) {
  if (auto empty = tensor.getDefiningOp<tensor::EmptyOp>())
    return empty.getMixedSizes();
  return tensor::getMixedSizes(b, loc, tensor);
}

} // namespace

Value fillAsGeneric(OpBuilder &builder, Location loc, Value out, Value scalar) {
  unsigned rank = cast<ShapedType>(out.getType()).getRank();
  AffineMap map = builder.getMultiDimIdentityMap(rank);
  SmallVector<utils::IteratorType> loops(rank, utils::IteratorType::parallel);
  return linalg::GenericOp::create(builder, loc, out.getType(), ValueRange{},
                                   out, map, loops,
                                   [&](OpBuilder &b, Location at, ValueRange) {
                                     linalg::YieldOp::create(b, at, scalar);
                                   })
      .getResult(0);
}

void fillPaddingOnly(linalg::FillOp fill) {
  Value filled = fill->getResult(0);
  SmallVector<tensor::InsertSliceOp> inserts;
  for (Operation *user : filled.getUsers())
    if (auto insert = dyn_cast<tensor::InsertSliceOp>(user))
      inserts.push_back(insert);
  for (tensor::InsertSliceOp insert : inserts) {
    if (insert.getDest() != filled || !isBlock(insert))
      continue;
    linalg::GenericOp maker = makerInPlace(insert, filled);
    if (!maker)
      continue;
    OpOperand &use = sliceUse(*maker.getDpsInitOperand(0));
    auto old = use.get().getDefiningOp<tensor::ExtractSliceOp>();
    Part inner{old.getMixedOffsets(), old.getMixedSizes(), {}};
    OpBuilder b(use.getOwner());
    Location loc = fill.getLoc();
    auto shape = sizesOf(b, loc, fill.getOutputs()[0]);
    Value target = tensor::EmptyOp::create(
        b, loc, shape, getElementTypeOrSelf(filled.getType()));
    for (const Part &margin : marginsOf(b, loc, shape, inner))
      target = fillMargin(b, loc, target, margin, fill.getInputs()[0]);
    auto place = cast<tensor::ExtractSliceOp>(b.clone(*old));
    place.getSourceMutable().assign(target);
    use.set(place);
    insert.getDestMutable().assign(target);
    if (old->use_empty())
      old->erase();
  }
}

} // namespace tilewright
