//===- MemoryAccess.h - tile loads and stores of a nest ---------*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// An access is an affine map from the nest's loops to elements of a buffer:
// which axis of the tile walks which dimension of the buffer, in which steps,
// and where it ends. Prefetches are accesses of tiles to come
// (NestPrefetch.cpp).
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_MEMORYACCESS_H
#define TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_MEMORYACCESS_H

#include "lib/Transforms/GroupToKernel/NestPoint.h"

namespace tilewright {

class MemoryAccess {
public:
  explicit MemoryAccess(NestPoint &point)
      : point(point), builder(point.builder), nest(point.nest) {}

  /// A tile's place in a buffer.
  struct Window {
    llvm::SmallVector<mlir::Value> offsets;
    llvm::SmallVector<int64_t> shape, dims, steps;
    /// Size per row dimension: 1 where the access does not depend on it.
    llvm::SmallVector<int64_t> rows;
    int64_t lanes = 1;
    /// Bound per tile dimension, null where all of the tile exists.
    llvm::SmallVector<mlir::Value> valid;
  };
  mlir::FailureOr<Window> window(mlir::Location loc, const Storage &place,
                                 const Access &access);
  llvm::SmallVector<mlir::Value> bounds(mlir::Location loc, const Window &at,
                                        bool asRow = false);
  mlir::FailureOr<int64_t> coefficient(mlir::AffineExpr expr, int tileDim);
  mlir::Value gatherRows(mlir::Value tile, const Window &at);

  mlir::FailureOr<mlir::Value> load(mlir::Location loc, mlir::Value tensor,
                                    const Access &access);
  /// The element of a buffer without dimensions, as a tile of one.
  mlir::Value loadScalar(mlir::Location loc, mlir::Value memref);
  mlir::LogicalResult store(mlir::Location loc, mlir::Value tile,
                            const Storage &place, const Access &access,
                            bool streamed = false);
  bool mayStream(const Storage &place) const;
  void prefetch(unsigned inner, int64_t body);

private:
  mlir::FailureOr<int> ownerOf(int tileDim, const Access &access,
                               int64_t &step);
  mlir::Value inBlocks(mlir::Value tile, const Window &at) const;
  void prefetch(mlir::OpOperand &operand, unsigned inner, int64_t body);
  mlir::AffineExpr flatOffset(mlir::MemRefType type, const Access &access);

  NestPoint &point;
  mlir::OpBuilder &builder;
  const NestAnalysis &nest;
};

} // namespace tilewright

#endif // TILEWRIGHT_TRANSFORMS_GROUPTOKERNEL_MEMORYACCESS_H
