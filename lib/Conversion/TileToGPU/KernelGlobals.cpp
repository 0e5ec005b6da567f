//===- KernelGlobals.cpp - memory that a kernel's module has --------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/KernelGlobals.h"
#include "dialects/Tile/TileDecisions.h"

#include "dialects/Tile/TileTasks.h"
#include "lib/Conversion/TileToGPU/DistributedTiles.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;
using namespace tilewright;

Value tilewright::makeGlobal(OpBuilder &at, gpu::GPUFuncOp function,
                             const Twine &name, DenseElementsAttr data,
                             bool constant) {
  auto space = gpu::AddressSpaceAttr::get(function.getContext(),
                                          gpu::AddressSpace::Global);
  ShapedType shaped = data.getType();
  auto type = MemRefType::get(shaped.getShape(), shaped.getElementType(),
                              MemRefLayoutAttrInterface(), space);
  std::string text = (function.getName() + name).str();
  OpBuilder before(function);
  memref::GlobalOp::create(before, function.getLoc(), text,
                           before.getStringAttr("private"), type, data,
                           constant, before.getI64IntegerAttr(16));
  return memref::GetGlobalOp::create(at, function.getLoc(), type, text);
}

void tilewright::placeConstants(gpu::GPUFuncOp function) {
  SmallVector<arith::ConstantOp> constants;
  function.walk([&](arith::ConstantOp op) {
    auto dense = dyn_cast<DenseElementsAttr>(op.getValue());
    if (isa<tile::TileType>(op.getType()) && dense && !dense.isSplat())
      constants.push_back(op);
  });
  for (auto [index, op] : llvm::enumerate(constants)) {
    auto tile = cast<tile::TileType>(op.getType());
    auto data = cast<DenseElementsAttr>(op.getValue())
                    .reshape(RankedTensorType::get(tile.getShape(),
                                                   tile.getElementType()));
    OpBuilder at(op);
    Value memref = makeGlobal(at, function, "_constant_" + Twine(index), data,
                              /*constant=*/true);
    SmallVector<Value> zeros(tile.getRank(), constantIndex(at, op.getLoc(), 0));
    Value load = tile::LoadOp::create(at, op.getLoc(), tile, memref, zeros);
    op.getResult().replaceAllUsesWith(load);
    op.erase();
  }
}

void tilewright::placeSemaphores(gpu::GPUFuncOp function) {
  SmallVector<tile::SemaphoresOp> ops;
  function.walk([&](tile::SemaphoresOp op) { ops.push_back(op); });
  for (auto [index, op] : llvm::enumerate(ops)) {
    auto type = cast<MemRefType>(op.getResult().getType());
    auto zeros = DenseElementsAttr::get(
        RankedTensorType::get(type.getShape(), type.getElementType()),
        int32_t(0));
    OpBuilder at(op);
    Value memref = makeGlobal(at, function, "_semaphores_" + Twine(index),
                              zeros, /*constant=*/false);
    op.getResult().replaceAllUsesWith(memref);
    op.erase();
  }
  if (tile::hasWaits(function))
    function->setAttr(tile::decisions::kWaits,
                      UnitAttr::get(function.getContext()));
}
