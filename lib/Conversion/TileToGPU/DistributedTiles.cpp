//===- DistributedTiles.cpp - a tile as one thread sees it ----------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/DistributedTiles.h"

using namespace mlir;
using namespace tilewright;

Value tilewright::constantI32(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantOp::create(
      b, loc, b.getI32IntegerAttr(static_cast<int32_t>(value)));
}

Value tilewright::constantIndex(OpBuilder &b, Location loc, int64_t value) {
  return arith::ConstantIndexOp::create(b, loc, value);
}

Value tilewright::getThreadNumber(OpBuilder &b, Location loc) {
  Value thread = gpu::ThreadIdOp::create(b, loc, gpu::Dimension::x);
  return arith::IndexCastOp::create(b, loc, b.getI32Type(), thread);
}

/// `count` bits of `number` from `first` on, moved to bit `to`.
static Value moveBits(OpBuilder &b, Location loc, Value number, int64_t first,
                      int64_t count, int64_t to) {
  int64_t mask = ((int64_t(1) << count) - 1) << first;
  Value bits = arith::AndIOp::create(b, loc, number, constantI32(b, loc, mask));
  if (first > to)
    return arith::ShRUIOp::create(b, loc, bits,
                                  constantI32(b, loc, first - to));
  if (to > first)
    return arith::ShLIOp::create(b, loc, bits, constantI32(b, loc, to - first));
  return bits;
}

Value tilewright::gatherBits(OpBuilder &b, Location loc, Value number,
                             ArrayRef<CoordinateBit> bits, int64_t dim) {
  Value result;
  for (size_t first = 0; first < bits.size();) {
    size_t last = first + 1;
    if (bits[first].dim != dim) {
      first = last;
      continue;
    }
    while (last < bits.size() && bits[last].dim == dim &&
           bits[last].bit == bits[last - 1].bit + 1)
      ++last;
    Value part = moveBits(b, loc, number, static_cast<int64_t>(first),
                          static_cast<int64_t>(last - first), bits[first].bit);
    result = result ? arith::OrIOp::create(b, loc, result, part) : part;
    first = last;
  }
  return result ? result : constantI32(b, loc, 0);
}

Value tilewright::bothHold(OpBuilder &b, Location loc, Value x, Value y) {
  if (!x || !y)
    return x ? x : y;
  return arith::AndIOp::create(b, loc, x, y);
}

ThreadView::ThreadView(OpBuilder &b, Location loc, Type tileType)
    : ThreadView(b, loc, *LinearLayout::of(tileType),
                 cast<tile::TileType>(tileType).getShape()) {}

ThreadView::ThreadView(OpBuilder &b, Location loc, LinearLayout layout,
                       ArrayRef<int64_t> shape)
    : b(b), loc(loc), layout(std::move(layout)), shape(shape),
      threadParts(shape.size()) {}

Value ThreadView::getThreadPart(int64_t dim) {
  if (!threadParts[dim])
    threadParts[dim] = gatherBits(b, loc, getThreadNumber(b, loc),
                                  layout.getThreadBits(), dim);
  return threadParts[dim];
}

Value ThreadView::getCoordinate(int64_t number, int64_t dim) {
  int64_t constant = layout.getRegister(number)[dim];
  Value part = getThreadPart(dim);
  if (constant == 0)
    return part;
  return arith::AddIOp::create(b, loc, part, constantI32(b, loc, constant));
}

/// The highest coordinate that a thread's number adds.
static int64_t highestThreadPart(const LinearLayout &layout, int64_t dim) {
  int64_t sum = 0;
  for (CoordinateBit bit : layout.getThreadBits())
    if (bit.dim == dim)
      sum += bit.getValue();
  return sum;
}

bool ThreadView::alwaysExists(int64_t number) {
  SmallVector<int64_t> at = layout.getRegister(number);
  for (auto [dim, size] : llvm::enumerate(shape))
    if (at[dim] + highestThreadPart(layout, static_cast<int64_t>(dim)) >= size)
      return false;
  return true;
}

bool ThreadView::neverExists(int64_t number) {
  return llvm::any_of(
      llvm::zip_equal(layout.getRegister(number), shape),
      [](auto pair) { return std::get<0>(pair) >= std::get<1>(pair); });
}

Value ThreadView::exists(int64_t number) {
  SmallVector<int64_t> at = layout.getRegister(number);
  Value condition;
  for (int64_t dim = 0; dim < static_cast<int64_t>(shape.size()); ++dim) {
    if (at[dim] + highestThreadPart(layout, dim) < shape[dim])
      continue;
    Value inside = arith::CmpIOp::create(
        b, loc, arith::CmpIPredicate::slt, getThreadPart(dim),
        constantI32(b, loc, shape[dim] - at[dim]));
    condition = bothHold(b, loc, condition, inside);
  }
  return condition;
}

Value ThreadView::isFirstReplica() {
  auto mask = static_cast<int64_t>(layout.getReplicas());
  if (mask == 0)
    return {};
  Value bits = arith::AndIOp::create(b, loc, getThreadNumber(b, loc),
                                     constantI32(b, loc, mask));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, bits,
                               constantI32(b, loc, 0));
}

DistributedConverter::DistributedConverter(int64_t arch) : arch(arch) {
  addConversion([](Type type) -> std::optional<Type> { return type; });
  addConversion(
      [](tile::TileType type,
         SmallVectorImpl<Type> &types) -> std::optional<LogicalResult> {
        if (auto layout = LinearLayout::of(type)) {
          types.append(layout->getNumRegisters(), type.getElementType());
          return success();
        }
        // A tile that stays in shared memory: its user finds it there.
        if (!type.isInShared())
          return failure();
        return success();
      });
  // A token is no value at all.
  addConversion([](tile::TokenType,
                   SmallVectorImpl<Type> &) -> std::optional<LogicalResult> {
    return success();
  });
}
