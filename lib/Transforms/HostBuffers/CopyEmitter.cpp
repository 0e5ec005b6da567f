//===- CopyEmitter.cpp - loops that copy a buffer by tiles ----------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Transforms/HostBuffers/CopyEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tilewright;

/// Elements that one tile of a copy moves.
static constexpr int64_t kTile = 64;

static void copyTile(OpBuilder &b, Location loc, Value source, Value target,
                     ArrayRef<Value> indices, ArrayRef<int64_t> shape) {
  auto type = tile::TileType::get(
      shape, cast<MemRefType>(source.getType()).getElementType());
  Value tile = tile::LoadOp::create(b, loc, type, source, indices);
  tile::StoreOp::create(b, loc, tile, target, indices);
}

static void loop(OpBuilder &b, Location loc, OpFoldResult end, int64_t step,
                 llvm::function_ref<void(OpBuilder &, Value)> body) {
  Value low = arith::ConstantIndexOp::create(b, loc, 0);
  Value high = getValueOrCreateConstantIndexOp(b, loc, end);
  Value stride = arith::ConstantIndexOp::create(b, loc, step);
  scf::ForOp::create(b, loc, low, high, stride, ValueRange(),
                     [&](OpBuilder &nested, Location, Value i, ValueRange) {
                       body(nested, i);
                       scf::YieldOp::create(nested, loc);
                     });
}

void tilewright::emitCopy(OpBuilder &b, Location loc, Value source,
                          Value target, ArrayRef<Value> indices) {
  ArrayRef<int64_t> shape = cast<MemRefType>(source.getType()).getShape();
  if (shape.empty())
    return copyTile(b, loc, source, target, {}, {});
  SmallVector<Value> position(indices);
  if (indices.size() + 1 < shape.size()) {
    auto dim = static_cast<int64_t>(indices.size());
    OpFoldResult end = memref::getMixedSize(b, loc, source, dim);
    loop(b, loc, end, 1, [&](OpBuilder &nested, Value i) {
      position.push_back(i);
      emitCopy(nested, loc, source, target, position);
    });
    return;
  }
  int64_t size = shape.back(), whole = size / kTile * kTile;
  position.emplace_back();
  if (whole > 0)
    loop(b, loc, b.getIndexAttr(whole), kTile, [&](OpBuilder &nested, Value i) {
      position.back() = i;
      copyTile(nested, loc, source, target, position, {kTile});
    });
  if (whole == size)
    return;
  position.back() = arith::ConstantIndexOp::create(b, loc, whole);
  copyTile(b, loc, source, target, position, {size - whole});
}
