//===- Lines.cpp - cache lines of tiles -----------------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/GroupToKernel/Lines.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace tilewright {

SmallVector<SmallVector<int64_t>>
linesOf(MemRefType type, ArrayRef<int64_t> shape, ArrayRef<int64_t> dims,
        ArrayRef<int64_t> steps, const Device &device) {
  int64_t perLine =
      device.getLimit("line_bytes", 64) * 8 / type.getElementTypeBitWidth();
  SmallVector<SmallVector<int64_t>> lines = {
      SmallVector<int64_t>(type.getRank(), 0)};
  for (auto [size, dim, step] : llvm::zip_equal(shape, dims, steps)) {
    bool along = dim == type.getRank() - 1 && step == 1;
    SmallVector<SmallVector<int64_t>> next;
    for (const SmallVector<int64_t> &line : lines)
      for (int64_t at = 0; at < size; at += along ? perLine : 1) {
        next.push_back(line);
        next.back()[dim] += at * step;
      }
    lines = std::move(next);
  }
  return lines;
}

void prefetchLines(OpBuilder &b, Location loc, Value memref, ValueRange offsets,
                   ArrayRef<SmallVector<int64_t>> lines, bool isWrite,
                   Cache into) {
  for (const SmallVector<int64_t> &line : lines) {
    SmallVector<Value> at;
    for (auto [offset, step] : llvm::zip_equal(offsets, line))
      at.push_back(step ? getValueOrCreateConstantIndexOp(
                              b, loc,
                              affine::makeComposedFoldedAffineApply(
                                  b, loc, b.getAffineDimExpr(0) + step,
                                  {OpFoldResult(offset)}))
                        : offset);
    memref::PrefetchOp::create(b, loc, memref, at, isWrite,
                               static_cast<unsigned>(into),
                               /*isDataCache=*/true);
  }
}

} // namespace tilewright
