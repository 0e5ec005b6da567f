//===- DistributedRewriter.h - layouts into the types of tiles --*- C++ -*-===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef TILEWRIGHT_CONVERSION_TILETOGPU_DISTRIBUTEDREWRITER_H
#define TILEWRIGHT_CONVERSION_TILETOGPU_DISTRIBUTEDREWRITER_H

#include "lib/Conversion/TileToGPU/DistributedClasses.h"
#include "lib/Conversion/TileToGPU/Fragments.h"
#include "lib/Conversion/TileToGPU/MemoryAccess.h"

namespace tilewright {

/// The layout in which a warp's accesses are whole sectors of memory.
LinearLayout getAccessLayout(const AccessShape &access, tile::TileType type,
                             int64_t threads);
/// The layout of a product's operand on `mma` or, for `a`, on `wgmma`.
LinearLayout getOperandLayout(tile::MmaOp op, mlir::Value operand,
                              const LinearLayout &result, int64_t arch);
/// Writes the chosen layouts into the types, and a `tile.convert` wherever an
/// op needs another one.
class DistributedRewriter {
public:
  DistributedRewriter(mlir::gpu::GPUFuncOp function, int64_t arch,
                      DistributedClasses &classes);
  mlir::LogicalResult run();

private:
  void setTypes();
  void require(mlir::OpOperand &operand, const LinearLayout &layout);
  void produce(mlir::Value result, const LinearLayout &layout);
  void fix(mlir::Operation *op);
  void fixLoad(tile::LoadOp op);
  void fixStore(tile::StoreOp op);
  void fixReduce(tile::ReduceOp op);
  template <typename RenameOp> void fixRename(RenameOp op);
  void fixExtract(tile::ExtractOp op);
  mlir::LogicalResult fixProduct(tile::MmaOp op);
  mlir::LogicalResult keepShared(tile::MmaOp op, mlir::OpOperand &operand,
                                 bool mayStore);
  LinearLayout layoutOf(mlir::Value value) const;

  mlir::gpu::GPUFuncOp function;
  int64_t arch;
  DistributedClasses &classes;
  int64_t threads;
};

} // namespace tilewright

#endif // TILEWRIGHT_CONVERSION_TILETOGPU_DISTRIBUTEDREWRITER_H
