//===- HostCalls.cpp - assertions, memory and results of the host ---------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToRuntime/HostCalls.h"
#include "dialects/Tile/Elements.h"
#include "dialects/Tile/TileDecisions.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"

using namespace mlir;
using namespace tilewright;

HostCalls::HostCalls(ModuleOp module, const LLVMTypeConverter &converter)
    : module(module), converter(converter),
      pointer(LLVM::LLVMPointerType::get(module.getContext())),
      i64(IntegerType::get(module.getContext(), 64)) {}

func::CallOp HostCalls::call(OpBuilder &b, Location loc, StringRef name,
                             TypeRange results, ValueRange operands) {
  auto function = module.lookupSymbol<func::FuncOp>(name);
  if (!function) {
    OpBuilder top(module.getBodyRegion());
    function = func::FuncOp::create(
        top, loc, name, b.getFunctionType(operands.getTypes(), results));
    function.setPrivate();
  }
  return func::CallOp::create(b, loc, function, operands);
}

void HostCalls::lower(func::FuncOp entry) {
  SmallVector<Operation *> ops;
  entry.walk([&](Operation *op) {
    if (isa<cf::AssertOp, memref::AllocOp, memref::DeallocOp>(op))
      ops.push_back(op);
  });
  for (Operation *op : ops) {
    if (auto assertion = dyn_cast<cf::AssertOp>(op))
      lower(assertion);
    else if (auto alloc = dyn_cast<memref::AllocOp>(op))
      lower(alloc);
    else
      lower(cast<memref::DeallocOp>(op));
  }
}

Value HostCalls::message(OpBuilder &b, Location loc, StringRef text) {
  LLVM::GlobalOp &global = messages[text];
  if (!global) {
    OpBuilder top(module.getBodyRegion());
    std::string bytes = text.str();
    bytes.push_back('\0');
    auto type = LLVM::LLVMArrayType::get(b.getI8Type(), bytes.size());
    global = LLVM::GlobalOp::create(
        top, loc, type, /*isConstant=*/true, LLVM::Linkage::Internal,
        "tw_message_" + std::to_string(messages.size() - 1),
        b.getStringAttr(bytes));
  }
  return LLVM::AddressOfOp::create(b, loc, pointer, global.getSymName());
}

/// The number that the message of an assertion ends with, as i64: with
/// `tile.tell`, what its condition compares. Null where there is none.
static Value toldBy(OpBuilder &b, cf::AssertOp op) {
  auto compare = op.getArg().getDefiningOp<arith::CmpIOp>();
  if (!compare || !op->hasAttr(tile::decisions::kTell))
    return {};
  Value number = compare.getLhs();
  Type i64 = b.getI64Type();
  if (number.getType().isIndex())
    return arith::IndexCastOp::create(b, op.getLoc(), i64, number);
  return number.getType() == i64 ? number : Value();
}

void HostCalls::lower(cf::AssertOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  Value yes = arith::ConstantOp::create(b, loc, b.getBoolAttr(true));
  Value fails = arith::XOrIOp::create(b, loc, op.getArg(), yes);
  auto branch = scf::IfOp::create(b, loc, fails, /*withElseRegion=*/false);
  OpBuilder inner = branch.getThenBodyBuilder();
  Value text = message(inner, loc, op.getMsg());
  if (Value number = toldBy(inner, op))
    call(inner, loc, "twrt_fail_at", {}, {text, number});
  else
    call(inner, loc, "twrt_fail", {}, text);
  op.erase();
}

Value HostCalls::bytesOf(OpBuilder &b, Location loc, MemRefType type,
                         ArrayRef<Value> sizes) {
  int64_t fixed = bytesOfElement(type.getElementType());
  for (int64_t size : type.getShape())
    if (!ShapedType::isDynamic(size))
      fixed *= size;
  Value bytes = arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(fixed));
  for (auto [dim, size] : llvm::enumerate(sizes))
    if (type.isDynamicDim(dim))
      bytes = call(b, loc, "twrt_size", i64, {bytes, size}).getResult(0);
  return bytes;
}

