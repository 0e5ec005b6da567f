//===- ThreadTiles.cpp - tiles spread over the threads of a block ---------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/ThreadTiles.h"

using namespace mlir;
using namespace tilewright;

bool tilewright::needsExchange(OpOperand &operand) {
  Operation *op = operand.getOwner();
  if (!isa<tile::TileType>(operand.get().getType()))
    return false;
  if (isa<tile::MmaOp>(op))
    return operand.getOperandNumber() < 2;
  return isa<tile::ReduceOp, tile::BroadcastOp, tile::TransposeOp,
             tile::ExtractOp>(op);
}

ThreadTile::ThreadTile(OpBuilder &b, Location loc, Type tileType,
                       int64_t threads)
    : b(b), loc(loc), type(cast<tile::TileType>(tileType)), threads(threads),
      parts((type.getNumElements() + threads - 1) / threads) {
  thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
}

Value ThreadTile::constant(int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

Value ThreadTile::getNumber(int64_t part) {
  if (part == 0)
    return thread;
  return arith::AddIOp::create(b, loc, thread, constant(part * threads));
}

SmallVector<Value> ThreadTile::getCoordinates(int64_t part) {
  Value rest = getNumber(part);
  ArrayRef<int64_t> shape = type.getShape();
  SmallVector<Value> coordinates(shape.size());
  for (auto dim = static_cast<int64_t>(shape.size()) - 1; dim > 0; --dim) {
    Value size = constant(shape[dim]);
    coordinates[dim] = arith::RemUIOp::create(b, loc, rest, size);
    rest = arith::DivUIOp::create(b, loc, rest, size);
  }
  if (!shape.empty())
    coordinates[0] = rest;
  return coordinates;
}

Value ThreadTile::exists(int64_t part) {
  if ((part + 1) * threads <= type.getNumElements())
    return {};
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                               getNumber(part),
                               constant(type.getNumElements()));
}

Value ThreadTile::linearize(ArrayRef<Value> coordinates) {
  Value number = constant(0);
  for (auto [coordinate, size] :
       llvm::zip_equal(coordinates, type.getShape())) {
    number = arith::MulIOp::create(b, loc, number, constant(size));
    number = arith::AddIOp::create(b, loc, number, coordinate);
  }
  return number;
}

Value tilewright::guarded(OpBuilder &b, Location loc, Value when,
                          llvm::function_ref<Value(OpBuilder &)> body,
                          Value otherwise) {
  if (!when)
    return body(b);
  if (!otherwise) {
    scf::IfOp::create(b, loc, when, [&](OpBuilder &nested, Location) {
      body(nested);
      scf::YieldOp::create(nested, loc);
    });
    return {};
  }
  auto result = scf::IfOp::create(
      b, loc, when,
      [&](OpBuilder &nested, Location) {
        scf::YieldOp::create(nested, loc, body(nested));
      },
      [&](OpBuilder &nested, Location) {
        scf::YieldOp::create(nested, loc, otherwise);
      });
  return result.getResult(0);
}

void tilewright::shareTile(OpBuilder &b, Location loc, ThreadTile &tile,
                           ValueRange parts, Value buffer) {
  // Readers of the buffer's last contents must be done with them.
  gpu::BarrierOp::create(b, loc);
  for (int64_t part = 0; part < tile.getNumParts(); ++part) {
    Value number = tile.getNumber(part);
    guarded(b, loc, tile.exists(part),
            [&](OpBuilder &nested) {
              memref::StoreOp::create(nested, loc, parts[part], buffer, number);
              return Value();
            },
            {});
  }
  gpu::BarrierOp::create(b, loc);
}
