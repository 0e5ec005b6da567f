//===- ReshapesToCasts.cpp - reshapes by sizes known at run time ----------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/HostBuffers/Passes.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

namespace tilewright {
#define GEN_PASS_DEF_RESHAPESTOCASTS
#include "lib/Transforms/HostBuffers/Passes.h.inc"
} // namespace tilewright

using namespace mlir;

namespace {

OpFoldResult multiply(OpBuilder &b, Location loc, OpFoldResult left,
                      OpFoldResult right) {
  auto one = getConstantIntValue(left), other = getConstantIntValue(right);
  if (one && other)
    return b.getIndexAttr(*one * *other);
  Value x = getValueOrCreateConstantIndexOp(b, loc, left);
  Value y = getValueOrCreateConstantIndexOp(b, loc, right);
  return arith::MulIOp::create(b, loc, x, y).getResult();
}

/// Upstream derives the new sizes from the old ones, which works for one
/// unknown size per group; here they are known as operands.
bool needsOperands(memref::ExpandShapeOp op) {
  return llvm::any_of(op.getReassociationIndices(), [&](ArrayRef<int64_t> g) {
    return llvm::count_if(g, [&](int64_t dim) {
             return op.getResultType().isDynamicDim(dim);
           }) > 1;
  });
}

/// Replaces a view of what `source` describes by a cast. What the type of the
/// view fixes must be fixed there, and nothing else.
template <typename View>
void replace(OpBuilder &b, View op, memref::ExtractStridedMetadataOp source,
             SmallVector<OpFoldResult> sizes,
             SmallVector<OpFoldResult> strides) {
  Location loc = op.getLoc();
  auto type = cast<MemRefType>(op.getType());
  auto [typeStrides, typeOffset] = type.getStridesAndOffset();
  auto agree = [&](OpFoldResult value, int64_t fixed) -> OpFoldResult {
    if (ShapedType::isDynamic(fixed))
      return getValueOrCreateConstantIndexOp(b, loc, value);
    return b.getIndexAttr(fixed);
  };
  for (auto [dim, stride] : llvm::enumerate(strides)) {
    stride = agree(stride, typeStrides[dim]);
    sizes[dim] = agree(sizes[dim], type.getDimSize(dim));
  }
  OpFoldResult offset = agree(source.getConstifiedMixedOffset(), typeOffset);
  auto made = memref::ReinterpretCastOp::create(
      b, loc, type, source.getBaseBuffer(), offset, sizes, strides);
  op.replaceAllUsesWith(made.getResult());
  op.erase();
}

void lower(memref::ExpandShapeOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto source = memref::ExtractStridedMetadataOp::create(b, loc, op.getSrc());
  auto oldStrides = source.getConstifiedMixedStrides();
  SmallVector<OpFoldResult> sizes = op.getMixedOutputShape();
  SmallVector<OpFoldResult> strides(sizes.size());
  for (auto [number, group] : llvm::enumerate(op.getReassociationIndices())) {
    OpFoldResult stride = oldStrides[number];
    for (int64_t dim : llvm::reverse(group)) {
      strides[dim] = stride;
      if (dim != group.front())
        stride = multiply(b, loc, stride, sizes[dim]);
    }
  }
  replace(b, op, source, sizes, strides);
}

/// Which of several dimensions of size 1 a slice drops, upstream tells by their
/// strides, and takes the first of those whose strides are not known. None
/// where the sizes agree with that.
std::optional<llvm::SmallDenseSet<unsigned>> findDropped(memref::SubViewOp op) {
  llvm::SmallBitVector assumed = op.getDroppedDims();
  SmallVector<int64_t> kept;
  for (auto [dim, size] : llvm::enumerate(op.getStaticSizes()))
    if (!assumed.test(dim))
      kept.push_back(size);
  if (kept == op.getType().getShape())
    return std::nullopt;
  return computeRankReductionMask(op.getStaticSizes(), op.getType().getShape());
}

void lower(memref::SubViewOp op, const llvm::SmallDenseSet<unsigned> &dropped) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  auto whole =
      memref::SubViewOp::create(b, loc, op.getSource(), op.getMixedOffsets(),
                                op.getMixedSizes(), op.getMixedStrides());
  auto source = memref::ExtractStridedMetadataOp::create(b, loc, whole);
  SmallVector<OpFoldResult> sizes, strides, all = op.getMixedSizes();
  for (auto [dim, stride] :
       llvm::enumerate(source.getConstifiedMixedStrides())) {
    if (dropped.contains(dim))
      continue;
    sizes.push_back(all[dim]);
    strides.push_back(stride);
  }
  replace(b, op, source, sizes, strides);
}

struct ReshapesToCasts
    : public tilewright::impl::ReshapesToCastsBase<ReshapesToCasts> {
  void runOnOperation() override {
    SmallVector<memref::ExpandShapeOp> splits;
    SmallVector<memref::SubViewOp> slices;
    getOperation()->walk([&](Operation *op) {
      if (auto split = dyn_cast<memref::ExpandShapeOp>(op)) {
        if (needsOperands(split))
          splits.push_back(split);
      } else if (auto slice = dyn_cast<memref::SubViewOp>(op)) {
        slices.push_back(slice);
      }
    });
    for (memref::ExpandShapeOp op : splits)
      lower(op);
    for (memref::SubViewOp op : slices)
      if (auto dropped = findDropped(op))
        lower(op, *dropped);
  }
};

} // namespace
