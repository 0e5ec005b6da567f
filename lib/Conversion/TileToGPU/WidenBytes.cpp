//===- WidenBytes.cpp - bytes as floats, several at once ------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Conversion/TileToGPU/WidenBytes.h"
#include "lib/Conversion/TileToGPU/Fragments.h"
#include "lib/Conversion/TileToGPU/MemoryAccess.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;
using namespace tilewright;

namespace {

/// Bytes of a word.
constexpr int64_t kWord = 4;
/// What makes a signed byte an unsigned one that is larger by 128.
constexpr int64_t kSigns = static_cast<int32_t>(0x80808080), kBias = 128;
/// 2^23 and 1024 in each half: the last bits of their mantissas are ones.
constexpr int64_t kSingle = 0x4B000000, kHalves = 0x64646464;

/// Makes floats of the bytes of one word.
class Widener {
public:
  Widener(OpBuilder &b, Location loc, bool isUnsigned)
      : b(b), loc(loc), isUnsigned(isUnsigned) {}

  void run(ValueRange bytes, Type to, SmallVectorImpl<Value> &results) {
    Value word =
        LLVM::BitcastOp::create(b, loc, b.getI32Type(), packRaw(b, loc, bytes));
    if (!isUnsigned)
      word = LLVM::XOrOp::create(b, loc, word, constantI32(b, loc, kSigns));
    if (to.isF16())
      return addHalves(word, results);
    for (int64_t number = 0; number < kWord; ++number) {
      Value bits = permute(word, kSingle, 0x7650 | number);
      Value raised = LLVM::BitcastOp::create(b, loc, to, bits);
      results.push_back(
          LLVM::FSubOp::create(b, loc, raised, makeFloat(to, 1 << 23)));
    }
  }

private:
  void addHalves(Value word, SmallVectorImpl<Value> &results) {
    auto pair = VectorType::get(2, b.getF16Type());
    for (int64_t selector : {0x4140, 0x4342}) {
      Value raised = LLVM::BitcastOp::create(b, loc, pair,
                                             permute(word, kHalves, selector));
      Value both =
          LLVM::FSubOp::create(b, loc, raised, makeFloat(pair, 1 << 10));
      for (int64_t half : {0, 1})
        results.push_back(LLVM::ExtractElementOp::create(
            b, loc, both, constantI32(b, loc, half)));
    }
  }

  /// Bytes of `word` (0 to 3) and of a constant (4 to 7), the lowest four bits
  /// of the selector saying which is the first.
  Value permute(Value word, int64_t constant, int64_t selector) {
    Value operands[] = {word, constantI32(b, loc, constant),
                        constantI32(b, loc, selector)};
    return LLVM::CallIntrinsicOp::create(b, loc, b.getI32Type(),
                                         b.getStringAttr("llvm.nvvm.prmt"),
                                         operands)
        .getResult(0);
  }

  Value makeFloat(Type type, int64_t value) {
    int64_t added = value + (isUnsigned ? 0 : kBias);
    auto number =
        b.getFloatAttr(getElementTypeOrSelf(type), static_cast<double>(added));
    if (auto vector = dyn_cast<VectorType>(type))
      return LLVM::ConstantOp::create(b, loc, type,
                                      DenseElementsAttr::get(vector, number));
    return LLVM::ConstantOp::create(b, loc, type, number);
  }

  OpBuilder &b;
  Location loc;
  bool isUnsigned;
};

} // namespace

bool tilewright::canWidenBytes(ValueRange bytes, Type to, int64_t arch) {
  return !isAmd(arch) && arch >= 80 && !bytes.empty() &&
         bytes.size() % kWord == 0 && bytes.front().getType().isInteger(8) &&
         (to.isF32() || to.isF16());
}

SmallVector<Value> tilewright::widenBytes(OpBuilder &b, Location loc,
                                          ValueRange bytes, Type to,
                                          bool isUnsigned) {
  Widener widener(b, loc, isUnsigned);
  SmallVector<Value> results;
  for (size_t first = 0; first < bytes.size(); first += kWord)
    widener.run(bytes.slice(first, kWord), to, results);
  return results;
}
