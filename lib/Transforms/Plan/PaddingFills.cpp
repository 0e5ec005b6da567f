//===- PaddingFills.cpp - fills of a padding alone ------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/Plan/PaddingFills.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace tilewright {

namespace {

/// Part of a tensor, per dimension.
struct Part {
  SmallVector<int64_t> offsets, sizes, strides;
};

/// What surrounds `inner`, as parts that do not overlap. Equal thin margins on
/// both sides of a dimension are one part: its stride leaps over what is
/// between.
SmallVector<Part> marginsOf(ArrayRef<int64_t> shape, const Part &inner) {
  SmallVector<Part> margins;
  Part rest{SmallVector<int64_t>(shape.size(), 0), SmallVector<int64_t>(shape),
            SmallVector<int64_t>(shape.size(), 1)};
  for (size_t dim = 0; dim < shape.size(); ++dim) {
    int64_t size = shape[dim];
    int64_t low = inner.offsets[dim];
    int64_t end = low + inner.sizes[dim];
    auto add = [&](int64_t offset, int64_t count, int64_t stride) {
      Part margin = rest;
      margin.offsets[dim] = offset;
      margin.sizes[dim] = count;
      margin.strides[dim] = stride;
      margins.push_back(std::move(margin));
    };
    if (low == 1 && size - end == 1) {
      add(0, 2, size - 1);
    } else {
      if (low)
        add(0, low, 1);
      if (end < size)
        add(end, size - end, 1);
    }
    rest.offsets[dim] = low;
    rest.sizes[dim] = inner.sizes[dim];
  }
  return margins;
}

/// A tensor with `scalar` in `margin` of `target`.
Value fillMargin(OpBuilder &b, Location loc, Value target, const Part &margin,
                 Value scalar) {
  auto offsets = getAsIndexOpFoldResult(b.getContext(), margin.offsets);
  auto sizes = getAsIndexOpFoldResult(b.getContext(), margin.sizes);
  auto strides = getAsIndexOpFoldResult(b.getContext(), margin.strides);
  Value slice =
      tensor::ExtractSliceOp::create(b, loc, target, offsets, sizes, strides);
  Value filled = fillAsGeneric(b, loc, slice, scalar);
  return tensor::InsertSliceOp::create(b, loc, filled, target, offsets, sizes,
                                       strides);
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

bool isStaticBlock(tensor::InsertSliceOp insert) {
  return !ShapedType::isDynamicShape(insert.getStaticOffsets()) &&
         !ShapedType::isDynamicShape(insert.getStaticSizes()) &&
         llvm::all_of(insert.getStaticStrides(),
                      [](int64_t stride) { return stride == 1; }) &&
         insert.getSourceType().getRank() == insert.getDestType().getRank();
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
    if (insert.getDest() != filled || !isStaticBlock(insert))
      continue;
    linalg::GenericOp maker = makerInPlace(insert, filled);
    if (!maker)
      continue;
    Part inner{SmallVector<int64_t>(insert.getStaticOffsets()),
               SmallVector<int64_t>(insert.getStaticSizes()),
               {}};
    OpOperand &use = sliceUse(*maker.getDpsInitOperand(0));
    OpBuilder b(use.getOwner());
    auto type = cast<RankedTensorType>(filled.getType());
    Value target = tensor::EmptyOp::create(b, fill.getLoc(), type.getShape(),
                                           type.getElementType());
    for (const Part &margin : marginsOf(type.getShape(), inner))
      target =
          fillMargin(b, fill.getLoc(), target, margin, fill.getInputs()[0]);
    auto old = use.get().getDefiningOp<tensor::ExtractSliceOp>();
    auto place = cast<tensor::ExtractSliceOp>(b.clone(*old));
    place.getSourceMutable().assign(target);
    use.set(place);
    insert.getDestMutable().assign(target);
    if (old->use_empty())
      old->erase();
  }
}

} // namespace tilewright
