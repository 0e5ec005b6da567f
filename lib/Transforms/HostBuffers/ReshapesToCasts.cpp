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

void lower(memref::ExpandShapeOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  MemRefType type = op.getResultType();
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
  // What the type fixes must be fixed here, and nothing else.
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
  auto cast = memref::ReinterpretCastOp::create(
      b, loc, type, source.getBaseBuffer(), offset, sizes, strides);
  op.replaceAllUsesWith(cast.getResult());
  op.erase();
}

struct ReshapesToCasts
    : public tilewright::impl::ReshapesToCastsBase<ReshapesToCasts> {
  void runOnOperation() override {
    SmallVector<memref::ExpandShapeOp> ops;
    getOperation()->walk([&](memref::ExpandShapeOp op) {
      if (needsOperands(op))
        ops.push_back(op);
    });
    for (memref::ExpandShapeOp op : ops)
      lower(op);
  }
};

} // namespace
