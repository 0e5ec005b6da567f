//===- MemoryAccess.cpp - what tile.load and tile.store share -------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToVector/MemoryAccess.h"

using namespace mlir;
using namespace tilewright;

Value tilewright::zero(OpBuilder &b, Location loc, Type type) {
  return arith::ConstantOp::create(b, loc, b.getZeroAttr(type));
}

static Type withElement(Type like, Type element) {
  if (auto vector = dyn_cast<VectorType>(like))
    return vector.clone(element);
  return element;
}

Value tilewright::fromStorage(OpBuilder &b, Location loc, Type element,
                              Value value) {
  Type stored = getElementTypeOrSelf(value.getType());
  if (stored == element)
    return value;
  // A byte of a bool is 0 or 1; anything else counts as true.
  Value none = constantPart(b, loc, value.getType(), b.getI8IntegerAttr(0));
  return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, value, none);
}

Value tilewright::toStorage(OpBuilder &b, Location loc, Type storageElement,
                            Value value) {
  if (getElementTypeOrSelf(value.getType()) == storageElement)
    return value;
  return arith::ExtUIOp::create(
      b, loc, withElement(value.getType(), storageElement), value);
}

LogicalResult tilewright::checkStorable(Operation *op, Type element) {
  if (element.isIndex() || element.isInteger(1))
    return success();
  unsigned bits = element.getIntOrFloatBitWidth();
  if (bits % 8 == 0 && llvm::isPowerOf2_32(bits))
    return success();
  return op->emitOpError("moves elements of type ")
         << element
         << ", which are no whole number of bytes; on a CPU store them as i8 "
            "and unpack them in the kernel";
}

std::optional<SmallVector<int64_t>>
tilewright::contiguousFirst(OpBuilder &b, Location loc, const AccessDesc &desc,
                            const PartLayout &layout) {
  auto rank = static_cast<int64_t>(layout.getShape().size());
  if (rank < 2 || desc.along == rank - 1 || layout.getWidth() < 2)
    return std::nullopt;
  SmallVector<int64_t> strides =
      cast<MemRefType>(desc.memref.getType()).getStridesAndOffset().first;
  auto isUnit = [&](int64_t dim) {
    return strides[desc.dims[dim]] == 1 && desc.steps[dim] == 1 &&
           desc.along != dim;
  };
  if (isUnit(rank - 1))
    return std::nullopt;
  for (int64_t dim = 0; dim + 1 < rank; ++dim) {
    if (!isUnit(dim) || layout.getShape()[dim] < 4)
      continue;
    auto perm = llvm::to_vector(llvm::seq<int64_t>(0, rank));
    std::swap(perm[dim], perm[rank - 1]);
    return perm;
  }
  return std::nullopt;
}

AccessDesc tilewright::permute(const AccessDesc &desc, ArrayRef<int64_t> perm) {
  AccessDesc result = desc;
  for (auto [dim, from] : llvm::enumerate(perm)) {
    result.dims[dim] = desc.dims[from];
    result.steps[dim] = desc.steps[from];
    if (!desc.valid.empty())
      result.valid[dim] = desc.valid[from];
    if (desc.along == from)
      result.along = static_cast<int64_t>(dim);
  }
  return result;
}

void tilewright::populateMemoryPatterns(const TilePartsConverter &converter,
                                        RewritePatternSet &patterns) {
  populateLoadPatterns(converter, patterns);
  populateStorePatterns(converter, patterns);
  populateInterleavePatterns(converter, patterns);
}
