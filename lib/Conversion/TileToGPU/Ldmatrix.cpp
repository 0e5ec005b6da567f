//===- Ldmatrix.cpp - fragments from shared memory ------------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/Ldmatrix.h"
#include "lib/Conversion/TileToGPU/MemoryAccess.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tilewright;

/// Whether bits `first`, `first + 1`, ... of `dim` stand in `bits` from `at`
/// on.
static bool isRun(ArrayRef<CoordinateBit> bits, size_t at, size_t count,
                  int64_t dim, int64_t first) {
  if (at + count > bits.size())
    return false;
  for (size_t i = 0; i < count; ++i)
    if (bits[at + i] != CoordinateBit{dim, first + static_cast<int64_t>(i)})
      return false;
  return true;
}

std::optional<Ldmatrix> Ldmatrix::plan(const LinearLayout &layout,
                                       int64_t contiguous, Type element) {
  int64_t bytes = bytesOfElement(element);
  ArrayRef<CoordinateBit> registers = layout.getRegisterBits();
  ArrayRef<CoordinateBit> threads = layout.getThreadBits();
  if (contiguous < 0 || bytes > 2 || !isa<FloatType, IntegerType>(element) ||
      element.isInteger(1))
    return std::nullopt;
  Ldmatrix plan;
  plan.packedBits = bytes == 2 ? 1 : 2;
  auto packed = static_cast<size_t>(plan.packedBits);
  SmallVector<CoordinateBit> rowBits;
  if (isRun(registers, 0, packed, contiguous, 0) &&
      isRun(threads, 0, 2, contiguous, plan.packedBits)) {
    llvm::append_range(rowBits, threads.slice(2, 3));
  } else if (bytes == 2 && !registers.empty() &&
             isRun(threads, 2, 3, contiguous, 0)) {
    plan.transposed = true;
    rowBits = {registers[0], threads[0], threads[1]};
  } else {
    return std::nullopt;
  }
  if (llvm::any_of(rowBits, [](CoordinateBit bit) { return bit.isNone(); }))
    return std::nullopt;
  ArrayRef<CoordinateBit> rest = registers.drop_front(packed);
  plan.wordBits = std::min<int64_t>(2, static_cast<int64_t>(rest.size()));
  plan.rows = LinearLayout(layout.getRank());
  auto addThread = [&](CoordinateBit bit) {
    if (bit.isNone())
      plan.rows.addReplica();
    else
      plan.rows.addThread(bit.dim, bit.bit);
  };
  llvm::for_each(rowBits, addThread);
  for (int64_t word = 0; word < 2; ++word)
    addThread(word < plan.wordBits ? rest[word] : CoordinateBit());
  llvm::for_each(threads.drop_front(LinearLayout::laneBits), addThread);
  for (CoordinateBit bit : rest.drop_front(plan.wordBits))
    plan.rows.addRegister(bit.dim, bit.bit);
  return plan;
}

SmallVector<Value>
Ldmatrix::load(OpBuilder &b, Location loc, Type element,
               llvm::function_ref<Value(int64_t)> getPointer) const {
  int64_t words = int64_t(1) << wordBits, packed = int64_t(1) << packedBits;
  Type i32 = b.getI32Type();
  std::string name = ("llvm.nvvm.ldmatrix.sync.aligned.m8n8.x" + Twine(words) +
                      (transposed ? ".trans" : "") + ".b16.p3")
                         .str();
  Type result = i32;
  if (words > 1)
    result = LLVM::LLVMStructType::getLiteral(b.getContext(),
                                              SmallVector<Type>(words, i32));
  auto vector = VectorType::get(packed, getMemoryType(element));
  SmallVector<Value> values;
  for (int64_t number = 0; number < rows.getNumRegisters(); ++number) {
    Value all = LLVM::CallIntrinsicOp::create(
                    b, loc, result, b.getStringAttr(name), getPointer(number))
                    .getResult(0);
    for (int64_t word = 0; word < words; ++word) {
      Value one = words == 1
                      ? all
                      : Value(LLVM::ExtractValueOp::create(b, loc, all, word));
      llvm::append_range(values,
                         unpackRaw(b, loc,
                                   LLVM::BitcastOp::create(b, loc, vector, one),
                                   element));
    }
  }
  return values;
}

SmallVector<Value> Ldmatrix::pack(OpBuilder &b, Location loc,
                                  ValueRange values) const {
  int64_t packed = int64_t(1) << packedBits;
  SmallVector<Value> words;
  for (int64_t word = 0; word < int64_t(1) << wordBits; ++word)
    words.push_back(LLVM::BitcastOp::create(
        b, loc, b.getI32Type(),
        packRaw(b, loc, values.slice(word * packed, packed))));
  return words;
}

void Ldmatrix::store(OpBuilder &b, Location loc, ValueRange words,
                     Value pointer) const {
  SmallVector<Value> operands = {pointer};
  llvm::append_range(operands, words);
  std::string name =
      ("llvm.nvvm.stmatrix.sync.aligned.m8n8.x" + Twine(words.size()) +
       (transposed ? ".trans" : "") + ".b16.p3")
          .str();
  LLVM::CallIntrinsicOp::create(b, loc, b.getStringAttr(name), operands);
}
