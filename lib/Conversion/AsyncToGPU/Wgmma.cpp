//===- Wgmma.cpp - instructions of Hopper's matrix units -===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/AsyncToGPU/Wgmma.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace tilewright {

namespace {

/// Rows of one warpgroup in one instruction.
constexpr int64_t kRows = 64;

std::string operandList(unsigned first, unsigned count) {
  std::string text = "{";
  for (unsigned number = first; number < first + count; ++number)
    text += (number == first ? "$" : ", $") + std::to_string(number);
  return text + "}";
}

/// Results of assembly whose first operands are its results' old values: the
/// same registers, since the hardware writes to them later.
SmallVector<Value> emitTied(OpBuilder &b, Location loc, StringRef text,
                            ValueRange sums, ValueRange others,
                            StringRef otherConstraints) {
  bool floats = isa<FloatType>(sums.front().getType());
  std::string constraints, ties;
  for (unsigned number = 0; number < sums.size(); ++number) {
    constraints += floats ? "=f," : "=r,";
    ties += std::to_string(number) + ",";
  }
  constraints += ties + otherConstraints.str() + "~{memory}";
  SmallVector<Value> operands(sums);
  llvm::append_range(operands, others);
  SmallVector<Type> types(sums.getTypes());
  auto type = LLVM::LLVMStructType::getLiteral(b.getContext(), types);
  auto made = LLVM::InlineAsmOp::create(
      b, loc, type, operands, text, constraints, /*has_side_effects=*/true,
      /*is_align_stack=*/false, LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
      ArrayAttr());
  SmallVector<Value> results;
  for (unsigned number = 0; number < sums.size(); ++number)
    results.push_back(LLVM::ExtractValueOp::create(b, loc, made.getRes(),
                                                   ArrayRef<int64_t>{number}));
  return results;
}

} // namespace

std::string WgmmaInstruction::getText(unsigned sums, bool aInRegisters,
                                      std::optional<int64_t> selector) const {
  unsigned next = 2 * sums; // behind the results and what they are tied to
  std::string left =
      aInRegisters ? operandList(next, 4) : "$" + std::to_string(next);
  next += aInRegisters ? 4 : 1;
  std::string text;
  llvm::raw_string_ostream os(text);
  os << "{ .reg .pred p; setp.ne.b32 p, $" << next + 1
     << ", 0; wgmma.mma_async." << (selector ? "sp." : "")
     << "sync.aligned.m64n" << columns << "k" << (selector ? 2 : 1) * depth
     << types << " " << operandList(0, sums) << ", " << left << ", $" << next;
  if (selector)
    os << ", $" << next + 2 << ", " << *selector;
  os << ", p";
  bool floats = StringRef(types).starts_with(".f");
  if (floats)
    os << ", 1, 1";
  if (depth == 16) { // 16-bit operands: which of them have rows along m or n
    if (!aInRegisters)
      os << ", " << (aKMajor ? 0 : 1);
    os << ", " << (bKMajor ? 0 : 1);
  }
  os << "; }";
  return text;
}

SmallVector<Value> WgmmaInstruction::emit(OpBuilder &b, Location loc,
                                          ValueRange sums, ValueRange a,
                                          Value descriptor, Value add,
                                          SparseMeta meta) const {
  SmallVector<Value> others(a);
  others.push_back(descriptor);
  others.push_back(add);
  bool inRegisters = a.size() > 1;
  std::string constraints = inRegisters ? "r,r,r,r,l,r," : "l,l,r,";
  std::optional<int64_t> selector;
  if (meta.word) {
    others.push_back(meta.word);
    constraints += "r,";
    selector = meta.selector;
  }
  return emitTied(b, loc, getText(sums.size(), inRegisters, selector), sums,
                  others, constraints);
}

SmallVector<Value> settle(OpBuilder &b, Location loc, ValueRange values) {
  return emitTied(b, loc, "", values, {}, "");
}

SmallVector<Value> waitForProducts(OpBuilder &b, Location loc, ValueRange sums,
                                   int64_t pending, ValueRange operands) {
  std::string constraints;
  for (size_t number = 0; number < operands.size(); ++number)
    constraints += "r,";
  return emitTied(
      b, loc, "wgmma.wait_group.sync.aligned " + std::to_string(pending) + ";",
      sums, operands, constraints);
}

Value makeDescriptor(OpBuilder &b, Location loc, const WgmmaOperand &operand,
                     Value slot, Value group) {
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(b, loc, x, y);
  };
  auto multiply = [&](Value x, int64_t y) -> Value {
    return arith::MulIOp::create(b, loc, x, makeI32(b, loc, y));
  };
  Value address = memref::ExtractAlignedPointerAsIndexOp::create(
      b, loc, operand.place.base);
  address = arith::IndexCastOp::create(b, loc, b.getI32Type(), address);
  Value number = arith::IndexCastOp::create(b, loc, b.getI32Type(), slot);
  address = add(address, multiply(number, operand.place.getSlotBytes()));
  if (group)
    address = add(address, multiply(group, operand.offsetOf(kRows, 0)));
  // Bits 4 to 17 of the address.
  Value units = arith::ShRUIOp::create(b, loc, address, makeI32(b, loc, 4));
  units = arith::AndIOp::create(b, loc, units, makeI32(b, loc, 0x3fff));
  Value wide = arith::ExtUIOp::create(b, loc, b.getI64Type(), units);
  auto bits = arith::ConstantOp::create(
      b, loc, b.getI64IntegerAttr(operand.descriptorBits()));
  return arith::OrIOp::create(b, loc, wide, bits);
}

Value moveDescriptor(OpBuilder &b, Location loc, Value descriptor,
                     int64_t bytes) {
  if (bytes == 0)
    return descriptor;
  auto units =
      arith::ConstantOp::create(b, loc, b.getI64IntegerAttr(bytes / 16));
  return arith::AddIOp::create(b, loc, descriptor, units);
}

} // namespace tilewright
