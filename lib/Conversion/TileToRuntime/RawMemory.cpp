//===- RawMemory.cpp - pointers and memref descriptors --------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToRuntime/RawMemory.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"

using namespace mlir;
using namespace tilewright;

// Words of a descriptor: allocated, aligned, offset, sizes, strides.
static constexpr int64_t kAligned = 1, kOffset = 2, kSizes = 3;

Value RawMemory::cast(Type type, Value value) {
  return UnrealizedConversionCastOp::create(b, loc, type, value).getResult(0);
}

Value RawMemory::word(Value base, int64_t index) {
  if (index == 0)
    return base;
  return LLVM::GEPOp::create(
      b, loc, base.getType(), b.getI64Type(), base,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(index)});
}

Value RawMemory::loadPointer(Value base, int64_t index) {
  auto type = LLVM::LLVMPointerType::get(b.getContext());
  return LLVM::LoadOp::create(b, loc, type, word(base, index));
}

Value RawMemory::loadIndex(Value base, int64_t index) {
  Value number =
      LLVM::LoadOp::create(b, loc, b.getI64Type(), word(base, index));
  return arith::IndexCastOp::create(b, loc, b.getIndexType(), number);
}

void RawMemory::storeWord(Value value, Value base, int64_t index) {
  LLVM::StoreOp::create(b, loc, value, word(base, index));
}

Value RawMemory::constantI64(int64_t value) {
  return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
}

Value RawMemory::toI64(Value index) {
  return arith::IndexCastOp::create(b, loc, b.getI64Type(), index);
}

Value RawMemory::makeStatic(MemRefType type, Value pointer) {
  Value descriptor =
      MemRefDescriptor::fromStaticShape(b, loc, converter, type, pointer);
  return cast(type, descriptor);
}

Value RawMemory::readDescriptor(MemRefType type, Value source) {
  Value pointer = loadPointer(source, kAligned);
  auto [strides, offset] = type.getStridesAndOffset();
  auto descriptor =
      MemRefDescriptor::poison(b, loc, converter.convertType(type));
  descriptor.setAllocatedPtr(b, loc, pointer);
  descriptor.setAlignedPtr(b, loc, pointer);
  auto pick = [&](int64_t fixed, int64_t index) {
    if (!ShapedType::isDynamic(fixed))
      return constantI64(fixed);
    return toI64(loadIndex(source, index));
  };
  descriptor.setOffset(b, loc, pick(offset, kOffset));
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    descriptor.setSize(b, loc, dim, pick(type.getDimSize(dim), kSizes + dim));
    descriptor.setStride(b, loc, dim,
                         pick(strides[dim], kSizes + type.getRank() + dim));
  }
  return cast(type, descriptor);
}

int64_t RawMemory::writeArguments(ValueRange arguments, ValueRange grid,
                                  Value target, Value argv) {
  int64_t at = 0, position = 0;
  auto next = [&](Type type) {
    Value slot = word(target, at);
    storeWord(slot, argv, position++);
    at += argumentWords(type);
    return slot;
  };
  for (Value argument : arguments) {
    if (isa<MemRefType>(argument.getType())) {
      writeDescriptor(argument, next(argument.getType()));
      continue;
    }
    if (argument.getType().isIndex())
      argument = toI64(argument);
    LLVM::StoreOp::create(b, loc, argument, next(argument.getType()));
  }
  for (Value bound : grid)
    LLVM::StoreOp::create(b, loc, bound, next(bound.getType()));
  return position;
}

void RawMemory::writeDescriptor(Value memref, Value target) {
  // The descriptor's LLVM struct has the layout that kernels read.
  Value descriptor = cast(converter.convertType(memref.getType()), memref);
  LLVM::StoreOp::create(b, loc, descriptor, target);
}