Value HostCalls::makeMemRef(OpBuilder &b, Location loc, MemRefType type,
                            Value data, ArrayRef<Value> sizes) {
  auto constant = [&](int64_t value) -> Value {
    return arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(value));
  };
  auto descriptor =
      MemRefDescriptor::poison(b, loc, converter.convertType(type));
  descriptor.setAllocatedPtr(b, loc, data);
  descriptor.setAlignedPtr(b, loc, data);
  descriptor.setOffset(b, loc, constant(0));
  Value stride = constant(1);
  for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
    descriptor.setSize(b, loc, dim, sizes[dim]);
    descriptor.setStride(b, loc, dim, stride);
    if (dim)
      stride = arith::MulIOp::create(b, loc, stride, sizes[dim]);
  }
  Value value = descriptor;
  return UnrealizedConversionCastOp::create(b, loc, type, value).getResult(0);
}

void HostCalls::lower(memref::AllocOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  RawMemory memory(b, loc, converter);
  SmallVector<Value> sizes;
  auto dynamic = op.getDynamicSizes().begin();
  for (int64_t size : op.getType().getShape())
    sizes.push_back(ShapedType::isDynamic(size) ? memory.toI64(*dynamic++)
                                                : memory.constantI64(size));
  Value bytes = bytesOf(b, loc, op.getType(), sizes);
  Value data = call(b, loc, "twrt_alloc", pointer, bytes).getResult(0);
  Value made = makeMemRef(b, loc, op.getType(), data, sizes);
  op.getResult().replaceAllUsesWith(made);
  op.erase();
}

/// The descriptor that a memref becomes.
static MemRefDescriptor descriptorOf(OpBuilder &b, Location loc, Value memref,
                                     const LLVMTypeConverter &converter) {
  Type type = converter.convertType(memref.getType());
  return MemRefDescriptor(
      UnrealizedConversionCastOp::create(b, loc, type, memref).getResult(0));
}

void HostCalls::lower(memref::DeallocOp op) {
  OpBuilder b(op);
  Location loc = op.getLoc();
  MemRefDescriptor descriptor = descriptorOf(b, loc, op.getMemref(), converter);
  call(b, loc, "twrt_free", {}, descriptor.allocatedPtr(b, loc));
  op.erase();
}

Value HostCalls::readInput(OpBuilder &b, Location loc, MemRefType type,
                           Value words) {
  RawMemory memory(b, loc, converter);
  SmallVector<Value> sizes;
  for (auto [dim, size] : llvm::enumerate(type.getShape()))
    sizes.push_back(ShapedType::isDynamic(size)
                        ? memory.toI64(memory.loadIndex(
                              words, kSizes + static_cast<int64_t>(dim)))
                        : memory.constantI64(size));
  return makeMemRef(b, loc, type, memory.loadPointer(words, 0), sizes);
}

void HostCalls::giveResult(OpBuilder &b, Location loc, Value result,
                           Value words) {
  RawMemory memory(b, loc, converter);
  auto type = cast<MemRefType>(result.getType());
  MemRefDescriptor descriptor = descriptorOf(b, loc, result, converter);
  SmallVector<Value> sizes;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    sizes.push_back(descriptor.size(b, loc, dim));
    memory.storeWord(sizes.back(), words, kSizes + dim);
  }
  Value data = LLVM::GEPOp::create(
      b, loc, pointer, converter.convertType(type.getElementType()),
      descriptor.alignedPtr(b, loc),
      ArrayRef<LLVM::GEPArg>{descriptor.offset(b, loc)});
  Value bytes = bytesOf(b, loc, type, sizes);
  call(b, loc, "twrt_give", {},
       {words, descriptor.allocatedPtr(b, loc), data, bytes});
}
