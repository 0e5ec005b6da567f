//===- FloatsToBits.cpp - small floats move as integers -------------------===//
//
// Part of Tilewright, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "lib/Analysis/Device.h"
#include "lib/Transforms/ExpandFloats/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"

namespace tilewright {
#define GEN_PASS_DEF_FLOATSTOBITS
#include "lib/Transforms/ExpandFloats/Passes.h.inc"
} // namespace tilewright

using namespace mlir;
using namespace tilewright;

namespace {

struct FloatsToBits : tilewright::impl::FloatsToBitsBase<FloatsToBits> {
  using FloatsToBitsBase::FloatsToBitsBase;

  void runOnOperation() override {
    auto word = IntegerType::get(&getContext(), 16);
    bool half = moveF16 || Device(getOperation()).lacksHalf();
    auto moves = [half](Type type) {
      return type.isBF16() || (half && type.isF16());
    };
    // Instructions that compute with small floats take them as such.
    SmallVector<std::pair<OpOperand *, Type>> computing;
    getOperation()->walk([&](LLVM::CallIntrinsicOp call) {
      for (OpOperand &operand : call->getOpOperands())
        if (moves(getElementTypeOrSelf(operand.get().getType())))
          computing.emplace_back(&operand, operand.get().getType());
    });
    AttrTypeReplacer replacer;
    replacer.addReplacement([=](FloatType type) -> std::optional<Type> {
      return moves(type) ? std::optional<Type>(word) : std::nullopt;
    });
    replacer.addReplacement([=](FloatAttr value) -> std::optional<Attribute> {
      if (!moves(value.getType()))
        return std::nullopt;
      return IntegerAttr::get(word, value.getValue().bitcastToAPInt());
    });
    replacer.addReplacement(
        [=](DenseElementsAttr values) -> std::optional<Attribute> {
          if (!moves(values.getElementType()))
            return std::nullopt;
          return values.bitcast(word);
        });
    replacer.recursivelyReplaceElementsIn(getOperation(), /*replaceAttrs=*/true,
                                          /*replaceLocs=*/false,
                                          /*replaceTypes=*/true);
    for (auto [operand, type] : computing) {
      OpBuilder b(operand->getOwner());
      operand->set(LLVM::BitcastOp::create(b, operand->getOwner()->getLoc(),
                                           type, operand->get()));
    }
  }
};

} // namespace
